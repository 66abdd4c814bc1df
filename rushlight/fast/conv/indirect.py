"""Indirect convolution (implicit GEMM): a product of matrices whose rows are read through a list of offsets, for
float32.

Channels are innermost and images have a frame of zeros, so that a result reads the positions at its own base plus one
list of offsets, the same for all results (geometry.py). A vector register holds channels of a result, and each number
of the image is multiplied with all of them. Any kernel, stride, padding and dilation is supported, in up to three
dimensions, without columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.fast.conv.channels_last import empty_result, flat, kind, packed_filters, usual
from rushlight.fast.conv.geometry import frame_of, shapes_3d
from rushlight.fast.conv.tiling import for_images, padded_bias, sum_over_images, whole_vectors, workspaces
from rushlight.fast.index import INDIRECT_IMAGE_FLOATS, INDIRECT_MIN_CHANNELS, INDIRECT_SUM_PLACES
from rushlight.kernels.conv import Plan
from rushlight.kernels.im2col import in_3d


class Reads(NamedTuple):
    """Arrays for the loops, for all targets (geometry.py) one after the other."""

    low: ndarray
    extent: ndarray
    cuts: ndarray  # the start of each target's results, for one image
    bases: ndarray  # bases for `images` images, plus a few results beyond the last
    places: ndarray
    ends: ndarray  # the start of each target's taps, for all channels
    offsets: ndarray
    picks: ndarray  # the positions of the taps in the filters


@lru_cache(maxsize=128)
def reads_of(shapes: tuple, channels: int, broad: int, images: int) -> Reads:
    """The arrays for this number of source channels and results of `broad` floats, both innermost."""
    size, kernel, *_, out, back = shapes
    frame, made = frame_of(*shapes), prod(size if back else out)
    image, channel = np.arange(images)[:, None], np.arange(channels)[:, None]
    beyond = np.zeros(16, np.int64)
    bases = [(image * prod(frame.extent) + t.bases).ravel() for t in frame.targets]
    places = [(image * made + t.places).ravel() for t in frame.targets]
    offsets = [(channel + t.offsets * channels).ravel() for t in frame.targets]
    picks = [(channel * prod(kernel) + t.taps).ravel() for t in frame.targets]
    return Reads(
        np.array(frame.low),
        np.array(frame.extent),
        np.cumsum([0, *[len(t.bases) for t in frame.targets]]),
        np.concatenate([*bases, beyond]) * channels,
        np.concatenate([*places, beyond + images * made]) * broad,
        np.cumsum([0, *map(len, offsets)]),
        np.concatenate(offsets),
        np.concatenate(picks) * broad,
    )


class Job(NamedTuple):
    """The values of a call that depend on its plan alone."""

    reads: Reads
    images: int  # images that are copied at a time
    size: ndarray  # spatial size of the source
    broad: int  # channels made, padded to whole vectors
    xs: int  # floats of the source's workspace
    ys: int  # floats of the result's workspace


@lru_cache(maxsize=256)
def job_of(p: Plan) -> Job:
    (read, size), (made, out) = p.read, p.made
    broad = whole_vectors(made)
    images = max(1, min(p.images, INDIRECT_IMAGE_FLOATS // (prod(p.size) * read + prod(p.out) * broad)))
    reads = reads_of(shapes_3d(p), read, broad, images)
    return Job(
        reads,
        images,
        np.array(in_3d(size, 1)),
        broad,
        images * prod(reads.extent.tolist()) * read,
        (images * prod(out) + 1) * broad,
    )


def suits(p: Plan) -> bool:
    """True if a result's channels fill at least four fifths of their vectors."""
    made, _ = p.made
    return p.groups == 1 and made >= INDIRECT_MIN_CHANNELS and 5 * made >= 4 * whole_vectors(made)


def conv(p: Plan, x: ndarray, w: ndarray, bias: ndarray | None = None) -> ndarray:
    """x (N, C, *size), w (O, C, *kernel), bias (O,) -> (N, O, *out), channels-last in memory if x is.

    Or the input's gradient, with g (N, O, *out) instead of x: (N, C, *size).
    """
    from rushlight.fast.conv import indirect_loops as loops

    j, (read, _), (made, size) = job_of(p), p.read, p.made
    source, last = flat(x)
    result, shaped = empty_result(p, last)
    filters, added, loop = packed_filters(w, p), padded_bias(bias, j.broad), loops.conv(kind(j.broad))

    given = source, last, read, j.size, *j.reads, filters, added, made, prod(size), result

    def part(first: int, end: int, step: int) -> None:
        loop(*given, workspaces.zeros("xs", j.xs), workspaces.take("ys", j.ys), j.images, first, end)

    for_images(part, p.images, j.images)
    return shaped


def conv_weight_grad(p: Plan, g: ndarray, x: ndarray) -> ndarray:
    """The gradient of w (O, C, *kernel)."""
    from rushlight.fast.conv import indirect_loops as loops

    j, beyond, height = job_of(p), prod(p.out), usual()[1]
    rows = -(-len(j.reads.offsets) // height) * height
    offsets = np.append(j.reads.offsets, np.zeros(rows - len(j.reads.offsets), np.int64))
    loop, r = loops.weight_grad(kind(j.broad)), j.reads
    given = *flat(x), p.channels, j.size, r.low, r.extent, r.bases, offsets, *flat(g), p.filters, beyond

    def start() -> Callable:
        xs, gs = workspaces.zeros("xs", j.xs), workspaces.take("ys", j.ys)
        return lambda total, first, end, step: loop(*given, total, xs, gs, j.images, first, end)

    each = j.images * max(1, min(INDIRECT_SUM_PLACES // (j.images * beyond), -(-p.images // j.images)))
    total = sum_over_images(start, rows * j.broad, p.images, j.images, each)
    total = total.reshape(rows, j.broad)[: p.taps * p.channels, : p.filters]
    return np.ascontiguousarray(total.T).reshape(p.filters, p.channels, *p.kernel)
