"""Scans along a dimension: what has been met so far."""
from __future__ import annotations

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.reduce import refuse


def cummin(x: ndarray, dim: int) -> tuple[ndarray, ndarray]:
    """The smallest element so far, and the last place where it stood."""
    refuse(x, "c", '"cummin_cpu" not implemented for')
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    values = np.minimum.accumulate(x, dim)
    places = np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
    here = (x == values) | (x != x)               # a nan is the smallest from where it stands on
    return values, np.maximum.accumulate(np.where(here, places, 0), dim)


def logcumsumexp(x: ndarray, dim: int) -> ndarray:
    """log(exp(x_0) + ... + exp(x_i)), never overflowing."""
    refuse(x, "iub", '"logcumsumexp_out_cpu" not implemented for')
    if not x.ndim or not x.size:
        return x.copy()
    if x.dtype.kind != "c":
        wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
        return np.logaddexp.accumulate(wide, dim).astype(x.dtype, copy=False)
    out = np.moveaxis(x.copy(), dim, 0)           # a view: filled row by row
    for i in range(1, len(out)):
        top = finite(np.maximum(out[i - 1].real, out[i].real))
        out[i] = np.log(np.exp(out[i - 1] - top) + np.exp(out[i] - top)) + top
    return np.moveaxis(out, 0, dim)


def finite(x: ndarray) -> ndarray:
    """x, or 0 where it is infinite, so that it may be subtracted."""
    return np.where(np.isfinite(x), x, x.dtype.type(0))
