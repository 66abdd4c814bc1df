"""Convolution (torch's: a correlation) and its two derivatives, in any number of spatial dimensions.

    out[n, o, p] = sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k]

It is linear in x and in w, so `conv`, `conv_input_grad` and `conv_weight_grad` are each the derivative of the other
two. All three run over the same columns (im2col), made block by block so that a block stays in the cache. Where it
pays, windows are copied out in every dimension but the first: windows one row apart are the same columns one row apart,
so each row of the kernel is a product with another slice of them, and less is copied by the height of the kernel.

Arrays are NumPy's, x (N, C, *size), w (O, C / groups, *kernel); stride, padding, dilation are tuples with a number for
each spatial dimension. float16 and bfloat16 are computed in float32, integers wrap around, bool is refused as by torch.
Where there is much to do, float32 has loops of its own, which `looped` asks: kernels/winograd.py for 3 x 3, then
kernels/abreast.py for many images of few channels, kernels/gathered.py for results of many channels, and
kernels/direct.py. Few places with large filters are for
kernels/joined.py, which has the columns of all images in one product, and few columns for kernels/small_conv.py.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels import abreast, direct, gathered, joined, pointwise, small_conv, winograd
from rushlight.ops.kernels.halves import converted, is_half, single
from rushlight.ops.kernels.matmul import stacked
from rushlight.ops.kernels.strided import like_images
from rushlight.ops.kernels.windows import (
    Ints,
    add_windows,
    check_windows,
    copy_windows,
    wide_dtype,
    window_counts,
)
from rushlight.optional import has_numba, much

CORRELATE = winograd.correlate, abreast.correlate, gathered.correlate, direct.correlate, pointwise.correlate
SPREAD = winograd.spread, abreast.spread, gathered.spread, direct.spread, pointwise.spread
WEIGH = winograd.weigh, abreast.weigh, gathered.weigh, direct.weigh, pointwise.weigh
MANY = 1 << 15       # numbers from which the bias' gradient is worth a compiled loop
BLOCK = 1 << 19      # bytes of columns made at a time, to stay in the L2 cache; 256 KB to 1 MB measured alike


class Plan(NamedTuple):
    """How the columns of one input shape are made, and which of them each product takes.

    The columns of an image are (G, S, J, L): S sets for each group, J rows of filter weights (c channels times what is
    copied of the kernel) and L positions. Each part, a (set, slice of L), is multiplied with the filters of one row of
    the kernel; kernel row k begins k dilation = q stride + s rows down, so it is in set s, q rows of windows further.
    Where no rows are shared there is one set and one part, with the whole kernel in J.
    """

    groups: int
    channels: int                # of the input, in a group
    filters: int                 # in a group
    kernel: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    size: Ints                   # of the input, spatial
    out: Ints                    # of the result, spatial
    window: Ints                 # what is copied of the kernel; in the first dimension S where rows are shared
    spacing: Ints                # its dilation
    count: Ints                  # the number of windows in each dimension
    columns: Ints                # (G, S, J, L)
    parts: tuple[tuple[int, slice], ...]
    plain: bool                  # the columns are the input as it is
    few: Ints                    # images that are for kernels/small_conv.py, by their columns and by those of gradients

    def rows(self, top: int, bottom: int) -> Plan:
        """The plan of some rows of the result: `top` fewer rows of padding before the first, and fewer windows."""
        filters = (self.groups * self.filters, self.channels, *self.kernel)
        padding = (self.padding[0] - top * self.stride[0], *self.padding[1:])
        return plan_of(self.size, filters, self.stride, padding, self.dilation, self.groups,
                       (bottom - top, *self.out[1:]))


@lru_cache(maxsize=256)
def plan(size: Ints, filters: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Plan:
    """`filters` is the shape of w."""
    out = window_counts(size, filters[2:], stride, padding, dilation)
    return plan_of(size, filters, stride, padding, dilation, groups, out)


def plan_of(size: Ints, filters: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int, out: Ints) -> Plan:
    total, channels, kernel = filters[0], filters[1], filters[2:]
    step, width = stride[0], prod(out[1:])
    saved = channels * prod(kernel[1:]) * (kernel[0] - step)        # rows of columns that sharing need not copy
    added = total // groups * (kernel[0] - 1)                       # rows of products that it has to add up
    if kernel[0] > step and gcd(step, dilation[0]) == 1 and 2 * saved >= added:      # the faster on 18 of 19 shapes
        starts = [divmod(k * dilation[0], step) for k in range(kernel[0])]
        parts = tuple([(s, slice(q * width, (q + out[0]) * width)) for q, s in starts])
        sets, window, spacing = step, (step, *kernel[1:]), (1, *dilation[1:])
        count = (starts[-1][0] + out[0], *out[1:])
    else:
        sets, parts, window, spacing, count = 1, ((0, slice(None)),), kernel, dilation, out
    columns = (groups, sets, channels * prod(window) // sets, prod(count))
    plain = count == size and prod(window) == 1 == prod(stride)
    taps = prod(kernel)
    sizes = groups * channels * taps * prod(out), total * taps * prod(size)
    small = small_conv.few(*sizes, total // groups, plain and taps == 1)
    return Plan(groups, channels, total // groups, kernel, stride, padding, dilation, size, out,
                window, spacing, count, columns, parts, plain, small)


def conv(x: ndarray, w: ndarray, stride: Ints, padding: Ints, dilation: Ints, groups: int,
         bias: ndarray | None = None) -> ndarray:
    """out[n, o, p] = bias[o] + sum over c, k of x[n, c, p stride - padding + k dilation] w[o, c, k].

    x (N, C, *size), w (O, C / groups, *kernel), bias (O,) -> (N, O, *out),
    out = (size + 2 padding - dilation (kernel - 1) - 1) // stride + 1; output channels are in as many groups as the
    input's, each seeing its own. RuntimeError, in torch's words, where channels, groups or sizes do not fit;
    NotImplementedError for bool.

        >>> conv(np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2)), (1, 1), (0, 0), (1, 1), 1)[0, 0].tolist()
        [[4.0, 4.0], [4.0, 4.0]]
    """
    out = result_size(x.shape, w.shape, stride, padding, dilation, groups)
    check_dtypes(x, w, len(out), "input", "weight")
    if bias is not None and is_half(x) and bias.dtype == x.dtype:         # rounded once, as in torch
        return converted(conv(single(x), single(w), stride, padding, dilation, groups, single(bias)), x.dtype)
    if not (x.size and w.size):
        return with_bias(np.zeros((x.shape[0], w.shape[0], *out), x.dtype), bias)
    p = plan(x.shape[2:], w.shape, stride, padding, dilation, groups)
    many = len(x) > p.few[0] and (bias is None or bias.dtype == x.dtype)
    made = looped(CORRELATE, x, w, p, bias) if many else None
    if made is None:                              # of float32, loops have been asked by now
        plain = in_columns(p, len(x))[0] if many and x.dtype == np.float32 else correlate
        made = with_bias(computed(plain, x, w, p), bias)
    return like_images(made, x, w)


def with_bias(r: ndarray, bias: ndarray | None) -> ndarray:
    """r (N, C, *out), plus a number for each channel, in place."""
    if bias is not None:
        r += bias.reshape((-1,) + (1,) * (r.ndim - 2))
    return r


def conv_input_grad(g: ndarray, w: ndarray, size: Ints, stride: Ints, padding: Ints, dilation: Ints,
                    groups: int) -> ndarray:
    """The derivative of `conv` for x, transposed: out[n, c, p stride - padding + k dilation] += g[n, o, p] w[o, c, k].

    g (N, O, *out), w (O, C / groups, *kernel) -> (N, C, *size). It is torch's transposed convolution of input g. Errors
    are those of `conv`, and RuntimeError where g is not of the shape that `conv` gives.

        >>> conv_input_grad(np.ones((1, 1, 2)), np.ones((1, 1, 2)), (3,), (1,), (0,), (1,), 1).tolist()
        [[[1.0, 2.0, 1.0]]]
    """
    shape = (g.shape[0], w.shape[1] * groups, *size)
    check_grad(g, result_size(shape, w.shape, stride, padding, dilation, groups), shape, w.shape)
    g = of_half(g, w)
    check_dtypes(g, w, len(size), "gradient", "weight")
    if not (g.size and w.size):
        return np.zeros(shape, g.dtype)
    return like_images(computed(spread, g, w, plan(size, w.shape, stride, padding, dilation, groups)), g, w)


def conv_weight_grad(g: ndarray, x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
                     groups: int) -> ndarray:
    """The derivative of `conv` for w, transposed:

        out[o, c, k] = sum over n, p of g[n, o, p] x[n, c, p stride - padding + k dilation].

    g (N, O, *out), x (N, C, *size) -> (O, C / groups, *kernel). Errors are those of `conv`, and RuntimeError where g is
    not of the shape that `conv` gives.

        >>> conv_weight_grad(np.ones((1, 1, 2)), np.array([[[1.0, 2.0, 3.0]]]), (2,), (1,), (0,), (1,), 1).tolist()
        [[[3.0, 5.0]]]
    """
    shape = (g.shape[1], x.shape[1] // max(groups, 1), *kernel)
    check_grad(g, result_size(x.shape, shape, stride, padding, dilation, groups), x.shape, shape)
    g, x = of_half(g, x), of_half(x, g)           # either may be the gradient
    check_dtypes(g, x, len(kernel), "gradient", "input")
    if not (g.size and x.size):
        return np.zeros(shape, g.dtype)
    return computed(weigh, g, x, plan(x.shape[2:], shape, stride, padding, dilation, groups))


def conv_bias_grad(g: ndarray) -> ndarray | None:
    """The derivative of `conv` for its bias, transposed: out[o] = sum over n, p of g[n, o, p], for much of float32: a fifth
    of the time of NumPy's passes. None otherwise."""
    fits = g.dtype == np.float32 and g.size >= MANY and g.ndim > 2 and g.flags.carray
    if not fits or not much.enough(5, g.size) or not has_numba():
        return None
    from rushlight.ops.kernels.channels import batch_norm_bias
    out = np.empty(g.shape[1], g.dtype)
    batch_norm_bias(g.reshape(*g.shape[:2], -1), out, 0, len(out))
    return out


