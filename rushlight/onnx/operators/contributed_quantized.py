"""Quantized operators of com.microsoft, the domain of onnxruntime: real = (integer - zero point) * scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .conv import AUTO_PAD
from .pool import average_pool
from .quantized import dequantize_linear, dynamic_quantize_linear, quantize_linear, shifted
from .table import MICROSOFT, Fixed, Ints, Value, operator


@operator("DequantizeLinear", domain=MICROSOFT)
def dequantized(x: Value, scale: Fixed, zero: Value | None = None, *, axis: int = 1) -> Tensor:
    """(x - zero) * scale."""
    return dequantize_linear(x, scale, zero, axis=axis)


@operator("QuantizeLinear", domain=MICROSOFT)
def quantized(x: Tensor, scale: Fixed, zero: Value | None = None, *, axis: int = 1) -> Any:
    """round(x / scale) + zero."""
    return quantize_linear(x, scale, zero, axis=axis)


def real(x: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """The numbers that integers stand for."""
    return dequantize_linear(x, scale, zero)


def of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    """The function of two quantized tensors, quantized."""

    def run(
        a: Tensor, sa: Fixed, za: Fixed | None, b: Tensor, sb: Fixed, zb: Fixed | None, sy: Fixed,
        zy: Fixed | None = None,
    ) -> Any:  # fmt: skip
        return quantize_linear(function(real(a, sa, za), real(b, sb, zb)), sy, zy)

    return run


operator("QLinearAdd", domain=MICROSOFT)(of_two(lambda a, b: a + b))
operator("QLinearMul", domain=MICROSOFT)(of_two(lambda a, b: a * b))


@operator("QLinearSigmoid", domain=MICROSOFT)
def qlinear_sigmoid(x: Tensor, sx: Fixed, zx: Fixed | None, sy: Fixed, zy: Fixed | None = None) -> Any:
    """The sigmoid of quantized numbers, quantized."""
    return quantize_linear(torch.sigmoid(real(x, sx, zx)), sy, zy)


@operator("QLinearLeakyRelu", domain=MICROSOFT)
def qlinear_leaky_relu(
    x: Tensor, sx: Fixed, zx: Fixed | None, sy: Fixed, zy: Fixed | None = None, *, alpha: float = 0.01
) -> Any:
    """leaky_relu of quantized numbers, quantized."""
    return quantize_linear(F.leaky_relu(real(x, sx, zx), alpha), sy, zy)


@operator("QLinearGlobalAveragePool", domain=MICROSOFT)
def qlinear_global_average_pool(
    x: Tensor, sx: Fixed, zx: Fixed, sy: Fixed, zy: Fixed, *, channels_last: int = 0
) -> Any:
    """The mean of each channel of quantized numbers, quantized."""
    dims = list(range(1, x.ndim - 1)) if channels_last else list(range(2, x.ndim))
    return quantize_linear(real(x, sx, zx).mean(dims, keepdim=True), sy, zy)


@operator("QLinearAveragePool", domain=MICROSOFT)
def qlinear_average_pool(
    x: Tensor,
    sx: Fixed,
    zx: Fixed | None,
    sy: Fixed,
    zy: Fixed | None = None,
    *,
    kernel_shape: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
    auto_pad: str = AUTO_PAD,
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    channels_last: int = 0,
) -> Any:
    """Means of windows of quantized numbers, quantized."""
    y = real(x, sx, zx)
    y = average_pool(
        y.movedim(-1, 1) if channels_last else y, kernel_shape=kernel_shape, strides=strides, pads=pads,
        auto_pad=auto_pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad,
    )  # fmt: skip
    return quantize_linear(y.movedim(1, -1) if channels_last else y, sy, zy)


@operator("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(sy: Fixed, zy: Fixed, *parts: Tensor, axis: int) -> Any:
    """Quantized tensors (integers, scale, zero point), joined and quantized."""
    each = [real(*parts[k : k + 3]) for k in range(0, len(parts), 3)]
    return quantize_linear(torch.cat(each, axis), sy, zy)


@operator("QLinearSoftmax", domain=MICROSOFT)
def qlinear_softmax(
    x: Tensor, sx: Fixed, zx: Fixed | None, sy: Fixed, zy: Fixed, *, axis: int = -1, opset: int = 13
) -> Any:
    """The softmax of quantized numbers along an axis, quantized."""
    return quantize_linear(torch.softmax(real(x, sx, zx), axis), sy, zy)


@operator("QGemm", domain=MICROSOFT)
def qgemm(
    a: Tensor,
    sa: Fixed,
    za: Fixed,
    b: Tensor,
    sb: Fixed,
    zb: Fixed,
    c: Fixed | None = None,
    sy: Fixed | None = None,
    zy: Fixed | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """alpha a b + c of quantized matrices; quantized if a scale is given. The bias c has the scale alpha sa sb."""
    left = shifted(a.T if transA else a, za, False)
    right = shifted(b, zb.reshape(-1, 1) if transB and zb.numel() > 1 else zb, False)
    whole = left @ (right.T if transB else right)
    whole = whole if c is None else whole + c
    y = whole.to(torch.float32) * (alpha * sa * sb)
    return y if sy is None else quantize_linear(y, sy, zy)


@operator("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(
    a: Tensor,
    b: Tensor,
    sa: Fixed,
    sb: Fixed,
    za: Fixed | None = None,
    zb: Fixed | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """The product of two quantized matrices as floats."""
    y = torch.matmul(shifted(a, za, True), shifted(b, zb, False)).to(torch.float32) * (sa * sb)
    return y if bias is None else y + bias


@operator("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(
    a: Tensor, b: Tensor, sb: Fixed, zb: Fixed | None = None, bias: Tensor | None = None
) -> Tensor:
    """The product of a, quantized by its own range, and a quantized matrix, as floats."""
    whole, sa, za = dynamic_quantize_linear(a)
    return matmul_integer_to_float(whole, b, sa, sb, za, zb, bias)


@operator("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(
    a: Tensor,
    b: Value,
    scales: Fixed,
    zeros: Value | None = None,
    g_idx: Fixed | None = None,
    bias: Tensor | None = None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Tensor:
    """a @ W^T for weights W [N, K] of few bits in blocks [N, K / block_size, bytes], with a scale for each block."""
    if g_idx is not None or weight_prepacked:
        raise NotImplementedError("MatMulNBits with g_idx or prepacked weights is not supported")
    blocks = -(-K // block_size)
    whole = unpacked(b, bits).reshape(N, blocks, -1)[..., :block_size]
    middle: Any = 2 ** (bits - 1)
    if isinstance(zeros, Tensor) and zeros.is_floating_point():
        middle = zeros.reshape(N, blocks, 1)
    elif zeros is not None:
        middle = unpacked(zeros, bits).reshape(N, -1)[:, :blocks].unsqueeze(-1)
    weight = ((whole - middle) * scales.reshape(N, blocks, 1)).reshape(N, -1)[:, :K]
    return F.linear(a, weight.to(a.dtype), bias)


def unpacked(packed: Any, bits: int) -> Tensor:
    """The numbers of `bits` bits in bytes, the lowest bits first, as float32."""
    whole = torch.as_tensor(packed).to(torch.int32)
    parts = [(whole >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return torch.stack(parts, -1).flatten(-2).to(torch.float32)
