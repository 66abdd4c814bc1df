"""Tensors of 8-bit integers with scales: what torch.ao's modules store, and what `quantize_per_tensor` returns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base import dtypes
from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor, created, from_array, noticed
from rushlight.kernels.int8 import ONE

QINT8, QUINT8 = dtypes.NAMES["qint8"], dtypes.NAMES["quint8"]
RANGES = {QINT8: (-128, 127), QUINT8: (0, 255)}
STORED = {QINT8: np.int8, QUINT8: np.uint8}


class qscheme:
    """How a tensor is quantized: one scale or several, around zero or not.

    >>> rushlight.per_tensor_affine
    torch.per_tensor_affine
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


per_tensor_affine, per_tensor_symmetric = qscheme("per_tensor_affine"), qscheme("per_tensor_symmetric")
per_channel_affine, per_channel_symmetric = qscheme("per_channel_affine"), qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")
QSCHEMES = (
    per_tensor_affine, per_tensor_symmetric, per_channel_affine, per_channel_symmetric,
    per_channel_affine_float_qparams,
)  # fmt: skip


class QuantizedTensor:
    """x = scale (q - zero) for integers q of 8 bits: one scale and zero, or one of each index along `axis`.

    Not a Tensor: it holds the weights of quantized modules. `dequantize()` returns a Tensor, `int_repr()` the integers.

    >>> q = rushlight.quantize_per_tensor(rushlight.tensor([0.1, 0.52]), 0.1, 0, rushlight.qint8)
    >>> q.int_repr(), q.dequantize()
    (tensor([1, 5], dtype=torch.int8), tensor([0.1000, 0.5000]))
    """

    is_quantized, requires_grad, is_meta = True, False, False

    def __init__(self, values: ndarray, scales: ndarray, zeros: ndarray, axis: int | None, dtype: dtypes.dtype):
        self._values, self._scales, self._zeros, self._axis, self.dtype = values, scales, zeros, axis, dtype

    @property
    def shape(self) -> Size:
        return Size(self._values.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return self._values.ndim

    def numel(self) -> int:
        return self._values.size

    def qscheme(self) -> qscheme:
        if self._axis is None:
            return per_tensor_affine
        return per_channel_affine_float_qparams if self._zeros.dtype.kind == "f" else per_channel_affine

    def q_scale(self) -> float:
        self._check(per_tensor=True)
        return float(self._scales[0])

    def q_zero_point(self) -> int:
        self._check(per_tensor=True)
        return int(self._zeros[0])

    def q_per_channel_scales(self) -> Tensor:
        self._check(per_tensor=False)
        return from_array(self._scales.copy())

    def q_per_channel_zero_points(self) -> Tensor:
        self._check(per_tensor=False)
        return from_array(self._zeros.copy())

    def q_per_channel_axis(self) -> int:
        self._check(per_tensor=False)
        return self._axis  # type: ignore[return-value]

    def _check(self, per_tensor: bool) -> None:
        if per_tensor != (self._axis is None):
            raise runtime_error(
                f"Expected a tensor quantized {'per tensor' if per_tensor else 'per channel'}, got {self.qscheme()}"
            )

    def int_repr(self) -> Tensor:
        """The integers, in int8 or uint8."""
        return from_array(self._values.copy())

    def dequantize(self) -> Tensor:
        """scale (q - zero), in float32."""
        zeros, scales = (along(a, self._axis, self._values.ndim) for a in (self._zeros, self._scales))
        return from_array(((self._values - zeros) * scales).astype(np.float32))

    def detach(self) -> QuantizedTensor:
        return self

    cpu = contiguous = detach

    def clone(self) -> QuantizedTensor:
        return QuantizedTensor(self._values.copy(), self._scales, self._zeros, self._axis, self.dtype)

    def __repr__(self) -> str:
        body = repr(self.dequantize()).removesuffix(")")
        more = f"scale={self.q_scale()}, zero_point={self.q_zero_point()}" if self._axis is None else (
            f"scale={self.q_per_channel_scales()}, zero_point={self.q_per_channel_zero_points()}, axis={self._axis}"
        )  # fmt: skip
        return f"{body}, size={tuple(self.shape)}, dtype={self.dtype}, quantization_scheme={self.qscheme()}, {more})"


def along(array: ndarray, axis: int | None, ndim: int) -> ndarray:
    """(n,) in the shape that broadcasts along an axis of `ndim` dimensions."""
    return array if axis is None else array.reshape([-1 if i == axis else 1 for i in range(ndim)])


def quantized(x: ndarray, scales: ndarray, zeros: ndarray, axis: int | None, dtype: dtypes.dtype) -> ndarray:
    """The integers nearest to x / scale + zero, in the range of the dtype."""
    if dtype not in RANGES:
        raise not_implemented_error(f"quantization to {dtype} is not supported", "torch.qint8 and torch.quint8 are")
    scale, zero = along(scales.astype(np.float32), axis, x.ndim), along(zeros, axis, x.ndim)
    if zeros.dtype.kind == "f":
        near = np.rint(x * (ONE / scale) + zero)
    else:
        near = np.rint(x * (ONE / scale)) + zero
    return np.clip(near, *RANGES[dtype]).astype(STORED[dtype])


def floats(x: Tensor) -> ndarray:
    """The elements of a float32 tensor."""
    noticed(x)
    if x._array.dtype != np.float32:
        raise runtime_error(f"Quantize only works on Float Tensor, got {x.dtype.scalar_type}", "convert with x.float()")
    return x._array


def quantize_per_tensor(input: Tensor, scale: Any, zero_point: Any, dtype: dtypes.dtype) -> QuantizedTensor:
    """q = round(input / scale) + zero_point, in the range of `dtype`: torch.qint8 or torch.quint8.

    >>> rushlight.quantize_per_tensor(rushlight.tensor([-1., 0., 9.]), 0.5, 10, rushlight.quint8).int_repr()
    tensor([ 8, 10, 28], dtype=torch.uint8)
    """
    scales, zeros = np.array([float(scale)]), np.array([int(zero_point)])
    return QuantizedTensor(quantized(floats(input), scales, zeros, None, dtype), scales, zeros, None, dtype)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: dtypes.dtype
) -> QuantizedTensor:
    """q = round(input / scale) + zero_point, with a scale and a zero point for each index along `axis`.

    >>> x, one = rushlight.tensor([[1., 2.], [3., 4.]]), rushlight.zeros(2, dtype=rushlight.int64)
    >>> rushlight.quantize_per_channel(x, rushlight.tensor([0.1, 1.]), one, 0, rushlight.qint8).int_repr()
    tensor([[10, 20],
            [ 3,  4]], dtype=torch.int8)
    """
    noticed(scales)
    noticed(zero_points)
    real = zero_points._array.dtype.kind == "f"
    each = scales._array.astype(np.float32 if real else np.float64)
    zeros = zero_points._array.astype(np.float32 if real else np.int64)
    if not each.shape == zeros.shape == (input.shape[axis],):
        raise runtime_error("length of scales must equal to the size of the quantized axis", shape=tuple(input.shape))
    axis %= input.dim()
    return QuantizedTensor(quantized(floats(input), each, zeros, axis, dtype), each, zeros, axis, dtype)


def dequantize(tensor: Any) -> Any:
    """scale (q - zero) of a quantized tensor, in float32; other tensors in float32.

    >>> rushlight.dequantize(rushlight.quantize_per_tensor(rushlight.ones(1), 0.3, 0, rushlight.qint8))
    tensor([0.9000])
    """
    return created(tensor.dequantize()) if isinstance(tensor, QuantizedTensor) else tensor.float()