def computed(function: Callable, a: ndarray, b: ndarray, p: Plan) -> ndarray:
    """function(a, b, p), in float32 where a and b are narrower."""
    wide = wide_dtype(a.dtype)
    if wide == a.dtype:
        return function(a, b, p)
    return function(a.astype(wide), b.astype(wide), p).astype(a.dtype)


def looped(ways: tuple[Callable, ...], a: ndarray, b: ndarray, p: Plan, *more: Any) -> ndarray | None:
    """What the first way that is for the plan makes of a and b: Winograd's, that of images abreast, the gathered, the direct
    one, or products of images as they are; None where columns are to do it."""
    winograds, *others, directly, pointwisely = ways
    if pointwise.suits(a, p) and not joined.suits(p, len(a)):
        return pointwisely(a, b, p, *more)
    if not direct.suits(a, p):
        return None
    made = winograds(a, b, p, *more) if winograd.suits(p, len(a)) else None
    if made is None and joined.suits(p, len(a)):
        return None
    for way in others:
        made = way(a, b, p, *more) if made is None else made
    return directly(a, b, p, *more) if made is None and prod(p.kernel) > 1 else made


def correlate(x: ndarray, w: ndarray, p: Plan) -> ndarray:
    if len(x) <= p.few[0]:
        return small_conv.correlate(x, w, p)
    made = looped(CORRELATE, x, w, p)
    return in_columns(p, len(x))[0](x, w, p) if made is None else made


