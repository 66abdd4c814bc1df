"""The input positions that each result of a convolution reads, as arrays for the compiled loops; for three spatial
dimensions.

    forward            result p reads p stride + k dilation - padding
    input's gradient   input place u = r + stride i reads i + (r + padding - k dilation) / stride of
                       the gradient, for the taps k where that is whole: `stride` targets with taps of their own
    weight's gradient  the forward's reads, added up over p
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.kernels.conv import Plan
from rushlight.kernels.im2col import Ints, in_3d


class Target(NamedTuple):
    """`length` results along one dimension with the same taps, at start, start + step, ..."""

    start: int
    step: int
    length: int
    # (k, offset): result number i reads for tap k at i * stride + offset, or backwards at i + offset
    taps: list[tuple[int, int]]


def shapes_3d(p: Plan) -> tuple:
    """The cache key (size, kernel, stride, padding, dilation, out, back), each shape of three dimensions."""
    return (
        in_3d(p.size, 1),
        in_3d(p.kernel, 1),
        in_3d(p.stride, 1),
        in_3d(p.padding, 0),
        in_3d(p.dilation, 1),
        in_3d(p.out, 1),
        p.back,
    )


def targets(axis: tuple[int, ...], back: bool) -> list[Target]:
    """The targets along an axis (size, kernel, stride, padding, dilation, out); `back`: results are read and the
    input's gradient is made.
    """
    size, kernel, stride, padding, dilation, out = axis
    if not back:
        return [Target(0, 1, out, [(k, k * dilation - padding) for k in range(kernel)])]
    return [
        Target(
            r,
            stride,
            -(-(size - r) // stride),
            [
                (k, (r + padding - k * dilation) // stride)
                for k in range(kernel)
                if (r + padding - k * dilation) % stride == 0
            ],
        )
        for r in range(min(stride, size))
    ]


class FrameTarget(NamedTuple):
    """Results of one image with the same taps. The taps read a frame: the flat source with zeros around it."""

    places: ndarray  # positions of the results, in the flat result
    bases: ndarray  # bases of the results, in the flat frame
    offsets: ndarray  # offsets of the taps: the result at places[i] reads bases[i] + offsets[k]
    taps: ndarray  # positions of the taps in the flat kernel


class Frame(NamedTuple):
    low: list[int]  # the start of the frame relative to the source: (D, H, W), 0 or below
    extent: list[int]  # size of the frame, (D, H, W)
    plain: bool  # true if the frame is the source
    targets: list[FrameTarget]


def frame_of(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints, back: bool) -> Frame:
    """The frame and the positions that are read from it, for spatial shapes of three dimensions."""
    dims = [targets(axis, back) for axis in zip(size, kernel, stride, padding, dilation, out)]
    source, made, reads = (out, size, (1, 1, 1)) if back else (size, out, stride)
    low, extent = [], []
    for found, read in zip(dims, reads):
        low.append(min([a for t in found for _, a in t.taps], default=0))
        extent.append(max([(t.length - 1) * read + a for t in found for _, a in t.taps], default=0) - low[-1] + 1)
    listed = []
    for chosen in product(*dims):
        taps = list(product(*[t.taps for t in chosen]))
        bases = [np.arange(t.length) * read for t, read in zip(chosen, reads)]
        places = [t.start + np.arange(t.length) * t.step for t in chosen]
        listed.append(
            FrameTarget(
                flat_grid(places, made),
                flat_grid(bases, extent),
                np.array(
                    [flat_index([a - first for (_, a), first in zip(tap, low)], extent) for tap in taps], np.int64
                ),
                np.array([flat_index([k for k, _ in tap], kernel) for tap in taps], np.int64),
            )
        )
    return Frame(low, extent, low == [0, 0, 0] and tuple(extent) == source, listed)


def flat_grid(at: list[ndarray], size: Any) -> ndarray:
    """Flat indices into an array (D, H, W) of all combinations of indices d, h, w."""
    d, h, w = at
    return ((d[:, None, None] * size[1] + h[:, None]) * size[2] + w).ravel()


def flat_index(at: Any, size: Any) -> int:
    """The flat index of one position."""
    index = 0
    for i, n in zip(at, size):
        index = index * n + i
    return index
