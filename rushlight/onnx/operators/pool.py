"""Pools: the largest, the mean or the norm of each window."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .conv import AUTO_PAD, Pairs, padding
from .shape import cut_or_padded
from .table import Fixed, Ints, operator


def windows(
    x: Tensor,
    kernel: Ints,
    strides: Ints | None,
    dilations: Ints | None,
    pads: Ints | None,
    auto_pad: str,
    ceil_mode: int,
) -> tuple[Ints, Ints, Pairs, Pairs]:
    """(strides, dilations, padding, padding with the elements of the last window that ceil_mode adds)."""
    strides, dilations = strides or [1] * len(kernel), dilations or [1] * len(kernel)
    pairs = padding(x.shape[2:], kernel, strides, dilations, pads, auto_pad)
    return strides, dilations, pairs, ceiled(x.shape[2:], kernel, strides, dilations, pairs) if ceil_mode else pairs


def ceiled(sizes: Sequence[int], kernel: Ints, strides: Ints, dilations: Ints, pairs: Pairs) -> Pairs:
    """More padding at the end for a last, partial window, which begins inside the image."""
    out = []
    for size, k, stride, dilation, (before, after) in zip(sizes, kernel, strides, dilations, pairs):
        span = dilation * (k - 1) + 1
        count = -(-(size + before + after - span) // stride) + 1
        if (count - 1) * stride >= size + before:
            count -= 1
        out.append((before, max(after, (count - 1) * stride + span - size - before)))
    return out


def summed(x: Tensor, kernel: Ints, strides: Ints, dilations: Ints) -> Tensor:
    """The sum of each window of each channel."""
    function = (F.conv1d, F.conv2d, F.conv3d)[len(kernel) - 1]
    return function(x, torch.ones(x.shape[1], 1, *kernel, dtype=x.dtype), None, strides, 0, dilations, x.shape[1])


@operator("MaxPool")
def max_pool(
    x: Tensor,
    *,
    kernel_shape: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    auto_pad: str = AUTO_PAD,
    ceil_mode: int = 0,
    storage_order: int = 0,
    n_outputs: int,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window; the second output has its index in the flat x."""
    kernel = kernel_shape
    strides, dilations, _, pairs = windows(x, kernel, strides, dilations, pads, auto_pad, ceil_mode)
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(kernel) - 1]
    if n_outputs == 1 and x.is_floating_point() and all(b == a and 2 * b <= k for (b, a), k in zip(pairs, kernel)):
        return function(x, kernel, strides, [before for before, _ in pairs], dilations)
    floating = x if x.is_floating_point() else x.to(torch.float32)
    longer = cut_or_padded(floating, [(0, 0), (0, 0), *pairs], -math.inf)
    y, at = function(longer, kernel, strides, 0, dilations, return_indices=True)
    return y.to(x.dtype), flat_indices(at, x, pairs, storage_order)


def flat_indices(at: Tensor, x: Tensor, pairs: Pairs, storage_order: int) -> Tensor:
    """Indices in each padded image as indices in all of x; storage_order 1 counts the columns first."""
    sizes, where = list(x.shape[2:]), []
    for size, (before, after) in zip(sizes[::-1], pairs[::-1]):
        whole = size + before + after
        where.append(at % whole - before)
        at = torch.div(at, whole, rounding_mode="floor")
    where = where if storage_order else where[::-1]
    order = sizes[::-1] if storage_order else sizes
    flat = where[0]
    for place, size in zip(where[1:], order[1:]):
        flat = flat * size + place
    images = torch.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1], *[1] * len(sizes))
    return flat + images * math.prod(sizes)


@operator("MaxUnpool")
def max_unpool(
    x: Tensor,
    at: Fixed,
    shape: Ints | None = None,
    *,
    kernel_shape: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
) -> Tensor:
    """Zeros with the elements of x at the flat indices that MaxPool gave."""
    strides, pads = strides or [1] * len(kernel_shape), pads or [0] * 2 * len(kernel_shape)
    count = len(kernel_shape)
    sizes = [
        (size - 1) * s + k - pads[i] - pads[i + count]
        for i, (size, s, k) in enumerate(zip(x.shape[2:], strides, kernel_shape))
    ]
    whole = (*x.shape[:2], *sizes)
    flat = x.new_zeros(math.prod(whole)).index_put((at.reshape(-1),), x.reshape(-1)).reshape(whole)
    if shape is None:
        return flat
    return cut_or_padded(flat, [(0, want - have) for have, want in zip(whole, shape)])


@operator("AveragePool")
def average_pool(
    x: Tensor,
    *,
    kernel_shape: Ints,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    auto_pad: str = AUTO_PAD,
    ceil_mode: int = 0,
    count_include_pad: int = 0,
) -> Tensor:
    """The mean of each window, over its elements inside the image, or also over the padding."""
    kernel = kernel_shape
    strides, dilations, given, pairs = windows(x, kernel, strides, dilations, pads, auto_pad, ceil_mode)
    total = summed(cut_or_padded(x, [(0, 0), (0, 0), *pairs]), kernel, strides, dilations)
    ones = torch.ones(1, 1, *x.shape[2:], dtype=x.dtype)
    if count_include_pad:
        ones = cut_or_padded(ones, [(0, 0), (0, 0), *given], 1.0)
        pairs = [(0, after - old) for (_, old), (_, after) in zip(given, pairs)]
    return total / summed(cut_or_padded(ones, [(0, 0), (0, 0), *pairs]), kernel, strides, dilations)


@operator("LpPool")
def lp_pool(
    x: Tensor,
    *,
    kernel_shape: Ints,
    p: float = 2,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    auto_pad: str = AUTO_PAD,
    ceil_mode: int = 0,
) -> Tensor:
    """The p-norm of each window."""
    strides, dilations, _, pairs = windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    powers = cut_or_padded(x.abs() ** p, [(0, 0), (0, 0), *pairs])
    return summed(powers, kernel_shape, strides, dilations) ** (1 / p)


@operator("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    """The mean of each channel."""
    return x.mean(list(range(2, x.ndim)), keepdim=True)


@operator("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    """The largest element of each channel."""
    return x.amax(list(range(2, x.ndim)), keepdim=True)


@operator("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: float = 2) -> Tensor:
    """The p-norm of each channel."""
    return x.abs().pow(p).sum(list(range(2, x.ndim)), keepdim=True).pow(1 / p)