def in_columns(p: Plan, images: int) -> tuple[Callable, Callable, Callable]:
    """What is done without compiled loops: `correlate`, `spread` and `weigh` of columns."""
    if joined.suits(p, images):
        return joined.correlate, joined.spread, joined.weigh
    return correlate_columns, spread_columns, weigh_columns


def spread(g: ndarray, w: ndarray, p: Plan) -> ndarray:
    if len(g) <= p.few[1]:
        return small_conv.spread(g, w, p)
    made = looped(SPREAD, g, w, p)
    return in_columns(p, len(g))[1](g, w, p) if made is None else made


def weigh(g: ndarray, x: ndarray, p: Plan) -> ndarray:
    if len(g) <= p.few[0]:
        return small_conv.weigh(g, x, p)
    made = looped(WEIGH, g, x, p)
    return in_columns(p, len(g))[2](g, x, p) if made is None else made


def correlate_columns(x: ndarray, w: ndarray, p: Plan) -> ndarray:
    out = np.empty((len(x), p.groups, p.filters, prod(p.out)), x.dtype)
    filters = split_filters(w, p)
    for images, positions, parts, columns in column_blocks(x, p):
        block = out[images, ..., positions]
        for i, (s, part) in enumerate(parts):
            if i:
                block += filters[i] @ columns[:, :, s, :, part]
            else:
                stacked(filters[0], columns[:, :, s, :, part], block)
    return out.reshape(len(x), -1, *p.out)


