"""Quantized numbers: real = (integer - zero point) * scale."""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight as torch
from rushlight import Tensor
from rushlight.onnx.tensors import numpy_type

from .casts import cast_array, element_type, torch_type
from .conv import AUTO_PAD, conv
from .table import Fixed, Ints, Value, operator

LIMITS = {"uint4": (0, 15), "int4": (-8, 7), "uint2": (0, 3), "int2": (-2, 1)}


def spread(s: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    """A scale or zero point, broadcast with x: of all of x, of each slice of an axis, or of blocks along it."""
    if s.numel() == 1 and not block_size:
        return s.reshape(())
    if block_size:
        return s.repeat_interleave(block_size, axis).narrow(axis, 0, x.shape[axis])
    return s.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def numbers(x: Any) -> Tensor:
    """Integers or small floats as a tensor of numbers: int32 or float32."""
    if isinstance(x, Tensor):
        return x.to(torch.int32) if not x.is_floating_point() else x
    return torch.as_tensor(x.astype(np.float32 if "float" in x.dtype.name else np.int32))


@operator("DequantizeLinear")
def dequantize_linear(
    x: Value, scale: Fixed, zero: Value | None = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Tensor:
    """(x - zero) * scale."""
    whole = numbers(x)
    if zero is not None:
        whole = whole - spread(numbers(zero), whole, axis, block_size)
    out = torch_type(output_dtype) if output_dtype else scale.dtype
    return whole.to(out) * spread(scale, whole, axis, block_size).to(out)


@operator("QuantizeLinear")
def quantize_linear(
    x: Tensor,
    scale: Fixed,
    zero: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    saturate: int = 1,
    precision: int = 0,
) -> Any:
    """round(x / scale) + zero within the limits of the integer type, uint8 by default."""
    to = numpy_type(output_dtype) if output_dtype else zero_type(zero)
    kind = torch_type(precision) if precision else scale.dtype
    y = x.to(kind) / spread(scale, x, axis, block_size).to(kind)
    if to.name.startswith("float"):
        return cast_array(y.detach().numpy(), to, saturate)
    y = torch.round(y)
    if zero is not None:
        y = y + spread(numbers(zero), x, axis, block_size).to(y.dtype)
    low, high = LIMITS.get(to.name) or (np.iinfo(to).min, np.iinfo(to).max)
    whole = y.clamp(low, high)
    if to.name in LIMITS:
        return whole.detach().numpy().astype(np.int32).astype(to)
    return whole.to(torch.int32).to(getattr(torch, to.name))


def zero_type(zero: Any) -> np.dtype:
    """The type of quantized numbers: the zero point's."""
    if zero is None:
        return np.dtype(np.uint8)
    return element_type(zero)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(x as uint8, scale, zero point), with the scale of x's own range."""
    low, high = torch.clamp(x.min(), max=0), torch.clamp(x.max(), min=0)
    scale = (high - low) / 255
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero = torch.round(torch.clamp(-low / scale, 0, 255))
    return (torch.round(x / scale) + zero).clamp(0, 255).to(torch.uint8), scale, zero.to(torch.uint8)


def shifted(x: Tensor, zero: Tensor | None, per_row: bool) -> Tensor:
    """x - zero as int32; a zero point of each row (of each column for the second factor)."""
    whole = x.to(torch.int32)
    if zero is None:
        return whole
    zero = zero.to(torch.int32)
    return whole - (zero.unsqueeze(-1) if per_row and zero.ndim == 1 and zero.numel() > 1 else zero)


@operator("MatMulInteger")
def matmul_integer(a: Tensor, b: Tensor, za: Fixed | None = None, zb: Fixed | None = None) -> Tensor:
    """(a - za) @ (b - zb) as int32."""
    return torch.matmul(shifted(a, za, True), shifted(b, zb, False))


@operator("ConvInteger")
def conv_integer(
    x: Tensor,
    weight: Tensor,
    zx: Fixed | None = None,
    zw: Fixed | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    group: int = 1,
    auto_pad: str = AUTO_PAD,
    kernel_shape: Ints | None = None,
) -> Tensor:
    """The convolution of x - zx with weight - zw as int32; computed in float64, where these integers are exact."""
    settings = {"strides": strides, "pads": pads, "dilations": dilations, "group": group, "auto_pad": auto_pad}
    w = weight.to(torch.float64)
    if zw is not None:
        w = w - zw.to(torch.float64).reshape([-1] + [1] * (w.ndim - 1))
    shifted_x = x.to(torch.float64) - (0 if zx is None else zx.to(torch.float64))
    return conv(shifted_x, w, **settings).to(torch.int32)  # type: ignore[arg-type]


def requantized(y: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    """round(y * scale) + zero in the type of the zero point."""
    limits = torch.iinfo(zero.dtype)
    whole = torch.round(y.to(scale.dtype) * scale) + zero.to(scale.dtype)
    return whole.clamp(limits.min, limits.max).to(zero.dtype)


@operator("QLinearMatMul")
def qlinear_matmul(a: Tensor, sa: Fixed, za: Fixed, b: Tensor, sb: Fixed, zb: Fixed, sy: Fixed, zy: Fixed) -> Tensor:
    """The product of two quantized matrices, quantized."""
    wide_sa = sa.unsqueeze(-1) if sa.ndim == 1 and sa.numel() > 1 else sa
    scale = wide_sa.to(torch.float32) * sb.to(torch.float32) / sy.to(torch.float32)
    return requantized(torch.matmul(shifted(a, za, True), shifted(b, zb, False)), scale, zy)


@operator("QLinearConv")
def qlinear_conv(
    x: Tensor,
    sx: Fixed,
    zx: Fixed,
    weight: Tensor,
    sw: Fixed,
    zw: Fixed,
    sy: Fixed,
    zy: Fixed,
    bias: Fixed | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    group: int = 1,
    auto_pad: str = AUTO_PAD,
    kernel_shape: Ints | None = None,
) -> Tensor:
    """The convolution of quantized numbers, quantized; the bias has the scale sx * sw."""
    settings = {"strides": strides, "pads": pads, "dilations": dilations, "group": group, "auto_pad": auto_pad}
    y = conv_integer(x, weight, zx, zw, **settings)  # type: ignore[arg-type]
    channel = [1, -1] + [1] * (y.ndim - 2)
    if bias is not None:
        y = y + bias.reshape(channel)
    return requantized(y, (sx * sw / sy).reshape(channel) if sw.numel() > 1 else sx * sw / sy, zy)
