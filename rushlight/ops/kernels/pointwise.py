"""Convolution of one tap and stride 1: each image is a product of matrices, of float32 by loops where they are the faster
(kernels/matmul.py), and the bias is added while the image is in the cache. For arrays as kernels/conv.py has them.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.matmul import into
from rushlight.ops.kernels.memory import memory

LEAST = 1 << 20      # products of an image, from which one by itself is worth its call


def suits(x: ndarray, p: Any) -> bool:
    """Whether it is such a convolution, of one group, and an image enough for a product of its own."""
    much = p.filters * p.channels * prod(p.out) >= LEAST
    return much and p.plain and p.groups == prod(p.kernel) == 1 and x.dtype == np.float32


def planes(x: ndarray) -> ndarray:
    """(N, C, *size) -> (N, C, L)."""
    return x.reshape(*x.shape[:2], -1)


def each(w: ndarray, x: ndarray, p: Any, bias: ndarray | None = None) -> ndarray:
    """w (M, C) times each image, plus bias (M, 1): (N, M, *out)."""
    x, made = planes(x), memory.take((len(x), len(w), *p.out), x.dtype)
    for image, out in zip(x, planes(made)):
        into(w, image, out)
        if bias is not None:
            out += bias
    return made


def correlate(x: ndarray, w: ndarray, p: Any, bias: ndarray | None = None) -> ndarray:
    """conv: (N, O, *out)."""
    return each(w.reshape(p.filters, -1), x, p, None if bias is None else bias.reshape(-1, 1))


def spread(g: ndarray, w: ndarray, p: Any) -> ndarray:
    """conv_input_grad: (N, C, *size)."""
    return each(w.reshape(p.filters, -1).T, g, p)


def weigh(g: ndarray, x: ndarray, p: Any) -> ndarray:
    """conv_weight_grad: (O, C, *kernel)."""
    total, part = np.zeros((2, p.filters, p.channels), x.dtype)
    for gradient, image in zip(planes(g), planes(x)):
        into(gradient, image.T, part)
        total += part
    return total.reshape(p.filters, p.channels, *p.kernel)
