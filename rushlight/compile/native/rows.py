"""Rows that become other rows: softmax, layer norm and group norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rushlight.compile.graph import Call, Value
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, Pieces, index, load
from rushlight.compile.native.lowering import Lowering, Step, anchor
from rushlight.compile.native.places import Place
from rushlight.compile.native.row_loops import F32, SQUARES, SUM, TOP, Fold, Row, Rows, Source, read_before
from rushlight.compile.native.schedule import Group
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, call_intrinsic
from rushlight.ops.nn.normalization import group_norm, layer_norm
from rushlight.ops.reduce import reduce

SINGLE = np.dtype(np.float32)


@anchor(reduce.softmax)
def softmax(low: Lowering, group: Group) -> None:
    x, dim = group.anchor.args

    def row(r: Row, space: Space) -> None:
        (top,) = r.sweep(None, TOP)
        (total,) = r.sweep(lambda v: F32["exp"](v - top), SUM)
        inverse = 1.0 / total
        r.end(lambda v, lanes: space.finish(v * inverse, lanes))

    changed(low, group, [dim], row)


@anchor(reduce.log_softmax)
def log_softmax(low: Lowering, group: Group) -> None:
    x, dim = group.anchor.args

    def row(r: Row, space: Space) -> None:
        (top,) = r.sweep(None, TOP)
        (total,) = r.sweep(lambda v: v - top, Fold(0.0, llvm.Value.__add__, F32["exp"]))
        log = F32["log"](total)
        r.end(lambda v, lanes: space.finish(v - log, lanes))

    changed(low, group, [dim], row)


@anchor(layer_norm)
def layer_norm_(low: Lowering, group: Group) -> None:
    x, weight, bias, dims, eps = group.anchor.args
    changed(low, group, dims, lambda row, space: normalized(row, space, eps), weight, bias)


@anchor(group_norm)
def group_norm_(low: Lowering, group: Group) -> None:
    """Rows in the space (N, groups, channels of a group, ...)."""
    x, weight, bias, groups, eps = group.anchor.args
    dims = range(2, len(x.shape) + 1)
    changed(low, group, dims, lambda row, space: normalized(row, space, eps), weight, bias, groups)


def normalized(row: Row, space: Space, eps: float) -> None:
    """(x - mean) / sqrt(var + eps) weight + bias; the variance is the mean square of x - mean."""
    n = float(row.rows.row_numbers)
    mean = row.sweep(None, SUM)[0] / n
    var = row.sweep(lambda v: v - mean, SQUARES)[0] / n
    inverse = 1.0 / call_intrinsic("sqrt", var + eps)

    def finish(v: llvm.Value, lanes: Lanes) -> None:
        v = v * inverse
        for k, operate in ((0, llvm.Value.__mul__), (1, llvm.Value.__add__)):
            factor = space.factor(k, lanes)
            v = v if factor is None else operate(v, factor)
        space.finish(v, lanes)

    row.end(finish)


class Space:
    """The arrays of a group whose anchor changes rows: in x's shape, or with channels in groups, where dimension 1
    counts as two."""

    def __init__(self, step: Step, group: Group, groups: int, factors: Sequence[Place | None]):
        self.step, self.made, self.groups, self.factors = step, group.anchor.outs[0], groups, factors
        self.shape = group.out.shape
        self.pieces = Pieces(step, group, self.shape)
        self.factor_strides = [None if f is None else f.spread(self.shape) for f in factors]

    def all_strides(self) -> list[tuple[int, ...]]:
        own = [self.pieces.out_strides, *self.pieces.strides.values(), *filter(None, self.factor_strides)]
        return [split(s, self.shape, self.groups) for s in own]

    def joined(self, lanes: Lanes) -> Lanes:
        """The lanes in x's shape."""
        if not self.groups:
            return lanes
        first, g, channel, *rest = lanes.at
        channel = self.step.f.whole(g) * (self.shape[1] // self.groups) + channel
        along = lanes.along if lanes.along < 2 else lanes.along - 1  # groups in the lanes have one channel each
        return Lanes([first, channel, *rest], along, lanes.count, lanes.valid)

    def factor(self, k: int, lanes: Lanes) -> llvm.Value | None:
        """The weight or the bias at the lanes."""
        place, strides, lanes = self.factors[k], self.factor_strides[k], self.joined(lanes)
        if place is None or strides is None:
            return None
        where = index(place.offset, lanes.at, strides)
        return load(self.step.f, self.step.pointer(place), where, FLOAT, strides[lanes.along], lanes)

    def finish(self, x: llvm.Value, lanes: Lanes) -> None:
        self.pieces.finish({self.made: x}, self.joined(lanes))


def split(strides: tuple[int, ...], shape: tuple[int, ...], groups: int) -> tuple[int, ...]:
    """Strides of (N, C, ...) as strides of (N, groups, C / groups, ...); unchanged without groups."""
    if not groups:
        return strides
    first, channel, *rest = strides
    return first, channel * (shape[1] // groups), channel, *rest


def in_groups(x: Place, groups: int) -> Place:
    """The place of x, with channels in groups."""
    if not groups:
        return x
    sizes = x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]
    return Place(x.buffer, sizes, x.dtype, split(x.strides, x.shape, groups), x.offset)


def changed(
    low: Lowering,
    group: Group,
    dims: Sequence[int],
    row: Callable[[Row, Space], None],
    weight: Value | None = None,
    bias: Value | None = None,
    groups: int = 0,
) -> None:
    """row(row, space) for each row of x along `dims` of the space."""
    x = group.anchor.args[0]
    if x.dtype != SINGLE or not x.shape or used_later(low, group.anchor):
        raise NotNative("rows of other dtypes, or with results beside")
    factors = [None if v is None else factor_place(low, v, len(x.shape) if groups else 0) for v in (weight, bias)]
    step, source = begun(low, group, range(len(x.shape)), groups)
    for p in filter(None, factors):
        low.memory.use(p.buffer)
    space = Space(step, group, groups, factors)
    dims = dims_of([*dims], len(x.shape) + bool(groups))
    Rows(step, source, dims, space.all_strides(), lambda r: row(r, space)).write()


def factor_place(low: Lowering, v: Value, channels_of: int) -> Place:
    """A weight or a bias, broadcast from the right; (C,) along dimension 1 of `channels_of` dimensions if given."""
    if v.dtype != SINGLE:
        raise NotNative("a weight of another dtype")
    place = low.place(v)
    if channels_of:
        ones = (1,) * (channels_of - 2)
        return Place(place.buffer, place.shape + ones, place.dtype, place.strides + (0,) * len(ones), place.offset)
    return place


def begun(low: Lowering, group: Group, dims: Sequence[int], groups: int = 0) -> tuple[Step, Source]:
    """The step of a group, with memory for the result in the order of x's dimensions `dims`, and the rows' numbers.
    groups: see `Space`."""
    x = group.anchor.args[0]
    read = [low.place(v) for v in (read_before(group) if group.before else [x])]
    place = next(p for p in read if p.shape == x.shape)
    low.make(group.out, ordered(place, dims))
    step = low.step()
    for p in read:
        low.memory.use(p.buffer)
    place = in_groups(place, groups)
    return step, Source(step, group, place.shape, None if group.before else place)


def dims_of(dim: int | Sequence[int] | None, n: int) -> list[int]:
    """The reduced dimensions; all for None."""
    if dim is None:
        return [*range(n)]
    return sorted({d % n for d in ([dim] if isinstance(dim, int) else dim)} if n else ())


def ordered(x: Place, dims: Sequence[int]) -> tuple[int, ...]:
    """The numbers of x's dimensions `dims`, in the order of x's memory."""
    return tuple(sorted(range(len(dims)), key=lambda k: (-x.strides[dims[k]], k)))


def used_later(low: Lowering, anchor_: Call) -> bool:
    """Whether a step reads a result beside the first."""
    return any(low.schedule.uses.get(v) for v in anchor_.outs[1:])
