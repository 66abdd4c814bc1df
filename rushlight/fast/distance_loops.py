"""Distances of many points by a matrix product, or by a loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import has_llvmlite
from rushlight.fast.index import DISTANCE_PASSES, DISTANCE_PRODUCT_NUMBERS, DISTANCE_PRODUCT_POINTS, REDUCTION_ELEMENTS
from rushlight.fast.policy import charge_passes
from rushlight.kernels.matmul import mm
from rushlight.kernels.norms import DIFFERENCES_ELEMENTS

# Limit of |x - y|^2 / (|x|^2 + |y|^2): below it, the difference of large numbers has lost digits
MIN_RELATIVE_SQUARE = 0.25


def euclidean(x: ndarray, y: ndarray) -> ndarray | None:
    """The distances between rows of x (..., m, n) and rows of y (..., k, n) of one dtype; None if NumPy should do it."""
    if x.dtype != y.dtype or x.dtype.kind != "f" or x.itemsize <= 2:
        return None
    (m, n), k = x.shape[-2:], y.shape[-2]
    if n >= DISTANCE_PRODUCT_NUMBERS and min(m, k) > DISTANCE_PRODUCT_POINTS:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        made = by_products(np.broadcast_to(x, (*batch, m, n)), np.broadcast_to(y, (*batch, k, n)))
        if made is not None:
            return made
    return by_loop(x, y)


def by_products(x: ndarray, y: ndarray) -> ndarray | None:
    """sqrt(|x|^2 + |y|^2 - 2 x y), with the mean of y subtracted from x and y: 1024 x 1024 distances of 512 numbers
    take 17 ms, by a loop 35, by NumPy's differences 210. For pairs whose result lost digits, or is inf or nan, the
    differences are computed directly; None if there are many such pairs.
    """
    with np.errstate(all="ignore"):
        middle = y.mean(-2, keepdims=True)
        u, v = x - middle, y - middle
        whole = np.einsum("...n,...n->...", u, u)[..., None] + np.einsum("...n,...n->...", v, v)[..., None, :]
        r = mm(np.multiply(u, -2, out=u), v.swapaxes(-1, -2))
        r += whole
        whole *= MIN_RELATIVE_SQUARE
        near = np.nonzero(~(r >= whole))
        if 8 * len(near[0]) > r.size:
            return None
        np.sqrt(np.maximum(r, 0, out=r), out=r)
        some = max(1, DIFFERENCES_ELEMENTS // x.shape[-1])
        for start in range(0, len(near[0]), some):
            *at, i, j = [index[start : start + some] for index in near]
            row, column, pair = (*at, i), (*at, j), (*at, i, j)
            d = x[row] - y[column]
            r[pair] = np.sqrt(np.einsum("pn,pn->p", d, d))
    return r


def by_loop(x: ndarray, y: ndarray) -> ndarray | None:
    """The distances of float32, if there are many."""
    if x.size * y.size < REDUCTION_ELEMENTS * x.shape[-1]:  # at most as many differences as x y / n
        return None
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    r = np.zeros((*batch, x.shape[-2], y.shape[-2]), x.dtype)
    differences = r.size * x.shape[-1]
    fits = differences >= REDUCTION_ELEMENTS and x.dtype == np.float32
    loop = distances() if fits and charge_passes(DISTANCE_PASSES, differences, large=True) else None
    if loop is None:
        return None
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    for at in np.ndindex(batch):
        loop(matrix_at(x, at), matrix_at(y, at), r[at])
    return r


def matrix_at(a: ndarray, at: tuple[int, ...]) -> ndarray:
    """The matrix of a (..., m, n) that broadcasts to the batch index `at`."""
    own = at[len(at) + 2 - a.ndim :]
    return a[tuple([i if size > 1 else 0 for i, size in zip(own, a.shape)])]


@cache
def distances() -> Callable | None:
    """The loop for two matrices; None without llvmlite."""
    if not has_llvmlite():
        return None
    from rushlight.loops.cache import compiled

    return compiled(DISTANCES)


# four rows of y at a time: 1000 x 1000 distances of 16 numbers in 3.6 ms, one row at a time in 5.1
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
