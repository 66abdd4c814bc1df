"""Reading and writing at indices, and reversing rows, by loops that copy. Results have NumPy's bits; NumPy needs a call
of memmove, or a table of flat indices, for each number.

A loop depends on the number of bytes, not on the dtype. The index of `gather` and `scatter` is already validated. Loops
that read numbers at individual indices do not declare their arrays as separate (`restrict`): LLVM would use the
processor's gather instructions, which have been slow on many Intel processors since 2023. 65,536 numbers take 64 us,
with these instructions 180.
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.index import GATHER_PARALLEL_ELEMENTS, TAKEN_RUN_ELEMENTS
from rushlight.fast.reductions import shared
from rushlight.loops.tiering import Loop

WORDS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}  # bytes of a number -> the dtype that loops copy
PLACE = np.dtype(np.int64)

GATHERED = """def kernel(x, index, out):
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                out[b, i, j] = x[b, u64(index[b, i, j]), j]
"""
GATHERED_OF_ROWS = """def kernel(x, index, out):
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[b, i, 0] = x[b, u64(index[b, i, 0]), 0]
"""
TAKEN = """def kernel(x, index, out):
    restrict()
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            k = u64(index[i])
            for j in range(out.shape[2]):
                out[b, i, j] = x[b, k, j]
"""
TAKEN_OF_ROWS = """def kernel(x, index, out):
    for b in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[b, i, 0] = x[b, u64(index[i]), 0]
"""
SCATTERED = """def kernel(r, index, x):
    restrict()
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                r[b, u64(index[b, i, j]), j] = x[b, i, j]
"""
SCATTERED_OF_ROWS = """def kernel(r, index, x):
    restrict()
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            r[b, u64(index[b, i, 0]), 0] = x[b, i, 0]
"""
REVERSED = """def kernel(x, out):
    restrict()
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[b, i] = x[b, u64(x.shape[1] - 1 - i)]
"""
# the NumPy passes that a loop saves
PASSES = {GATHERED: 20, TAKEN: 10, SCATTERED: 20, REVERSED: 2}
OF_ROWS = {GATHERED: GATHERED_OF_ROWS, TAKEN: TAKEN_OF_ROWS, SCATTERED: SCATTERED_OF_ROWS}


@cache
def loop_of(text: str, of_rows: bool, word: np.dtype) -> Loop:
    """The loop for numbers of this size in bytes; `of_rows`: along the last dimension."""
    x = np.zeros((1, 1) if text is REVERSED else (1, 1, 1), word)
    index = np.zeros((1,) if text is TAKEN else (1, 1, 1), PLACE)
    example = (x, x.copy()) if text is REVERSED else (x, index, x.copy())
    return Loop(lambda: OF_ROWS[text] if of_rows else text, PASSES[text], lambda: example)


def copied(text: str, how: tuple[int, ...], size: int, *arrays: ndarray) -> bool:
    """True if a loop has copied; False until NumPy has worked for as long as compiling takes."""
    word = WORDS[arrays[-1].itemsize]
    function = loop_of(text, arrays[-1].shape[-1] == 1 and text in OF_ROWS, word).ready(size)
    if function is None:
        return False
    numbers = [a if a.dtype is PLACE and a is not arrays[-1] else a.view(word) for a in arrays]
    shared(function, tuple(numbers), how, size, GATHER_PARALLEL_ELEMENTS)
    return True


def fits(x: ndarray, index: ndarray) -> bool:
    return (
        x.itemsize in WORDS
        and x.dtype.kind in "fiuc"
        and x.flags.carray
        and index.dtype.kind in "iu"
        and index.size > 0
    )


def in_three(a: ndarray, dim: int) -> ndarray:
    """The array in three dimensions: all before `dim` merged, `dim`, all after `dim` merged."""
    return a.reshape(prod(a.shape[:dim]), a.shape[dim], prod(a.shape[dim + 1 :]))


def gathered_many(x: ndarray, index: ndarray, dim: int) -> ndarray | None:
    """out[b, i, j] = x[b, index[b, i, j], j]; None if the index is smaller than x in another dimension than `dim`."""
    dim %= x.ndim
    if not fits(x, index) or not same_elsewhere(x.shape, index.shape, dim):
        return None
    out = memory.take(index.shape, x.dtype)
    at = np.ascontiguousarray(index, PLACE)
    arrays = in_three(x, dim), in_three(at, dim), in_three(out, dim)
    return out if copied(GATHERED, (1, 1, 1), out.size, *arrays) else None


def taken(x: ndarray, index: ndarray, dim: int) -> ndarray | None:
    """out[b, i, j] = x[b, index[i], j]; None if the contiguous runs are so long that NumPy is as fast."""
    dim %= x.ndim
    if not fits(x, index) or prod(x.shape[dim + 1 :]) > TAKEN_RUN_ELEMENTS:
        return None
    at = np.ascontiguousarray(index, PLACE).reshape(-1)
    if np.maximum.reduce(at.view(np.uint64)) >= x.shape[dim]:  # NumPy handles negative indices and errors
        return None
    shape = x.shape[:dim] + index.shape + x.shape[dim + 1 :]
    out = memory.take(shape, x.dtype)
    whole = out.reshape(prod(x.shape[:dim]), index.size, -1)
    return out if copied(TAKEN, (1, 0, 1), out.size, in_three(x, dim), at, whole) else None


def placed_many(r: ndarray, index: ndarray, source: ndarray, dim: int) -> bool | None:
    """r[b, index[b, i, j], j] = source[b, i, j], in place; True if a loop did it."""
    dim %= r.ndim
    if (
        not fits(r, index)
        or not same_elsewhere(r.shape, index.shape, dim)
        or source.dtype != r.dtype
        or source.shape != index.shape
    ):
        return None
    x, at = np.ascontiguousarray(source), np.ascontiguousarray(index, PLACE)
    arrays = in_three(r, dim), in_three(at, dim), in_three(x, dim)
    return copied(SCATTERED, (1, 1, 1), x.size, *arrays) or None


def same_elsewhere(shape: tuple[int, ...], part: tuple[int, ...], dim: int) -> bool:
    """True if both have the same sizes in all dimensions except `dim`."""
    return shape[:dim] == part[:dim] and shape[dim + 1 :] == part[dim + 1 :]


def flip(x: ndarray, dims: tuple[int, ...]) -> ndarray | None:
    """The last dimension reversed; None for other dimensions."""
    if len(dims) != 1 or x.ndim < 1 or dims[0] % x.ndim != x.ndim - 1:
        return None
    if x.itemsize not in WORDS or x.dtype.kind not in "fiuc" or not x.flags.carray:
        return None
    out = memory.take(x.shape, x.dtype)
    rows = x.reshape(-1, x.shape[-1]), out.reshape(-1, x.shape[-1])
    return out if copied(REVERSED, (1, 1), x.size, *rows) else None
