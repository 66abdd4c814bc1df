"""Convolution without columns, for float32, where Numba is installed and there is enough to do.

Images are laid out with their padding, so that a tap is one distance for all places, across lines and images: sums run
along places, whatever the width of the image. A stride of s splits the source into s phases, or for the gradient of the
input the result, in each dimension; so all strides and dilations, and both directions, are the same two loops over a list
of distances (kernels/sliding.py). Nothing needs another layout than (N, C, *size).

    forward           x[u s + r] in phase r, one result          conv
    input's gradient  g, results x[i s + r] in phase r           conv_input_grad, transposed convolution
    weight's gradient g and the phases of x                      conv_weight_grad

One core, float32, against columns and BLAS: benchmarks/convolution.py.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.innermost import rooms
from rushlight.ops.kernels.memory import memory
from rushlight.ops.kernels.windows import Ints
from rushlight.optional import has_numba, much

LEAST = 1 << 17      # products from which the loops are the faster: 1 x 16 x 16 x 16, 16 filters, in 33 us, by columns 55
BY_COLUMNS = 2e10    # products that NumPy makes in a second, by columns: from 1e10 in small images to 3e10
PLACES = 512         # of small images so many together, for vectors to be full
LINES = 1152         # places whose sums are made for one tile of filters after the other
HELD = 1 << 17       # numbers of the source that stay in the L2 cache meanwhile
ORIGIN, ONES = np.zeros((1, 3), np.int64), np.ones(3, np.int64)


class Target(NamedTuple):
    """Results that are added up together: those at starts + steps p, p < count, over `taps`."""

    starts: ndarray
    count: ndarray
    kernel: ndarray                  # of each tap, its place in the kernel, flat
    distances: list[tuple[int, int]]  # and where it reads: the phase of the source, the distance from the result's place


class Layout(NamedTuple):
    """How a source is laid out, and what is read from it for each target; all for three spatial dimensions."""

    starts: ndarray                  # (phases, 3), steps (3,): place u of phase p is the source's u steps + starts[p]
    steps: ndarray
    extent: ndarray                  # (3,) places of an image
    spread: ndarray                  # (3,) the steps of the targets
    targets: tuple[Target, ...]
    size: int                        # places of an image, and how many from its first that has a result to the last
    used: int


class Along(NamedTuple):
    """One dimension of a `Layout`: phases, and targets as (start, count, [(k, phase, distance)])."""

    step: int
    starts: list[int]
    extent: int
    spread: int
    targets: list[tuple[int, int, list[tuple[int, int, int]]]]


def along(size: int, kernel: int, stride: int, padding: int, dilation: int, out: int, back: bool) -> Along:
    """The phases of one dimension. `back`: the source is the result and the target the input."""
    if back:
        met = [(r, [(k, 0, (r + padding - k * dilation) // stride) for k in range(kernel)
                    if (r + padding - k * dilation) % stride == 0]) for r in range(min(stride, size))]
        targets = [(r, -(-(size - r) // stride), taps) for r, taps in met]
        phases, step, length = [0], 1, out
    else:
        places = [divmod(k * dilation - padding, stride) for k in range(kernel)]
        phases = sorted({r for _, r in places})
        targets = [(0, out, [(k, phases.index(r), a) for k, (a, r) in enumerate(places)])]
        step, length = stride, size
    low = min([a for _, _, taps in targets for _, _, a in taps], default=0)
    need = max([count + a - low for _, count, taps in targets for _, _, a in taps], default=1)
    front = max(0, -low)                          # zeros before a line, which the line before it may end in
    known = max([(length - 1 - r) // step - low + 1 for r in phases])
    extent = max(need - front, min(need, known), max([count for _, count, _ in targets]), 1)
    return Along(step, [low * step + r for r in phases], extent, stride if back else 1,
                 [(start, count, [(k, p, a - low) for k, p, a in taps]) for start, count, taps in targets])


@lru_cache(maxsize=256)
def layout(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints, back: bool) -> Layout:
    """Of spatial shapes, each of three dimensions."""
    dims = [along(*numbers, back) for numbers in zip(size, kernel, stride, padding, dilation, out)]
    phases = [len(d.starts) for d in dims]
    pitch = (dims[1].extent * dims[2].extent, dims[2].extent, 1)
    targets = []
    for chosen in product(*[d.targets for d in dims]):
        starts, counts, taps = zip(*chosen)
        met = list(product(*taps))
        targets.append(Target(
            np.array(starts), np.array(counts), np.array([number([t[0] for t in tap], kernel) for tap in met], np.int64),
            [(number([t[1] for t in tap], phases), sum(t[2] * q for t, q in zip(tap, pitch))) for tap in met]))
    extent, most = [d.extent for d in dims], [max(count for _, count, _ in d.targets) for d in dims]
    return Layout(np.array(list(product(*[d.starts for d in dims]))), np.array([d.step for d in dims]), np.array(extent),
                  np.array([d.spread for d in dims]), tuple(targets), prod(extent),
                  number([n - 1 for n in most], extent) + 1)


def number(at: Any, size: Any) -> int:
    """Of a place in an array of this size, counted row by row."""
    place = 0
    for i, n in zip(at, size):
        place = place * n + i
    return place


class Job(NamedTuple):
    """What a call knows by its shapes alone: how its source is laid out, and what the loops are told."""

    lay: Layout
    images: int                      # that are laid out at a time
    across: int                      # numbers of a phase of a channel: an odd number of vectors, as channels a power of
    room: int                        # two apart would meet in the same lines of the cache; of all, and some to read beyond
    reach: int                       # numbers of a group
    offsets: tuple[ndarray, ...]     # of each target's taps, channel by channel
    height: int                      # filters that are added up at once
    lines: int                       # and lines
    shape: ndarray                   # of the filters, (groups, made, read), and their strides: see `pack`
    strides: ndarray


@lru_cache(maxsize=128)
def job(shapes: tuple, groups: int, made: int, read: int, images: int) -> Job:
    """Of a source with `groups` times `read` channels, `images` of it at a time; `shapes`: of `layout`."""
    from rushlight.ops.kernels import sliding
    lay, lanes = layout(*shapes), sliding.machine()[0]
    phases, taps = len(lay.starts), prod(shapes[1])
    across = (-(-images * lay.size // lanes) | 1) * lanes
    slack = 8 * lanes + max([a for target in lay.targets for _, a in target.distances], default=0)
    channels = np.arange(read)[:, None] * (phases * across)
    offsets = tuple([(channels + np.array([p * across + a for p, a in target.distances])).ravel() for target in lay.targets])
    strides = (made * read * taps, taps, made * taps) if shapes[-1] else (made * read * taps, read * taps, taps)
    return Job(lay, images, across, groups * read * phases * across + slack, read * phases * across, offsets,
               tile_height(made), block_lines(lay, groups * read), np.array((groups, made, read)), np.array(strides))


def filler(source: ndarray, lay: Layout, room: ndarray, across: int, images: int, end: int) -> Callable[[int], int]:
    """A function that lays out images from the one it is given on, and says how many."""
    from rushlight.ops.kernels import sliding
    loop, given, shape = sliding.fill(), source.reshape(-1), np.array(source.shape)

    def fill(first: int) -> int:
        count = min(images, end - first)
        loop(given, shape, room, across, lay.starts, lay.steps, lay.extent, first, count)
        return count
    return fill


def suits(x: ndarray, p: Any) -> bool:
    """Whether there is, and was, enough to do for compiled loops, and BLAS does not have the whole of it in one product."""
    work = len(x) * p.groups * p.filters * p.channels * prod(p.kernel) * prod(p.out) * min(p.groups, 8)
    fits = x.dtype == np.float32 and not p.plain and work >= LEAST and len(p.out) <= 3
    return fits and much.paid(work / BY_COLUMNS) and has_numba()


def three(numbers: Ints, fill: int) -> Ints:
    return (fill,) * (3 - len(numbers)) + tuple(numbers)


def geometry(p: Any, back: bool) -> tuple:
    """The shapes that `layout` is for."""
    return (three(p.size, 1), three(p.kernel, 1), three(p.stride, 1), three(p.padding, 0), three(p.dilation, 1),
            three(p.out, 1), back)


def spatial(x: ndarray) -> ndarray:
    """(N, C, *size) with three spatial dimensions, as the loops want it."""
    return (x if x.flags.carray else x.copy()).reshape(*x.shape[:2], *three(x.shape[2:], 1))


def correlate(x: ndarray, w: ndarray, p: Any, bias: ndarray | None = None) -> ndarray:
    """conv: x (N, C, *size), w (O, C / groups, *kernel), bias (O,) -> (N, O, *out)."""
    return slid(x, w, geometry(p, False), p.groups, p.filters, p.channels, p.out, bias)


def spread(g: ndarray, w: ndarray, p: Any) -> ndarray:
    """conv_input_grad: g (N, O, *out) -> (N, C, *size)."""
    return slid(g, w, geometry(p, True), p.groups, p.channels, p.filters, p.size)


def slid(source: ndarray, w: ndarray, shapes: tuple, groups: int, made: int, read: int, size: Ints,
         bias: ndarray | None = None) -> ndarray:
    """All targets of the layout from the source (N, groups read, ...), `made` channels of the result in each group."""
    from rushlight.ops.kernels import sliding
    n = len(source)
    result = memory.take((n, groups * made, *size), np.dtype(np.float32))
    step = together(layout(*shapes), groups * read, n)
    j = job(shapes, groups, made, read, step)
    lay, height = j.lay, j.height
    out, source = spatial(result), spatial(source)
    packed = [pack(w, j, target.kernel) for target in lay.targets]
    added = np.zeros((groups, -(-made // height) * height), np.float32)
    if bias is not None:
        added[:, :made] = bias.reshape(groups, made)
    loop, to, sizes, added = sliding.slide(height), out.reshape(-1), np.array(out.shape), added.reshape(-1)

    def part(first: int, end: int, step: int) -> None:
        room = rooms.zeros("xs", j.room)
        sums = np.empty(height * (j.lines * int(lay.extent[2]) + 8 * sliding.machine()[0]), np.float32)
        fill = filler(source, lay, room, j.across, step, end)
        for start in range(first, end, step):
            images = fill(start)
            for target, filters, offsets in zip(lay.targets, packed, j.offsets):
                loop(room, j.reach, groups, offsets, filters, added, sums, to, sizes, start, images,
                     lay.extent, target.count, target.starts, lay.spread, j.lines)

    in_parts(part, n, step)
    return result


def pack(w: ndarray, j: Job, kernel: ndarray) -> ndarray:
    """The filters as the loop reads them: (groups, tiles, read, taps, height), flat."""
    from rushlight.ops.kernels import sliding
    groups, made, read = j.shape.tolist()
    packed = np.empty(groups * -(-made // j.height) * j.height * read * len(kernel), np.float32)
    sliding.pack()((w if w.flags.carray else w.copy()).reshape(-1), j.shape, j.strides, kernel, packed, j.height)
    return packed


def block_lines(lay: Layout, channels: int) -> int:
    """Over how many lines one tile of filters goes before the next: what it reads and makes stays in the caches. Whole
    images or parts of one, so that the lines of padding between images are left out; small ones several at a time, if
    that fills vectors better."""
    pitch, rows = int(lay.extent[2]), prod(lay.extent.tolist()[:2])
    most = max(1, min(LINES, max(PLACES, HELD // channels)) // pitch)
    if rows > most:
        return -(-rows // -(-rows // most))
    return rows if whole_vectors(lay.used) <= rows * pitch else most // rows * rows


def whole_vectors(n: int) -> int:
    from rushlight.ops.kernels import sliding
    lanes = sliding.machine()[0]
    return -(-n // lanes) * lanes


def tile_height(filters: int) -> int:
    """How many filters are added up at once: the number that leaves the fewest rows without a filter."""
    from rushlight.ops.kernels import sliding
    most = 8 if sliding.machine()[1] == 32 else 4
    return min([h for h in (8, 6, 4, 2, 1) if h <= most], key=lambda h: (-(-filters // h) * h, -h))


def weigh(g: ndarray, x: ndarray, p: Any) -> ndarray | None:
    """conv_weight_grad: (O, C / groups, *kernel); None where it is not finite. Places beside an image meet gradients of
    zero, and 0 inf is nan: what is not finite is for columns to find."""
    from rushlight.ops.kernels import sliding
    shapes, gs, xs = geometry(p, False), spatial(g), spatial(x)
    lay, channels, filters = layout(*shapes), xs.shape[1], gs.shape[1]
    target, = lay.targets
    beside = lay._replace(starts=ORIGIN, steps=ONES)
    size, used = lay.size, lay.used
    apart = whole_vectors(used) <= size       # else the last vector of an image would reach into the next
    step = min(len(x), max(sliding.CHUNK // whole_vectors(used), together(lay, filters + channels, len(x))))
    j = job(shapes, p.groups, p.filters, p.channels, step)         # at least as many as fill a chunk
    found: dict[int, ndarray] = {}
    loop = sliding.weigh(sliding.weighed_height(p.filters))

    def part(first: int, end: int, step: int) -> None:
        a, b = rooms.zeros("gs", filters * j.across + 8 * sliding.machine()[0]), rooms.zeros("xs", j.room)
        total = np.zeros((p.groups, p.filters, p.channels * len(target.kernel)), np.float32)
        fill_x, fill_g = filler(xs, lay, b, j.across, step, end), filler(gs, beside, a, j.across, step, end)
        for start in range(first, end, step):
            count = fill_x(start)
            fill_g(start)
            if count < step:
                a[:filters * j.across].reshape(-1, j.across)[:, count * size:] = 0      # of earlier images
            loop(a, b, j.reach, j.across, j.offsets[0], total, *((count, size, used) if apart else (1, 0, count * size)))
        found[first] = total

    in_parts(part, len(x), step)
    total = in_order(found)
    if not np.isfinite(total).all():
        return None
    w = np.empty((p.groups, p.filters, p.channels, prod(p.kernel)), np.float32)
    w[..., target.kernel] = total.reshape(p.groups, p.filters, p.channels, -1)
    return w.reshape(-1, p.channels, *p.kernel)


def together(lay: Layout, channels: int, images: int) -> int:
    """How many images are laid out at a time: what stays in the cache."""
    return max(1, min(images, HELD // (channels * len(lay.starts) * lay.size)))


def in_parts(part: Callable, images: int, step: int, least: int | None = None) -> None:
    """part(first, end, at a time) of all images, at most `step` at a time, cut for all cores: as many images for each, and
    at least so many (a step)."""
    from rushlight.compile.parallel import cores, pool
    parts = min(cores(), -(-images // (least or step)))
    if parts == 1:
        part(0, images, step)
        return
    bounds = [images * k // parts for k in range(parts + 1)]
    steps = -(-images // (parts * step))
    pool.run(part, [(*bounds[k:k + 2], -(-images // (parts * steps))) for k in range(parts)])


def in_order(found: dict[int, ndarray]) -> ndarray:
    """The sum of what parts found, by their first images: the same numbers whichever came first."""
    arrays = [found[k] for k in sorted(found)]
    return arrays[0] if len(arrays) == 1 else np.sum(arrays, 0)
