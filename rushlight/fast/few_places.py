"""Indexing of few elements by loops that also check the index: `gather` of 32 numbers takes 0.8 us, NumPy's calls 2.5.
The loops copy numbers, or add them in NumPy's order, so their results equal NumPy's, and they are compiled once NumPy's
calls have cost as much (loops/tiering.py).
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.fast.index import PLACES_ELEMENTS
from rushlight.loops.tiering import Loop

# x: (before, n, after); index, values: (before, m, after). The result: False if an index is out of range
LOOP = """def kernel(x, index, values):
    restrict()
    n = x.shape[1]
    for b in range(index.shape[0]):
        for j in range(index.shape[1]):
            for k in range(index.shape[2]):
                if not 0 <= index[b, j, k] < n:
                    return False
    for b in range(index.shape[0]):
        for j in range(index.shape[1]):
            for k in range(index.shape[2]):
                {work}
    return True
"""
GATHER = LOOP.format(work="values[b, j, k] = x[b, index[b, j, k], k]")
SCATTER = LOOP.format(work="x[b, index[b, j, k], k] = values[b, j, k]")
ADD = LOOP.format(work="x[b, index[b, j, k], k] += values[b, j, k]")
TYPES = "fdl"  # dtype.char of the arrays that have loops
INDEX = np.dtype(np.int64)


@cache
def loop_of(text: str, dtype: np.dtype) -> Loop:
    def example() -> tuple:
        x = np.zeros((1, 1, 1), dtype)
        return x, np.zeros((1, 1, 1), np.int64), x.copy()

    return Loop(lambda: text, 8, example)


def by_loop(text: str, x: ndarray, index: ndarray, values: ndarray, dim: int) -> bool:
    """True if the loop did it; False for large arrays, bad indices, or if the loop is not compiled yet."""
    if (
        not 0 < index.size <= PLACES_ELEMENTS
        or index.dtype is not INDEX
        or x.dtype.char not in TYPES
        or not (x.flags.carray and index.flags.carray and values.flags.carray)
        or values.dtype is not x.dtype
        or values.shape != index.shape
        or not 0 <= dim < x.ndim
    ):
        return False
    before, after = x.shape[:dim], x.shape[dim + 1 :]
    if index.shape[:dim] != before or index.shape[dim + 1 :] != after:
        return False
    function = loop_of(text, x.dtype).ready(index.size)
    if function is None:
        return False
    shape = prod(before), -1, prod(after)
    return function(x.reshape(shape), index.reshape(shape), values.reshape(shape))


def gathered(x: ndarray, index: ndarray, dim: int) -> ndarray | None:
    if index.size > PLACES_ELEMENTS:
        return None
    values = np.empty(index.shape, x.dtype)
    return values if by_loop(GATHER, x, index, values, dim) else None


def placed(r: ndarray, index: ndarray, source: ndarray, dim: int) -> bool | None:
    return written(SCATTER, r, index, source, dim)


def added(r: ndarray, index: ndarray, source: ndarray, dim: int) -> bool | None:
    return written(ADD, r, index, source, dim)


def written(text: str, r: ndarray, index: ndarray, source: ndarray, dim: int) -> bool | None:
    """True after the loop has written into r; None if r may share memory with its inputs."""
    if np.may_share_memory(r, source) or np.may_share_memory(r, index):
        return None
    return by_loop(text, r, index, source, dim) or None
