"""Convolution of float32 with the batch innermost: each lane of a vector register holds a number from another image.

So every position of a result fills whole vectors, even for narrow images with few channels. Numbers never move within a
register, and at the border only the kernel rows that meet the image are added up. Images are transposed before, and
results after the convolution. Any kernel, stride, padding, dilation and number of groups is supported, in up to three
dimensions. geometry.py lists the positions that each result reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.conv.channels_last import packed_filters
from rushlight.fast.conv.geometry import frame_of, shapes_3d
from rushlight.fast.conv.tiling import (
    FLOAT,
    contiguous,
    for_images,
    lanes,
    padded_bias,
    sum_over_images,
    whole_vectors,
    workspaces,
)
from rushlight.fast.index import (
    INNERMOST_BLOCK_VECTORS,
    INNERMOST_CHANNEL_PAIRS,
    INNERMOST_CHANNELS,
    INNERMOST_IMAGE_FLOATS,
    INNERMOST_MAX_DOT,
    INNERMOST_SUM_PLACES,
)
from rushlight.kernels.conv import Plan
from rushlight.kernels.im2col import in_3d


class Reads(NamedTuple):
    """Arrays for the loops, for all targets (geometry.py) one after the other; indices count floats."""

    low: ndarray
    extent: ndarray
    plain: bool  # the frame is the image
    cuts: ndarray  # the start of each target's positions
    bases: ndarray
    places: ndarray
    # for each position and the `width` - 1 after it: the first tap that meets the image, and one past the last
    firsts: ndarray
    lasts: ndarray
    ends: ndarray  # the start of each target's taps
    offsets: ndarray
    picks: ndarray  # the positions of the taps in the kernel


@lru_cache(maxsize=128)
def reads_of(shapes: tuple, width: int) -> Reads:
    """The arrays for blocks of `width` positions."""
    frame, n = frame_of(*shapes), lanes()
    source = np.zeros(frame.extent, bool)
    size = shapes[5] if shapes[-1] else shapes[0]
    source[tuple([slice(max(0, -low), max(0, n - low)) for low, n in zip(frame.low, size)])] = True
    firsts, lasts = [], []
    for t in frame.targets:
        first, last = taps_inside(source.ravel()[t.bases[:, None] + t.offsets])
        firsts.append(np.min([shifted(first, i, len(t.taps)) for i in range(width)], 0))
        lasts.append(np.max([shifted(last, i, 0) for i in range(width)], 0))
    # repeats the last entry, so that the last block is full
    again = lambda parts: np.concatenate([*parts, np.repeat(parts[-1][-1:], width)]) * n
    return Reads(
        np.array(frame.low),
        np.array(frame.extent),
        frame.plain,
        np.cumsum([0, *[len(t.places) for t in frame.targets]]),
        again([t.bases for t in frame.targets]),
        again([t.places for t in frame.targets]),
        np.concatenate(firsts),
        np.concatenate(lasts),
        np.cumsum([0, *[len(t.taps) for t in frame.targets]]),
        np.concatenate([t.offsets for t in frame.targets]) * n,
        np.concatenate([t.taps for t in frame.targets]),
    )


def taps_inside(inside: ndarray) -> tuple[ndarray, ndarray]:
    """inside (positions, taps) -> for each position the first tap inside, and one past the last; (taps, 0) if none is
    inside.
    """
    taps = inside.shape[1]
    if not taps:
        return inside.sum(1), inside.sum(1)
    some = inside.any(1)
    return np.where(some, inside.argmax(1), taps), np.where(some, taps - inside[:, ::-1].argmax(1), 0)


def shifted(numbers: ndarray, by: int, fill: int) -> ndarray:
    """The numbers from index `by` on, padded at the end."""
    return np.append(numbers[by:], np.full(min(by, len(numbers)), fill, numbers.dtype))


def channel_floats(places: int) -> int:
    """Floats from one channel to the next in the loops' layout: an odd number of vectors (`apart` in the loops)."""
    return (places | 1) * lanes() if places >= lanes() else places * lanes()


class Job(NamedTuple):
    """The values of a call that depend on its plan alone."""

    reads: Reads
    loop: Callable
    size: ndarray  # spatial size of the source
    shape: ndarray  # numbers of groups, of channels read and made in each, of taps, and of positions of a result
    strides: ndarray  # shape of filters; for weight gradients, the spatial size of a gradient
    rows: ndarray  # for weight gradients: the start of the positions that each filter element reads
    xs: int  # floats in the workspaces, for a vector of images
    ys: int
    bias: int  # floats of the padded bias


