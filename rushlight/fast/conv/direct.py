"""Direct convolution, without columns, for float32.

Images are copied with their padding, so that a tap is a constant offset for all positions, across lines and images:
sums run along positions for any image width. A stride of s splits the source into s phases in each dimension (for the
input's gradient, it splits the result). So all strides and dilations, and both directions, are the same two loops over
a list of offsets (direct_loops.py). Only the layout (N, C, *size) is needed.

    forward           reads x[u s + r], u of phase r; one target
    input's gradient  reads g; targets x[i s + r], one for each r
    weight's gradient reads g and the phases of x
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.conv.geometry import flat_index, shapes_3d, targets
from rushlight.fast.conv.tiling import (
    FLOAT,
    Inexact,
    contiguous,
    for_images,
    lanes,
    sum_over_images,
    whole_vectors,
    workspaces,
)
from rushlight.fast.index import DIRECT_SOURCE_FLOATS, DIRECT_TILE_PLACES, DIRECT_VECTOR_PLACES
from rushlight.kernels.conv import Plan
from rushlight.kernels.im2col import Ints, in_3d

ORIGIN, ONES = np.zeros((1, 3), np.int64), np.ones(3, np.int64)


class TargetReads(NamedTuple):
    """Results that are summed together: the positions starts + steps p, p < length."""

    starts: ndarray
    length: ndarray
    taps: ndarray  # the position of each tap in the flat kernel
    # where each tap reads: the phase, and the offset from the result's position
    distances: list[tuple[int, int]]


class Layout(NamedTuple):
    """The layout of a source, and the positions that each target reads; all for three spatial dimensions."""

    starts: ndarray  # (phases, 3), steps (3,): position u of phase p is the source's position u steps + starts[p]
    steps: ndarray
    extent: ndarray  # (3,) positions of an image
    spread: ndarray  # (3,) the steps of the targets
    targets: tuple[TargetReads, ...]
    size: int  # the positions of an image; `used`: their number from the first to the last that has a result
    used: int


class Axis(NamedTuple):
    """One dimension of a `Layout`: phases, and targets as (start, count, [(k, phase, offset)])."""

    step: int
    starts: list[int]
    extent: int
    spread: int
    targets: list[tuple[int, int, list[tuple[int, int, int]]]]


def axis_of(axis: tuple[int, ...], back: bool) -> Axis:
    """The phases of an axis (size, kernel, stride, padding, dilation, out). `back`: results are read and the input's
    gradient is made.
    """
    size, _, stride, *_, out = axis
    step, length = (1, out) if back else (stride, size)
    found = [(t.start, t.length, [(k, *divmod(a, step)) for k, a in t.taps]) for t in targets(axis, back)]
    phases = sorted({r for _, _, taps in found for _, _, r in taps}) or [0]
    low = min([a for _, _, taps in found for _, a, _ in taps], default=0)
    need = max([count + a - low for _, count, taps in found for _, a, _ in taps], default=1)
    front = max(0, -low)  # zeros before a line, which the previous line may share
    known = max([(length - 1 - r) // step - low + 1 for r in phases])
    extent = max(need - front, min(need, known), max([count for _, count, _ in found]), 1)
    return Axis(
        step,
        [low * step + r for r in phases],
        extent,
        stride if back else 1,
        [(start, count, [(k, phases.index(r), a - low) for k, a, r in taps]) for start, count, taps in found],
    )


@lru_cache(maxsize=256)
def layout_of(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints, back: bool) -> Layout:
    """The layout for spatial shapes of three dimensions."""
    dims = [axis_of(axis, back) for axis in zip(size, kernel, stride, padding, dilation, out)]
    phases = [len(d.starts) for d in dims]
    pitch = (dims[1].extent * dims[2].extent, dims[2].extent, 1)
    reads = []
    for chosen in product(*[d.targets for d in dims]):
        starts, counts, taps = zip(*chosen)
        met = list(product(*taps))
        reads.append(
            TargetReads(
                np.array(starts),
                np.array(counts),
                np.array([flat_index([k for k, _, _ in tap], kernel) for tap in met], np.int64),
                [
                    (flat_index([r for _, r, _ in tap], phases), sum(a * q for (_, _, a), q in zip(tap, pitch)))
                    for tap in met
                ],
            )
        )
    extent, most = [d.extent for d in dims], [max(count for _, count, _ in d.targets) for d in dims]
    return Layout(
        np.array(list(product(*[d.starts for d in dims]))),
        np.array([d.step for d in dims]),
        np.array(extent),
        np.array([d.spread for d in dims]),
        tuple(reads),
        prod(extent),
        flat_index([n - 1 for n in most], extent) + 1,
    )


class Job(NamedTuple):
    """The part of a call that depends on the plan alone: the source's layout, and the loops' arguments."""

    lay: Layout
    images: int  # images that are copied at a time
    # floats of one phase of a channel: an odd number of vectors, since channels at a distance of a power of two would
    # map to the same cache sets
    phase: int
    group: int  # floats of a group's channels
    source: int  # floats of the source's workspace, with a margin for reads beyond the end
    offsets: tuple[ndarray, ...]  # the offsets of each target's taps, channel by channel
    height: int  # filters that are summed at once
    lines: int  # the number of lines
    shape: ndarray  # shape of the filters, (groups, made, read), and their strides: see `pack`
    strides: ndarray


@lru_cache(maxsize=256)
def job_of(p: Plan) -> Job:
    (read, _), (made, _) = p.read, p.made
    lay = layout_of(*shapes_3d(p))
    images = images_at_once(lay, p.groups * (read + made if p.op == "conv_weight_grad" else read), p.images)
    if p.op == "conv_weight_grad":  # enough images to fill a chunk
        from rushlight.fast.conv.direct_loops import CHUNK

        images = min(p.images, max(CHUNK // whole_vectors(lay.used), images))
    phases = len(lay.starts)
    phase = (-(-images * lay.size // lanes()) | 1) * lanes()
    slack = 8 * lanes() + max([a for target in lay.targets for _, a in target.distances], default=0)
    channels = np.arange(read)[:, None] * (phases * phase)
    offsets = tuple(
        [(channels + np.array([r * phase + a for r, a in target.distances])).ravel() for target in lay.targets]
    )
    strides = (made * read * p.taps, p.taps, made * p.taps) if p.back else (made * read * p.taps, read * p.taps, p.taps)
    return Job(
        lay,
        images,
        phase,
        read * phases * phase,
        p.groups * read * phases * phase + slack,
        offsets,
        tile_height(made),
        tile_lines(lay, p.groups * read),
        np.array((p.groups, made, read)),
        np.array(strides),
    )


def images_at_once(lay: Layout, channels: int, images: int) -> int:
    """The number of images copied at a time: the copies stay in the cache."""
    return max(1, min(images, DIRECT_SOURCE_FLOATS // (channels * len(lay.starts) * lay.size)))


def tile_lines(lay: Layout, channels: int) -> int:
    """The number of lines that one tile of filters processes before the next tile: reads and results stay in the
    caches. Whole images or parts of an image, so that the padding lines between images are skipped; several small
    images at a time if that fills vectors better.
    """
    pitch, rows = int(lay.extent[2]), prod(lay.extent.tolist()[:2])
    most = max(1, min(DIRECT_TILE_PLACES, max(DIRECT_VECTOR_PLACES, DIRECT_SOURCE_FLOATS // channels)) // pitch)
    if rows > most:
        return -(-rows // -(-rows // most))
    return rows if whole_vectors(lay.used) <= rows * pitch else most // rows * rows


def tile_height(filters: int) -> int:
    """The number of filters summed at once: the one with the fewest unused rows."""
    from rushlight.loops.llvm import machine

    most = 8 if machine()[1] == 32 else 4
    return min([h for h in (8, 6, 4, 2, 1) if h <= most], key=lambda h: (-(-filters // h) * h, -h))


def spatial(x: ndarray) -> ndarray:
    """(N, C, *size) -> (N, C, D, H, W), in C order."""
    return contiguous(x).reshape(*x.shape[:2], *in_3d(x.shape[2:], 1))


def filler(source: ndarray, lay: Layout, space: ndarray, phase: int, images: int, end: int) -> Callable[[int], int]:
    """A function that copies images from a given one on, and returns their number."""
    from rushlight.fast.conv import direct_loops as loops

    loop, given, shape = loops.fill(), source.reshape(-1), np.array(source.shape)

    def fill(first: int) -> int:
        count = min(images, end - first)
        loop(given, shape, space, phase, lay.starts, lay.steps, lay.extent, first, count)
        return count

    return fill


def pack(w: ndarray, j: Job, taps: ndarray) -> ndarray:
    """The filters in the loop's layout: (groups, tiles, read, taps, height), flat."""
    from rushlight.fast.conv import direct_loops as loops

    groups, made, read = j.shape.tolist()
    packed = np.empty(groups * -(-made // j.height) * j.height * read * len(taps), FLOAT)
    loops.pack()(contiguous(w).reshape(-1), j.shape, j.strides, taps, packed, j.height)
    return packed


def suits(p: Plan) -> bool:
    """True for more than one tap; images of one tap are columns already."""
    return p.taps > 1


def conv(p: Plan, x: ndarray, w: ndarray, bias: ndarray | None = None) -> ndarray:
    """x (N, C, *size), w (O, C / groups, *kernel), bias (O,) -> (N, O, *out); or the input's gradient, with g instead
    of x.
    """
    from rushlight.fast.conv import direct_loops as loops

    j, (made, size) = job_of(p), p.made
    lay, height, source = j.lay, j.height, spatial(x)
    result = memory.take((p.images, p.groups * made, *size), FLOAT)
    to, shape = result.reshape(-1), np.array(spatial(result).shape)
    packed = [pack(w, j, target.taps) for target in lay.targets]
    rows = -(-made // height) * height  # floats of a group's filters in whole tiles
    added, loop = np.zeros((p.groups, rows), FLOAT), loops.conv(height)
    if bias is not None:
        added[:, :made] = bias.reshape(p.groups, made)

    def part(first: int, end: int, step: int) -> None:
        space = workspaces.zeros("xs", j.source)
        sums = np.empty(height * (j.lines * int(lay.extent[2]) + 8 * lanes()), FLOAT)
        fill = filler(source, lay, space, j.phase, step, end)
        for start in range(first, end, step):
            images = fill(start)
            for target, filters, offsets in zip(lay.targets, packed, j.offsets):
                given = space, j.group, p.groups, offsets, filters, added.reshape(-1), sums
                target_of = lay.extent, target.length, target.starts, lay.spread, j.lines
                loop(*given, to, shape, start, images, *target_of)

    for_images(part, p.images, j.images)
    return result


def conv_weight_grad(p: Plan, g: ndarray, x: ndarray) -> ndarray:
    """The weight's gradient (O, C / groups, *kernel). Inexact if an input is not finite: padding positions multiply
    gradients of zero, and 0 inf is nan, so im2col must determine the affected weights.
    """
    from rushlight.fast.conv import direct_loops as loops

    j, gs, xs = job_of(p), spatial(g), spatial(x)
    lay, filters = j.lay, gs.shape[1]
    (target,) = lay.targets
    beside = lay._replace(starts=ORIGIN, steps=ONES)
    size, used = lay.size, lay.used
    # otherwise the last vector of an image would reach into the next image
    apart = whole_vectors(used) <= size
    loop, shape = loops.weight_grad(loops.weight_height(p.filters)), (p.groups, p.filters, p.channels * p.taps)

    def start() -> Callable:
        a = workspaces.zeros("gs", filters * j.phase + 8 * lanes())
        b = workspaces.zeros("xs", j.source)

        def add(total: ndarray, first: int, end: int, step: int) -> None:
            fill_x, fill_g = filler(xs, lay, b, j.phase, step, end), filler(gs, beside, a, j.phase, step, end)
            for begin in range(first, end, step):
                count = fill_x(begin)
                fill_g(begin)
                if count < step:
                    a[: filters * j.phase].reshape(-1, j.phase)[:, count * size :] = 0  # clear values of earlier images
                spans = (count, size, used) if apart else (1, 0, count * size)
                loop(a, b, j.group, j.phase, j.offsets[0], total.reshape(shape), *spans)

        return add

    total = sum_over_images(start, prod(shape), p.images, j.images)
    if not np.isfinite(total).all():
        raise Inexact
    w = np.empty((p.groups, p.filters, p.channels, p.taps), FLOAT)
    w[..., target.taps] = total.reshape(w.shape)
    return w.reshape(-1, p.channels, *p.kernel)
