"""Operators on NumPy arrays, for values that are known while the model runs: shapes and their arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.onnx.tensors import numpy_type

from .casts import cast_array
from .shape import constant_of_shape as tensor_of_shape
from .table import ints, known

Array = np.ndarray
MOST = 1024  # elements of a ConstantOfShape that is a known value
PLAIN: dict[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Equal": np.equal, "Less": np.less,
    "LessOrEqual": np.less_equal, "Greater": np.greater, "GreaterOrEqual": np.greater_equal, "And": np.logical_and,
    "Or": np.logical_or, "Not": np.logical_not, "Neg": np.negative, "Abs": np.abs, "Floor": np.floor, "Ceil": np.ceil,
    "Where": np.where, "Round": np.round, "Sign": np.sign,
    "Xor": np.logical_xor, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor, "BitwiseNot": np.bitwise_not, "Sqrt": np.sqrt,
}  # fmt: skip


class Plain:
    """A function of NumPy, with results of the operands' dtype."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *arrays: Array) -> Array:
        return np.asarray(self.function(*arrays))


for _name, _function in PLAIN.items():
    known(_name)(Plain(_function))


@known("Div")
def div(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return np.asarray(x / y)
    whole = np.floor_divide(np.abs(x), np.abs(y)) if x.dtype.kind == "i" else np.floor_divide(x, y)
    return np.asarray(whole * np.sign(x) * np.sign(y) if x.dtype.kind == "i" else whole).astype(x.dtype)


@known("Mod")
def mod(x: Array, y: Array, *, fmod: int = 0) -> Array:
    return np.asarray(np.fmod(x, y) if fmod else np.mod(x, y))


@known("Pow")
def power(x: Array, y: Array) -> Array:
    return np.asarray(np.power(x, y)).astype(x.dtype)


@known("BitShift")
def bit_shift(x: Array, y: Array, *, direction: str) -> Array:
    return np.asarray(np.left_shift(x, y) if direction == "LEFT" else np.right_shift(x, y))


@known("Max")
def maximum(*xs: Array) -> Array:
    out = xs[0]
    for x in xs[1:]:
        out = np.maximum(out, x)
    return np.asarray(out)


@known("Min")
def minimum(*xs: Array) -> Array:
    out = xs[0]
    for x in xs[1:]:
        out = np.minimum(out, x)
    return np.asarray(out)


@known("Clip")
def clip(x: Array, low: Array | None = None, high: Array | None = None, **old: float) -> Array:
    low, high = old.get("min", low), old.get("max", high)  # type: ignore[assignment]
    return x if low is None and high is None else np.asarray(np.clip(x, low, high)).astype(x.dtype)


@known("Cast")
def cast(x: Array, *, to: int, saturate: int = 1, round_mode: str = "up") -> Array:
    return cast_array(x, numpy_type(to), saturate, round_mode)


@known("CastLike")
def cast_like(x: Array, like: Array, *, saturate: int = 1, round_mode: str = "up") -> Array:
    return cast_array(x, like.dtype, saturate, round_mode)


@known("Gather")
def gather(x: Array, at: Array, *, axis: int = 0) -> Array:
    return np.asarray(np.take(x, at.astype(np.intp), axis))


@known("Concat")
def concat(*xs: Array, axis: int = 1) -> Array:
    return np.concatenate(xs, axis)


@known("Slice")
def slices(x: Array, *bounds: Array | None, **old: list[int]) -> Array:
    starts, ends, axes, steps = (None if b is None else ints(b) for b in (*bounds, *[None] * (4 - len(bounds))))
    starts, ends, axes = old.get("starts", starts) or [], old.get("ends", ends) or [], old.get("axes", axes)
    for i, (start, end) in enumerate(zip(starts, ends)):
        axis, step = (axes[i] if axes else i) % x.ndim, steps[i] if steps else 1
        stop = None if step < 0 and end < -x.shape[axis] else end
        x = x[(slice(None),) * axis + (slice(start, stop, step),)]
    return x


@known("Squeeze")
def squeeze(x: Array, given: Array | None = None, *, axes: list[int] | None = None) -> Array:
    axes = ints(given) if given is not None else axes
    return np.squeeze(x, None if axes is None else tuple(axes))


@known("Unsqueeze")
def unsqueeze(x: Array, given: Array | None = None, *, axes: list[int] | None = None) -> Array:
    return np.expand_dims(x, tuple(ints(given) if given is not None else axes or []))


@known("Reshape")
def reshape(x: Array, shape: Array, *, allowzero: int = 0) -> Array:
    return x.reshape([x.shape[i] if n == 0 and not allowzero else n for i, n in enumerate(ints(shape))])


@known("Transpose")
def transpose(x: Array, *, perm: list[int] | None = None) -> Array:
    return np.transpose(x, perm)


@known("Expand")
def expand(x: Array, shape: Array) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(ints(shape))))


@known("ConstantOfShape")
def constant_of_shape(shape: Array, *, value: Array | None = None) -> Any:
    """An array of few elements, such as the padding that torch's exporter computes; else a tensor."""
    sizes = ints(shape)
    if math.prod(sizes) > MOST:
        return tensor_of_shape(sizes, value=value)
    return np.full(sizes, np.float32(0) if value is None else value.reshape(-1)[0])


@known("Split")
def split(
    x: Array,
    given: Array | None = None,
    *,
    split: list[int] | None = None,
    axis: int = 0,
    num_outputs: int | None = None,
    n_outputs: int,
) -> tuple[Array, ...]:
    sizes = ints(given) if given is not None else split
    if sizes is None:
        count, size = num_outputs or n_outputs, x.shape[axis]
        each = -(-size // count)
        sizes = [max(min(each, size - i * each), 0) for i in range(count)]
    return tuple(np.split(x, np.cumsum(sizes)[:-1].tolist(), axis))


@known("Tile")
def tile(x: Array, repeats: Array, axis: Array | None = None) -> Array:
    return np.tile(x, ints(repeats)) if axis is None else np.concatenate([x] * repeats.item(), axis.item())


@known("Range")
def arange(start: Array, limit: Array, delta: Array, *, stash_type: int = 1) -> Array:
    return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


class Reduction:
    """A reduction of NumPy, with its axes as an input or as an attribute."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(
        self,
        x: Array,
        given: Array | None = None,
        *,
        axes: list[int] | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Array:
        found = ints(given) if given is not None else axes
        if not found and noop_with_empty_axes:
            return x
        return np.asarray(self.function(x, tuple(found) if found else None, keepdims=bool(keepdims))).astype(x.dtype)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceProd": np.prod, "ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMin": np.min,
}  # fmt: skip
for _name, _function in REDUCTIONS.items():
    known(_name)(Reduction(_function))
