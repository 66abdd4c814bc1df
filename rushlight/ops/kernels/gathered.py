"""Convolution as a product of matrices whose rows are gathered, for float32, where Numba is installed.

Channels are laid innermost and images in a frame of zeros, so that the numbers that a result reads stand at its own place
plus one list of offsets for all places. A result's channels fill vector registers, and each number of the image is
multiplied with all of them: any kernel, stride, padding and dilation, in up to three dimensions, and no columns are made.

    forward            place p reads p stride + k dilation - padding           conv
    input's gradient   place u of those with the same u mod stride reads
                       (u + padding - k dilation) / stride, where it is whole  conv_input_grad, transposed convolution
    weight's gradient  the forward's places, added up over all of them         conv_weight_grad
"""
from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.direct import geometry, in_order, in_parts, number, three
from rushlight.ops.kernels.innermost import FLOAT, flat, kind, packed, rooms, usual, whole
from rushlight.ops.kernels.memory import memory
from rushlight.ops.kernels.windows import Ints

LEAST = 16           # channels of the result: fewer do not fill a vector
HELD = 1 << 16       # numbers of the images that are laid out at a time
SUMMED = 1 << 14     # places whose gradients are added up one after the other


class Along(NamedTuple):
    """One dimension: where the frame begins and how long it is; targets as (places, their bases, [(k, offset)])."""

    low: int
    extent: int
    targets: list[tuple[ndarray, ndarray, list[tuple[int, int]]]]


