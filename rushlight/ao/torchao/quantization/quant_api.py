"""quantize_: the weights of linear layers and embeddings become int8, in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rushlight.ao.nn.quantized.packed import by_rows, elements, result
from rushlight.ao.torchao.quantization.granularity import Granularity, MappingType, PerRow, PerTensor
from rushlight.ao.torchao.quantization.int8_tensor import Int8Tensor
from rushlight.base.errors import not_implemented_error, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.kernels.int8 import linear_by_rows, linear_of_floats
from rushlight.nn import functional
from rushlight.nn.embedding import Embedding
from rushlight.nn.linear import Linear
from rushlight.nn.module import Module
from rushlight.nn.multihead import NonDynamicallyQuantizableLinear


class AOBaseConfig:
    """The base of configurations for `quantize_`."""


@dataclass
class Int8WeightOnlyConfig(AOBaseConfig):
    """Weights in int8, with a scale for each row; activations stay in float32."""

    group_size: int | None = None
    granularity: Granularity | None = field(default_factory=PerRow)
    set_inductor_config: bool = True
    version: int = 2

    def tensor(self, weight: Tensor) -> Int8Tensor:
        """The weight in int8."""
        check(self, PerTensor, PerRow)
        return Int8Tensor.from_hp(weight, self.granularity)


@dataclass
class Int8DynamicActivationInt8WeightConfig(AOBaseConfig):
    """Weights in int8, with a scale for each row; activations become int8 when they arrive, each row by its own
    scale."""

    act_mapping_type: MappingType = MappingType.SYMMETRIC
    weight_only_decode: bool = False
    granularity: Granularity | None = field(default_factory=PerRow)
    set_inductor_config: bool = True
    version: int = 2
    reduce_range: bool = False

    def tensor(self, weight: Tensor) -> Int8Tensor:
        """The weight in int8."""
        check(self, PerRow)
        if self.weight_only_decode or self.reduce_range:
            raise not_implemented_error("weight_only_decode and reduce_range are not supported")
        return Int8Tensor.from_hp(weight, self.granularity, self.act_mapping_type)


def check(config: Any, *supported: type) -> None:
    """NotImplementedError for settings that are not supported."""
    if config.version != 2 or getattr(config, "group_size", None) is not None:
        raise not_implemented_error("group_size and version 1 are not supported", "granularity=PerRow()")
    known = config.granularity is None or isinstance(config.granularity, supported)
    if not known or getattr(config.granularity, "dim", -1) != -1:
        raise not_implemented_error(f"granularity={config.granularity} is not supported", "granularity=PerRow()")


class Int8Linear(Linear):
    """A Linear whose weight is an `Int8Tensor`. `quantize_` makes it from a Linear, in place."""

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters
        weight, bias = own["weight"], own["bias"]
        if weight.__class__ is not Int8Tensor:
            return super().forward(input)
        array, held = elements(input), weight.packed
        if weight.act_mapping is None:
            found = by_rows(linear_of_floats, array, held)
        else:
            found = by_rows(linear_by_rows, array, held, weight.act_mapping is MappingType.SYMMETRIC)
        if bias is None:
            return result(found, input)
        found += bias._array
        return result(found, input, bias)

    def _get_name(self) -> str:
        return "Linear"

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, weight=Int8Tensor"


class Int8Embedding(Embedding):
    """An Embedding whose weight is an `Int8Tensor`. `quantize_` makes it from an Embedding, in place."""

    def forward(self, input: Tensor) -> Tensor:
        held = self.weight.packed  # type: ignore[attr-defined]
        rows = functional.embedding(input, from_array(held.values()))._array
        scales = held.scales if len(held.scales) == 1 else held.scales[input._array, None]
        return result(rows * scales)

    def _get_name(self) -> str:
        return "Embedding"

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, weight=Int8Tensor"


CLASSES: dict[type, type] = {Linear: Int8Linear, Embedding: Int8Embedding}


def is_linear(module: Module, name: str) -> bool:
    """Whether `quantize_` converts the module by default."""
    return isinstance(module, Linear) and not isinstance(module, NonDynamicallyQuantizableLinear)


def quantize_(
    model: Module, config: AOBaseConfig, filter_fn: Callable[[Module, str], bool] | None = is_linear, device: Any = None
) -> None:
    """Convert the weights of modules to int8, in place. `filter_fn(module, name)` chooses modules: by default all
    linear layers. Linear and Embedding can be chosen.

    >>> from rushlight.ao.torchao.quantization import Int8WeightOnlyConfig, quantize_
    >>> model = rushlight.nn.Sequential(rushlight.nn.Linear(4, 2))
    >>> quantize_(model, Int8WeightOnlyConfig())
    >>> model[0].weight.qdata.dtype
    torch.int8
    """
    if not isinstance(config, AOBaseConfig):
        raise value_error(f"quantize_ takes a configuration, not {type(config).__name__}", "Int8WeightOnlyConfig()")
    chosen = filter_fn or is_linear
    for name, module in list(model.named_modules()):
        if chosen(module, name):
            convert(module, config)


def convert(module: Any, config: Any) -> None:
    """Give a module an int8 weight, and the class that computes with it."""
    kind = next((new for old, new in CLASSES.items() if type(module) in (old, new)), None)
    if kind is None:
        raise not_implemented_error(
            f"int8 weights of {type(module).__name__} are not supported", "filter_fn may choose Linear and Embedding"
        )
    if not isinstance(module.weight, Int8Tensor):
        module._parameters["weight"] = config.tensor(module.weight)
        module.__class__ = kind
