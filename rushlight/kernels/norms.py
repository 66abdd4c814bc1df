"""Norms of vectors and distances between points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.kernels.summation import add_reduce, added, in_c_order

DIFFERENCES_ELEMENTS = 1 << 20  # elements held at a time: 4 MB of float32


def vector_norm(x: ndarray, p: float, axes: tuple | None, keepdim: bool = False) -> ndarray:
    """(sum |x|^p)^(1/p) over the axes (None: all); real. 16-bit floats are added up in float32."""
    if x.dtype.kind == "V" or x.dtype.itemsize == 2:
        return np.asarray(vector_norm(x.astype(np.float32), p, axes, keepdim)).astype(x.dtype)
    if p == 2:
        if axes is None and not keepdim:
            flat = x.ravel()
            return np.sqrt(np.vdot(flat, flat).real)
        squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
        return np.sqrt(added(squares, axes, keepdim))
    size = np.abs(x)
    if p == 0:
        return in_c_order(add_reduce(size != 0, axes, size.dtype, None, keepdim))
    if p == 1:
        return added(size, axes, keepdim)
    if math.isinf(p):
        extreme: Any = np.maximum if p > 0 else np.minimum
        return in_c_order(extreme.reduce(size, axes, None, None, keepdim, **start(p)))
    exponent = size.dtype.type(p)
    return added(size**exponent, axes, keepdim) ** (1 / exponent)


def farthest(x: ndarray) -> ndarray:
    """max |x| along the last dimension; 0 if it is empty."""
    return vector_norm(x, math.inf, (x.ndim - 1,))


def start(p: float) -> dict[str, float]:
    """The value for an empty maximum; the minimum of nothing is an error."""
    return {"initial": 0.0} if p > 0 else {}


@site
def euclidean(x: ndarray, y: ndarray) -> ndarray:
    """The distances between rows of x (..., m, n) and rows of y (..., k, n), a few rows of x at a time."""
    batch, n = np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-1]
    r = np.zeros((*batch, x.shape[-2], y.shape[-2]), x.dtype)
    rows = max(1, DIFFERENCES_ELEMENTS * r.shape[-2] // max(1, r.size * n))
    for i in range(0, r.shape[-2] if r.size and n else 0, rows):
        d = x[..., i : i + rows, None, :] - y[..., None, :, :]
        r[..., i : i + rows, :] = np.sqrt(np.einsum("...n,...n->...", d, d))
    return r


def apart(x: ndarray, pairs: ndarray) -> ndarray:
    """The distances between rows i < j, for pairs numbered i n + j. Computes all n^2 distances and drops half: 256 rows
    of 1024 numbers take 9 ms, pair by pair 158.
    """
    return euclidean(x, x).reshape(-1)[pairs]
