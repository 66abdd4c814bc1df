"""Shape kernels: views if NumPy can make one, otherwise copies."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import overflowed
from rushlight.base.faster import site
from rushlight.base.memory_format import copy_of, room_like, strides_in
from rushlight.kernels.elementwise import where
from rushlight.kernels.float16 import converted
from rushlight.kernels.layout import (
    SHORT_ROW_ELEMENTS,
    SHORT_ROWS_ELEMENTS,
    copied,
    like_images,
    plain,
    suggests_last,
    with_strides,
)
from rushlight.kernels.summation import added

MAX_ELEMENTS = 2**60  # elements of 16 bytes: no address space has more
KEPT_MASK_ELEMENTS = 1 << 16  # most elements of a mask that is cached


def reshape(x: ndarray, shape: tuple) -> ndarray:
    try:
        if x.size < SHORT_ROWS_ELEMENTS or x.flags.c_contiguous or x.shape[-1] > SHORT_ROW_ELEMENTS:
            made = x.reshape(shape)
        else:
            made = without_copy(x, shape)
        if made.shape != shape and min(shape) < -1:  # NumPy reads -2 as -1
            raise ValueError
        return made
    except ValueError:
        raise RuntimeError(
            f"{misshapen(x, shape)}; hint: the sizes must multiply to {x.size}; -1 stands for the remaining size"
        ) from None


def without_copy(x: ndarray, shape: tuple) -> ndarray:
    """`reshape`, as a view if possible; copies of arrays with a small last dimension use `copy_of`, which is faster
    there.
    """
    try:
        return x.reshape(shape, copy=False)
    except ValueError:
        return copied(x).reshape(shape)
    except TypeError:  # missing in NumPy 2.0
        return x.reshape(shape)


def misshapen(x: ndarray, shape: tuple) -> str:
    """The reason why x cannot have this shape, in torch's words."""
    if any(n < -1 for n in shape):
        return f"invalid shape dimension {min(shape)}"
    if shape.count(-1) > 1:
        return "only one dimension can be inferred"
    if not x.size and -1 in shape and 0 in shape:
        return (
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size "
            "-1 can be any value and is ambiguous"
        )
    return f"shape '{list(shape)}' is invalid for input of size {x.size}"


def view(x: ndarray, shape: tuple) -> ndarray:
    """reshape, but only without a copy."""
    r = reshape(x, shape)
    if r.base is not x and (r.base is None or r.base is not x.base) and x.size and not np.may_share_memory(r, x):
        raise ValueError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead.; hint: reshape() copies if it must"
        )
    return r


def expand(x: ndarray, shape: tuple) -> ndarray:
    """x repeated to `shape` without copying; -1 keeps a size."""
    if -1 in shape:
        extra = len(shape) - x.ndim
        if -1 in shape[:extra]:
            raise ValueError("the size -1 isn't allowed in a leading, non-existing dimension of expand")
        shape = tuple(x.shape[i - extra] if n == -1 else n for i, n in enumerate(shape))
    if x.ndim > len(shape):
        raise ValueError(
            f"the number of sizes provided ({len(shape)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({x.ndim})"
        )
    x = np.asarray(x)
    more = len(shape) - x.ndim
    if shape[more:] == x.shape and shape[:more] == (1,) * more:
        return x[(None,) * more + (...,)]  # no repeated elements: writable
    try:
        # 2 us; np.broadcast_to takes 3
        if x.flags.c_contiguous and all([m in (1, n) for m, n in zip(x.shape, shape[more:])]):
            own = [step if n == m else 0 for n, m, step in zip(x.shape, shape[more:], x.strides)]
            r = np.ndarray(shape, x.dtype, x, 0, [0] * more + own)
            r.flags.writeable = False
            return r
        return np.broadcast_to(x, shape)
    except ValueError:
        raise RuntimeError(not_expanded(x.shape, shape)) from None


def not_expanded(old: tuple, new: tuple) -> str:
    """torch's message for a shape that does not broadcast to a shape of the same or a larger number of dimensions."""
    at = max(i for i in range(-len(old), 0) if old[i] not in (1, new[i]))
    return (
        f"The expanded size of the tensor ({new[at]}) must match the existing size ({old[at]}) at non-singleton "
        f"dimension {len(new) + at}.  Target sizes: {list(new)}.  Tensor sizes: {list(old)}; hint: only sizes 1 are "
        "repeated"
    )


def transpose(x: ndarray, dim0: int, dim1: int) -> ndarray:
    return x.swapaxes(dim0, dim1) if x.ndim else x[...]


@site
def flip(x: ndarray, dims: tuple) -> ndarray:
    r = room_like(x, x.dtype)
    r[...] = np.flip(x, dims if x.ndim else ())
    return r