@lru_cache(maxsize=256)
def conv_job(p: Plan) -> Job:
    from rushlight.fast.conv import batch_innermost_loops as loops

    (read, size), (made, out) = p.read, p.made
    height, width = loops.conv_tile(made)
    reads, beyond = reads_of(shapes_3d(p), width), prod(out)
    strides = (read, 0, whole_vectors(made)) if p.back else (0, made, whole_vectors(p.groups * made))
    return Job(
        reads,
        loops.conv(height, width),
        np.array(in_3d(size, 1)),
        np.array([p.groups, read, made, p.taps, beyond]),
        np.array(strides),
        np.empty(0, np.int64),
        read * channel_floats(prod(reads.extent.tolist())),
        max(height * channel_floats(beyond), read * prod(size) * lanes()),
        p.groups * made + height,
    )


@lru_cache(maxsize=256)
def weight_job(p: Plan) -> Job:
    from rushlight.fast.conv import batch_innermost_loops as loops

    reads, beyond = reads_of(shapes_3d(p), 1), prod(p.out)
    plane = channel_floats(prod(reads.extent.tolist()))
    height, width = loops.weight_tile(p.filters, p.channels * p.taps)
    rows = (np.arange(p.channels)[:, None] * plane + reads.offsets).ravel()
    rows = np.append(rows, np.repeat(rows[-1:], -len(rows) % width))
    return Job(
        reads,
        loops.weight_grad(height, width),
        np.array(in_3d(p.size, 1)),
        np.array([p.groups, p.channels, p.filters, p.taps, beyond]),
        np.array(in_3d(p.out, 1)),
        rows,
        p.channels * plane,
        p.filters * channel_floats(beyond),
        0,
    )


def suits(p: Plan) -> bool:
    """True if images fill the vectors and have few channels. With more channels, vectors of channels are as fast, and
    transposing costs more.
    """
    n, (read, size) = lanes(), p.read
    few = max(p.channels, p.filters) <= INNERMOST_CHANNELS and p.channels * p.filters <= INNERMOST_CHANNEL_PAIRS
    dot = 1 if p.op == "conv_weight_grad" else read * p.taps
    return (
        few
        and n > 4
        and (p.images % n == 0 or p.images >= 6 * n)
        and read * prod(size) * n <= INNERMOST_IMAGE_FLOATS
        and dot <= INNERMOST_MAX_DOT
    )


def conv(p: Plan, x: ndarray, w: ndarray, bias: ndarray | None = None) -> ndarray:
    """x (N, C, *size), w (O, C / groups, *kernel), bias (O,) -> (N, O, *out); or the input's gradient, with g instead
    of x.
    """
    j, n, (made, out) = conv_job(p), lanes(), p.made
    source, filters, added = contiguous(x).reshape(-1), packed_filters(w, p), padded_bias(bias, j.bias)
    result = memory.take((p.images, p.groups * made, *out), FLOAT)

    given = source, j.size, j.shape, *j.reads, filters, j.strides, added, result.reshape(-1)

    def part(first: int, end: int, step: int) -> None:
        spaces = workspaces.take("xs", j.xs), workspaces.take("ys", j.ys)
        j.loop(*given, *spaces, first * n, min(end * n, p.images))

    for_images(part, -(-p.images // n), 1)
    return result


def conv_weight_grad(p: Plan, g: ndarray, x: ndarray) -> ndarray:
    """The weight's gradient (O, C / groups, *kernel)."""
    j, n = weight_job(p), lanes()
    r, filters, numbers = j.reads, p.groups * p.filters, p.channels * p.taps
    xf, gf, vectors = contiguous(x).reshape(-1), contiguous(g).reshape(-1), -(-p.images // n)
    given = xf, j.size, j.shape, r.low, r.extent, r.plain, r.bases, j.rows, gf, j.strides
    blocks = max(1, min(vectors, 2 * INNERMOST_IMAGE_FLOATS // (j.xs + j.ys), INNERMOST_SUM_PLACES // prod(p.out)))

    def start() -> Callable:
        xs = workspaces.take("xs", j.xs * blocks)
        gs = workspaces.take("ys", max(j.ys * blocks, p.channels * prod(p.size) * n))
        sums = workspaces.take("sums", INNERMOST_BLOCK_VECTORS * n)
        return lambda total, first, end, step: j.loop(
            *given, total.reshape(filters, -1), xs, gs, sums, blocks * n, first * n, min(end * n, p.images)
        )

    total = sum_over_images(start, filters * len(j.rows), vectors, blocks)
    return total.reshape(filters, -1)[:, :numbers].reshape(-1, p.channels, *p.kernel)
