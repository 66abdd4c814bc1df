"""Convolution of one tap and stride 1: each image is a matrix product, in float32 by loops if these are faster
(kernels/matmul.py), and the bias is added while the image is in the cache.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.conv import whole_batch_im2col
from rushlight.fast.index import ONE_BY_ONE_MIN_PRODUCTS
from rushlight.kernels.conv import Plan, columns_of
from rushlight.kernels.matmul import into


def planes(x: ndarray) -> ndarray:
    """(N, C, *size) -> (N, C, L)."""
    return x.reshape(*x.shape[:2], -1)


def product_each(p: Plan, w: ndarray, x: ndarray, bias: ndarray | None = None) -> ndarray:
    """w (M, C) times each image (C, L), plus bias (M, 1): (N, M, *out)."""
    x, made = planes(x), memory.take((len(x), len(w), *p.out), x.dtype)
    for image, out in zip(x, planes(made)):
        into(w, image, out)
        if bias is not None:
            out += bias
    return made


def suits(p: Plan) -> bool:
    """True for one tap, stride 1 and one group, with an image large enough for a product."""
    return (
        p.dtype == np.float32
        and p.groups == p.taps == 1
        and columns_of(p).plain
        and p.filters * p.channels * prod(p.out) >= ONE_BY_ONE_MIN_PRODUCTS
        and not whole_batch_im2col.suits(p)
    )


def conv(p: Plan, x: ndarray, w: ndarray, bias: ndarray | None = None) -> ndarray:
    """The result (N, O, *out)."""
    return product_each(p, w.reshape(p.filters, -1), x, None if bias is None else bias.reshape(-1, 1))


def conv_input_grad(p: Plan, g: ndarray, w: ndarray) -> ndarray:
    """The gradient of x (N, C, *size)."""
    return product_each(p, w.reshape(p.filters, -1).T, g)


def conv_weight_grad(p: Plan, g: ndarray, x: ndarray) -> ndarray:
    """The gradient of w (O, C, *kernel)."""
    total, part = np.zeros((2, p.filters, p.channels), x.dtype)
    for gradient, image in zip(planes(g), planes(x)):
        into(gradient, image.T, part)
        total += part
    return total.reshape(p.filters, p.channels, *p.kernel)
