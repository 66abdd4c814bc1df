"""Sums along dimensions, in float32 as accurate as torch's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.base.memory_format import room_like

try:  # without np.einsum's Python code: 2 x 8 takes 0.8 us, not 1.5
    from numpy._core.multiarray import c_einsum as rows_einsum
except ImportError:
    rows_einsum = np.einsum

# least elements for sums by BLAS: below this size a loop finishes before BLAS starts
BLAS_ELEMENTS = 4096
BLOCK_ROWS = 128  # rows added one at a time, as accurate as torch
IN_TURN_ELEMENTS = 7  # most elements of a row that NumPy adds one at a time
EINSUM_ELEMENTS = 1024  # most elements of a row for which einsum is as accurate
THREADED_ELEMENTS = 1 << 13  # the least size at which BLAS would use several threads
JOINED_ROW_ELEMENTS = 16  # elements of a row; shorter rows are added up together with others
ONES = {np.dtype(t): np.ones(BLOCK_ROWS, t) for t in (np.float32, np.float64)}
# typed as Any: NumPy's stubs accept `keepdims` by name only, which is slower
add_reduce: Any = np.add.reduce
max_reduce: Any = np.maximum.reduce


def added(x: ndarray, dims: Any = None, keepdim: bool = False) -> ndarray:
    """np.add.reduce(x, dims) in C order, with rounding errors that do not grow with the number of rows.

    NumPy adds pairwise along the last dimension only; along other dimensions it adds one row after the other: the sum
    of 100,000 rows is off by 1e-5. Products of ones with blocks of rows, by BLAS, take 0.1 to 1 of the time.
    """
    axes = (dims,) if dims.__class__ is int else dims
    if axes and x.dtype in ONES and x.flags.c_contiguous:
        ndim = x.ndim
        if ndim == 2 and axes == (0,) and (len(x) <= BLOCK_ROWS or x.size >= BLAS_ELEMENTS):
            r = rows_added(x)  # 100 x 16: 1.6 us; NumPy's loop over the rows takes 3.7
            return r[None] if keepdim else r
        if ndim and axes in ((-1,), (ndim - 1,)) and IN_TURN_ELEMENTS < x.shape[-1] <= EINSUM_ELEMENTS:
            r = rows_einsum("...n->...", x)
            return r[..., None] if keepdim else r
        if ndim == 3 and axes in ((1,), (-2,)) and x.size >= BLAS_ELEMENTS:
            r = rows_added(x)  # a mean over tokens, 8 x 32 x 128: 4 us; the general path below takes 11
            return r[:, None] if keepdim else r
        if len(axes) > 1 and (n := row_length(x.shape, axes)):
            lead = x.shape[: ndim - len(axes)]
            r = along_rows(x.reshape(*lead, n))
            return r.reshape(lead + (1,) * len(axes)) if keepdim else r
    if x.size < BLAS_ELEMENTS or x.dtype not in ONES or not (axes is None or axes and valid(axes, x.ndim)):
        # half precision is added in float32: a sum of ones would stop at 2048, or 256
        if x.itemsize == 2 and x.dtype.kind in "fV":
            from rushlight.kernels.float16 import converted, single

            return converted(np.asarray(added(single(x), dims, keepdim)), x.dtype)
        return in_c_order(add_reduce(x, dims, None, None, keepdim))
    if axes is None:  # a few columns of a matrix: NumPy would add row by row
        return add_reduce(x if x.flags.forc else x.copy(), None, None, None, keepdim)
    # sums over channels: 2 x 8 x 24 x 24 in 7 us, not 27
    if ends_in_rows(x.shape, axes) and x.flags.c_contiguous:
        return in_c_order(add_reduce(x, dims, None, None, keepdim))
    return in_blocks(x, axes, keepdim)


def in_blocks(x: ndarray, axes: tuple, keepdim: bool) -> ndarray:
    """`added` by blocks of rows, for distinct axes."""
    order = list(range(x.ndim))
    if not x.flags.c_contiguous:  # adds in memory order, if x has no gaps
        by_stride = sorted(order, key=[-s for s in x.strides].__getitem__)
        order = by_stride if x.transpose(by_stride).flags.c_contiguous else order
        x = np.ascontiguousarray(x.transpose(order))
    total = block_by_block(x, sorted([order.index(d % x.ndim) for d in axes]))
    if x.ndim > 1:
        total = total.transpose([order.index(d) for d in range(x.ndim)])
    kept = (
        total.shape if keepdim else [n for d, n in enumerate(total.shape) if d not in axes and d - x.ndim not in axes]
    )
    return in_c_order(total.reshape(kept))


def in_c_order(r: Any) -> Any:
    """NumPy's sum in C order; np.ascontiguousarray would turn a number into a vector."""
    return r if r.ndim < 2 or r.flags.c_contiguous else r.copy()


