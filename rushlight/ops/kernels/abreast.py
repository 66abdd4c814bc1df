"""Convolution of many images abreast, for float32, where Numba is installed: a vector register holds one number of each of
as many images as it has lanes.

So every place of a result is full vectors, however narrow the images are and however few their channels: nothing is
shifted within a register, no line of padding is added up, and of a place on the border only the rows of the kernel that
meet the image. Images are turned once before and their results once after; any kernel, stride, padding, dilation and number
of groups, in up to three dimensions. What each place reads is listed as for kernels/gathered.py.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.direct import geometry, in_order, in_parts, number
from rushlight.ops.kernels.gathered import along, flat_places
from rushlight.ops.kernels.innermost import FLOAT, lanes, packed, rooms, whole
from rushlight.ops.kernels.memory import memory

HELD = 1 << 17       # numbers of the images that are turned at a time: what stays in the L2 cache
SUMMED = 1 << 11     # places whose gradients are added up one after the other
BLOCK = 32           # vectors that are added up at once, at most
TERMS = 1 << 9       # products that are
FEW, PAIRS = 24, 200     # channels, and pairs of them, in a group; 16 and 16 are no faster, 1 and 32 slower for weights


class Frame(NamedTuple):
    """Arrays for the loops: of all targets, one after the other; see `gathered.Frame`."""

    low: ndarray
    extent: ndarray
    plain: bool          # the frame is the image
    cuts: ndarray        # where the places of a target begin
    bases: ndarray
    places: ndarray
    firsts: ndarray      # of each place and the `width` - 1 after it, the taps of which one meets the image: from here
    lasts: ndarray       # up to here
    ends: ndarray        # where the taps of a target begin
    offsets: ndarray
    picks: ndarray


@lru_cache(maxsize=128)
def framed(size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, out: tuple, back: bool,
           width: int) -> Frame:
    """For blocks of `width` places; all shapes of three dimensions."""
    dims = [along(*numbers, back) for numbers in zip(size, kernel, stride, padding, dilation, out)]
    source, made = (out, size) if back else (size, out)
    low, extent = [d.low for d in dims], [d.extent for d in dims]
    bases, places, firsts, lasts, offsets, picks, cuts, ends = [], [], [], [], [], [], [0], [0]
    for chosen in product(*[d.targets for d in dims]):
        at, near, met = zip(*chosen)
        bases.append(flat_places(near, extent))
        places.append(flat_places(at, made))
        known = list(product(*met))
        offsets.append(np.array([number([a for _, a in tap], extent) for tap in known], np.int64))
        picks.append(np.array([number([k for k, _ in tap], kernel) for tap in known], np.int64))
        first, last = reached(near, known, low, source)
        firsts.append(np.min([beside(first, i, len(known)) for i in range(width)], 0))
        lasts.append(np.max([beside(last, i, 0) for i in range(width)], 0))
        cuts.append(cuts[-1] + len(places[-1]))
        ends.append(ends[-1] + len(known))
    joined = lambda parts, by=1: np.concatenate(parts) * by
    again = lambda parts: [*parts, np.repeat(parts[-1][-1:], width)]       # the last place, in a block that is not full
    n = lanes()
    return Frame(np.array(low), np.array(extent), low == [0, 0, 0] and tuple(extent) == source, np.array(cuts),
                 joined(again(bases), n), joined(again(places), n), joined(firsts), joined(lasts),
                 np.array(ends), joined(offsets, n), joined(picks))


def reached(near: tuple, taps: list, low: list, size: tuple) -> tuple[ndarray, ndarray]:
    """For each place the first tap that meets the image, and one more than the last; n and 0 where none does."""
    met = np.ones((prod([len(n) for n in near]), len(taps)), bool)
    if not taps:
        return met.sum(1), met.sum(1)
    for i, (begin, n) in enumerate(zip(low, size)):
        shape = [-1 if k == i else 1 for k in range(3)]
        at = begin + near[i][:, None] + np.array([tap[i][1] for tap in taps], np.int64)
        inside = ((at >= 0) & (at < n)).reshape(*shape, len(taps))
        met &= np.broadcast_to(inside, (*[len(k) for k in near], len(taps))).reshape(met.shape)
    some = met.any(1)
    return np.where(some, met.argmax(1), len(taps)), np.where(some, len(taps) - met[:, ::-1].argmax(1), 0)


def beside(numbers: ndarray, by: int, fill: int) -> ndarray:
    """The numbers from the place `by` on, filled up."""
    return np.append(numbers[by:], np.full(min(by, len(numbers)), fill, numbers.dtype))


def apart(n: int) -> int:
    """Numbers from a channel of n places to the next, as the loops lay them."""
    return (n | 1) * lanes() if n >= lanes() else n * lanes()


def suits(images: int, p: Any, source: int, terms: int) -> bool:
    """Whether these loops are the fastest for the plan (kernels/conv.py): `source` numbers of an image in a group, `terms`
    products in a sum. Of more channels than these, vectors of channels are as good, and what is turned is more."""
    n = lanes()
    few = max(p.channels, p.filters) <= FEW and p.channels * p.filters <= PAIRS
    return few and n > 4 and (images % n == 0 or images >= 6 * n) and source * n <= HELD and terms <= TERMS


def correlate(x: ndarray, w: ndarray, p: Any, bias: ndarray | None = None) -> ndarray | None:
    """conv: x (N, C, *size), w (O, C / groups, *kernel), bias (O,) -> (N, O, *out); None where others do it."""
    terms = p.channels * prod(p.kernel)
    if not suits(len(x), p, p.channels * prod(p.size), terms):
        return None
    return slid(x, w, p, False, bias)


def spread(g: ndarray, w: ndarray, p: Any) -> ndarray | None:
    """conv_input_grad: g (N, O, *out) -> (N, C, *size)."""
    terms = p.filters * prod(p.kernel)
    if not suits(len(g), p, p.filters * prod(p.out), terms):
        return None
    return slid(g, w, p, True)


class Job(NamedTuple):
    """What a call knows by its shapes alone."""

    frame: Frame
    loop: Callable
    size: ndarray                    # of the source, spatial
    shape: ndarray                   # as the loops are told
    strides: ndarray                 # of filters; `weigh`: the size of a result
    rows: ndarray                    # `weigh`: of each number of a filter, where it begins to read
    xs: int                          # numbers of the rooms for as many images as there are lanes
    ys: int
    bias: int                        # numbers


@lru_cache(maxsize=128)
def slid_job(shapes: tuple, groups: int, given: int, made: int) -> Job:
    """Of `given` channels of the source and `made` ones of the result in each group; `shapes`: of `framed`."""
    from rushlight.ops.kernels import abreast_loops as loops
    size, kernel, *_, out, back = shapes
    source, beyond = (out, prod(size)) if back else (size, prod(out))
    height, width = loops.slid_tile(made)
    frame = framed(*shapes, width)
    strides = (given, 0, whole(made)) if back else (0, made, whole(groups * made))
    return Job(frame, loops.slide(height, width), np.array(source), np.array([groups, given, made, prod(kernel), beyond]),
               np.array(strides), np.empty(0, np.int64), given * apart(prod(frame.extent.tolist())),
               max(height * apart(beyond), given * prod(source) * lanes()), groups * made + height)


@lru_cache(maxsize=128)
def weighed_job(shapes: tuple, groups: int, given: int, made: int) -> Job:
    from rushlight.ops.kernels import abreast_loops as loops
    size, kernel, *_, out, _ = shapes
    frame, taps, beyond = framed(*shapes, 1), prod(kernel), prod(out)
    plane = apart(prod(frame.extent.tolist()))
    height, width = loops.weighed_tile(made, given * taps)
    rows = (np.arange(given)[:, None] * plane + frame.offsets).ravel()
    rows = np.append(rows, np.repeat(rows[-1:], -len(rows) % width))
    return Job(frame, loops.weigh(height, width), np.array(size), np.array([groups, given, made, taps, beyond]),
               np.array(out), rows, given * plane, made * apart(beyond), 0)


def slid(x: ndarray, w: ndarray, p: Any, back: bool, bias: ndarray | None = None) -> ndarray:
    given, made, out = (p.filters, p.channels, p.size) if back else (p.channels, p.filters, p.out)
    j, n = slid_job(geometry(p, back), p.groups, given, made), lanes()
    source = (x if x.flags.carray else x.copy()).reshape(-1)
    result = memory.take((len(x), p.groups * made, *out), FLOAT)
    filters = packed(w, p.groups * given if back else given, made if back else p.groups * made, prod(p.kernel), back)
    added = np.zeros(j.bias, FLOAT)
    if bias is not None:
        added[:len(bias)] = bias

    def part(first: int, end: int, step: int) -> None:
        j.loop(source, j.size, j.shape, *j.frame, filters, j.strides, added, result.reshape(-1), rooms.take("xs", j.xs),
               rooms.take("ys", j.ys), first * n, min(end * n, len(x)))

    in_parts(part, -(-len(x) // n), 1)
    return result


def weigh(g: ndarray, x: ndarray, p: Any) -> ndarray | None:
    """conv_weight_grad: (O, C / groups, *kernel); None where others do it."""
    if not suits(len(x), p, p.channels * prod(p.size), 1):
        return None
    j, n = weighed_job(geometry(p, False), p.groups, p.channels, p.filters), lanes()
    f, taken = j.frame, p.channels * prod(p.kernel)
    xf, gf = [(a if a.flags.carray else a.copy()).reshape(-1) for a in (x, g)]
    blocks = max(1, min(-(-len(x) // n), 2 * HELD // (j.xs + j.ys), SUMMED // prod(p.out)))
    found: dict[int, ndarray] = {}

    def part(first: int, end: int, step: int) -> None:
        found[first] = total = np.zeros((p.groups * p.filters, len(j.rows)), FLOAT)
        xs, gs = rooms.take("xs", j.xs * blocks), rooms.take("ys", max(j.ys * blocks, p.channels * prod(p.size) * n))
        j.loop(xf, j.size, j.shape, f.low, f.extent, f.plain, f.bases, j.rows, gf, j.strides, total, xs, gs,
               rooms.take("sums", BLOCK * n), blocks * n, first * n, min(end * n, len(x)))

    in_parts(part, -(-len(x) // n), blocks)
    return in_order(found)[:, :taken].reshape(-1, p.channels, *p.kernel)