def along(size: int, kernel: int, stride: int, padding: int, dilation: int, out: int, back: bool) -> Along:
    """`back`: results are the source and the input is made."""
    if back:
        met = [(np.arange(r, size, stride), 1, [(k, (r + padding - k * dilation) // stride) for k in range(kernel)
                                                if (r + padding - k * dilation) % stride == 0])
               for r in range(min(stride, size))]
    else:
        met = [(np.arange(out), stride, [(k, k * dilation - padding) for k in range(kernel)])]
    reached = [a for _, _, taps in met for _, a in taps] or [0]
    low = min(reached)
    extent = max([(len(places) - 1) * by + a for places, by, taps in met for _, a in taps], default=0) - low + 1
    return Along(low, extent, [(places, np.arange(len(places)) * by, [(k, a - low) for k, a in taps])
                               for places, by, taps in met])


class Frame(NamedTuple):
    """Arrays for the loops: of all targets, one after the other."""

    low: ndarray
    extent: ndarray
    cuts: ndarray        # where the places of a target begin, for one image
    bases: ndarray       # of `some` images, and of a few places beyond the last
    places: ndarray
    ends: ndarray        # where the taps of a target begin, of all channels
    offsets: ndarray
    picks: ndarray


@lru_cache(maxsize=128)
def framed(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints, back: bool, channels: int,
           broad: int, some: int) -> Frame:
    """For a source with so many channels and results of `broad`; all shapes of three dimensions."""
    dims = [along(*numbers, back) for numbers in zip(size, kernel, stride, padding, dilation, out)]
    extent, made, taps = [d.extent for d in dims], size if back else out, prod(kernel)
    images = np.arange(some)[:, None]
    bases, places, offsets, picks, cuts, ends = [], [], [], [], [0], [0]
    for chosen in product(*[d.targets for d in dims]):
        at, near, met = zip(*chosen)
        one = flat_places(near, extent)
        bases.append((images * prod(extent) + one).ravel())
        places.append((images * prod(made) + flat_places(at, made)).ravel())
        known = list(product(*met))
        here = np.array([number([a for _, a in tap], extent) for tap in known], np.int64) * channels
        row = np.array([number([k for k, _ in tap], kernel) for tap in known], np.int64)
        offsets.append((np.arange(channels)[:, None] + here).ravel())
        picks.append((np.arange(channels)[:, None] * taps + row).ravel())
        cuts.append(cuts[-1] + len(one))
        ends.append(ends[-1] + len(offsets[-1]))
    beyond = np.zeros(16, np.int64)
    joined = lambda parts, by=1: np.concatenate(parts) * by
    return Frame(np.array([d.low for d in dims]), np.array(extent), np.array(cuts), joined([*bases, beyond], channels),
                 joined([*places, beyond + some * prod(made)], broad), np.array(ends), joined(offsets), joined(picks, broad))


def flat_places(at: Any, size: Any) -> ndarray:
    """Places of three dimensions, all with all, as numbers."""
    d, h, w = at
    return ((d[:, None, None] * size[1] + h[:, None]) * size[2] + w).ravel()


def suits(p: Any, made: int) -> bool:
    """Whether these loops are the fastest for the plan (kernels/conv.py) and results of so many channels."""
    return p.groups == 1 and made >= LEAST and 5 * made >= 4 * whole(made)


def frame_of(p: Any, back: bool, channels: int, broad: int, images: int) -> tuple[Frame, int]:
    """The frame, and how many images are laid out at a time."""
    some = max(1, min(images, HELD // (prod(p.size) * channels + prod(p.out) * broad)))
    return framed(*geometry(p, back), channels, broad, some), some


def correlate(x: ndarray, w: ndarray, p: Any, bias: ndarray | None = None) -> ndarray | None:
    """conv: x (N, C, *size), w (O, C, *kernel), bias (O,) -> (N, O, *out), laid out as x; None where others do it."""
    return slid(x, w, p, False, bias) if suits(p, p.filters) else None


def spread(g: ndarray, w: ndarray, p: Any) -> ndarray | None:
    """conv_input_grad: g (N, O, *out) -> (N, C, *size)."""
    return slid(g, w, p, True) if suits(p, p.channels) else None


def slid(x: ndarray, w: ndarray, p: Any, back: bool, bias: ndarray | None = None) -> ndarray:
    from rushlight.ops.kernels import gathered_loops as loops
    given, made, out = (p.filters, p.channels, p.size) if back else (p.channels, p.filters, p.out)
    broad, beyond = whole(made), prod(out)
    frame, some = frame_of(p, back, given, broad, len(x))
    source, last = flat(x)
    result = memory.take((len(x), *out, made) if last else (len(x), made, *out), FLOAT)
    filters = packed(w, given, made, prod(p.kernel), back)
    added = np.zeros(broad, FLOAT)
    if bias is not None:
        added[:made] = bias
    loop, size = loops.correlate(kind(broad)), np.array(three(x.shape[2:], 1))

    def part(first: int, end: int, step: int) -> None:
        xs = rooms.zeros("xs", some * prod(frame.extent.tolist()) * given)
        ys = rooms.take("ys", (some * beyond + 1) * broad)
        loop(source, last, given, size, *frame, filters, added, made, beyond, result.reshape(-1), xs, ys, some, first, end)

    in_parts(part, len(x), some)
    return np.moveaxis(result, -1, 1) if last else result


def weigh(g: ndarray, x: ndarray, p: Any) -> ndarray | None:
    """conv_weight_grad: (O, C, *kernel); None where others do it."""
    from rushlight.ops.kernels import gathered_loops as loops
    if not suits(p, p.filters):
        return None
    made, broad, beyond, taps = p.filters, whole(p.filters), prod(p.out), prod(p.kernel)
    frame, some = frame_of(p, False, p.channels, broad, len(x))
    rows = -(-len(frame.offsets) // usual()[1]) * usual()[1]
    offsets = np.append(frame.offsets, np.zeros(rows - len(frame.offsets), np.int64))
    (xf, x_last), (gf, g_last) = flat(x), flat(g)
    loop, size = loops.weigh(kind(broad)), np.array(three(p.size, 1))
    found: dict[int, ndarray] = {}

    def part(first: int, end: int, step: int) -> None:
        xs = rooms.zeros("xs", some * prod(frame.extent.tolist()) * p.channels)
        gs = rooms.take("ys", (some * beyond + 1) * broad)
        for start in range(first, end, step):
            total = np.zeros(rows * broad, FLOAT)
            loop(xf, x_last, p.channels, size, frame.low, frame.extent, frame.bases, offsets, gf, g_last, made, beyond,
                 total, xs, gs, some, start, min(start + step, end))
            found[start] = total

    in_parts(part, len(x), some * max(1, min(SUMMED // (some * beyond), -(-len(x) // some))), some)
    total = in_order(found).reshape(rows, broad)[:taps * p.channels, :made]
    return np.ascontiguousarray(total.T).reshape(made, p.channels, *p.kernel)
