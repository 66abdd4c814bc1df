"""Scans along a dimension: running results."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from rushlight.kernels.layout import plain
from rushlight.kernels.reduce import check_dim, furthest


def cummin(x: ndarray, dim: int) -> tuple[ndarray, ndarray]:
    """The running minimum and its last index."""
    check_dim(x, dim)
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    return furthest(np.minimum, plain(x), dim)


def logcumsumexp(x: ndarray, dim: int) -> ndarray:
    """log(exp(x_0) + ... + exp(x_i)) without overflow; in float64, as in torch, since errors grow with every step."""
    check_dim(x, dim)
    if not x.ndim or not x.size:
        return x.copy()
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(plain(x.astype(np.float64, copy=False)), dim).astype(x.dtype, copy=False)
    out = np.moveaxis(x.copy(), dim, 0)  # a view, filled row by row
    for i in range(1, len(out)):
        out[i] = log_of_sum(out[i - 1], out[i])
    return np.moveaxis(out, 0, dim)


def log_of_sum(x: ndarray, y: ndarray) -> ndarray:
    """log(exp(x) + exp(y)) of complex numbers: the larger number plus a small term, so the angle continues past pi."""
    low, high = np.where(x.real < y.real, x, y), np.where(x.real < y.real, y, x)
    return np.where(high.real == -np.inf, high, high + np.log1p(np.exp(low - high)))
