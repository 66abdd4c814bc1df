"""A linear map of int8 weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.ao.nn.quantized.packed import (
    by_rows,
    check_type,
    elements,
    observed,
    packed,
    quantized_weight,
    result,
    unpacked,
)  # fmt: skip
from rushlight.ao.observers import default_weight_observer
from rushlight.base.dtypes import float32
from rushlight.base.errors import not_implemented_error
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, from_array
from rushlight.kernels.int8 import Int8Weight, linear_by_tensor
from rushlight.nn.linear import Linear as FloatLinear
from rushlight.nn.module import Module
from rushlight.nn.multihead import NonDynamicallyQuantizableLinear
from rushlight.ops.nn.quantized import int8_linear
from rushlight.ops.tensor.quantized_tensor import QINT8, QuantizedTensor

MOST, MOST_REDUCED = 255, 127  # the largest activation; torch's modules use half of the range since their version 4
REDUCING_VERSION = 4


class LinearPackedParams(Module):
    """The weight and the bias of a quantized linear map. Its state: `dtype`, and `_packed_params`, the pair of both."""

    _version = 3

    def __init__(self, weight: Int8Weight):
        super().__init__()
        self.dtype, self._packed_params = QINT8, weight

    def _weight_bias(self) -> tuple[QuantizedTensor, Tensor | None]:
        return unpacked(self._packed_params)

    def set_weight_bias(self, weight: QuantizedTensor, bias: Tensor | None) -> None:
        self._packed_params = packed(weight, bias)

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(Module):
    """out = x w^T + b, (..., in) -> (..., out) in float32: w in int8, x quantized to one scale when it arrives.

    `quantize_dynamic` makes it from an `nn.Linear`. The products are summed in int32.

    >>> quantized = rushlight.ao.nn.quantized.dynamic.Linear(4, 2)
    >>> quantized(rushlight.ones(3, 4)).shape, quantized.weight().dtype
    (torch.Size([3, 2]), torch.qint8)
    """

    _version = REDUCING_VERSION
    _FLOAT_MODULE = (FloatLinear, NonDynamicallyQuantizableLinear)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = QINT8):
        super().__init__()
        if dtype is not QINT8:
            raise not_implemented_error(f"a quantized Linear of {dtype} is not supported", "torch.qint8 is")
        self.in_features, self.out_features, self.scale, self.zero_point = in_features, out_features, 1.0, 0
        self.version: int | None = self._version
        bias = np.zeros(out_features, np.float32) if bias_ else None
        self._packed_params = LinearPackedParams(
            Int8Weight(np.zeros((out_features, in_features), np.int8), np.ones(1), None, bias)
        )

    def forward(self, x: Tensor) -> Tensor:
        weight = self._modules["_packed_params"].__dict__["_packed_params"]
        most = MOST_REDUCED if self.version is not None and self.version >= REDUCING_VERSION else MOST
        if mode().watch is not None and x.dtype is float32 and x._node is None and x.shape[-1:] == (self.in_features,):
            return int8_linear(x, weight, most)
        return result(by_rows(linear_by_tensor, elements(x), weight, most), x)

    def weight(self) -> QuantizedTensor:
        return self._packed_params._weight_bias()[0]

    def bias(self) -> Tensor | None:
        return self._packed_params._weight_bias()[1]

    def set_weight_bias(self, w: QuantizedTensor, b: Tensor | None) -> None:
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """The quantized form of an `nn.Linear` that has a `qconfig`."""
        check_type(mod, cls._FLOAT_MODULE, "Linear")
        made = cls(mod.in_features, mod.out_features)
        made.set_weight_bias(quantized_weight(mod.weight, observed(mod, default_weight_observer)), mod.bias)
        return made

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = from_array(np.array(self.scale, np.float32))
        destination[prefix + "zero_point"] = from_array(np.array(self.zero_point))

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        self.version = local_metadata.get("version")
        self.scale, self.zero_point = (
            float(state_dict.pop(prefix + "scale")), int(state_dict.pop(prefix + "zero_point")),
        )  # fmt: skip
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"
