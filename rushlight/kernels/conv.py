"""Convolution (torch's: a correlation) and its two gradients with NumPy alone, in any number of spatial dimensions.

    out[n, o, p] = sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k]

The formula is linear in x and in w, so `conv`, `conv_input_grad` and `conv_weight_grad` are each the derivative of the
other two. All three are products with columns (im2col), made in blocks of `BLOCK_BYTES`.

If it saves time, the columns contain windows in all dimensions but the first, so that kernel rows share columns: each
kernel row is a product with another slice of the columns, and fewer numbers are copied.

Arrays are NumPy's, x (N, C, *size), w (O, C / groups, *kernel). stride, padding and dilation are tuples with a number
for each spatial dimension. float16 and bfloat16 are computed in float32, integers wrap around, bool raises an error as
in torch. Each op makes a `Plan`, then computes it by im2col or by a faster way (rushlight/fast/conv).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.kernels.float16 import converted, is_half, single
from rushlight.kernels.im2col import Ints, add_windows, check_windows, copy_windows, wide_dtype, window_counts
from rushlight.kernels.layout import like_images
from rushlight.kernels.matmul import stacked

# bytes of columns made at a time, to stay in the L2 cache; 256 KB to 1 MB measured alike
BLOCK_BYTES = 1 << 19


class Plan:
    """The geometry of one convolution or gradient. `plan` keeps one object per geometry, so that caches can compare by
    identity.
    """

    def __init__(
        self,
        op: str,
        dtype: np.dtype,
        images: int,
        groups: int,
        channels: int,
        filters: int,
        kernel: Ints,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        size: Ints,
        out: Ints,
    ):
        # op: "conv", "conv_input_grad" or "conv_weight_grad"; dtype: the dtype of the computation
        self.op, self.dtype = op, dtype
        # channels and filters in each group
        self.images, self.groups, self.channels, self.filters = images, groups, channels, filters
        self.kernel, self.stride, self.padding, self.dilation = kernel, stride, padding, dilation
        self.size, self.out = size, out  # the spatial sizes of the input and of the result of `conv`
        self.taps = prod(kernel)  # positions in the kernel
        self.back = op == "conv_input_grad"  # True if the op computes the input's gradient from the result's gradient
        inner, outer = (channels, size), (filters, out)
        # (channels in a group, spatial size) of the array that the op reads, and of the array that it makes
        self.read, self.made = (outer, inner) if self.back else (inner, outer)


@lru_cache(maxsize=512)
def plan(
    op: str,
    dtype: np.dtype,
    other: np.dtype,
    x: Ints,
    w: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Plan:
    """The plan for shapes x and w and the dtypes of the two operands; the errors of `conv`."""
    out = result_size(x, w, stride, padding, dilation, groups)
    check_dtypes(op, dtype, other, len(out))
    return Plan(op, wide_dtype(dtype), x[0], groups, w[1], w[0] // groups, w[2:], stride, padding, dilation, x[2:], out)


def conv(
    x: ndarray, w: ndarray, stride: Ints, padding: Ints, dilation: Ints, groups: int, bias: ndarray | None = None
) -> ndarray:
    """out[n, o, p] = bias[o] + sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k].

    x (N, C, *size), w (O, C / groups, *kernel), bias (O,) -> (N, O, *out), out = (size + 2 padding
    - dilation (kernel - 1) - 1) // stride + 1. Input and output channels are divided into `groups` groups; a group of
    filters uses only its group of channels. RuntimeError, in torch's words, if channels, groups or sizes do not fit;
    NotImplementedError for bool.

        >>> conv(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), (1, 1), (0, 0), (1, 1), 1)[0, 0].tolist()
        [[4.0, 4.0], [4.0, 4.0]]
    """
    p = plan("conv", x.dtype, w.dtype, x.shape, w.shape, stride, padding, dilation, groups)
    if bias is not None and bias.dtype != x.dtype:
        return with_bias(conv(x, w, stride, padding, dilation, groups), bias)
    if not (x.size and w.size):
        return with_bias(np.zeros((p.images, w.shape[0], *p.out), x.dtype), bias)
    return like_images(computed(conv_of_plan, p, x, w, *(() if bias is None else (bias,))), x, w)


def with_bias(r: ndarray, bias: ndarray | None) -> ndarray:
    """r (N, O, *out) + bias (O,), in place."""
    if bias is not None:
        r += bias.reshape((-1,) + (1,) * (r.ndim - 2))
    return r


def conv_input_grad(
    g: ndarray, w: ndarray, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> ndarray:
    """The derivative of `conv` for x, transposed: out[n, c, p stride - padding + k dilation] += g[n, o, p] w[o, c, k].

    g (N, O, *out), w (O, C / groups, *kernel) -> (N, C, *size). It is torch's transposed convolution of input g. Errors
    as in `conv`, and RuntimeError if g does not have the shape of `conv`'s result.

        >>> conv_input_grad(np.ones((1, 1, 2)), np.ones((1, 1, 2)), (3,), (1,), (0,), (1,), 1).tolist()
        [[[1.0, 2.0, 1.0]]]
    """
    g, shape = of_half(g, w), (g.shape[0], w.shape[1] * groups, *size)
    p = plan("conv_input_grad", g.dtype, w.dtype, shape, w.shape, stride, padding, dilation, groups)
    check_grad(g, p.out, shape, w.shape)
    if not (g.size and w.size):
        return np.zeros(shape, g.dtype)
    return like_images(computed(conv_input_grad_of_plan, p, g, w), g, w)


def conv_weight_grad(
    g: ndarray, x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> ndarray:
    """The derivative of `conv` for w, transposed:

        out[o, c, k] = sum over n, p of g[n, o, p] x[n, c, p stride - padding + k dilation].

    g (N, O, *out), x (N, C, *size) -> (O, C / groups, *kernel). Errors as in `conv`, and RuntimeError if g does not
    have the shape of `conv`'s result.

        >>> conv_weight_grad(np.ones((1, 1, 2)), np.array([[[1.0, 2.0, 3.0]]]), (2,), (1,), (0,), (1,), 1).tolist()
        [[[3.0, 5.0]]]
    """
    g, x = of_half(g, x), of_half(x, g)  # either may be the gradient
    shape = (g.shape[1], x.shape[1] // max(groups, 1), *kernel)
    p = plan("conv_weight_grad", g.dtype, x.dtype, x.shape, shape, stride, padding, dilation, groups)
    check_grad(g, p.out, x.shape, shape)
    if not (g.size and x.size):
        return np.zeros(shape, g.dtype)
    return computed(conv_weight_grad_of_plan, p, g, x)


def computed(run: Callable, p: Plan, *operands: ndarray) -> ndarray:
    """run(p, *operands); operands of float16 and bfloat16 in float32, the result rounded once."""
    if not is_half(operands[0]):
        return run(p, *operands)
    return converted(run(p, *[single(a) for a in operands]), operands[0].dtype)


# Hooks for faster ways. fast/conv calls the *_im2col functions below when im2col is fastest.


@site
def conv_of_plan(p: Plan, x: ndarray, w: ndarray, bias: ndarray | None = None) -> ndarray:
    return conv_im2col(p, x, w, bias)


@site
def conv_input_grad_of_plan(p: Plan, g: ndarray, w: ndarray) -> ndarray:
    return conv_input_grad_im2col(p, g, w)


@site
def conv_weight_grad_of_plan(p: Plan, g: ndarray, x: ndarray) -> ndarray:
    return conv_weight_grad_im2col(p, g, x)


class Columns(NamedTuple):
    """The layout of a plan's columns, and the columns that each product takes.

    The columns of an image are (G, S, J, L): S sets for each group, J rows of filter weights (c channels times
    `window`, the copied part of the kernel) and L positions. Each part, a (set, slice of L), is multiplied with the
    filters of one row of the kernel: row k begins k dilation = q stride + s rows down, so it is in set s, q rows of
    windows further. Without shared rows there is one set and one part, with the whole kernel in J.
    """

    window: Ints  # the copied part of the kernel; its first dimension has size S if rows are shared
    spacing: Ints  # the dilation of `window`
    counts: Ints  # the number of windows in each dimension
    padding: Ints
    shape: Ints  # (G, S, J, L)
    parts: tuple[tuple[int, slice], ...]
    plain: bool  # the columns are the input as it is


@lru_cache(maxsize=512)
def columns_of(p: Plan, top: int = 0, bottom: int | None = None) -> Columns:
    """The columns of the rows of the result from `top` to `bottom`: less padding before the first, and fewer
    windows."""
    out = (p.out[0] if bottom is None else bottom - top, *p.out[1:])
    step, width = p.stride[0], prod(out[1:])
    # rows of columns that sharing saves copying
    saved = p.channels * prod(p.kernel[1:]) * (p.kernel[0] - step)
    added = p.filters * (p.kernel[0] - 1)  # rows of products that sharing must add up
    # sharing under this condition was faster on 18 of 19 shapes
    if p.kernel[0] > step and gcd(step, p.dilation[0]) == 1 and 2 * saved >= added:
        starts = [divmod(k * p.dilation[0], step) for k in range(p.kernel[0])]
        parts = tuple([(s, slice(q * width, (q + out[0]) * width)) for q, s in starts])
        sets, window, spacing = step, (step, *p.kernel[1:]), (1, *p.dilation[1:])
        count = (starts[-1][0] + out[0], *out[1:])
    else:
        sets, parts, window, spacing, count = 1, ((0, slice(None)),), p.kernel, p.dilation, out
    return Columns(
        window,
        spacing,
        count,
        (p.padding[0] - top * step, *p.padding[1:]),
        (p.groups, sets, p.channels * prod(window) // sets, prod(count)),
        parts,
        count == p.size and prod(window) == 1 == prod(p.stride),
    )


def conv_im2col(p: Plan, x: ndarray, w: ndarray, bias: ndarray | None = None) -> ndarray:
    out = np.empty((len(x), p.groups, p.filters, prod(p.out)), x.dtype)
    filters = split_filters(w, p)
    for images, positions, parts, columns in column_blocks(x, p):
        block = out[images, ..., positions]
        for i, (s, part) in enumerate(parts):
            if i:
                block += filters[i] @ columns[:, :, s, :, part]
            else:
                stacked(filters[0], columns[:, :, s, :, part], block)
    return with_bias(out.reshape(len(x), -1, *p.out), bias)


def conv_input_grad_im2col(p: Plan, g: ndarray, w: ndarray) -> ndarray:
    if prod(p.stride) == 1 and (p.filters < 2 * p.channels or p.taps == 1):
        # up to 1.5 times as fast, unless g is larger than x
        return conv_im2col(mirrored_plan(p), g, mirrored(w, p))
    x = np.zeros((len(g), p.groups, p.channels, *p.size), g.dtype)
    g = g.reshape(len(g), p.groups, p.filters, -1)
    filters = split_filters(w, p).swapaxes(-1, -2)
    buffer = None
    for images, positions, c in blocks(p, x.itemsize):
        block = g[images, ..., positions]
        buffer, columns = first_columns(buffer, len(block), c, x.dtype)
        if len(c.parts) == 1:
            stacked(filters[0], block, columns[:, :, 0])
        else:
            columns.fill(0)
            for (s, part), rows in zip(c.parts, filters):
                columns[:, :, s, :, part] += stacked(rows, block)
        add_windows(x[images], spatial(columns, p, c), p.stride, c.padding, c.spacing)
    return x.reshape(len(x), -1, *p.size)


def conv_weight_grad_im2col(p: Plan, g: ndarray, x: ndarray) -> ndarray:
    g, whole = g.reshape(len(g), p.groups, p.filters, -1).swapaxes(-1, -2), columns_of(p)
    w = np.zeros((len(whole.parts), p.groups, whole.shape[2], p.filters), x.dtype)
    for images, positions, parts, columns in column_blocks(x, p):
        block = g[images, :, positions]
        for total, (s, part) in zip(w, parts):
            # 1.1 to 2.4 times as fast as g columns^T
            total += (columns[:, :, s, :, part] @ block).sum(0)
    return join_filters(w.swapaxes(-1, -2), p)


def blocks(p: Plan, itemsize: int) -> Iterator[tuple[slice, slice, Columns]]:
    """(images, positions of the result, their columns), each with about `BLOCK_BYTES` bytes of columns: several images,
    or a few rows of one large image. Neighbouring rows share columns, so a block has at least 4 kernel heights of rows.
    """
    whole = columns_of(p)
    size = itemsize * prod(whole.shape)
    step = max(1, BLOCK_BYTES // size)
    height, width = p.out[0], prod(p.out[1:])
    if size > 2 * BLOCK_BYTES and not whole.plain:
        height = min(height, max(4 * p.kernel[0], height * BLOCK_BYTES // size))
    for first in range(0, p.images, step):
        for top in range(0, p.out[0], height):
            bottom = min(top + height, p.out[0])
            yield (
                slice(first, min(first + step, p.images)),
                slice(top * width, bottom * width),
                whole if height == p.out[0] else columns_of(p, top, bottom),
            )


def column_blocks(x: ndarray, p: Plan) -> Iterator[tuple[slice, slice, tuple, ndarray]]:
    """(images, positions, parts, columns (n, G, S, J, L)) of each block; the next block overwrites the columns."""
    x = x.reshape(len(x), p.groups, p.channels, *p.size)
    buffer = filled_by = None
    for images, positions, c in blocks(p, x.itemsize):
        columns = x[images]
        if not c.plain:
            buffer, columns = first_columns(buffer, len(columns), c, x.dtype)
            if c is not filled_by:
                columns.fill(0)  # the padding stays 0 from block to block of the same rows
                filled_by = c
            copy_windows(x[images], spatial(columns, p, c), p.stride, c.padding, c.spacing)
        yield images, positions, c.parts, columns.reshape(len(columns), *c.shape)


def first_columns(buffer: ndarray | None, images: int, c: Columns, dtype: np.dtype) -> tuple[ndarray, ndarray]:
    """(buffer, its beginning as columns). Reuses the given buffer, if any: the first block is the largest."""
    if buffer is None:
        buffer = np.empty(images * prod(c.shape), dtype)
    return buffer, buffer[: images * prod(c.shape)].reshape(images, *c.shape)


def spatial(columns: ndarray, p: Plan, c: Columns) -> ndarray:
    """(n, G, S, J, L) -> (n, G, c, *window, *count), the same memory."""
    n, sets = len(columns), c.shape[1]
    window = (c.window[0] // sets, *c.window[1:])  # one of sets and window[0] // sets is 1
    apart = columns.reshape(n, p.groups, sets, p.channels, *window, *c.counts).swapaxes(2, 3)
    return apart.reshape(n, p.groups, p.channels, *c.window, *c.counts)


def split_filters(w: ndarray, p: Plan) -> ndarray:
    """w (O, c, *kernel) -> (parts, G, o, c K): the filters of each product, as a matrix for each group."""
    parts = len(columns_of(p).parts)
    w = w.reshape(p.groups, p.filters, p.channels, parts, -1).transpose(3, 0, 1, 2, 4)
    return np.ascontiguousarray(w).reshape(parts, p.groups, p.filters, -1)


def join_filters(w: ndarray, p: Plan) -> ndarray:
    """(parts, G, o, c K) -> (O, c, *kernel): the inverse of `split_filters`."""
    w = w.reshape(len(w), p.groups, p.filters, p.channels, -1).transpose(1, 2, 3, 0, 4)
    return w.reshape(-1, p.channels, *p.kernel)


def mirrored(w: ndarray, p: Plan) -> ndarray:
    """w (G o, c, *kernel) -> (G c, o, *kernel), with reversed kernels: the convolution of g with it is x's gradient."""
    w = w.reshape(p.groups, p.filters, p.channels, *p.kernel).swapaxes(1, 2)
    return np.flip(w, tuple(range(3, w.ndim))).reshape(-1, p.filters, *p.kernel)


