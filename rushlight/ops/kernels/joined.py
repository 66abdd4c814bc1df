"""Convolution of few places with large filters, as the last layers of nets have it: one product of matrices for all images.

The columns of all images lie side by side, (C K, N L), so that the filters, which no cache holds, are read once and not for
each image; with NumPy alone. For arrays as kernels/conv.py has them, of one group.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.windows import add_windows, copy_windows

FILTERS = 1 << 19    # numbers in filters that no cache of a core holds; with one tap, where nothing else is saved, a fourth
PLACES = 1 << 10     # of results, of all images: of more, to make columns takes longer than it saves
EACH = 1 << 11       # numbers in filters for a place, with which smaller ones are read too often, too


def suits(p: Any, images: int) -> bool:
    """Whether this is the fastest for the plan (kernels/conv.py)."""
    taps, places = prod(p.kernel), images * prod(p.out)
    if p.groups > 1:
        return False
    if places == images:                          # one place in an image: the columns are the images
        return True
    return places <= PLACES and p.filters * p.channels * taps >= min(FILTERS if taps > 1 else FILTERS // 4, EACH * places)


def columns(x: ndarray, p: Any) -> ndarray:
    """(C K, N L)."""
    made = np.zeros((p.channels, *p.kernel, len(x), *p.out), x.dtype)
    copy_windows(x, np.moveaxis(made, len(p.kernel) + 1, 0), p.stride, p.padding, p.dilation)
    return made.reshape(p.channels * prod(p.kernel), -1)


def rows(g: ndarray, p: Any) -> ndarray:
    """(N, O, *out) -> (O, N L)."""
    return np.moveaxis(g, 1, 0).reshape(p.filters, -1)


def correlate(x: ndarray, w: ndarray, p: Any) -> ndarray:
    """conv: (N, O, *out)."""
    made = w.reshape(p.filters, -1) @ columns(x, p)
    return np.ascontiguousarray(np.moveaxis(made.reshape(p.filters, len(x), *p.out), 1, 0))


def spread(g: ndarray, w: ndarray, p: Any) -> ndarray:
    """conv_input_grad: (N, C, *size)."""
    made = w.reshape(p.filters, -1).T @ rows(g, p)
    x = np.zeros((len(g), p.channels, *p.size), g.dtype)
    at = np.moveaxis(made.reshape(p.channels, *p.kernel, len(g), *p.out), len(p.kernel) + 1, 0)
    add_windows(x, at, p.stride, p.padding, p.dilation)
    return x


def weigh(g: ndarray, x: ndarray, p: Any) -> ndarray:
    """conv_weight_grad: (O, C, *kernel)."""
    return (rows(g, p) @ columns(x, p).T).reshape(p.filters, p.channels, *p.kernel)