def rolled(x: ndarray, moves: Sequence[int], axes: Sequence[int], back: bool = False) -> ndarray:
    """Elements shifted cyclically along dimensions. `back`: the inverse."""
    images = x
    for move, d in zip(moves, axes):
        n = x.shape[d]
        k = (move if back else -move) % n if n else 0
        first, last = (*(slice(None),) * d, slice(k)), (*(slice(None),) * d, slice(k, n))
        x = plain(np.concatenate((x[last], x[first]), d))
    return like_images(x, images)


def tril(x: ndarray, diagonal: int = 0) -> ndarray:
    check_matrix(x, "tril")
    return where(below(x.shape[-2], x.shape[-1], index(diagonal)), plain(x), np.zeros((), x.dtype))


def triu(x: ndarray, diagonal: int = 0) -> ndarray:
    check_matrix(x, "triu")
    return where(below(x.shape[-2], x.shape[-1], index(diagonal) - 1), np.zeros((), x.dtype), plain(x))


def below(rows: int, columns: int, diagonal: int) -> ndarray:
    """True on and below a diagonal."""
    if rows * columns <= KEPT_MASK_ELEMENTS:
        return cached_mask(rows, columns, diagonal)
    return np.tri(rows, columns, diagonal, bool)


@lru_cache(maxsize=16)
def cached_mask(rows: int, columns: int, diagonal: int) -> ndarray:
    """`below` from a cache: halves the time of a small tril."""
    r = np.tri(rows, columns, diagonal, bool)
    r.flags.writeable = False
    return r


def check_matrix(x: ndarray, name: str) -> None:
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


def permute(x: ndarray, dims: tuple) -> ndarray:
    return x.transpose(dims)


def unpermute(x: ndarray, dims: tuple) -> ndarray:
    """The inverse of `permute`."""
    return x.transpose(sorted(range(len(dims)), key=dims.__getitem__))


def unsqueeze(x: ndarray, new_dim: int) -> ndarray:
    if new_dim > x.ndim:
        raise np.exceptions.AxisError(new_dim, x.ndim + 1)
    return x[(slice(None),) * new_dim + (None,)]  # 0.2 us; np.expand_dims takes 1.5


def squeeze(x: ndarray, dims: tuple | None = None) -> ndarray:
    """x without its dimensions of size 1, or without those among `dims`."""
    kept = [n for i, n in enumerate(x.shape) if n != 1 or dims is not None and i not in dims]
    return x.reshape(kept)


def flatten(x: ndarray, start_dim: int = 0, end_dim: int = -1) -> ndarray:
    end = end_dim % (x.ndim or 1)
    if x.ndim:
        extent(x, start_dim)
        extent(x, max(end_dim, 0))
    if start_dim > end:
        raise ValueError("flatten() has invalid args: start_dim cannot come after end_dim")
    if x.ndim and start_dim == end:
        return x
    middle = prod(x.shape[start_dim : end + 1])
    return x.reshape(x.shape[:start_dim] + (middle,) + x.shape[end + 1 :])


def unflatten(x: ndarray, dim: int, shape: tuple) -> ndarray:
    if not shape:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        if min(shape) < -1:
            raise ValueError
        part = np.empty(extent(x, dim), bool).reshape(shape).shape
    except ValueError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(shape)} don't multiply up to the size of dim {dim} ({x.shape[dim]}) in "
            "the input tensor"
        ) from None
    return x.reshape(x.shape[:dim] + part + x.shape[dim + 1 :])


def extent(x: ndarray, dim: int) -> int:
    """The size of a dimension; NumPy's error for an invalid dimension, which ops/op_errors.py turns into torch's."""
    if dim >= x.ndim:
        raise np.exceptions.AxisError(dim, x.ndim)
    return x.shape[dim]


def narrow(x: ndarray, dim: int, start: int, length: int) -> ndarray:
    if not x.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.; hint: reshape(1) it first")
    n = extent(x, dim)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if not 0 <= start <= start + length <= n:
        raise ValueError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return x[(slice(None),) * dim + (slice(start, start + length),)]


def select(x: ndarray, dim: int, index: int) -> ndarray:
    n = extent(x, dim)
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {dim}")
    return x[(slice(None),) * dim + (index, ...)]


def getitem(x: ndarray, key: tuple) -> ndarray:
    return x[key]


def embed(g: ndarray, shape: tuple, key: tuple) -> ndarray:
    """Zeros of `shape` with g at `key`: the transpose of getitem."""
    r = np.zeros(shape, g.dtype)
    r[key] = g
    return r


