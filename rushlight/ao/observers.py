"""Observers: modules that see tensors, and choose the scales and zero points to quantize them with."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.kernels.int8 import EPS
from rushlight.nn.module import Module
from rushlight.ops.tensor.quantized_tensor import (
    QINT8,
    QUINT8,
    RANGES,
    QuantizedTensor,
    floats,
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qscheme,
    quantized,
)  # fmt: skip

PER_CHANNEL = (per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams)
SYMMETRIC = (per_tensor_symmetric, per_channel_symmetric)
UINT8_MIDDLE = 128  # the zero point of symmetric numbers in quint8


class ObserverBase(Module):
    """The base of observers: `dtype` is the type that tensors are quantized to."""

    def __init__(self, dtype: Any, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @classmethod
    def with_args(cls, **settings: Any) -> Any:
        """A function that makes observers with these settings."""
        return partial(cls, **settings)


class PlaceholderObserver(ObserverBase):
    """An observer that holds a dtype: the activations of dynamic quantization get their scales when they arrive."""

    def __init__(
        self, dtype: Any = None, custom_op_name: str = "", compute_dtype: Any = None, quant_min: int | None = None,
        quant_max: int | None = None, qscheme: Any = None, eps: float | None = None, is_dynamic: bool = False,
    ):  # fmt: skip
        super().__init__(dtype, is_dynamic)
        self.qscheme, self.quant_min, self.quant_max, self.eps = qscheme or per_tensor_affine, quant_min, quant_max, eps
        self.custom_op = custom_op_name

    def forward(self, x: Any) -> Any:
        return x


class MinMaxObserver(ObserverBase):
    """The least and the largest element seen so far determine one scale and zero point.

    >>> MinMaxObserver = rushlight.ao.quantization.MinMaxObserver
    >>> observer = MinMaxObserver(rushlight.qint8, rushlight.per_tensor_symmetric)
    >>> _ = observer(rushlight.tensor([-1.0, 0.5]))
    >>> observer.calculate_qparams()
    (tensor([0.0078]), tensor([0]))
    """

    schemes: tuple[qscheme, ...] = (per_tensor_affine, per_tensor_symmetric)

    def __init__(
        self, dtype: Any = QUINT8, qscheme: qscheme | None = None, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: Any = None,
        eps: float = float(EPS), is_dynamic: bool = False,
    ):  # fmt: skip
        super().__init__(dtype, is_dynamic)
        self.qscheme = self.schemes[0] if qscheme is None else qscheme
        if self.qscheme not in self.schemes:
            raise not_implemented_error(f"{type(self).__name__}'s qscheme only support {self.schemes}")
        if dtype not in RANGES:
            raise not_implemented_error(f"observers of {dtype} are not supported", "torch.qint8 and torch.quint8 are")
        if reduce_range and dtype is QUINT8 and self.qscheme is per_tensor_symmetric:
            raise not_implemented_error("Cannot reduce range for symmetric quantization for quint8")
        low, high = RANGES[dtype]
        self.reduce_range, self.eps = reduce_range, eps
        self.custom_range = quant_min is not None and quant_max is not None
        if self.custom_range:
            low, high = quant_min, quant_max  # type: ignore[assignment]
        self.quant_min, self.quant_max = (low // 2, high // 2) if reduce_range else (low, high)
        self._low: ndarray | None = None
        self._high: ndarray | None = None

    min_val = property(lambda self: from_array(np.array(np.inf, np.float32) if self._low is None else self._low))
    max_val = property(lambda self: from_array(np.array(-np.inf, np.float32) if self._high is None else self._high))

    def extremes(self, x: ndarray) -> tuple[ndarray, ndarray]:
        """The least and the largest element, as arrays of the scales' shape."""
        return np.min(x)[None], np.max(x)[None]

    def forward(self, x: Tensor) -> Tensor:
        if x.numel():
            low, high = self.extremes(floats(x.detach().float()))
            self._low = low if self._low is None else np.minimum(low, self._low)
            self._high = high if self._high is None else np.maximum(high, self._high)
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """(scales, zero points) for the tensors that have been seen."""
        if self._low is None or self._high is None:
            raise runtime_error("the observer has seen no tensor", "call observer(x) before calculate_qparams()")
        return tuple(map(from_array, self.scales_and_zeros(self._low, self._high)))  # type: ignore[return-value]

    def scales_and_zeros(self, low: ndarray, high: ndarray) -> tuple[ndarray, ndarray]:
        steps = np.float32(self.quant_max - self.quant_min)
        if self.qscheme is per_channel_affine_float_qparams:
            scale = (high - low) / steps
            scale = np.where(scale > self.eps, scale, np.float32(1))
            return scale, -low / scale
        low, high = np.minimum(low, 0), np.maximum(high, 0)
        if self.qscheme in SYMMETRIC:
            scale = np.maximum(np.maximum(-low, high) / (steps / 2), np.float32(self.eps))
            middle = (self.quant_min + self.quant_max) // 2 if self.custom_range else UINT8_MIDDLE
            return scale, np.full(scale.shape, middle if self.dtype is QUINT8 else 0)
        scale = np.maximum((high - low) / steps, np.float32(self.eps))
        zero = self.quant_min - np.rint(low / scale).astype(np.int64)
        return scale, np.clip(zero, self.quant_min, self.quant_max)

    def quantized(self, x: Tensor) -> QuantizedTensor:
        """A tensor that has been seen, quantized."""
        scale, zero = (t._array for t in self.calculate_qparams())
        axis = getattr(self, "ch_axis", None)
        dtype = self.dtype if self.qscheme is per_channel_affine_float_qparams else QINT8
        wide = zero.dtype.kind == "i"
        values = quantized(floats(x.detach().float()), scale, zero, axis, dtype)
        values = np.clip(values, self.quant_min, self.quant_max)
        return QuantizedTensor(values, scale.astype(np.float64) if wide else scale, zero, axis, dtype)


class PerChannelMinMaxObserver(MinMaxObserver):
    """The least and the largest element of each index along `ch_axis` determine its scale and zero point."""

    schemes = PER_CHANNEL

    def __init__(self, ch_axis: int = 0, dtype: Any = QUINT8, qscheme: qscheme | None = None, **settings: Any):
        super().__init__(dtype, qscheme, **settings)
        self.ch_axis = ch_axis

    def extremes(self, x: ndarray) -> tuple[ndarray, ndarray]:
        others = tuple(i for i in range(x.ndim) if i != self.ch_axis)
        return x.min(others), x.max(others)


default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=QUINT8, quant_min=0, quant_max=255, is_dynamic=True
)
default_weight_observer = MinMaxObserver.with_args(dtype=QINT8, qscheme=per_tensor_symmetric)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(dtype=QINT8, qscheme=per_channel_symmetric)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=QUINT8, qscheme=per_channel_affine_float_qparams, ch_axis=0
)
default_placeholder_observer = PlaceholderObserver
