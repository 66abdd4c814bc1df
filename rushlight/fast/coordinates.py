"""Kernels for vectors and points, one coordinate at a time: NumPy is slow along a dimension of size 2 or 3."""

from __future__ import annotations

import numpy as np
from numpy import ndarray


def moved(x: ndarray, slope: ndarray) -> ndarray:
    """(x + 1) slope, one coordinate at a time."""
    columns = np.ascontiguousarray(np.moveaxis(x, -1, 0)) + x.dtype.type(1)
    return np.moveaxis(columns * slope[:, None, None], 0, -1)


def crossed(x: ndarray, y: ndarray, behind: int) -> ndarray:
    """The cross product; `behind`: the number of dimensions after the one of size 3."""
    dim = -1 - behind
    r = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    (x0, x1, x2), (y0, y1, y2), (r0, r1, r2) = (np.moveaxis(a, dim, 0) for a in (x, y, r))
    for to, a, b, c, d in (r0, x1, y2, x2, y1), (r1, x2, y0, x0, y2), (r2, x0, y1, x1, y0):
        np.subtract(a * b, c * d, out=to)
    return r