def diagonal(x: ndarray, offset: int = 0, dim0: int = 0, dim1: int = 1) -> ndarray:
    if dim0 == dim1:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim0}, {dim1}")
    extent(x, dim0)
    extent(x, dim1)
    r = x.diagonal(offset, dim0, dim1)[...]
    if x.flags.writeable:  # NumPy returns a read-only view
        r.flags.writeable = True
        return r
    with suppress(ValueError):  # a view of a read-only array stays read-only
        r.flags.writeable = True
    return r


def embed_diagonal(g: ndarray, shape: tuple, offset: int, dim0: int, dim1: int) -> ndarray:
    """Zeros of `shape` with g on a diagonal: the transpose of diagonal."""
    r = np.zeros(shape, g.dtype)
    diagonal(r, offset, dim0, dim1)[...] = g
    return r


def unfold_dim(x: ndarray, dim: int, size: int, step: int) -> ndarray:
    """Windows of `size` along a dimension, `step` apart, as a new last dimension. Read-only if windows overlap."""
    size, step = index(size), index(step)
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if not x.ndim:
        return x.reshape(1)[:size]
    n = x.shape[dim]
    # 3 us; sliding_window_view takes 25
    if x.flags.c_contiguous and x.dtype.kind != "V" and 0 < size <= n:
        shape = *x.shape[:dim], (n - size) // step + 1, *x.shape[dim + 1 :], size
        r = np.ndarray(
            shape, x.dtype, x, 0, (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1 :], x.strides[dim])
        )
        r.flags.writeable = step >= size and x.flags.writeable
        return r
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {n} but size is {size}")
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dim, writeable=step >= size and x.flags.writeable)
    return windows[(slice(None),) * dim + (slice(None, None, step),)]