def spread_columns(g: ndarray, w: ndarray, p: Plan) -> ndarray:
    if prod(p.stride) == 1 and (p.filters < 2 * p.channels or prod(p.kernel) == 1):
        return correlate_columns(g, *mirrored(w, p))     # of g instead of x: up to 1.5 times as fast unless g is larger
    x = np.zeros((len(g), p.groups, p.channels, *p.size), g.dtype)
    g = g.reshape(len(g), p.groups, p.filters, -1)
    filters = split_filters(w, p).swapaxes(-1, -2)
    buffer = None
    for images, positions, b in blocks(len(g), x.itemsize, p):
        block = g[images, ..., positions]
        buffer, columns = room(buffer, len(block), b, x.dtype)
        if len(b.parts) == 1:
            stacked(filters[0], block, columns[:, :, 0])
        else:
            columns.fill(0)
            for (s, part), rows in zip(b.parts, filters):
                columns[:, :, s, :, part] += stacked(rows, block)
        add_windows(x[images], spatial(columns, b), b.stride, b.padding, b.spacing)
    return x.reshape(len(x), -1, *p.size)


def weigh_columns(g: ndarray, x: ndarray, p: Plan) -> ndarray:
    g = g.reshape(len(g), p.groups, p.filters, -1).swapaxes(-1, -2)
    w = np.zeros((len(p.parts), p.groups, p.columns[2], p.filters), x.dtype)
    for images, positions, parts, columns in column_blocks(x, p):
        block = g[images, :, positions]
        for total, (s, part) in zip(w, parts):
            total += (columns[:, :, s, :, part] @ block).sum(0)      # 1.1 to 2.4 times as fast as g columns^T
    return join_filters(w.swapaxes(-1, -2), p)


