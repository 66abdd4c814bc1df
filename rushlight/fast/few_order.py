"""Sorting of small arrays by loops; NumPy needs several calls: values and indices of 4 x 8 numbers take 1 us, not 4.
The loops only compare and copy, so their results equal NumPy's, and they are compiled once NumPy's calls have cost as
much (loops/tiering.py).
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.fast.index import ORDER_ELEMENTS, ORDER_ROW_ELEMENTS
from rushlight.loops.tiering import Loop

# x, out, places: (before, n, after), sorted along the middle one by insertion
ORDER = """def kernel(x, out, places):
    restrict()
    for b in range(x.shape[0]):
        for k in range(x.shape[2]):
            for j in range(x.shape[1]):
                v = x[b, j, k]
                i = j
                while i > 0:
                    w = out[b, i - 1, k]
                    if not ({before}):
                        break
                    out[b, i, k] = w
                    places[b, i, k] = places[b, i - 1, k]
                    i -= 1
                out[b, i, k] = v
                places[b, i, k] = j
"""
ASCENDING = ORDER.format(before="v < w or w != w and v == v")
DESCENDING = ORDER.format(before="v > w or v != v and w == w")

# the most frequent number of each row (of equally frequent ones the smallest), and its last index
MODE = """def kernel(x, out, places):
    restrict()
    for b in range(x.shape[0]):
        for k in range(x.shape[2]):
            most = 0
            for j in range(x.shape[1]):
                v = x[b, j, k]
                count, last = 0, j
                for i in range(x.shape[1]):
                    w = x[b, i, k]
                    if w == v or w != w and v != v:
                        count += 1
                        last = i
                w = out[b, 0, k]
                if count > most or count == most and (v < w or w != w and v == v):
                    most = count
                    out[b, 0, k] = x[b, last, k]
                    places[b, 0, k] = last
"""
TYPES = "fdlqi"  # dtype.char of the arrays that have loops


@cache
def loop_of(text: str, dtype: np.dtype) -> Loop:
    def example() -> tuple:
        x = np.zeros((1, 1, 1), dtype)
        return x, x.copy(), np.zeros((1, 1, 1), np.int64)

    return Loop(lambda: text, 12, example)


def by_loop(text: str, x: ndarray, dim: int, left: int | None) -> tuple[ndarray, ndarray] | None:
    """The loop's two results, with `left` numbers along the dimension (None: x's length); None if NumPy should sort."""
    if not 0 < x.size <= ORDER_ELEMENTS or x.dtype.char not in TYPES or not x.flags.carray:
        return None
    ndim = x.ndim
    if not -ndim <= dim < ndim:
        return None
    shape, dim = x.shape, dim % ndim
    n = shape[dim]
    if n > ORDER_ROW_ELEMENTS:
        return None
    function = loop_of(text, x.dtype).ready(x.size)
    if function is None:
        return None
    before, after = prod(shape[:dim]), prod(shape[dim + 1 :])
    if left is not None:
        shape = (*shape[:dim], left, *shape[dim + 1 :])
    out, places = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    made = (before, n if left is None else left, after)
    function(x.reshape(before, n, after), out.reshape(made), places.reshape(made))
    return out, places


def ordered(x: ndarray, dim: int, descending: bool) -> tuple[ndarray, ndarray] | None:
    return by_loop(DESCENDING if descending else ASCENDING, x, dim, None)


def most_frequent(x: ndarray, dim: int) -> tuple[ndarray, ndarray] | None:
    return by_loop(MODE, x, dim, 1)