@lru_cache(maxsize=512)
def mirrored_plan(p: Plan) -> Plan:
    """The plan of the convolution with `mirrored` filters, for stride 1."""
    # may be negative
    padding = tuple([d * (k - 1) - pad for d, k, pad in zip(p.dilation, p.kernel, p.padding)])
    geometry = p.kernel, p.stride, padding, p.dilation, p.out, p.size
    return Plan("conv", p.dtype, p.images, p.groups, p.filters, p.channels, *geometry)


def result_size(x: Ints, w: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Ints:
    """The spatial size of `conv` for shapes x and w; RuntimeError, in torch's words, if they do not fit."""
    op, size, kernel = f"conv{len(w) - 2}d", x[2:], w[2:]
    if len(x) != len(w):
        raise RuntimeError(
            f"{op}: an input of shape {list(x)} does not fit a weight of shape {list(w)}: expected {len(w)} "
            "dimensions, (N, C, *size)"
        )
    check_windows(op, kernel, stride, padding, dilation)
    check_channels(op, x, w, groups)
    if not prod(size):
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x)}. {op}: drop the "
            "empty input"
        )
    out = window_counts(size, kernel, stride, padding, dilation)
    if min(out) < 1:
        padded = " x ".join([str(s + 2 * p) for s, p in zip(size, padding)])
        dilated = " x ".join([str(d * (k - 1) + 1) for k, d in zip(kernel, dilation)])
        raise RuntimeError(
            f"Calculated padded input size per channel: ({padded}). Kernel size: ({dilated}). Kernel size can't be "
            f"greater than actual input size. {op}: input {list(x)}, weight {list(w)}; pad the input or take a "
            "smaller kernel or dilation"
        )
    return out


