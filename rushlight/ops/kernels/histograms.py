"""Counting, on arrays: bins are half open, [a, b), but for the last."""
from __future__ import annotations

import numpy as np
from numpy import ndarray


def counts_between(x: ndarray, edges: list[ndarray], weight: ndarray | None) -> ndarray:
    """How many of the points x (n, d) lie in each box between the edges of d dimensions, or what they weigh."""
    shape = tuple(len(e) - 1 for e in edges)
    inside, place = np.ones(len(x), bool), np.zeros(len(x), np.int64)
    for column, e, n in zip(x.T, edges, shape):
        inside &= (column >= e[0]) & (column <= e[-1])
        place = place * n + np.minimum(np.searchsorted(e, column, "right") - 1, n - 1)
    weights = None if weight is None else weight[inside]
    return np.bincount(place[inside], weights, int(np.prod(shape))).reshape(shape).astype(x.dtype)


def counts_in_range(x: ndarray, bins: int, low: float, high: float) -> ndarray:
    """How many numbers lie in each of `bins` equal parts of [low, high]."""
    x = x[(x >= low) & (x <= high)]
    place = ((x - x.dtype.type(low)) * x.dtype.type(bins) / x.dtype.type(high - low)).astype(np.int64)
    return np.bincount(np.minimum(place, bins - 1), minlength=bins).astype(x.dtype)


def bincount(x: ndarray, weights: ndarray | None, minlength: int) -> ndarray:
    """How often each of 0, 1, ... stands in x, or what it weighs there."""
    if weights is None:
        return np.bincount(x, minlength=minlength)
    kind = np.float32 if weights.dtype == np.float32 else np.float64
    return np.bincount(x, weights.astype(np.float64), minlength).astype(kind)


def hashed(x: ndarray, dims: tuple | None, keepdim: bool) -> ndarray:
    """The exclusive or of the elements' 64 bits: those of int64 or of double precision."""
    wide = np.int64 if x.dtype.kind in "iub" else np.float64
    bits = np.asarray(x.astype(wide)).view(np.uint64)
    return np.bitwise_xor.reduce(bits, dims, keepdims=keepdim)