@site
def add_to(a: ndarray, b: ndarray) -> None:
    """a += b."""
    np.add(a, b, out=a)


def copy_like(leaf: ndarray, g: ndarray) -> ndarray:
    """A copy of a gradient in its leaf's memory layout; in C order, as in torch, if the leaf has gaps."""
    if leaf.flags.c_contiguous or (r := room_like(leaf, leaf.dtype)).strides != leaf.strides:
        return g.copy()
    r[...] = g
    return r


def row_length(shape: tuple, axes: tuple) -> int:
    """The number of elements in the summed dimensions if these are the last dimensions, without repeats, and einsum
    suits rows of this length; else 0.
    """
    ndim = len(shape)
    kept = ndim - len(axes)
    n = prod(shape[kept:])
    if not IN_TURN_ELEMENTS < n <= EINSUM_ELEMENTS:
        return 0
    return n if valid(axes, ndim) and sorted([d % ndim for d in axes]) == [*range(kept, ndim)] else 0


def ends_in_rows(shape: tuple, axes: tuple) -> bool:
    """True if the last dimensions are summed, which NumPy does pairwise, and only few of these sums are then added."""
    d, n = len(shape) - 1, 1
    while d in axes:
        n *= shape[d]
        d -= 1
    return n >= BLOCK_ROWS and prod([shape[a] for a in axes if a <= d]) <= BLOCK_ROWS


def along_rows(x: ndarray) -> ndarray:
    """The sum of each row (..., n). For 8 to 1024 elements einsum adds up four vectors in parallel: 128 x 400 takes 14
    us (NumPy's pairwise sum 33), 10,000 x 16 takes 42 (190). A row's sum has the same bits for any number of rows,
    unlike with BLAS.
    """
    n = x.shape[-1]
    # 51,200 rows of 2 in 0.1 ms; NumPy's loop over each row takes 1
    if 1 < n <= IN_TURN_ELEMENTS and x.size >= BLAS_ELEMENTS:
        r = x[..., 0] + x[..., 1]
        for i in range(2, n):
            r += x[..., i]
        return r
    return rows_einsum("...n->...", x) if IN_TURN_ELEMENTS < n <= EINSUM_ELEMENTS else add_reduce(x, -1)


def valid(axes: tuple, ndim: int) -> bool:
    """True for distinct, valid axes; otherwise NumPy raises its own error."""
    return -ndim <= min(axes) and max(axes) < ndim and len({d % ndim for d in axes}) == len(axes)


def block_by_block(x: ndarray, axes: list[int]) -> ndarray:
    """The sum over the sorted `axes`, with all dimensions kept. Each run of adjacent axes is one sum; trailing axes of
    few elements are summed last.
    """
    shape = list(x.shape)
    blocks: list[list[int]] = []
    for d in axes:
        if blocks and blocks[-1][1] == d:
            blocks[-1][1] = d + 1
        else:
            blocks.append([d, d + 1])
    if prod(shape[blocks[-1][0] :]) >= JOINED_ROW_ELEMENTS:
        blocks.reverse()
    for first, last in blocks:
        rest, rows = shape[last:], prod(shape[first:last])
        shape[first:last] = [1] * (last - first)
        if last == len(shape):
            x = along_rows(x.reshape(*shape[:first], rows)) if rows != 1 else x
        else:
            x = rows_added(x.reshape(*shape[:first], rows, prod(rest)))
        x = x.reshape(shape)
    return x


def product(ones: ndarray, x: ndarray) -> ndarray:
    """A product; large ones run on one BLAS thread, since several threads keep spinning and slow down the next loops (a
    step of a large MLP: 104 ms on two threads, 58 on one).
    """
    multiply = np.dot if x.ndim == 2 else np.matmul  # gemv; matmul takes three times as long
    return alone()(multiply, ones, x) if x.size >= THREADED_ELEMENTS else multiply(ones, x)


@cache
def alone() -> Callable[..., ndarray]:
    from rushlight.base.threads import alone  # imported on first use

    return alone


def rows_added(x: ndarray) -> ndarray:
    """(..., n, m) -> (..., m). One product sums all blocks of BLOCK_ROWS rows (500 x 32: 16 us, one product per block
    37); the resulting rows, one for each block, are added up in the same way.
    """
    n, m = x.shape[-2:]
    ones, blocks = ONES[x.dtype], n // BLOCK_ROWS
    if n <= BLOCK_ROWS:
        return product(ones[:n], x)
    lead, whole = x.shape[:-2], blocks * BLOCK_ROWS
    total = product(ones, x[..., :whole, :].reshape(*lead, BLOCK_ROWS, blocks * m))
    total = rows_added(total.reshape(*lead, blocks, m)) if blocks > 1 else total
    if n > whole:
        total += product(ones[: n - whole], x[..., whole:, :])
    return total
