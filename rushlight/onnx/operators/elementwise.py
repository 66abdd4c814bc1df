"""Elementwise operators: arithmetic, comparisons, logic, bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .table import Fixed, Scalar, operator

# ONNX's operator: the function of torch that computes the same
UNARY = {
    "Abs": "torch.abs", "Neg": "torch.neg", "Exp": "torch.exp", "Log": "torch.log", "Sqrt": "torch.sqrt",
    "Reciprocal": "torch.reciprocal", "Floor": "torch.floor", "Ceil": "torch.ceil", "Round": "torch.round",
    "Sign": "torch.sign", "Erf": "torch.erf", "Sin": "torch.sin", "Cos": "torch.cos", "Tan": "torch.tan",
    "Asin": "torch.asin", "Acos": "torch.acos", "Atan": "torch.atan", "Sinh": "torch.sinh", "Cosh": "torch.cosh",
    "Asinh": "torch.asinh", "Acosh": "torch.acosh", "Atanh": "torch.atanh", "Not": "torch.logical_not",
    "IsNaN": "torch.isnan", "BitwiseNot": "torch.bitwise_not", "Sigmoid": "torch.sigmoid", "Tanh": "torch.tanh",
    "Relu": "F.relu", "Softsign": "F.softsign", "Mish": "F.mish", "HardSwish": "F.hardswish", "Softplus": "F.softplus",
}  # fmt: skip
BINARY = {
    "MatMul": "torch.matmul", "Equal": "torch.eq", "Less": "torch.lt", "LessOrEqual": "torch.le",
    "Greater": "torch.gt", "GreaterOrEqual": "torch.ge", "And": "torch.logical_and", "Or": "torch.logical_or",
    "Xor": "torch.logical_xor", "BitwiseAnd": "torch.bitwise_and", "BitwiseOr": "torch.bitwise_or",
    "BitwiseXor": "torch.bitwise_xor",
}  # fmt: skip
ARITHMETIC = {"Add": "torch.add", "Sub": "torch.sub", "Mul": "torch.mul"}


def named(text: str) -> Callable[..., Any]:
    """The function of `torch.abs` or `F.relu`."""
    return getattr(F if text.startswith("F.") else torch, text.partition(".")[2])


class Unary:
    """A function of one tensor."""

    def __init__(self, text: str):
        self.function = named(text)

    def __call__(self, x: Tensor) -> Tensor:
        return self.function(x)


class Binary(Unary):
    """A function of two tensors."""

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return self.function(x, y)


for _name, _text in UNARY.items():
    operator(_name, text=_text)(Unary(_text))
for _name, _text in BINARY.items():
    operator(_name, text=_text)(Binary(_text))
for _name, _text in ARITHMETIC.items():
    operator(_name, since=7, text=_text)(Binary(_text))


def placed(x: Tensor, y: Tensor, axis: int | None) -> Tensor:
    """y with dimensions that begin at `axis` of x: broadcasting before opset 7."""
    return y if axis is None else y.reshape(tuple(y.shape) + (1,) * (x.ndim - axis % x.ndim - y.ndim))


@operator("Add", until=6)
def old_add(x: Tensor, y: Tensor, *, broadcast: int = 0, axis: int | None = None) -> Tensor:
    """x + y, with y's dimensions at `axis`."""
    return x + placed(x, y, axis)


@operator("Sub", until=6)
def old_sub(x: Tensor, y: Tensor, *, broadcast: int = 0, axis: int | None = None) -> Tensor:
    """x - y, with y's dimensions at `axis`."""
    return x - placed(x, y, axis)


@operator("Mul", until=6)
def old_mul(x: Tensor, y: Tensor, *, broadcast: int = 0, axis: int | None = None) -> Tensor:
    """x * y, with y's dimensions at `axis`."""
    return x * placed(x, y, axis)


@operator("Div")
def div(x: Tensor, y: Tensor, *, broadcast: int = 0, axis: int | None = None) -> Tensor:
    """x / y; of integers without the remainder, towards zero."""
    y = placed(x, y, axis)
    return x / y if x.is_floating_point() or x.is_complex() else torch.div(x, y, rounding_mode="trunc")


@operator("Pow")
def pow(x: Tensor, y: Tensor, *, broadcast: int = 0, axis: int | None = None) -> Tensor:
    """x ** y, in the dtype of x."""
    y = placed(x, y, axis)
    if y.is_floating_point() and not x.is_floating_point():
        return torch.pow(x.to(torch.float64), y.to(torch.float64)).to(x.dtype)
    return torch.pow(x, y.to(x.dtype)).to(x.dtype)


@operator("Mod")
def mod(x: Tensor, y: Tensor, *, fmod: int = 0) -> Tensor:
    """The remainder, with the sign of y, or of x for fmod=1."""
    return torch.fmod(x, y) if fmod else torch.remainder(x, y)


@operator("BitShift")
def bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Tensor:
    """x shifted by y bits to the LEFT or the RIGHT."""
    return torch.bitwise_left_shift(x, y) if direction == "LEFT" else torch.bitwise_right_shift(x, y)


@operator("Max")
def maximum(*xs: Tensor) -> Tensor:
    """The largest of each place."""
    out = xs[0]
    for x in xs[1:]:
        out = torch.maximum(out, x)
    return out


@operator("Min")
def minimum(*xs: Tensor) -> Tensor:
    """The smallest of each place."""
    out = xs[0]
    for x in xs[1:]:
        out = torch.minimum(out, x)
    return out


@operator("Sum")
def sum_of(*xs: Tensor) -> Tensor:
    """The sum of the tensors."""
    out = xs[0]
    for x in xs[1:]:
        out = out + x
    return out


@operator("Mean")
def mean_of(*xs: Tensor) -> Tensor:
    """The mean of the tensors."""
    return sum_of(*xs) / len(xs)


@operator("Where")
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """x where the condition holds, else y."""
    return torch.where(condition, x, y)


@operator("IsInf")
def is_inf(x: Tensor, *, detect_positive: int = 1, detect_negative: int = 1) -> Tensor:
    """Whether an element is infinite, of the signs that count."""
    found = torch.zeros_like(x, dtype=torch.bool)
    found = found | torch.isposinf(x) if detect_positive else found
    return found | torch.isneginf(x) if detect_negative else found


@operator("Clip", since=11)
def clip(x: Tensor, low: Fixed | None = None, high: Fixed | None = None) -> Tensor:
    """x within [low, high]."""
    x = x if low is None else torch.maximum(x, low.to(x.dtype))
    return x if high is None else torch.minimum(x, high.to(x.dtype))


@operator("Clip", until=10)
def old_clip(x: Tensor, *, min: float | None = None, max: float | None = None) -> Tensor:
    """x within [min, max]."""
    return x if min is None and max is None else torch.clamp(x, min, max)


@operator("CumSum")
def cumsum(x: Tensor, axis: Scalar, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    """The sums of all elements up to each; without the element itself for exclusive=1."""
    y = x.flip(axis) if reverse else x
    out = y.cumsum(axis).to(x.dtype)
    out = out - y if exclusive else out
    return out.flip(axis) if reverse else out


@operator("CumProd")
def cumprod(x: Tensor, axis: Scalar, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    """The products of all elements up to each; without the element itself for exclusive=1."""
    y = x.flip(axis) if reverse else x
    if exclusive:
        y = torch.cat([torch.ones_like(y.narrow(axis, 0, 1)), y.narrow(axis, 0, y.shape[axis] - 1)], axis)
    out = y.cumprod(axis).to(x.dtype)
    return out.flip(axis) if reverse else out
