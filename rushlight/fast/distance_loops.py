"""Distances of many points by a loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import has_numba
from rushlight.fast.index import DISTANCE_PASSES, REDUCTION_ELEMENTS
from rushlight.fast.policy import charge_passes


def by_differences(x: ndarray, y: ndarray) -> ndarray | None:
    """The distances between rows of x (..., m, n) and rows of y (..., k, n), float32; None while
    NumPy is to do it."""
    if x.size * y.size < REDUCTION_ELEMENTS * x.shape[-1]:  # no more differences than x y / n
        return None
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    r = np.zeros((*batch, x.shape[-2], y.shape[-2]), x.dtype)
    differences = r.size * x.shape[-1]
    fits = differences >= REDUCTION_ELEMENTS and x.dtype == y.dtype == np.float32
    loop = distances() if fits and charge_passes(DISTANCE_PASSES, differences, large=True) else None
    if loop is None:
        return None
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    for at in np.ndindex(batch):
        loop(matrix_at(x, at), matrix_at(y, at), r[at])
    return r


def matrix_at(a: ndarray, at: tuple[int, ...]) -> ndarray:
    """The matrix of a (..., m, n) that broadcasts to the place `at`."""
    own = at[len(at) + 2 - a.ndim :]
    return a[tuple([i if size > 1 else 0 for i, size in zip(own, a.shape)])]


@cache
def distances() -> Callable | None:
    """The loop for two matrices; None without Numba."""
    if not has_numba():
        return None
    from rushlight.loops.cache import compiled

    return compiled(DISTANCES)


# four rows of y at a time: 1000 x 1000 distances of 16 numbers in 3.6 ms, one by one in 5.1
DISTANCES = """def kernel(x, y, out):
    restrict()
    wide()
    whole = y.shape[0] // 4 * 4
    for i in range(x.shape[0]):
        for j in range(0, whole, 4):
            a, b, c, d = f32(0), f32(0), f32(0), f32(0)
            for k in range(x.shape[1]):
                p, q, r, s = x[i, k] - y[j, k], x[i, k] - y[j + 1, k], x[i, k] - y[j + 2, k], x[i, k] - y[j + 3, k]
                a, b, c, d = plus(a, p * p), plus(b, q * q), plus(c, r * r), plus(d, s * s)
            out[i, j], out[i, j + 1], out[i, j + 2], out[i, j + 3] = sqrt(a), sqrt(b), sqrt(c), sqrt(d)
        for j in range(whole, y.shape[0]):
            a = f32(0)
            for k in range(x.shape[1]):
                p = x[i, k] - y[j, k]
                a = plus(a, p * p)
            out[i, j] = sqrt(a)
"""
