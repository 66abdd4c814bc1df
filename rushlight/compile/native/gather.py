"""Elements at places that other arrays give: rows of a table, index tensors, and fixed places as in flips, repeats and
resizing.

    out[at] = sum over the taps of weight[at] x[.., index[at], ..]

An index out of range becomes 0, and the program refuses the input (`Lowering.fail`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rushlight.compile.graph import Value
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, Pieces, index, over_space, over_vectors
from rushlight.compile.native.loop_nest import load as load_lanes
from rushlight.compile.native.lowering import Lowering, Step, anchor
from rushlight.compile.native.places import Place, row_major
from rushlight.compile.native.schedule import Group
from rushlight.kernels import pad_modes, resize, shape
from rushlight.kernels.index import HERE
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, INT64, TYPES, Number
from rushlight.ops.index import along_dim
from rushlight.ops.index.index_tensors import index as index_tensors
from rushlight.ops.nn import pool
from rushlight.ops.nn.resize import blend as blend_op
from rushlight.ops.shape import pad, views


@dataclass
class Lookup:
    """An array of indices. `strides`: of the array in the result's space; `stride`: of x along the indexed dimension,
    of `size` elements; `checks`: indices may be out of range; `wraps`: negative indices count from the end."""

    place: Place
    strides: tuple[int, ...]
    stride: int
    size: int
    checks: bool = True
    wraps: bool = False


@dataclass
class Tap:
    """Elements of x, with a weight for each place of the space; `strides`: of x in the result's space, 0 along the
    dimensions that indices replace."""

    x: Place
    strides: tuple[int, ...]
    lookups: list[Lookup]
    weight: Place | None = None


# -- index tensors -------------------------------------------------------------------------------------------------


@anchor(along_dim.embedding)
def embedding(low: Lowering, group: Group) -> None:
    """weight (n, D), index (...) -> (..., D)."""
    table, at, *_ = group.anchor.args
    if len(table.shape) != 2:
        raise NotNative("a table of rows that are no vectors")
    x, n = low.place(table), len(at.shape)
    lookup = Lookup(indices(low, at), (*low.place(at).strides, 0), x.strides[0], x.shape[0])
    Picks(low, group, [Tap(x, (*(0,) * n, x.strides[1]), [lookup])]).write()


@anchor(along_dim.index_select)
def index_select(low: Lowering, group: Group) -> None:
    """x (.., n, ..), index (k,) -> (.., k, ..)."""
    v, at, dim = group.anchor.args
    if not v.shape:
        raise NotNative("an index of a number")
    x, place, dim = low.place(v), indices(low, at), dim % len(v.shape)
    own = tuple([s if d == dim else 0 for d, s in enumerate([(*place.strides, 0)[0]] * len(x.shape))])
    Picks(low, group, [Tap(x, without(x.strides, dim), [Lookup(place, own, x.strides[dim], x.shape[dim])])]).write()


@anchor(along_dim.gather)
def gather(low: Lowering, group: Group) -> None:
    """x and index with the same number of dimensions -> the shape of the index."""
    v, at, dim = group.anchor.args
    if not v.shape or len(at.shape) != len(v.shape):
        raise NotNative("an index of a number")
    x, place, dim = low.place(v), indices(low, at), dim % len(v.shape)
    if any(k > n for d, (k, n) in enumerate(zip(at.shape, v.shape)) if d != dim):
        raise NotNative("an index with more elements than x")
    lookup = Lookup(place, place.strides, x.strides[dim], x.shape[dim])
    Picks(low, group, [Tap(x, without(x.strides, dim), [lookup])]).write()


@anchor(index_tensors)
def key_of_tensors(low: Lowering, group: Group) -> None:
    """x[key], where the key has full slices, an ellipsis, and index tensors side by side."""
    v, tensors, key = group.anchor.args
    full = slice(None)
    if any(part is not HERE and part is not Ellipsis and part != full for part in key):
        raise NotNative("a key with numbers or slices")
    left = len(v.shape) - sum(part is not Ellipsis for part in key)
    at = next((i for i, part in enumerate(key) if part is Ellipsis), len(key))
    parts = [*key[:at], *[full] * left, *key[at + 1 :]]
    dims = [d for d, part in enumerate(parts) if part is HERE]
    if dims != [*range(dims[0], dims[0] + len(dims))] or len(tensors) != len(dims):
        raise NotNative("index tensors with dimensions between them")
    x, places = low.place(v), [indices(low, t) for t in tensors]
    shape_ = np.broadcast_shapes(*[p.shape for p in places])
    before, after = dims[0], len(v.shape) - dims[-1] - 1
    lookups = [
        Lookup(p, (*(0,) * before, *p.spread(shape_), *(0,) * after), x.strides[d], x.shape[d], wraps=True)
        for d, p in zip(dims, places)
    ]
    strides = (*x.strides[:before], *(0,) * len(shape_), *x.strides[dims[-1] + 1 :])
    Picks(low, group, [Tap(x, strides, lookups)]).write()


def indices(low: Lowering, v: Value) -> Place:
    if v.dtype != np.int64:
        raise NotNative(f"an index of {v.dtype}")
    return low.place(v)


def without(strides: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return tuple([0 if d == dim else s for d, s in enumerate(strides)])


# -- fixed places --------------------------------------------------------------------------------------------------


@anchor(views.flip)
def flip(low: Lowering, group: Group) -> None:
    x, dims = group.anchor.args
    turned = {d % len(x.shape) for d in dims} if x.shape else set()
    fixed(low, group, {d: np.arange(x.shape[d])[::-1] for d in turned})


@anchor(views.rolled)
def rolled(low: Lowering, group: Group) -> None:
    x, moves, axes, *back = group.anchor.args
    found: dict[int, np.ndarray] = {}
    for move, d in zip(moves, axes):
        found[d] = shape.rolled(found.get(d, np.arange(x.shape[d])), (move,), (0,), *back)
    fixed(low, group, found)


@anchor(views.repeat)
def repeat(low: Lowering, group: Group) -> None:
    x, counts = group.anchor.args
    more = len(counts) - len(x.shape)
    tables = {d: np.tile(np.arange(n), r) for d, (n, r) in enumerate(zip((1,) * more + x.shape, counts)) if r != 1}
    fixed(low, group, tables, more)


@anchor(pad.bordered)
def bordered(low: Lowering, group: Group) -> None:
    x, mode, amounts = group.anchor.args
    pairs = [(d, pair) for d, pair in enumerate(amounts) if any(pair)]
    fixed(low, group, {d: pad_modes.bordered(np.arange(x.shape[d]), mode, (pair,)) for d, pair in pairs})


@anchor(pool.avg_pool_grad)
def spread_mean(low: Lowering, group: Group) -> None:
    """Each element fills a window, without overlap: resizing to the nearest element."""
    x, size, kernel, stride, padding, _, _, divisor = group.anchor.args
    if tuple(kernel) != tuple(stride) or any(padding) or divisor != 1:
        raise NotNative("windows that overlap")
    sizes = x.shape[2:]
    if any(n * k != m for n, k, m in zip(sizes, kernel, size)):
        raise NotNative("windows at the edge")
    fixed(low, group, {d + 2: np.arange(m) // k for d, (k, m) in enumerate(zip(kernel, size)) if k > 1})


@anchor(blend_op)
def blend(low: Lowering, group: Group) -> None:
    """Weighted sums of a few elements along one dimension."""
    v, dim, how, *back = group.anchor.args
    table = resize.table(how, *back or (False,))
    plain = all(w is None for w in table.weights)
    if any(outs is not None for outs in table.outs) or not (
        v.dtype == np.float32 or (plain and len(table.places) == 1)
    ):
        raise NotNative("a transposed table, or sums in another dtype")
    x, dim = low.place(v), dim % len(v.shape)
    taps = [
        Tap(x, without(x.strides, dim), [along(low, x, dim, at)], weights_along(low, x, dim, w))
        for at, w in zip(table.places, table.weights)
    ]
    Picks(low, group, taps).write()


def fixed(low: Lowering, group: Group, tables: dict[int, np.ndarray], more: int = 0) -> None:
    """The elements of the first argument at fixed places along each dimension. `more`: new dimensions before it."""
    x = low.place(group.anchor.args[0])
    x = Place(x.buffer, (1,) * more + x.shape, x.dtype, (0,) * more + x.strides, x.offset)
    strides = tuple([0 if d in tables or x.shape[d] == 1 else s for d, s in enumerate(x.strides)])
    lookups = [along(low, x, d, at) for d, at in tables.items() if x.shape[d] > 1]
    Picks(low, group, [Tap(x, strides, lookups)]).write()


def along(low: Lowering, x: Place, dim: int, at: np.ndarray) -> Lookup:
    """Fixed indices of one dimension."""
    return Lookup(*constant(low, at.astype(np.int64), dim, len(x.shape)), x.strides[dim], x.shape[dim], checks=False)


def weights_along(low: Lowering, x: Place, dim: int, weights: np.ndarray | None) -> Place | None:
    if weights is None:
        return None
    place, strides = constant(low, weights.astype(x.dtype), dim, len(x.shape))
    place.strides = strides
    return place


def constant(low: Lowering, array: np.ndarray, dim: int, n: int) -> tuple[Place, tuple[int, ...]]:
    """(the place of a fixed array, its strides in a space of n dimensions, along `dim`)."""
    place = Place(low.derived(lambda: array, ()), array.shape, array.dtype, row_major(array.shape))
    return place, tuple([int(d == dim) for d in range(n)])


# -- loops ---------------------------------------------------------------------------------------------------------


class Picks:
    """The loops over the result of a group whose anchor picks elements.

    Indices that are the same for all lanes are loaded before the innermost loop."""

    def __init__(self, low: Lowering, group: Group, taps: list[Tap]):
        self.low, self.group, self.taps, self.shape = low, group, taps, group.out.shape
        self.made = group.anchor.outs[0]
        if any(0 in tap.x.shape for tap in taps):
            raise NotNative("elements of an empty array")
        first = taps[0].x.strides
        same = len(first) == len(self.shape) and group.out not in low.likes
        low.make(group.out, tuple(sorted(range(len(first)), key=lambda d: (-first[d], d))) if same else None, [])

    def write(self) -> None:
        self.step = step = self.low.step()
        self.f, self.pieces = step.f, Pieces(step, self.group, self.shape)
        self.pointers = [step.pointer(tap.x) for tap in self.taps]
        lookups = [k for tap in self.taps for k in tap.lookups]
        self.tables = {id(k): step.pointer(k.place) for k in lookups}
        self.weights = [None if tap.weight is None else step.pointer(tap.weight) for tap in self.taps]
        strides = [self.pieces.out_strides, *self.pieces.strides.values(), *[tap.strides for tap in self.taps]]
        strides += [k.strides for k in lookups] + [tap.weight.strides for tap in self.taps if tap.weight]
        self.rows: list[tuple[Number, list[Lookup]]] = []
        over_space(step, self.shape, strides, self.vector, self.line)

    def line(self, at: Sequence[Number], along: int | None) -> None:
        """For each tap: the place of the first element of a line, and the lookups that vary along the line."""
        self.rows = []
        for tap in self.taps:
            varying = [k for k in tap.lookups if along is not None and k.strides[along]]
            where: Number = index(tap.x.offset, at, tap.strides)
            for k in tap.lookups:
                if k not in varying:
                    where = self.index_of(k, Lanes(at, 0, 0, 1), 0) * k.stride + where
            self.rows.append((where, varying))

    def vector(self, lanes: Lanes) -> None:
        """The sum of the taps, the elementwise steps and the store."""
        total: Any = None
        for tap, pointer, weights, (first, varying) in zip(self.taps, self.pointers, self.weights, self.rows):
            found = self.elements(tap, pointer, first, varying, lanes)
            if weights is not None:
                assert tap.weight is not None
                where = index(tap.weight.offset, lanes.at, tap.weight.strides)
                w = load_lanes(self.f, weights, where, TYPES["float32"], tap.weight.strides[lanes.along], lanes)
                found = found * w if total is None else llvm.multiply_add(*found.meets(w), total)
            elif total is not None:
                found = found + total
            total = found
        self.pieces.finish({self.made: total}, lanes)

    def elements(self, tap: Tap, pointer: llvm.Value, first: Number, varying: list[Lookup], lanes: Lanes) -> llvm.Value:
        kind, step = TYPES[tap.x.dtype.name], tap.strides[lanes.along] if tap.strides else 0
        i = lanes.at[lanes.along] if lanes.at else 0
        where = first + i * step if step else first
        if not varying:
            return load_lanes(self.f, pointer, where, kind, step, lanes)
        moves = [self.index_of(k, lanes, lanes.count) * k.stride for k in varying]
        move = sum(moves[1:], start=moves[0])
        if not lanes.count:
            return self.f.load(pointer, move + where, kind)
        numbers = [self.f.load(pointer, llvm.lane(move, k) + where + k * step, kind) for k in range(lanes.valid)]
        return llvm.stacked(numbers + numbers[:1] * (lanes.count - lanes.valid))

    def index_of(self, k: Lookup, lanes: Lanes, count: int) -> llvm.Value:
        """Indices in range: one, or a vector."""
        f, place = self.f, k.place
        where = index(place.offset, lanes.at, k.strides)
        stride = k.strides[lanes.along] if count else 0
        kind = TYPES[place.dtype.name]
        found = llvm.converted(load_lanes(f, self.tables[id(k)], where, kind, stride, lanes), INT64)
        return in_range(self.low, self.step, found, k.size, k.wraps) if k.checks else found


def in_range(low: Lowering, step: Step, found: llvm.Value, size: int, wraps: bool = False) -> llvm.Value:
    """Indices, with 0 in place of an index out of range, for which the program refuses its input."""
    if wraps:
        found = llvm.select(found < 0, found + size, found)
    bad = (found < 0) | (found >= size)
    low.fail(step, llvm.total(bad, llvm.Value.__or__))
    return llvm.select(bad, 0, found)


# -- sums of rows --------------------------------------------------------------------------------------------------


@anchor(along_dim.rows_summed)
def rows_summed(low: Lowering, group: Group) -> None:
    """out[land[i]] += x[take[i]]; x (m, D), take and land (k,) -> (n, D)."""
    table, *places, n = group.anchor.args
    if table.dtype != np.float32 or not table.size or not n:
        raise NotNative("sums of rows of other dtypes, or of an empty table")
    x, (take, land), size = low.contiguous(table), [indices(low, v) for v in places], table.shape[1]
    out = group.anchor.outs[0]
    sums = Place(low.memory.scratch(n * size, out.dtype), out.shape, out.dtype, row_major(out.shape))
    low.memory.places[out] = sums
    step = low.step()
    for place in (x, take, land):
        low.memory.use(place.buffer)
    step.alone(lambda: add_rows(low, step, (x, sums), (take, land)))
    low.write_rest(group, Group(group.anchor, [], out) if group.steps else group)


def add_rows(low: Lowering, step: Step, tables: tuple[Place, Place], places: tuple[Place, Place]) -> None:
    """sums = 0, then sums[land[i]] += x[take[i]]. `tables`: x and the sums; `places`: take and land."""
    f, width, (count, size) = step.f, low.module.target.lanes, tables[1].shape
    (x, sums), zero = map(step.pointer, tables), f.number(FLOAT, 0.0, width)

    def over(size: int, body: Callable[[Number, int], None]) -> None:
        over_vectors(f, (0, size), size, lambda c, _, valid: body(c, valid))

    def add(i: Number) -> None:
        found = [f.load(step.pointer(p), index(p.offset, [i], p.strides), INT64) for p in places]
        frm, to = (in_range(low, step, at, p.shape[0]) * size + p.offset for at, p in zip(found, tables))

        def vector(c: Number, valid: int) -> None:
            old, new = (f.load(p, first + c, FLOAT, width, valid) for p, first in ((sums, to), (x, frm)))
            f.store(old + new, sums, to + c, valid)

        over(size, vector)

    over(count * size, lambda c, valid: f.store(zero, sums, c, valid))
    f.loop(0, places[0].shape[0], 1, add)
