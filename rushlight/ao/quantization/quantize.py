"""quantize_dynamic: modules are replaced by quantized ones."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from rushlight.ao.nn import quantized
from rushlight.ao.nn.quantized import dynamic
from rushlight.ao.quantization.qconfig import (
    QConfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
)  # fmt: skip
from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, value_error
from rushlight.nn import embedding, linear, multihead, recurrent
from rushlight.nn.module import Module
from rushlight.ops.tensor.quantized_tensor import QINT8, QUINT8

Mappings = Mapping[type, Any]
DYNAMIC: dict[type, Any] = {
    linear.Linear: dynamic.Linear,
    multihead.NonDynamicallyQuantizableLinear: dynamic.Linear,
    recurrent.LSTM: dynamic.LSTM,
    recurrent.GRU: dynamic.GRU,
    recurrent.LSTMCell: dynamic.LSTMCell,
    recurrent.GRUCell: dynamic.GRUCell,
    recurrent.RNNCell: dynamic.RNNCell,
    embedding.Embedding: quantized.Embedding,
    embedding.EmbeddingBag: quantized.EmbeddingBag,
}
TABLES = (embedding.Embedding, embedding.EmbeddingBag)
LAYERS = tuple(kind for kind in DYNAMIC if kind not in (*TABLES, multihead.NonDynamicallyQuantizableLinear))
QCONFIGS = {
    QINT8: default_dynamic_qconfig,
    dtypes.float16: float16_dynamic_qconfig,
    QUINT8: float_qparams_weight_only_qconfig,
}


def quantize_dynamic(
    model: Module, qconfig_spec: Any = None, dtype: Any = QINT8, mapping: Mappings | None = None, inplace: bool = False
) -> Module:
    """A copy of the model whose layers have weights of 8 bits; their input is quantized when it arrives.

    `qconfig_spec`: a set of types and names of modules, or a dict from them to a `QConfig`; by default Linear, LSTM,
    GRU and the cells for torch.qint8, embeddings for torch.quint8. A type's or name's setting holds for the modules in
    it. `mapping`: {type: type that replaces it}. The model itself is not replaced, only modules in it.

    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(4, 2))
    >>> rushlight.ao.quantization.quantize_dynamic(model, {rushlight.nn.Linear})
    Sequential(
      (0): DynamicQuantizedLinear(in_features=4, out_features=2, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
    )
    """
    chosen = settings(qconfig_spec, dtype)
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    convert_children(model, chosen, DYNAMIC if mapping is None else mapping, "", None)
    return model


def settings(spec: Any, dtype: Any) -> dict[Any, QConfig | None]:
    """{type or name of a module: QConfig}."""
    if isinstance(spec, Mapping):
        return dict(spec)
    if dtype not in QCONFIGS:
        if spec is None:
            raise value_error(
                f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please"
            )
        raise runtime_error(f"Unknown dtype specified for quantize_dynamic: {dtype}")
    chosen = (TABLES if dtype is QUINT8 else LAYERS) if spec is None else spec
    return dict.fromkeys(chosen, QCONFIGS[dtype])


def convert_children(
    module: Module, chosen: Mapping[Any, QConfig | None], mapping: Mappings, path: str, inherited: QConfig | None
) -> None:
    """Replace the modules in `module`, whose name is `path`. `inherited`: the setting of the module around it."""
    own = setting(module, chosen, path, inherited)
    for name, child in list(module._modules.items()):
        if child is not None:
            inside = f"{path}.{name}" if path else name
            convert_children(child, chosen, mapping, inside, own)
            module._modules[name] = converted(child, setting(child, chosen, inside, own), mapping)


def setting(
    module: Module, chosen: Mapping[Any, QConfig | None], path: str, inherited: QConfig | None
) -> QConfig | None:
    """The `qconfig` of the module, else the setting of the name, of the type, or of the module around this one."""
    return getattr(module, "qconfig", chosen.get(path, chosen.get(type(module), inherited)))


def converted(module: Module, qconfig: QConfig | None, mapping: Mappings) -> Module:
    """The module that replaces this one, with its hooks."""
    if qconfig is None or type(module) not in mapping:
        return module
    module.qconfig = qconfig
    made = mapping[type(module)].from_float(module)
    for hook in module._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in module._forward_hooks.values():
        made.register_forward_hook(hook)
    return made


def get_default_dynamic_quant_module_mappings() -> dict[type, Any]:
    """{type of a module: the type that replaces it}.

    >>> rushlight.ao.quantization.get_default_dynamic_quant_module_mappings()[rushlight.nn.Linear].__name__
    'Linear'
    """
    return dict(DYNAMIC)
