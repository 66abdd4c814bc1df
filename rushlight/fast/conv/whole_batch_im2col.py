"""Convolution with the columns of all images in one product: for few positions and large filters, as in a network's
last layers.

The columns of all images are adjacent, (C K, N L), so that the filters, which exceed every cache, are read once instead
of once per image. Needs only NumPy, and supports one group and any dtype.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy import ndarray

from rushlight.fast.index import (
    WHOLE_BATCH_FILTERS,
    WHOLE_BATCH_FILTERS_ONE_TAP,
    WHOLE_BATCH_FILTERS_PER_RESULT,
    WHOLE_BATCH_RESULTS,
)
from rushlight.kernels.conv import Plan, with_bias
from rushlight.kernels.im2col import add_windows, copy_windows


def columns(x: ndarray, p: Plan) -> ndarray:
    """(N, C, *size) -> (C K, N L)."""
    made = np.zeros((p.channels, *p.kernel, len(x), *p.out), x.dtype)
    copy_windows(x, np.moveaxis(made, len(p.kernel) + 1, 0), p.stride, p.padding, p.dilation)
    return made.reshape(p.channels * p.taps, -1)


def rows(g: ndarray, p: Plan) -> ndarray:
    """(N, O, *out) -> (O, N L)."""
    return np.moveaxis(g, 1, 0).reshape(p.filters, -1)


def suits(p: Plan) -> bool:
    """True if the filters are large and the results of all images few, or if each image has one result."""
    results = p.images * prod(p.out)
    if p.groups > 1:
        return False
    if results == p.images:  # the columns are the images
        return True
    least = WHOLE_BATCH_FILTERS if p.taps > 1 else WHOLE_BATCH_FILTERS_ONE_TAP
    return results <= WHOLE_BATCH_RESULTS and p.filters * p.channels * p.taps >= min(
        least, WHOLE_BATCH_FILTERS_PER_RESULT * results
    )


def conv(p: Plan, x: ndarray, w: ndarray, bias: ndarray | None = None) -> ndarray:
    """The result (N, O, *out)."""
    made = w.reshape(p.filters, -1) @ columns(x, p)
    return with_bias(np.ascontiguousarray(np.moveaxis(made.reshape(p.filters, len(x), *p.out), 1, 0)), bias)


def conv_input_grad(p: Plan, g: ndarray, w: ndarray) -> ndarray:
    """The gradient of x (N, C, *size)."""
    made = w.reshape(p.filters, -1).T @ rows(g, p)
    x = np.zeros((len(g), p.channels, *p.size), g.dtype)
    at = np.moveaxis(made.reshape(p.channels, *p.kernel, len(g), *p.out), len(p.kernel) + 1, 0)
    add_windows(x, at, p.stride, p.padding, p.dilation)
    return x


def conv_weight_grad(p: Plan, g: ndarray, x: ndarray) -> ndarray:
    """The gradient of w (O, C, *kernel)."""
    return (rows(g, p) @ columns(x, p).T).reshape(p.filters, p.channels, *p.kernel)