def blocks(images: int, itemsize: int, p: Plan) -> Iterator[tuple[slice, slice, Plan]]:
    """(images, positions of the result, their plan), each with about `BLOCK` bytes of columns: several images, or some
    rows of one that needs far more. Neighbouring rows share columns, so a block has at least 4 kernels of rows."""
    size = itemsize * prod(p.columns)
    step = max(1, BLOCK // size)
    height, width = p.out[0], prod(p.out[1:])
    if size > 2 * BLOCK and not p.plain:
        height = min(height, max(4 * p.kernel[0], height * BLOCK // size))
    for first in range(0, images, step):
        for top in range(0, p.out[0], height):
            bottom = min(top + height, p.out[0])
            yield (slice(first, min(first + step, images)), slice(top * width, bottom * width),
                   p if height == p.out[0] else p.rows(top, bottom))


def column_blocks(x: ndarray, p: Plan) -> Iterator[tuple[slice, slice, tuple, ndarray]]:
    """(images, positions, the plan's parts, columns (n, G, S, J, L)) of each block; the next overwrites the columns."""
    x = x.reshape(len(x), p.groups, p.channels, *p.size)
    buffer = filled_by = None
    for images, positions, b in blocks(len(x), x.itemsize, p):
        columns = x[images]
        if not p.plain:
            buffer, columns = room(buffer, len(columns), b, x.dtype)
            if b is not filled_by:
                columns.fill(0)                              # padding, which stays 0 from block to block of one plan
                filled_by = b
            copy_windows(x[images], spatial(columns, b), b.stride, b.padding, b.spacing)
        yield images, positions, b.parts, columns.reshape(len(columns), *b.columns)


def room(buffer: ndarray | None, images: int, p: Plan, dtype: np.dtype) -> tuple[ndarray, ndarray]:
    """A buffer and its beginning as columns; the buffer given, if there is one: the first block is the largest."""
    if buffer is None:
        buffer = np.empty(images * prod(p.columns), dtype)
    return buffer, buffer[:images * prod(p.columns)].reshape(images, *p.columns)


def spatial(columns: ndarray, p: Plan) -> ndarray:
    """(n, G, S, J, L) -> (n, G, c, *window, *count), the same memory."""
    n, sets = len(columns), p.columns[1]
    window = (p.window[0] // sets, *p.window[1:])                # one of sets and window[0] // sets is 1
    apart = columns.reshape(n, p.groups, sets, p.channels, *window, *p.count).swapaxes(2, 3)
    return apart.reshape(n, p.groups, p.channels, *p.window, *p.count)


def split_filters(w: ndarray, p: Plan) -> ndarray:
    """w (O, c, *kernel) -> (parts, G, o, c K): the filters of each product, as a matrix for each group."""
    parts = len(p.parts)
    w = w.reshape(p.groups, p.filters, p.channels, parts, -1).transpose(3, 0, 1, 2, 4)
    return np.ascontiguousarray(w).reshape(parts, p.groups, p.filters, -1)


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


@lru_cache(maxsize=256)
def result_size(x: Ints, w: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Ints:
    """The spatial size of `conv` for shapes x and w; RuntimeError, in torch's words, where they do not fit."""
    op, size, kernel = f"conv{len(w) - 2}d", x[2:], w[2:]
    if len(x) != len(w):
        raise RuntimeError(f"{op}: an input of shape {list(x)} does not fit a weight of shape {list(w)}: "
                           f"expected {len(w)} dimensions, (N, C, *size)")
    check_windows(op, kernel, stride, padding, dilation)
    check_channels(op, x, w, groups)
    if not prod(size):
        raise RuntimeError("Only zero batch or zero channel inputs are supported, but got input shape: "
                           f"{list(x)}. {op}: drop the empty input")
    out = window_counts(size, kernel, stride, padding, dilation)
    if min(out) < 1:
        padded = " x ".join([str(s + 2 * p) for s, p in zip(size, padding)])
        dilated = " x ".join([str(d * (k - 1) + 1) for k, d in zip(kernel, dilation)])
        raise RuntimeError(f"Calculated padded input size per channel: ({padded}). Kernel size: ({dilated}). Kernel "
                           f"size can't be greater than actual input size. {op}: input {list(x)}, weight {list(w)}; "
                           "pad the input or take a smaller kernel or dilation")
    return out


def check_channels(op: str, x: Ints, w: Ints, groups: int) -> None:
    if groups < 1:
        raise RuntimeError(f"non-positive groups is not supported. {op}: got groups={groups}")
    if w[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got "
                           f"weight of size {list(w)} instead. {op}: each group needs an output channel")
    if w[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but "
                           f"got weight of size {list(w)} instead. {op}: take a multiple of groups as output channels")
    if x[1] != w[1] * groups:
        raise RuntimeError(f"Given groups={groups}, weight of size {list(w)}, expected input{list(x)} to have "
                           f"{w[1] * groups} channels, but got {x[1]} channels instead. {op}: the weight is "
                           f"(out channels, in channels / groups, *kernel); cure: make the layer take {x[1]} "
                           f"(in_channels={x[1]}), or bring the input to {w[1] * groups}; dimension 1 counts them")


def check_grad(g: ndarray, size: Ints, x: Ints, w: Ints) -> None:
    expected = (x[0], w[0], *size)
    if g.shape != expected:
        raise RuntimeError(f"conv{len(size)}d: the gradient has shape {list(g.shape)}, but an input {list(x)} and a "
                           f"weight {list(w)} give {list(expected)} with this stride, padding and dilation")


def of_half(g: ndarray, of: ndarray) -> ndarray:
    """A gradient in the dtype of what it belongs to: rules with numbers in them make float32 of bfloat16."""
    return g.astype(of.dtype) if g.dtype == np.float32 and of.dtype.itemsize == 2 else g


def check_dtypes(a: ndarray, b: ndarray, n: int, first: str, second: str) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(f"conv{n}d: expected one dtype, but the {first} is {a.dtype} and the {second} {b.dtype}; "
                           "convert one with .to(dtype)")
    if a.dtype == bool:
        raise NotImplementedError(f"conv{n}d is not implemented for 'Bool'; convert with .float()")
