"""Memory layout of arrays, and arrays from size, strides and offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.array_memory import address, owner
from rushlight.base.buffer_pool import CACHE_LINE_BYTES, memory
from rushlight.base.memory_format import room_with, strides_in, strides_like
from rushlight.base.size import steps_of

SQUARE_ROWS = 128  # rows and columns of a block that is copied at a time
CROWDED_BYTES = 1024  # row steps that are multiples of this map to few cache sets
# most elements in the last dimension, and least in total, for copying one position of the last dimension at a time
SHORT_ROW_ELEMENTS, SHORT_ROWS_ELEMENTS = 4, 1 << 13


def plain(a: ndarray) -> ndarray:
    """The array in C order, for results that are in C order in torch: `view` must work on the result, and dropout draws
    in memory order. NumPy would keep the input's memory order.
    """
    return a if a.flags.c_contiguous else copied(a)


def copied(a: ndarray) -> ndarray:
    """A copy in C order. Large transposed arrays are copied in blocks that fit the cache: 1000 x 4096 takes 2.7 ms, one
    np.copy 3.9. If the elements of a row map to the same cache sets, as many columns as fill a cache line are copied
    together: 2048 x 1024 takes 1.4 ms, in blocks 4.7, in one copy 8.8. If the last dimension is small, each of its
    positions is copied separately: from channels first to channels last takes 0.45 ms, in one copy 1.4.
    """
    near = a.strides.index(a.itemsize) if a.itemsize in a.strides else -1
    few = a.shape[-1] <= SHORT_ROW_ELEMENTS and a.size >= SHORT_ROWS_ELEMENTS if a.ndim > 1 else False
    if near in (-1, a.ndim - 1) or not few and min(a.shape[near], a.shape[-1]) < 2 * SQUARE_ROWS:
        return a.copy()
    out = memory.take(a.shape, a.dtype)
    if few:
        for i in range(a.shape[-1]):
            out[..., i] = a[..., i]
        return out
    before, between = [(slice(None),) * n for n in (near, a.ndim - near - 2)]
    rows, columns = SQUARE_ROWS, SQUARE_ROWS
    if a.strides[-1] % CROWDED_BYTES == 0:
        rows, columns = a.shape[near], max(1, CACHE_LINE_BYTES // a.itemsize)
    for i in range(0, a.shape[near], rows):
        for j in range(0, a.shape[-1], columns):
            part = (*before, slice(i, i + rows), *between, slice(j, j + columns))
            out[part] = a[part]
    return out


def led(r: ndarray, *operands: ndarray) -> ndarray:
    """r in the memory order of its operands, as torch does for elementwise ops: NumPy falls back to C order when
    operands disagree, and puts repeated dimensions innermost. Dropout after `conv(x).transpose(1, 2) + y` depends on
    it, since it draws in memory order.
    """
    if r.ndim < 2 or not r.size or all([a.strides == r.strides and a.shape == r.shape for a in operands]):
        return r
    return with_strides(r, strides_like(*operands, shape=r.shape))


def with_strides(r: ndarray, strides: tuple[int, ...]) -> ndarray:
    """r, or a copy of r, with these strides in elements. The strides leave no gaps."""
    item = r.itemsize
    if r.strides == tuple([step * item for step in strides]):
        return r
    out = room_with(r.shape, strides, r.dtype)
    out[...] = r
    return out


def suggested(a: ndarray) -> ndarray:
    """`plain`, but channels-last images (dimension 1 innermost) stay channels-last."""
    if a.flags.c_contiguous:
        return a
    last = channels_last(a) or suggests_last(a)
    return with_strides(a, strides_in(a.shape, (0, *range(2, a.ndim), 1))) if last else a.copy()


def channels_last(a: ndarray) -> bool:
    """True for channels-last images that are not also in C order."""
    return a.ndim in (4, 5) and not a.flags.c_contiguous and np.moveaxis(a, 1, -1).flags.c_contiguous


def suggests_last(a: ndarray) -> bool:
    """True if the strides grow outwards from the channels, including dimensions of size 1; slices of images have gaps.
    Ops that produce images use this test: torch treats an image with a smaller stride (a view of attention's heads) as
    C order.
    """
    if a.ndim not in (4, 5) or a.flags.c_contiguous or not (a.size and a.strides[1]):
        return False
    least, strides = 0, steps_of(a)
    for d in (1, *range(a.ndim - 1, 1, -1), 0):
        if strides[d] < least:
            return False
        least = strides[d] * a.shape[d]
    return True


def like_images(r: ndarray, *images: ndarray, asks: Callable[[ndarray], bool] = suggests_last) -> ndarray:
    """r in channels-last order if one of the images is, as in torch."""
    for x in images:
        if not x.flags.c_contiguous and asks(x):
            return with_strides(r, strides_in(r.shape, (0, *range(2, r.ndim), 1)))
    return r


def room(shape: tuple[int, ...], x: ndarray) -> ndarray:
    """An empty array with x's dtype, in channels-last order if x is."""
    if x.flags.c_contiguous or not suggests_last(x):
        return np.empty(shape, x.dtype)
    return np.moveaxis(np.empty((shape[0], *shape[2:], shape[1]), x.dtype), -1, 1)


class Memory:
    """An object with NumPy's array interface. The object keeps the owner of the memory alive."""

    def __init__(self, owner: ndarray, interface: dict[str, Any]):
        self.owner, self.__array_interface__ = owner, interface


def lie(x: ndarray, size: tuple, stride: tuple, start: int, own: tuple = ()) -> ndarray:
    """A view of x's memory with this size and these strides, starting `start` elements after x's first element.

    `own`: the strides of x, for the gradient. RuntimeError if x has other strides, unless all strides are 0, as in the
    compiler's placeholders.
    """
    item, (address, readonly) = x.itemsize, x.__array_interface__["data"]
    if 0 in size:
        return np.empty(size, x.dtype)
    differ = [n > 1 and step != item * steps for n, step, steps in zip(x.shape, x.strides, own)]  # [] without `own`
    if any(differ) and any(x.strides):
        raise RuntimeError(
            f"as_strided: a tensor of shape {x.shape} has strides of {x.strides} bytes, not {own} elements"
        )
    view = np.asarray(
        Memory(
            x,
            {
                "shape": size,
                "strides": tuple(step * item for step in stride),
                "version": 3,
                "typestr": x.__array_interface__["typestr"],
                "data": (address + start * item, readonly),
            },
        )
    )
    # in the array interface, bfloat16 has the type void
    return view if view.dtype == x.dtype else view.view(x.dtype)


def reach(size: tuple, stride: tuple, start: int) -> tuple[int, int]:
    """(first, end): the range of memory positions that the elements span."""
    return start, start + 1 + sum([(n - 1) * step for n, step in zip(size, stride)])


def places(size: tuple, stride: tuple, start: int) -> ndarray:
    """The memory position of each element, in elements."""
    found = np.full((), start)
    for n, step in zip(size, stride):
        found = found[..., None] + step * np.arange(n)
    return found


def memory_of(shape: tuple, own: tuple, size: tuple, stride: tuple, start: int) -> tuple[ndarray, ndarray, ndarray]:
    """The memory positions of x's and of the view's elements, relative to the lowest position; and the number of
    elements of x at each position.
    """
    mine, theirs = places(shape, own, 0), places(size, stride, start)
    low = min([p.min() for p in (mine, theirs) if p.size], default=0)
    high = max([p.max() for p in (mine, theirs) if p.size], default=-1)
    return mine - low, theirs - low, np.bincount((mine - low).ravel(), minlength=high - low + 1)


def unlie(g: ndarray, shape: tuple, size: tuple, stride: tuple, start: int, own: tuple) -> ndarray:
    """The gradient of as_strided: added up by memory position, then divided among the elements of x that share a
    position.
    """
    mine, theirs, count = memory_of(shape, own, size, stride, start)
    memory = np.zeros(count.shape, g.dtype)
    np.add.at(memory, theirs, g)
    return np.asarray(memory[mine] / np.maximum(count[mine], 1).astype(g.real.dtype))


def lie_again(x: ndarray, size: tuple, stride: tuple, start: int, own: tuple) -> ndarray:
    """as_strided of x as if it had the strides `own`: a copy, with 0 outside of x."""
    mine, theirs, count = memory_of(x.shape, own, size, stride, start)
    memory = np.zeros(count.shape, x.dtype)
    np.add.at(memory, mine, x)
    return np.asarray(memory[theirs] / np.maximum(count[theirs], 1).astype(x.real.dtype))


def placed(x: ndarray, strides: tuple) -> ndarray:
    """A copy with these strides in elements, so that views address the same elements as in the original."""
    if 0 in x.shape:
        return x.copy()
    room = np.empty(1 + sum((n - 1) * step for n, step in zip(x.shape, strides)), x.dtype)
    r = lie(room, x.shape, strides, 0)
    r[...] = x
    return r


def without_repeats(a: ndarray, r: ndarray) -> tuple[ndarray, ndarray] | None:
    """For an expanded array `a`: (the part of `a` without repeats, the matching part of `r`).

    None if r differs between repeats of one element of `a`, if elements overlap in another way (windows), or if the
    memory is read-only.
    """
    repeated = [n > 1 and not step for n, step in zip(a.shape, a.strides)]
    r = np.broadcast_to(r, a.shape)
    varies = any(again and step for again, step in zip(repeated, r.strides))
    if varies or not isinstance(a, ndarray) or not owner(a).flags.writeable:
        return None
    first = *(slice(1) if again else slice(None) for again in repeated), ...
    once = a[first]
    reached = a.itemsize  # bytes spanned by the dimensions so far
    for step, n in sorted((abs(step), n) for n, step in zip(once.shape, once.strides) if n > 1):
        if step < reached:  # elements overlap
            return None
        reached += step * (n - 1)
    return np.asarray(Memory(once, once.__array_interface__ | {"data": (address(once), False)})).view(a.dtype), r[first]
