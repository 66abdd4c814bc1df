"""Transposed convolution: one ordinary convolution of stride 1 for each phase of the stride.

    out[n, c, p s - padding + k d] += x[n, o, p] weight[o, c, k]

The pixels y of the result with equal (y + padding) mod s use the same elements k of the kernel, and each k a pixel of x
at a fixed distance. `Taps` are these elements in one dimension."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Value
from rushlight.compile.native.convolution import Direct, Pair, Window, pair, with_border
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.lowering import Lowering, anchor, channels_last
from rushlight.compile.native.places import Place
from rushlight.compile.native.schedule import Group
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, Number
from rushlight.ops.nn.conv import conv_input_grad

LEAST_CHANNELS = 4  # of a group: fewer channels would leave most lanes empty


@dataclass(frozen=True)
class Taps:
    """The pixels first, first + stride, ... of the result (`count` pixels): the sum over i of x[j + begin + i step]
    times element `kernel[i]`, for pixel j."""

    first: int
    count: int
    kernel: tuple[int, ...]
    begin: int
    step: int

    def border(self, size: int) -> int:
        """The zeros that x needs at each end."""
        if not self.kernel:
            return 0
        return max(0, -self.begin, self.begin + (len(self.kernel) - 1) * self.step + self.count - size)


def taps_of(out: int, kernel: int, stride: int, padding: int, dilation: int) -> list[Taps]:
    """The phases of one dimension that have pixels."""
    found = []
    for phase in range(stride):
        first = (phase - padding) % stride
        used = [k for k in reversed(range(kernel)) if k * dilation % stride == phase]
        if first < out:
            begin = (first + padding - used[0] * dilation) // stride if used else 0
            step = dilation // gcd(stride, dilation)
            found.append(Taps(first, -(-(out - first) // stride), tuple(used), begin, step))
    return found


def phases_of(call: Call) -> tuple[list[Taps], list[Taps], Pair]:
    """(taps of rows, taps of columns, stride) of a call of conv_input_grad."""
    _, weight, size, stride, padding, dilation, _ = call.args
    sizes, strides = pair(size, 1), pair(stride, 1)
    kernel, before, far = pair(weight.shape[2:], 1), pair(padding, 0), pair(dilation, 1)
    rows, columns = (taps_of(sizes[d], kernel[d], strides[d], before[d], far[d]) for d in (0, 1))
    return rows, columns, strides


def border_of(call: Call) -> tuple[int, ...] | None:
    """The border of zeros around the input of a transposed convolution; None for other calls."""
    if not call.runs(conv_input_grad) or len(call.args[2]) > 2:
        return None
    return (0, 0, *border(call)[-len(call.args[2]) :])


def border(call: Call) -> Pair:
    rows, columns, _ = phases_of(call)
    high, wide = pair(call.args[0].shape[2:], 1)
    return max([t.border(high) for t in rows]), max([t.border(wide) for t in columns])


@anchor(conv_input_grad)
def transposed(low: Lowering, group: Group) -> None:
    call = group.anchor
    x, weight, *_, groups = call.args
    if x.dtype != np.float32 or not low.schedule.is_known(weight) or not call.outs[0].size or not weight.size:
        raise NotNative("a transposed convolution of other dtypes, or with computed weights")
    if groups > 1 and weight.shape[1] < LEAST_CHANNELS:
        raise NotNative("a transposed convolution with many small groups")
    rows, columns, stride = phases_of(call)
    around = border(call)
    place = with_border(low, x, around)
    low.make(group.out, channels_last(len(group.out.shape)), [])
    phases = [Phase(low, group, inside(place, around), (y, x), stride) for y in rows for x in columns]
    step = low.step()
    for phase in phases:
        phase.begin(step)
        phase.write()


def inside(place: Place, around: Pair) -> Place:
    """The place of the first pixel inside the border."""
    moved = sum([n * s for n, s in zip(around, place.strides[2:])])
    return Place(place.buffer, place.shape, place.dtype, place.strides, place.offset + moved)


class Phase(Direct):
    """The pixels of one phase in each dimension."""

    def __init__(self, low: Lowering, group: Group, source: Place, taps: tuple[Taps, Taps], stride: Pair):
        self.taps, self.between = taps, stride
        groups = group.anchor.args[-1]
        counts = len(taps[0].kernel), len(taps[1].kernel)
        window = Window(counts, (1, 1), (0, 0), (taps[0].step, taps[1].step), groups)
        moved = sum([t.begin * s for t, s in zip(taps, source.strides[2:])])
        source = Place(source.buffer, source.shape, source.dtype, source.strides, source.offset + moved)
        super().__init__(low, group, source, window, (taps[0].count, taps[1].count))

    def sizes_of_group(self, weight: Value) -> Pair:
        return weight.shape[1], weight.shape[0] // self.window.groups

    def matrices(self, w: np.ndarray) -> list[np.ndarray]:
        rows, columns = (np.asarray(t.kernel, np.intp) for t in self.taps)
        w = w if w.ndim == 4 else w[:, :, None]
        used = w[:, :, rows[:, None], columns]
        return [p.transpose(2, 3, 0, 1).reshape(-1, p.shape[1]) for p in np.split(used, self.window.groups)]

    def one(
        self, panel: llvm.Value, at: tuple, tile: Pair, depth: Number, channel: Number, spans: list[int], biases: list
    ) -> None:
        if all(self.window.kernel):
            super().one(panel, at, tile, depth, channel, spans, biases)
            return
        n, y, x = at
        zero = self.f.number(FLOAT, 0.0, self.width)
        for j, i, v in np.ndindex(*tile, len(spans)):
            where = n, self.f.whole(y) + j, self.f.whole(x) + i, channel + v * self.width
            self.finish(zero, where, spans[v])

    def finish(self, x: llvm.Value, at: tuple[Any, Any, Any, Any], valid: int) -> None:
        n, row, column, channel = at
        places = [self.f.whole(i) * s + t.first for i, s, t in zip((row, column), self.between, self.taps)]
        super().finish(x, (n, *places, channel), valid)