def check_channels(op: str, x: Ints, w: Ints, groups: int) -> None:
    if groups < 1:
        raise RuntimeError(f"non-positive groups is not supported. {op}: got groups={groups}")
    if w[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(w)} instead. {op}: each group needs an output channel"
        )
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size {list(w)} instead. {op}: take a multiple of groups as output channels"
        )
    if x[1] != w[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w)}, expected input{list(x)} to have {w[1] * groups} "
            f"channels, but got {x[1]} channels instead. {op}: the weight is (out channels, in channels / groups, "
            "*kernel); hint: "
            + (
                f"the channels are last: x.movedim(-1, {1 - len(x)})"
                if x[-1] == w[1] * groups
                else f"use in_channels={x[1]}, or an input with {w[1] * groups} channels (dimension 1)"
            )
        )


def check_grad(g: ndarray, size: Ints, x: Ints, w: Ints) -> None:
    expected = (x[0], w[0], *size)
    if g.shape != expected:
        raise RuntimeError(
            f"conv{len(size)}d: the gradient has shape {list(g.shape)}, but an input {list(x)} and a weight {list(w)} "
            f"give {list(expected)} with this stride, padding and dilation"
        )


def of_half(g: ndarray, of: ndarray) -> ndarray:
    """The gradient g in the dtype of `of`: rules that contain Python numbers turn bfloat16 into float32."""
    return g.astype(of.dtype) if g.dtype == np.float32 and of.dtype.itemsize == 2 else g


def check_dtypes(op: str, a: np.dtype, b: np.dtype, n: int) -> None:
    if a != b:
        first, second = {
            "conv": ("input", "weight"),
            "conv_input_grad": ("gradient", "weight"),
            "conv_weight_grad": ("gradient", "input"),
        }[op]
        raise RuntimeError(
            f"conv{n}d: expected one dtype, but the {first} is {a} and the {second} {b}; convert one with .to(dtype)"
        )