def add_windows(g: ndarray, shape: tuple, dim: int, size: int, step: int) -> ndarray:
    """The sum of all windows at their positions: the transpose of unfold_dim. `step` elements of all windows are added
    at a time: 2 x 33 windows of 128, 32 apart, take 35 us; one element at a time takes 580.
    """
    if not shape:
        return np.asarray(np.add.reduce(g))
    before, count, n = (slice(None),) * dim, g.shape[dim], shape[dim]
    rows = max(-(-n // step), count + -(-size // step) - 1)
    r = np.zeros((*shape[:dim], rows, step, *shape[dim + 1 :]), g.dtype)
    g = np.moveaxis(g, -1, dim + 1)
    for k in range(0, size, step):
        part, first = g[before + (slice(None), slice(k, k + step))], k // step
        r[before + (slice(first, first + count), slice(part.shape[dim + 1]))] += part
    return plain(r.reshape(*shape[:dim], rows * step, *shape[dim + 1 :])[before + (slice(n),)])


def contiguous(x: ndarray) -> ndarray:
    return plain(x)


def clone(x: ndarray) -> ndarray:
    return copy_of(x)


def laid_out(x: ndarray, order: tuple) -> ndarray:
    """A copy whose dimensions have this order in memory, outermost first."""
    return x.transpose(order).copy("C").transpose(np.argsort(order) if order else ())


def overwrite(x: ndarray, y: ndarray) -> ndarray:
    """y in the shape of x: the new value for copy_. TypeError if x is not an array: for a batch of vmap, y alone does
    not determine the result.
    """
    if not isinstance(x, ndarray):
        raise TypeError("overwrite() takes arrays")
    return np.broadcast_to(y, x.shape).astype(x.dtype)


def cat(tensors: Sequence[ndarray], dim: int = 0) -> ndarray:
    """Concatenation along `dim`; an empty 1-d tensor is ignored, as in torch."""
    kept = [t for t in tensors if t.shape != (0,)]
    if not kept:  # then any `dim` is valid
        return tensors[0].copy()
    try:
        return joined_like(np.concatenate(kept, dim), kept)
    except ValueError:
        if not -kept[0].ndim <= dim < kept[0].ndim and all([t.shape == kept[0].shape for t in kept]) and kept[0].ndim:
            raise
        raise RuntimeError(f"{not_joined(kept, dim)}; hint: {hint_of_cat(kept, dim)}") from None


def joined_like(r: ndarray, tensors: Sequence[ndarray]) -> ndarray:
    """r in C order, or channels-last if all tensors are."""
    if r.flags.c_contiguous and tensors[0].flags.c_contiguous:
        return r
    last = all([suggests_last(t) for t in tensors])
    return with_strides(r, strides_in(r.shape, (0, *range(2, r.ndim), 1))) if last else plain(r)


def rejoined(parts: Sequence[ndarray], dim: int) -> ndarray:
    """`cat` of gradients; a view if the parts are adjacent in memory (attention)."""
    first, along = parts[0], [a.shape[dim] for a in parts]
    owner, strides = first.base, first.strides
    if (
        owner.__class__ is ndarray
        and owner.flags.c_contiguous
        and all([a.base is owner and a.strides == strides and a.dtype is first.dtype for a in parts])
    ):
        starts = [a.__array_interface__["data"][0] for a in parts]
        if all([b - a == n * strides[dim] for a, b, n in zip(starts, starts[1:], along)]):
            shape = (*first.shape[:dim], builtins_sum(along), *first.shape[dim + 1 :])
            return np.ndarray(shape, first.dtype, owner, starts[0] - owner.__array_interface__["data"][0], strides)
    return cat(parts, dim)


def hint_of_cat(tensors: Sequence[ndarray], dim: int) -> str:
    """The hint for tensors of n and of n - 1 dimensions, such as rows and a column: a new dimension."""
    counts = sorted({t.ndim for t in tensors})
    if len(counts) == 2 and counts[1] == counts[0] + 1:
        i = next(i for i, t in enumerate(tensors) if t.ndim == counts[0])
        return f"give tensor number {i} a new dimension first: t.unsqueeze(dim)"
    return f"every dimension except dim {dim} must match: pad or reshape the tensors first"


def not_joined(tensors: Sequence[ndarray], dim: int) -> str:
    """The reason why tensors cannot be joined along `dim`, in torch's words."""
    first = tensors[0]
    for i, t in enumerate(tensors):
        if not t.ndim:
            return f"zero-dimensional tensor (at position {i}) cannot be concatenated"
        if t.ndim != first.ndim:
            return f"Tensors must have same number of dimensions: got {first.ndim} and {t.ndim}"
        for d in range(t.ndim):
            if d != dim and t.shape[d] != first.shape[d]:
                return (
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {first.shape[d]} but "
                    f"got size {t.shape[d]} for tensor number {i} in the list."
                )
    return "cannot concatenate"


def stack(tensors: Sequence[ndarray], new_dim: int = 0) -> ndarray:
    if not len(tensors):
        raise ValueError("stack expects a non-empty TensorList")
    shape = tensors[0].shape
    if any([t.shape != shape for t in tensors]):
        i = next(i for i, t in enumerate(tensors) if t.shape != shape)
        raise ValueError(
            f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
            f"{list(tensors[i].shape)} at entry {i}; hint: pad them to one size, or use cat; for a DataLoader's "
            "batch, give it a collate_fn that pads"
        )
    if new_dim >= len(shape):
        tensors = [t[..., None] for t in tensors]
        return joined_like(np.concatenate(tensors, new_dim), tensors)
    # 16 of 3 x 8 x 8 in 5 us; np.stack takes 12
    joined = joined_like(np.concatenate(tensors, new_dim), tensors)
    return joined.reshape(*shape[:new_dim], len(tensors), *shape[new_dim:])


def unbind(x: ndarray, dim: int = 0) -> list[ndarray]:
    if x.ndim > 1:  # rows take 0.1 us each, keys 0.2
        return list(x if dim == 0 else x.transpose(dim, *range(dim), *range(dim + 1, x.ndim)))
    return [x[i, ...] for i in range(x.shape[dim])]


def split_sizes(x: ndarray, lengths: Sequence[int], dim: int = 0) -> list[ndarray]:
    if builtins_sum(lengths) != extent(x, dim):
        raise ValueError(
            f"split_with_sizes expects split_sizes to sum exactly to {x.shape[dim]} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(lengths)}"
        )
    return [x[key] for key in keys_of(tuple(lengths), dim)]


@lru_cache(maxsize=256)
def keys_of(lengths: tuple[int, ...], dim: int) -> list[tuple]:
    """The keys of consecutive parts with these lengths along a dimension."""
    lead, keys, start = (slice(None),) * dim, [], 0
    for n in lengths:
        keys.append((*lead, slice(start, start + n), ...))
        start += n
    return keys


builtins_sum = sum


def repeat(x: ndarray, shape: tuple) -> ndarray:
    if len(shape) < x.ndim:
        raise ValueError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if x.size * prod(shape) >= MAX_ELEMENTS:  # np.tile overflows when it multiplies the sizes, and crashes
        raise overflowed(shape)
    return plain(np.tile(x, shape))


def fold_repeats(g: ndarray, shape: tuple, repeats: tuple) -> ndarray:
    """The copies' elements added up: the transpose of repeat."""
    lead = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    parts: list[int] = []
    copies = []  # the axes of the copies; dimensions of size 1 would slow NumPy down
    for count, n in zip(repeats, lead):
        if count != 1:
            copies.append(len(parts))
            parts.append(count)
        parts.append(n)
    return added(g.reshape(parts), tuple(copies)).reshape(shape) if copies else g.reshape(shape)


def to(x: ndarray, dtype: Any) -> ndarray:
    """x converted to a dtype; converting complex to real keeps the real part."""
    if x.dtype.kind == "c" and dtype.numpy.kind not in "cb":
        x = x.real
    return converted(x, dtype.numpy)
