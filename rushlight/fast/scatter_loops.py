"""Combining numbers at repeated indices by loops, at 1 ns a number (NumPy takes 6), with the bits of
kernels/ufunc_at.py: both process one number after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import has_llvmlite
from rushlight.fast.index import SCATTER_ELEMENTS, SCATTER_PASSES
from rushlight.fast.policy import charge
from rushlight.kernels.ufunc_at import all_below

MET = {"sum": "{0} + {1}", "prod": "{0} * {1}", "amax": "maximum{2}({0}, {1})", "amin": "minimum{2}({0}, {1})"}

SLICES = """def kernel(r, index, g):
    restrict()
    wide()
    for b in range(r.shape[0]):
        for i in range(index.shape[0]):
            k = index[i]
            for j in range(g.shape[2]):
                r[b, k, j] = {met}
"""
EACH = """def kernel(r, index, g):
    restrict()
    for b in range(r.shape[0]):
        for i in range(index.shape[1]):
            for j in range(g.shape[2]):
                k = u64(index[b, i, j])
                r[b, k, j] = {met}
"""
EACH_OF_ROWS = """def kernel(r, index, g):
    restrict()
    j = 0
    for b in range(r.shape[0]):
        for i in range(index.shape[1]):
            k = u64(index[b, i, j])
            r[b, k, j] = {met}
"""


ROWS = """def kernel(r, x, take, land):
    restrict()
    wide()
    for i in range(land.shape[0]):
        k = u64(land[i])
        t = u64(take[i])
        for j in range(r.shape[1]):
            r[k, j] = r[k, j] + x[t, j]
"""


def rows_summed(x: ndarray, take: ndarray, land: ndarray, n: int) -> ndarray | None:
    """r (n, columns) with r[land[i]] += x[take[i]] for all i, without copying each row."""
    size = land.size * x.shape[1]
    in_order = x.flags.carray or x.size <= size  # otherwise a copy would take longer than the sums
    fits = x.dtype.char in "fd" and in_order and take.dtype.kind == land.dtype.kind == "i"
    if not fits or not charge(SCATTER_PASSES, size, SCATTER_ELEMENTS) or not has_llvmlite():
        return None
    at, to = (np.ascontiguousarray(places, np.int64) for places in (take, land))
    if not all_below(at, len(x)) or not all_below(to, n):  # the loop would read or write outside of its arrays
        return None
    r = np.zeros((n, x.shape[1]), x.dtype)
    rows_loop()(r, np.ascontiguousarray(x), at, to)
    return r


@cache
def rows_loop() -> Callable:
    from rushlight.loops.cache import compiled

    return compiled(ROWS)


def each_at(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str) -> bool | None:
    return by_loop(EACH, r, index, g, dim, how) or None


def slices_at(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str) -> bool | None:
    return by_loop(SLICES, r, index, g, dim, how) or None


def by_loop(text: str, r: ndarray, index: ndarray, g: ndarray, dim: int, how: str) -> bool:
    """True if a loop did it: for float32 and float64, for large arrays, or for all sizes once loops are loaded."""
    before, after = prod(r.shape[:dim]), prod(r.shape[dim + 1 :])
    many = index.size if text is SLICES else index.shape[dim]
    fits = r.dtype is g.dtype and r.dtype.char in "fd" and r.flags.carray and g.size == before * many * after > 0
    if not fits or not charge(SCATTER_PASSES, g.size, SCATTER_ELEMENTS) or not has_llvmlite():
        return False
    at = np.ascontiguousarray(index, np.int64)
    # the loop would write outside of r
    if np.maximum.reduce(at.view(np.uint64), None) >= r.shape[dim]:
        raise IndexError(f"index out of range: an index is out of bounds for dimension {dim} with size {r.shape[dim]}")
    if text is EACH and after == 1:
        text = EACH_OF_ROWS
    loop_of(text, how, r.dtype.char == "d")(
        r.reshape(before, -1, after),
        at if text is SLICES else at.reshape(before, many, after),
        np.ascontiguousarray(g).reshape(before, many, after),
    )
    return True


@cache
def loop_of(text: str, how: str, wide: bool) -> Callable:
    """The loop for float32, or float64 (`wide`)."""
    from rushlight.loops.cache import compiled

    return compiled(text.format(met=MET[how].format("r[b, k, j]", "g[b, i, j]", "64" if wide else "")))
