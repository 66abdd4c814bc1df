"""Tables of uint8 rows, each with a scale and a zero point."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.ao.nn.quantized.packed import check_type, observed, result
from rushlight.ao.observers import default_float_qparams_observer
from rushlight.base.errors import assertion_error, not_implemented_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.nn import embedding, functional
from rushlight.nn.module import Module
from rushlight.ops.tensor.quantized_tensor import QUINT8, QuantizedTensor, per_channel_affine_float_qparams


class EmbeddingPackedParams(Module):
    """The table of a quantized embedding. Its state: `dtype` and `_packed_weight`."""

    def __init__(self, weight: QuantizedTensor):
        super().__init__()
        self.dtype, self._packed_weight = QUINT8, weight

    def _weight(self) -> QuantizedTensor:
        return self._packed_weight

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"], destination[prefix + "_packed_weight"] = self.dtype, self._packed_weight

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        self.dtype, self._packed_weight = state_dict.pop(prefix + "dtype"), state_dict.pop(prefix + "_packed_weight")
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __repr__(self) -> str:
        return repr(self._packed_weight)


def table_of(module: Any, observer: Any) -> QuantizedTensor:
    """The weight of a float embedding in uint8."""
    if observer.qscheme is not per_channel_affine_float_qparams:
        raise assertion_error(
            "Embedding quantization is only supported with float_qparams_weight_only_qconfig.",
            "torch.ao.quantization.quantize_dynamic(model, {torch.nn.Embedding}, dtype=torch.quint8)",
        )
    observer(module.weight)
    return observer.quantized(module.weight)


class Embedding(Module):
    """out[...] = row input[...] of a table of uint8: (*) of integers -> (*, embedding_dim) in float32.

    Each row has a scale and a zero point. `quantize_dynamic(..., dtype=torch.quint8)` makes it from `nn.Embedding`.

    >>> rushlight.ao.nn.quantized.Embedding(10, 3)(rushlight.tensor([1, 2])).shape
    torch.Size([2, 3])
    """

    _FLOAT_MODULE: type = embedding.Embedding

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
        _weight: QuantizedTensor | None = None, dtype: Any = QUINT8,
    ):  # fmt: skip
        super().__init__()
        if dtype is not QUINT8:
            raise not_implemented_error(f"a quantized Embedding of {dtype} is not supported", "torch.quint8 is")
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        if _weight is None:
            values = np.zeros((num_embeddings, embedding_dim), np.uint8)
            ones = np.ones(num_embeddings, np.float32)
            _weight = QuantizedTensor(values, ones, np.zeros_like(ones), 0, dtype)
        self._packed_params = EmbeddingPackedParams(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        table = self._packed_params._packed_weight
        rows, scales, zeros = (
            functional.embedding(indices, from_array(a.reshape(len(a), -1)))._array
            for a in (table._values, table._scales, table._zeros)
        )
        return result((rows - zeros) * scales)

    def weight(self) -> QuantizedTensor:
        return self._packed_params._weight()

    def set_weight(self, w: QuantizedTensor) -> None:
        self._packed_params._packed_weight = w

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Embedding:
        """The quantized form of an `nn.Embedding` that has a `qconfig`."""
        check_type(mod, (cls._FLOAT_MODULE,), cls.__name__)
        weight = table_of(mod, observed(mod, default_float_qparams_observer))
        return cls(mod.num_embeddings, mod.embedding_dim, _weight=weight, **cls._settings(mod))

    @staticmethod
    def _settings(module: Any) -> dict[str, Any]:
        """The settings to copy from a float module."""
        return {}

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"


class EmbeddingBag(Embedding):
    """out[b] = the sum of the rows that bag b names, of a table of uint8.

    >>> bag = rushlight.ao.nn.quantized.EmbeddingBag(10, 3)
    >>> bag(rushlight.tensor([1, 2, 4]), rushlight.tensor([0, 2])).shape
    torch.Size([2, 3])
    """

    _FLOAT_MODULE = embedding.EmbeddingBag

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "sum", sparse: bool = False,
        _weight: QuantizedTensor | None = None, include_last_offset: bool = False, dtype: Any = QUINT8,
    ):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(
        self, indices: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return functional.embedding_bag(
            indices, self.weight().dequantize(), offsets, mode="sum", per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
        )  # fmt: skip

    @staticmethod
    def _settings(module: Any) -> dict[str, Any]:
        return {"mode": module.mode, "include_last_offset": module.include_last_offset}

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"
