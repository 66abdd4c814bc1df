"""Convolution with few columns: a table of places takes them out at once, in few calls, where blocks of columns need many.
An image of 3 x 8 x 8 and 4 filters of 3 x 3 take 23 us forward, not 82, and 57 us backward, not 208. For arrays as
kernels/conv.py has them; with NumPy alone.
"""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.matmul import stacked
from rushlight.ops.kernels.windows import Ints, reach

FEW = 1 << 14        # numbers in columns, up to which this is the fastest
FILTERS = 64         # in a group, up to which loops are not worth their call


def few(columns: int, turned: int, filters: int, as_they_are: bool) -> Ints:
    """So many images of so many numbers in columns, and in those of gradients. Where these are the images as they are,
    8 x 16 x 14 x 14 and 16 filters take 15 us, not 39."""
    most = 4 * FEW if as_they_are else FEW
    return (most // columns, most // turned) if filters <= FILTERS and columns and turned else (0, 0)


@lru_cache(maxsize=64)
def places(channels: int, geometry: tuple, back: bool) -> ndarray:
    """Where in an image (c, *size) the columns' numbers stand, (c K, L); or, `back`, those of a result's gradient (c, *out)
    that each place of the input is in, (c K, S). For what lies on padding the place behind the last."""
    size, *_, out = geometry
    source, target = (out, size) if back else (size, out)
    table, missing = np.zeros((), np.int64), np.zeros((), bool)
    for length, *how in zip(source, *geometry):                 # (k1, p1, k2, p2, ...)
        near = np.full((how[1], how[0] if back else how[-1]), -1)
        for k, outs, ins in reach(*how):
            near[k, ins if back else outs] = np.arange(length)[outs if back else ins]
        table, missing = np.add.outer(table * length, near), np.logical_or.outer(missing, near < 0)
    n = len(size)
    order = [*range(0, 2 * n, 2), *range(1, 2 * n, 2)]
    table, missing = (a.transpose(order).reshape(-1, prod(target)) for a in (table, missing))
    found = np.arange(channels)[:, None, None] * prod(source) + table
    return np.where(missing, channels * prod(source), found).reshape(-1, prod(target))


def columns(x: ndarray, p: Any, back: bool = False) -> ndarray:
    """(N, G, c K, L) of x (N, C, *size); or, `back`, (N, G, o K, S) of g (N, O, *out)."""
    flat = x.reshape(len(x), -1)
    if not p.plain or prod(p.kernel) > 1:      # kernels may share the input as it is, one row apart
        if back or any(p.padding):
            flat = np.concatenate((flat, np.zeros((len(x), 1), x.dtype)), 1)
        flat = flat.take(places(x.shape[1], (p.size, p.kernel, p.stride, p.padding, p.dilation, p.out), back), 1)
    return flat.reshape(len(x), p.groups, -1, prod(p.size if back else p.out))


def correlate(x: ndarray, w: ndarray, p: Any) -> ndarray:
    """conv: (N, O, *out)."""
    made = stacked(w.reshape(p.groups, p.filters, -1), columns(x, p))
    return made.reshape(len(x), len(w), *p.out)


def spread(g: ndarray, w: ndarray, p: Any) -> ndarray:
    """conv_input_grad: (N, C, *size)."""
    turned = w.reshape(p.groups, p.filters, p.channels, -1).swapaxes(1, 2).reshape(p.groups, p.channels, -1)
    made = stacked(turned, columns(g, p, True))
    return made.reshape(len(g), p.groups * p.channels, *p.size)


def weigh(g: ndarray, x: ndarray, p: Any) -> ndarray:
    """conv_weight_grad: (O, c, *kernel)."""
    found = columns(x, p)
    made = g.reshape(len(g), p.groups, p.filters, -1) @ found.swapaxes(2, 3)
    return (made[0] if len(g) == 1 else made.sum(0, made.dtype)).reshape(-1, p.channels, *p.kernel)
