"""Operators that move elements: shapes, joining, splitting, padding, and tensors made from sizes."""

from __future__ import annotations

import math

import numpy as np

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .casts import torch_type
from .table import Fixed, Ints, Scalar, Value, ints, operator


@operator("Identity")
def identity(x: Value) -> Value:
    """x."""
    return x


@operator("Reshape", since=5)
def reshape(x: Tensor, shape: Ints, *, allowzero: int = 0) -> Tensor:
    """x in another shape; 0 keeps a size, unless allowzero=1."""
    return x.reshape([x.shape[i] if size == 0 and not allowzero else size for i, size in enumerate(shape)])


@operator("Reshape", until=4)
def old_reshape(x: Tensor, *, shape: Ints | None = None) -> Tensor:
    """x in another shape; 0 keeps a size."""
    return reshape(x, shape or [])


@operator("Transpose")
def transpose(x: Tensor, *, perm: Ints | None = None) -> Tensor:
    """x with its dimensions in another order, reversed by default."""
    return x.permute(perm if perm is not None else list(range(x.ndim))[::-1])


@operator("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    """A matrix: the dimensions before `axis`, and the others."""
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Squeeze", since=13)
def squeeze(x: Tensor, axes: Ints | None = None) -> Tensor:
    """x without dimensions of size 1."""
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@operator("Squeeze", until=12)
def old_squeeze(x: Tensor, *, axes: Ints | None = None) -> Tensor:
    """x without dimensions of size 1."""
    return squeeze(x, axes)


@operator("Unsqueeze", since=13)
def unsqueeze(x: Tensor, axes: Ints) -> Tensor:
    """x with new dimensions of size 1, at these positions of the result."""
    for axis in sorted(axis % (x.ndim + len(axes)) for axis in axes):
        x = x.unsqueeze(axis)
    return x


@operator("Unsqueeze", until=12)
def old_unsqueeze(x: Tensor, *, axes: Ints) -> Tensor:
    """x with new dimensions of size 1."""
    total = x.ndim + len(axes)
    for axis in sorted(axis % total for axis in axes):
        x = x.unsqueeze(axis)
    return x


@operator("Concat")
def concat(*xs: Tensor, axis: int = 1) -> Tensor:
    """The tensors, joined along an axis."""
    return torch.cat(xs, axis)


@operator("Split", since=13)
def split(
    x: Tensor, sizes: Ints | None = None, *, axis: int = 0, num_outputs: int | None = None, n_outputs: int
) -> tuple[Tensor, ...]:
    """Parts along an axis: of these sizes, or num_outputs of equal size, the last possibly smaller."""
    if sizes is None:
        count, size = num_outputs or n_outputs, x.shape[axis]
        each = -(-size // count)
        sizes = [max(min(each, size - i * each), 0) for i in range(count)]
    return tuple(x.split(sizes, axis))


@operator("Split", until=12)
def old_split(x: Tensor, *, split: Ints | None = None, axis: int = 0, n_outputs: int) -> tuple[Tensor, ...]:
    """Parts along an axis."""
    sizes = split or [x.shape[axis] // n_outputs] * n_outputs
    return tuple(x.split(sizes, axis))


@operator("Expand")
def expand(x: Tensor, shape: Ints) -> Tensor:
    """x, broadcast with a shape."""
    return x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(shape)))


@operator("Tile", since=6)
def tile(x: Tensor, repeats: Ints) -> Tensor:
    """x, repeated along each dimension."""
    return x.repeat(repeats)


@operator("Tile", until=5)
def old_tile(x: Tensor, count: Scalar, axis: Scalar) -> Tensor:
    """x, repeated along one dimension."""
    return torch.cat([x] * int(count), int(axis))


@operator("Shape")
def shape(x: Value, *, start: int = 0, end: int | None = None) -> np.ndarray:
    """The sizes of x, as known values."""
    return np.array(tuple(x.shape)[start:end], np.int64)


@operator("Size")
def size(x: Value) -> np.ndarray:
    """The number of elements of x, as a known value."""
    return np.array(math.prod(x.shape), np.int64)


@operator("ConstantOfShape")
def constant_of_shape(shape: Ints, *, value: np.ndarray | None = None) -> Tensor:
    """A tensor of one number, 0 by default."""
    return (
        torch.full(shape, 0.0) if value is None else torch.as_tensor(value.reshape(-1)[:1].copy()).expand(shape).clone()
    )


@operator("Range")
def arange(start: Tensor, limit: Tensor, delta: Tensor, *, stash_type: int = 1) -> Tensor:
    """start, start + delta, ... below limit."""
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


def reversed_pairs(pairs: list[tuple[int, int]]) -> list[int]:
    """(before, after) of each dimension in the order of F.pad, the last dimension first."""
    return [n for pair in reversed(pairs) for n in pair]


def cut_or_padded(x: Tensor, pairs: list[tuple[int, int]], value: float = 0.0) -> Tensor:
    """x with numbers `value` around; negative counts cut."""
    return F.pad(x, reversed_pairs(pairs), "constant", value) if any(map(any, pairs)) else x


@operator("Pad", since=11)
def pad(
    x: Tensor, pads: Ints, value: Scalar | None = None, axes: Ints | None = None, *, mode: str = "constant"
) -> Tensor:
    """x with more elements at the ends of dimensions: a constant, the edge, or the elements reflected or wrapped."""
    half = len(pads) // 2
    pairs = [(0, 0)] * x.ndim
    for axis, before, after in zip(axes or range(half), pads[:half], pads[half:]):
        pairs[axis] = (before, after)
    if mode == "constant":
        return cut_or_padded(x, pairs, 0 if value is None else value)
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            x = x.index_select(axis, torch.as_tensor(source_of(x.shape[axis], before, after, mode)))
    return x


def source_of(size: int, before: int, after: int, mode: str) -> np.ndarray:
    """For each element of a padded dimension, the index of its source."""
    at = np.arange(-before, size + after)
    if mode == "edge":
        return np.clip(at, 0, size - 1)
    if mode == "wrap":
        return at % size
    period = max(2 * (size - 1), 1)
    at = at % period
    return np.where(at < size, at, period - at)


@operator("Pad", until=10)
def old_pad(x: Tensor, *, pads: Ints, mode: str = "constant", value: float = 0.0) -> Tensor:
    """x with more elements at the ends of dimensions."""
    return pad(x, pads, value, mode=mode)


@operator("Trilu")
def trilu(x: Tensor, k: Scalar | None = None, *, upper: int = 1) -> Tensor:
    """The upper or the lower triangle of each matrix, from diagonal k on."""
    return torch.triu(x, k or 0) if upper else torch.tril(x, k or 0)


@operator("EyeLike")
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    """Ones on the diagonal k, in the shape of x."""
    made = torch.as_tensor(np.eye(x.shape[0], x.shape[1], k))
    return made.to(x.dtype if dtype is None else torch_type(dtype))


@operator("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Channels as blocks of pixels; the block's place is the outer (DCR) or the inner (CRD) part of the channel."""
    if mode == "CRD":
        return F.pixel_shuffle(x, blocksize)
    n, c, h, w = x.shape
    s = blocksize
    y = x.reshape(n, s, s, c // s**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return y.reshape(n, c // s**2, h * s, w * s)


@operator("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Blocks of pixels as channels: the inverse of DepthToSpace."""
    if mode == "CRD":
        return F.pixel_unshuffle(x, blocksize)
    n, c, h, w = x.shape
    s = blocksize
    y = x.reshape(n, c, h // s, s, w // s, s).permute(0, 3, 5, 1, 2, 4)
    return y.reshape(n, c * s * s, h // s, w // s)


@operator("ReverseSequence")
def reverse_sequence(x: Tensor, lengths: Ints, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """The first lengths[b] steps of sequence b in reverse order."""
    y = x.movedim((batch_axis, time_axis), (0, 1))
    steps = np.arange(y.shape[1])
    at = np.stack([np.where(steps < n, n - 1 - steps, steps) for n in lengths])
    rows = torch.arange(y.shape[0]).reshape(-1, 1)
    return y[rows, torch.as_tensor(at)].movedim((0, 1), (batch_axis, time_axis))


@operator("CenterCropPad")
def center_crop_pad(x: Tensor, shape: Ints, *, axes: Ints | None = None) -> Tensor:
    """x cut or padded with zeros around its centre."""
    pairs = [(0, 0)] * x.ndim
    for axis, want in zip(axes or range(x.ndim), shape):
        more = want - x.shape[axis]
        before = more // 2 if more > 0 else -(-more // 2)
        pairs[axis] = (before, more - before)
    return cut_or_padded(x, pairs)


@operator("Compress")
def compress(x: Tensor, condition: Fixed, *, axis: int | None = None) -> Tensor:
    """The elements, or the slices of an axis, whose condition holds."""
    at = condition.nonzero().reshape(-1)
    return x.reshape(-1).index_select(0, at) if axis is None else x.index_select(axis, at)


@operator("TensorScatter")
def tensor_scatter(
    cache: Tensor, update: Tensor, starts: Fixed | None = None, *, axis: int = -2, mode: str = "linear"
) -> Tensor:
    """The cache of a batch of sequences with `update` written at starts[b] of sequence b; circular: modulo the size."""
    old, new = cache.movedim(axis, 1), update.movedim(axis, 1)
    first = [0] * old.shape[0] if starts is None else ints(starts)
    at = np.array(first).reshape(-1, 1) + np.arange(new.shape[1])
    at = at % old.shape[1] if mode == "circular" else at
    rows = torch.arange(old.shape[0]).reshape(-1, 1)
    return old.index_put((rows, torch.as_tensor(at)), new).movedim(1, axis)
