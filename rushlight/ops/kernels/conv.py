"""Convolution (torch's: a correlation) and its two derivatives, in any number of spatial dimensions.

    out[n, o, p] = sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k]

It is linear in x and in w, so `conv`, `conv_input_grad` and `conv_weight_grad` are each the derivative of the other
two. All three run over the same columns, made block by block so that a block stays in the cache: windows copied out in
every dimension but the first. There, windows one row apart are the same memory, one row apart, so each row of the kernel
is one product with a slice of the columns, and less is copied by the height of the kernel.

Arrays are NumPy's, x (N, C, *size), w (O, C / groups, *kernel); stride, padding, dilation are tuples with a number for
each spatial dimension. float16 and bfloat16 are computed in float32; integers wrap around; bool is refused, as by torch.
A faster kernel for a common case has one place each: `correlate`, `spread`, `weigh`, which get checked arguments.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
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
    wide_dtype,
    window_counts,
)

BLOCK = 1 << 19      # bytes of columns made at a time, to stay in the L2 cache; 256 KB to 1 MB measured alike
ROWS = 4             # with fewer rows of columns to a product, one product over the whole kernel is as fast


class Plan(NamedTuple):
    """How the columns of one input shape are made, and which part of them each product takes."""

    groups: int
    channels: int                # of the input, in a group
    filters: int                 # in a group
    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    size: Ints                   # of the input, spatial
    out: Ints                    # of the result, spatial
    column_kernel: Ints          # `kernel`, with 1 in the first dimension where its rows share the columns
    column_out: Ints             # `out`, with all padded rows in the first dimension where they are shared
    columns: Ints                # (G, c K, L): the columns of one image
    parts: tuple[slice, ...]     # of the columns' last dimension, one for each product

    @property
    def plain(self) -> bool:
        """The columns are the input as it is."""
        return self.column_out == self.size and prod(self.column_kernel) == 1 == prod(self.stride)

    @property
    def product(self) -> Callable:
        return np.matmul


@lru_cache(maxsize=256)
def plan(size: Ints, filters: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Plan:
    """`filters` is the shape of w."""
    count, channels, *rest = filters
    kernel = tuple(rest)
    out = window_counts(size, kernel, stride, padding, dilation)
    if stride[0] > 1 or groups == 1 and channels * prod(kernel[1:]) < ROWS:
        parts, column_kernel, column_out = (slice(None),), kernel, out
    else:
        row = prod(out[1:])
        parts = tuple(slice(k * dilation[0] * row, (k * dilation[0] + out[0]) * row) for k in range(kernel[0]))
        column_kernel, column_out = (1, *kernel[1:]), (size[0] + 2 * padding[0], *out[1:])
    columns = (groups, channels * prod(column_kernel), prod(column_out))
    return Plan(groups, channels, count // groups, kernel, stride, padding, dilation, size, out,
                column_kernel, column_out, columns, parts)


def conv(x: ndarray, w: ndarray, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> ndarray:
    """out[n, o, p] = sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k].

    x (N, C, *size), w (O, C / groups, *kernel) -> (N, O, *out), out = (size + 2 padding - dilation (kernel - 1) - 1) //
    stride + 1; output channels are in as many groups as the input's, each seeing its own. RuntimeError, in torch's
    words, where channels, groups or sizes do not fit; NotImplementedError for bool.

        >>> conv(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), (1, 1), (0, 0), (1, 1), 1)[0, 0].tolist()
        [[4.0, 4.0], [4.0, 4.0]]
    """
    out = result_size(x.shape, w.shape, stride, padding, dilation, groups)
    check_dtypes(x, w, len(out), "input", "weight")
    if not (x.size and w.size):
        return np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    return computed(correlate, x, w, plan(x.shape[2:], w.shape, stride, padding, dilation, groups))


def conv_input_grad(g: ndarray, w: ndarray, size: Ints, stride: Ints, padding: Ints, dilation: Ints,
                    groups: int) -> ndarray:
    """The derivative of `conv` for x, transposed: out[n, c, p stride - padding + k dilation] += g[n, o, p] w[o, c, k].

    g (N, O, *out), w (O, C / groups, *kernel) -> (N, C, *size). It is torch's transposed convolution of input g. Errors
    are those of `conv`, and RuntimeError where g is not of the shape that `conv` gives.

        >>> conv_input_grad(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), (3, 3), (1, 1), (0, 0), (1, 1), 1)[0, 0].tolist()
        [[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]
    """
    shape = (g.shape[0], w.shape[1] * groups, *size)
    check_grad(g, result_size(shape, w.shape, stride, padding, dilation, groups), shape, w.shape)
    check_dtypes(g, w, len(size), "gradient", "weight")
    if not (g.size and w.size):
        return np.zeros(shape, g.dtype)
    return computed(spread, g, w, plan(size, w.shape, stride, padding, dilation, groups))


def conv_weight_grad(g: ndarray, x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
                     groups: int) -> ndarray:
    """The derivative of `conv` for w, transposed: out[o, c, k] = sum over n, p of g[n, o, p] x[n, c, p stride - padding +
    k dilation].

    g (N, O, *out), x (N, C, *size) -> (O, C / groups, *kernel). Errors are those of `conv`, and RuntimeError where g is
    not of the shape that `conv` gives.

        >>> conv_weight_grad(np.ones((1, 1, 2, 2)), np.eye(3)[None, None], (2, 2), (1, 1), (0, 0), (1, 1), 1)[0, 0].tolist()
        [[2.0, 1.0], [1.0, 2.0]]
    """
    shape = (g.shape[1], x.shape[1] // max(groups, 1), *kernel)
    check_grad(g, result_size(x.shape, shape, stride, padding, dilation, groups), x.shape, shape)
    check_dtypes(g, x, len(kernel), "gradient", "input")
    if not (g.size and x.size):
        return np.zeros(shape, g.dtype)
    return computed(weigh, g, x, plan(x.shape[2:], shape, stride, padding, dilation, groups))


def computed(function: Callable, a: ndarray, b: ndarray, p: Plan) -> ndarray:
    """function(a, b, p), in float32 where a and b are narrower."""
    wide = wide_dtype(a.dtype)
    if wide == a.dtype:
        return function(a, b, p)
    return function(a.astype(wide), b.astype(wide), p).astype(a.dtype)


def correlate(x: ndarray, w: ndarray, p: Plan) -> ndarray:
    out = np.empty((len(x), p.groups, p.filters, prod(p.out)), x.dtype)
    first, *others = split_filters(w, p)
    for images, columns in column_blocks(x, p):
        block = out[images]
        p.product(first, columns[..., p.parts[0]], block)
        for filters, part in zip(others, p.parts[1:]):
            block += p.product(filters, columns[..., part])
    return out.reshape(len(x), -1, *p.out)


def spread(g: ndarray, w: ndarray, p: Plan) -> ndarray:
    if prod(p.stride) == 1 and (p.filters < 2 * p.channels or prod(p.kernel) == 1):
        return correlate(g, *mirrored(w, p))     # columns of g instead of x: up to 1.5 times as fast unless g is larger
    x = np.zeros((len(g), p.groups * p.channels, *p.size), g.dtype)
    g = g.reshape(len(g), p.groups, p.filters, -1)
    filters = split_filters(w, p).swapaxes(-1, -2)
    for images in blocks(len(g), x.itemsize, p):
        columns = np.zeros((images.stop - images.start, *p.columns), x.dtype)
        for part, rows in zip(p.parts, filters):
            columns[..., part] += p.product(rows, g[images])
        add_windows(x[images], spatial(columns, p), p.stride, p.padding, p.dilation)
    return x


def weigh(g: ndarray, x: ndarray, p: Plan) -> ndarray:
    g = g.reshape(len(g), p.groups, p.filters, -1).swapaxes(-1, -2)
    w = np.zeros((len(p.parts), p.groups, p.columns[1], p.filters), x.dtype)
    for images, columns in column_blocks(x, p):
        for total, part in zip(w, p.parts):
            total += (columns[..., part] @ g[images]).sum(0)     # 1.1 to 2.4 times as fast as g @ columns transposed
    return join_filters(w.swapaxes(-1, -2), p)


def thin_product(a: ndarray, b: ndarray, out: ndarray | None = None) -> ndarray:
    """a @ b as a sum of outer products: for many matrices too small for a call of BLAS each."""
    out = np.multiply(a[..., :1], b[..., :1, :], out)
    for i in range(1, a.shape[-1]):
        out += a[..., i:i + 1] * b[..., i:i + 1, :]
    return out


def blocks(images: int, itemsize: int, p: Plan) -> Iterator[slice]:
    """Slices of the images, each with about `BLOCK` bytes of columns."""
    step = max(1, BLOCK // (itemsize * prod(p.columns)))
    return (slice(start, min(start + step, images)) for start in range(0, images, step))


def column_blocks(x: ndarray, p: Plan) -> Iterator[tuple[slice, ndarray]]:
    """(images, their columns (n, G, c K, L)) block by block; the next block overwrites the columns of the last."""
    buffer = None
    for images in blocks(len(x), x.itemsize, p):
        block = x[images]
        if not p.plain:
            if buffer is None:
                buffer = np.zeros((len(block), *p.columns), x.dtype)     # padding stays 0 from block to block
            columns = buffer[:len(block)]
            copy_windows(block, spatial(columns, p), p.stride, p.padding, p.dilation)
            block = columns
        yield images, block.reshape(len(block), *p.columns)


def spatial(columns: ndarray, p: Plan) -> ndarray:
    """(n, G, c K, L) -> (n, C, *kernel, *out), the same memory."""
    return columns.reshape(len(columns), -1, *p.column_kernel, *p.column_out)


def split_filters(w: ndarray, p: Plan) -> ndarray:
    """w (O, c, *kernel) -> (parts, G, o, c K): the filters of each product, as a matrix for each group."""
    parts = len(p.parts)
    w = w.reshape(p.groups, p.filters, p.channels, parts, -1).transpose(3, 0, 1, 2, 4)
    return w.reshape(parts, p.groups, p.filters, -1)


def join_filters(w: ndarray, p: Plan) -> ndarray:
    """`split_filters` undone."""
    w = w.reshape(len(p.parts), p.groups, p.filters, p.channels, -1).transpose(1, 2, 3, 0, 4)
    return w.reshape(-1, p.channels, *p.kernel)


def mirrored(w: ndarray, p: Plan) -> tuple[ndarray, Plan]:
    """Filters and plan with which a convolution of g is the gradient of x, for stride 1: the kernel turned around."""
    n = len(p.kernel)
    w = np.flip(w.reshape(p.groups, p.filters, p.channels, *p.kernel).swapaxes(1, 2), tuple(range(3, n + 3)))
    w = w.reshape(-1, p.filters, *p.kernel)
    padding = tuple(d * (k - 1) - pad for d, k, pad in zip(p.dilation, p.kernel, p.padding))     # may be negative
    return w, plan(p.out, w.shape, p.stride, padding, p.dilation, p.groups)


def result_size(x: Ints, w: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Ints:
    """The spatial size of `conv` for shapes x and w; RuntimeError, in torch's words, where they do not fit."""
    return window_counts(x[2:], w[2:], stride, padding, dilation)


def check_grad(*a): pass
def check_dtypes(*a): pass
