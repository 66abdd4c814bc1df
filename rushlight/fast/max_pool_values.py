"""Maxima of windows, without their indices: for small arrays by an index table of each window, otherwise one NumPy call
for each tap.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy import ndarray

from rushlight.fast.index import ELEMENTWISE_ELEMENTS, MAX_POOL_TABLE_TAPS, MAX_POOL_TAPS, POOL_TABLE_ELEMENTS
from rushlight.fast.pool_table import by_loop, places
from rushlight.kernels.im2col import Ints, taps, valid_windows
from rushlight.kernels.layout import like_images
from rushlight.kernels.pool import check_reached, pooled_size


def max_values(
    x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> ndarray | None:
    """`max_pool` without indices; None for large arrays and for large windows."""
    if x.size >= ELEMENTWISE_ELEMENTS or prod(kernel) > MAX_POOL_TAPS or x.dtype.kind != "f" or x.itemsize < 4:
        return None
    op, size = f"max_pool{len(kernel)}d", x.shape[2:]
    out = pooled_size(op, x.shape[1:], kernel, stride, padding, dilation, ceil_mode)
    check_reached(op, size, kernel, stride, padding, dilation, out)
    shape = (*x.shape[:2], *out)
    if prod(kernel) >= MAX_POOL_TABLE_TAPS and prod(shape) * prod(kernel) <= POOL_TABLE_ELEMENTS:
        table, _ = places(valid_windows, size, kernel, stride, padding, dilation, out)
        flat = x.reshape(shape[0] * shape[1], prod(size))
        made = by_loop(flat, table, False)
        values = np.maximum.reduce(flat.take(table, 1), 2) if made is None else made[0]
        return like_images(values.reshape(shape), x)
    r = np.full(shape, -np.inf, x.dtype)
    for tap in taps(size, kernel, stride, padding, dilation, out):
        np.maximum(r[tap.out], x[tap.input], out=r[tap.out])
    return like_images(r, x)
