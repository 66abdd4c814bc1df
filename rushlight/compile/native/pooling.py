"""Pooling of channels-last pixels, a lane for each channel: maxima without indices, and means."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.compile.graph import Value
from rushlight.compile.native.convolution import pair
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, Pieces, index, over_vectors
from rushlight.compile.native.loop_nest import load as load_lanes
from rushlight.compile.native.lowering import Lowering, anchor, channels_last
from rushlight.compile.native.places import Place
from rushlight.compile.native.schedule import Group
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, Number
from rushlight.loops.llvm_math import functions
from rushlight.ops.nn import pool

Range = tuple[Number, Number]
Load = Callable[[Number, Number], llvm.Value]  # (row, column) -> a vector of channels


@anchor(pool.max_pool)
def max_pool(low: Lowering, group: Group) -> None:
    """The largest number of each window. A window at the edge reads the pixels at the edge again, which does not change
    the maximum."""
    x, kernel, stride, padding, dilation, ceil_mode = group.anchor.args
    if low.schedule.uses.get(group.anchor.outs[1]) or x.dtype != np.float32 or len(x.shape) not in (3, 4):
        raise NotNative("a pooling of other dtypes, or with indices")
    (kh, kw), (sy, sx), (py, px), (dy, dx) = (
        pair(kernel, 1), pair(stride, 1), pair(padding, 0), pair(dilation, 1)
    )  # fmt: skip
    (rows, columns) = pair(x.shape[2:], 1)
    at_edge = bool(py or px or ceil_mode)
    maximum = functions("float32")["maximum"]

    def clipped(i: Number, size: int, f: llvm.Function) -> Number:
        if not at_edge:
            return i
        i = f.whole(i)
        return llvm.select(i < 0, i * 0, llvm.smaller(i, size - 1))

    def pixel(load: Callable[[Number, Number], llvm.Value], f: llvm.Function, y: Number, xx: Number) -> llvm.Value:
        found = None
        for i in range(kh):
            for j in range(kw):
                row = clipped(f.whole(y) * sy + (i * dy - py), rows, f)
                value = load(row, clipped(f.whole(xx) * sx + (j * dx - px), columns, f))
                found = value if found is None else maximum(found, value)
        assert found is not None
        return found

    over_windows(low, group, x, pixel)


@anchor(pool.avg_pool)
def avg_pool(low: Lowering, group: Group) -> None:
    x, kernel, stride, padding, ceil_mode, with_border, divisor = group.anchor.args
    if x.dtype != np.float32 or len(x.shape) not in (3, 4):
        raise NotNative("a mean of other dtypes, or of three dimensions")
    (kh, kw), (sy, sx) = pair(kernel, 1), pair(stride, 1)
    factor = 1 / (divisor or kh * kw)

    def pixel(load: Load, f: llvm.Function, y: Number, xx: Number) -> llvm.Value:
        values = [load(f.whole(y) * sy + i, f.whole(xx) * sx + j) for i in range(kh) for j in range(kw)]
        return sum(values[1:], start=values[0]) * factor

    edges = [*zip(pair(x.shape[2:], 1), (kh, kw), (sy, sx), pair(padding, 0))]

    def at_edge(load: Load, f: llvm.Function, y: Number, xx: Number) -> llvm.Value:
        """Elements in the border count, but are 0; elements behind the border do not count."""
        windows, counts = [], []
        for i, (size, k, s, p) in zip((y, xx), edges):
            first = f.whole(i) * s - p
            inside = larger(first, 0), llvm.smaller(first + k, size)
            windows.append(inside)
            counts.append(llvm.smaller(first + k, size + p) - first if with_border else inside[1] - inside[0])
        return mean(load, f, windows, f.whole(divisor) if divisor else counts[0] * counts[1])

    over_windows(low, group, x, at_edge if any(padding) or ceil_mode else pixel)


@anchor(pool.adaptive_avg_pool)
def adaptive_avg_pool(low: Lowering, group: Group) -> None:
    """The mean of windows, whose sizes differ if the result's size does not divide the image's."""
    x, size = group.anchor.args
    if x.dtype != np.float32 or len(x.shape) not in (3, 4):
        raise NotNative("a mean of other dtypes, or of three dimensions")
    sizes = [*zip(pair(x.shape[2:], 1), pair(tuple(size), 1))]

    def pixel(load: Load, f: llvm.Function, y: Number, xx: Number) -> llvm.Value:
        windows: list[Range] = []
        count: Number = 1
        for i, (n, m) in zip((f.whole(y), f.whole(xx)), sizes):
            windows.append((i * n // m, ((i + 1) * n + (m - 1)) // m) if n % m else (i * (n // m), (i + 1) * (n // m)))
            count = (windows[-1][1] - windows[-1][0] if n % m else n // m) * count
        return mean(load, f, windows, count)

    over_windows(low, group, x, pixel)


def larger(x: llvm.Value, y: int) -> llvm.Value:
    return llvm.select(x > y, x, y)


def mean(load: Load, f: llvm.Function, windows: list[Range], count: Number) -> llvm.Value:
    """The sum of a window divided by a number. `windows`: the ranges of rows and columns."""
    width, columns = f.module.target.lanes, windows[1]

    def line(row: Number, total: llvm.Value) -> list[llvm.Value]:
        return f.loop(*columns, 1, lambda column, t: [t + load(row, column)], [total])

    (total,) = f.loop(*windows[0], 1, line, [f.number(FLOAT, 0.0, width)])
    return total * (1 / count) if isinstance(count, int) else total / llvm.converted(f.whole(count), FLOAT)


def over_windows(low: Lowering, group: Group, x: Value, pixel: Callable[..., llvm.Value]) -> None:
    """Each pixel of the result, a vector of channels at a time. `pixel(load, f, y, x)`: its value; load(row, column):
    the vector of an input's pixel."""
    place = low.place(x)
    shape = group.out.shape
    low.make(group.out, channels_last(len(shape)), [])
    step = low.step()
    low.memory.use(place.buffer)
    f, pieces, made = step.f, Pieces(step, group, shape), group.anchor.outs[0]
    rows, columns = pair(shape[2:], 1)
    pointer, width = step.pointer(place), f.module.target.lanes
    strides = image_strides(place)

    def vector(n: Number, y: Number, xx: Number, channel: Number, valid: int) -> None:
        lanes = Lanes([], 0, width, valid)

        def load(row: Number, column: Number) -> llvm.Value:
            where = index(place.offset, [n, channel, row, column], strides)
            return load_lanes(f, pointer, where, FLOAT, strides[1], lanes)

        at = [n, channel, xx] if len(shape) == 3 else [n, channel, y, xx]
        pieces.finish({made: pixel(load, f, y, xx)}, Lanes(at, 1, width, valid))

    def line(k: Number) -> None:
        n, y = (f.whole(k) // rows, f.whole(k) % rows) if rows > 1 else (f.whole(k), f.whole(0))

        def column(xx: Number) -> None:
            over_vectors(f, (0, shape[1]), shape[1], lambda c, _, valid: vector(n, y, xx, c, valid))

        f.loop(0, columns, 1, column)

    start, stop = step.share(shape[0] * rows)
    f.loop(start, stop, 1, line)


def image_strides(place: Place) -> tuple[int, ...]:
    """Strides of (n, channel, row, column)."""
    s = place.strides
    return (s[0], s[1], 0, s[2]) if len(s) == 3 else s
