"""Loops over rows of numbers that become one number, or that are read several times (a softmax).

A row runs along the reduced dimensions; there is a row for each place in the others. Lanes lie within a row if its
numbers are neighbours in memory; otherwise the lanes are neighbouring rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from rushlight.compile.native.elements import computed
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, index, load, merged
from rushlight.compile.native.lowering import Step
from rushlight.compile.native.places import Place
from rushlight.compile.native.schedule import Group, outside
from rushlight.compile.passes.simplify import uniform
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, REALS, TYPES, Function, Number, Type, Value, call_intrinsic
from rushlight.loops.llvm_math import functions

UNROLL = 4  # vectors of a long row in one round, each with sums of its own
ROOM_NUMBERS = 1 << 16  # a longer row is computed again in each sweep instead of being kept
COLUMNS = 8  # vectors of rows that are folded together: a line of the cache after the other is read
LONGEST_ROW = 1 << 18  # sums of more numbers would lose digits
Change = Callable[[Value], Value]


@dataclass(frozen=True)
class Fold:
    """The function from a row to a number: combine(...combine(start, of(x0)), of(x1)...). `placed`: of(x, place)."""

    start: float
    combine: Callable[[Value, Value], Value]
    of: Callable[..., Value] = lambda x: x
    placed: bool = False


def larger(x: Value, y: Value) -> Value:
    """The larger number in one instruction. A nan in x is passed over."""
    return llvm.select(x > y, x, y)


F32 = functions("float32")
SUM, PRODUCT = Fold(0.0, Value.__add__), Fold(1.0, Value.__mul__)
SQUARES = Fold(0.0, Value.__add__, lambda x: x * x)
LARGEST, SMALLEST = Fold(-np.inf, F32["maximum"]), Fold(np.inf, F32["minimum"])
TOP = Fold(-np.inf, larger)  # of numbers whose nan are found later


def lane_numbers(f: Function, kind: Type, count: int) -> Value:
    """The vector 0, 1, ..., count - 1."""
    numbers = ", ".join([f"{kind.name} {llvm.literal(kind, k)}" for k in range(count)])
    return Value(f, f"<{numbers}>", kind, count)


class Source:
    """The numbers of rows: elements of x, or elementwise steps on elements of several values. `shape`: of the space;
    `place`: x in the space."""

    def __init__(self, step: Step, group: Group, shape: tuple[int, ...], place: Place | None):
        self.step, self.steps, self.out = step, group.before, group.anchor.args[0]
        self.places = {self.out: place} if place else {v: step.place(v) for v in read_before(group)}
        self.strides = {v: p.spread(shape) for v, p in self.places.items()}
        self.x = place or next(p for p in self.places.values() if p.shape == shape)  # the layout that loops follow

    def read(self, lanes: Lanes) -> Value:
        """The numbers at a place."""
        f, known = self.step.f, {}
        for v, place in self.places.items():
            strides = self.strides[v]
            where, stride = index(place.offset, lanes.at, strides), strides[lanes.along] if lanes.count else 0
            known[v] = load(f, self.step.pointer(place), where, TYPES[v.dtype.name], stride, lanes)
        found = rounded(computed(f, self.steps, known)[self.out]) if self.steps else known[self.out]
        return llvm.repeated(found, lanes.count) if lanes.count and not found.lanes else found


def rounded(x: Value) -> Value:
    """The number as memory would hold it: its product is not part of a fused multiply-add. Otherwise the difference of
    equal products is not 0."""
    return call_intrinsic("arithmetic.fence", x) if x.kind in REALS else x


def read_before(group: Group) -> list[Any]:
    """The values that the steps before an anchor read from memory."""
    return [v for v in outside(group.before) if v.kind != "constant" or uniform(v) is None]


class Rows:
    """The rows of `source`. `strides`: of all other arrays, in x's dimensions; `body`: called with each row; `fold`:
    the only sweep of `body`, if it has one."""

    def __init__(
        self,
        step: Step,
        source: Source,
        reduced: Sequence[int],
        strides: Sequence[tuple[int, ...]],
        body: Callable,
        fold: Fold | None = None,
    ):
        self.fold, self.source = fold, source
        self.step, self.f, self.x, self.body = step, step.f, source.x, body
        self.width, self.target = step.f.module.target.lanes, step.f.module.target
        x = self.x
        order = sorted([d for d, n in enumerate(x.shape) if n > 1], key=lambda d: -x.strides[d])
        arrays = [*source.strides.values(), *strides]
        self.outer = merged([d for d in order if d not in reduced], x.shape, arrays)
        self.inner = merged([d for d in order if d in reduced], x.shape, arrays)
        self.at: list[Number] = [0] * max(len(x.shape), 1)
        self.in_row = self.lanes_in_row()
        loops = self.inner if self.in_row else self.outer
        self.along = loops[-1][1] if loops else 0
        self.count = self.width if loops else 0  # lanes; 0: single numbers
        if self.row_numbers > LONGEST_ROW or not prod(x.shape):
            raise NotNative("a row is empty or too long")

    @property
    def row_numbers(self) -> int:
        """The numbers of a row."""
        return prod([n for n, _ in self.inner])

    def lanes_in_row(self) -> bool:
        if not self.inner or not self.outer:
            return bool(self.inner)
        own, other = self.inner[-1][1], self.outer[-1][1]
        return self.x.strides[own] == 1 or self.x.strides[other] != 1

    def write(self) -> None:
        """Loops over all rows; threads share the outermost."""
        loops = [*self.outer]
        lanes = None if self.in_row or not loops else loops.pop()
        if not loops:
            if lanes is None:
                self.step.alone(lambda: self.last(None))
            else:
                self.last(lanes, shared=True)
            return

        def nested(depth: int) -> None:
            if depth == len(loops):
                self.last(lanes)
                return
            size, d = loops[depth]

            def one(i: Number) -> None:
                self.at[d] = i
                nested(depth + 1)

            start, stop = (0, size) if depth else self.step.share(size)
            self.f.loop(start, stop, 1, one)

        nested(0)

    def last(self, lanes: tuple[int, int] | None, shared: bool = False) -> None:
        """The innermost loop over rows, if lanes are rows; else one row. `shared`: threads share the whole blocks of
        rows."""
        if lanes is None:
            self.row(self.width)
            return
        size, d = lanes
        block = self.width if self.fold is None else self.width * COLUMNS
        whole = lambda i: self.row_at(d, i, self.width)
        start, stop = self.step.share(size // block) if shared else (0, size // block)
        self.f.loop(start, stop, 1, lambda j: (whole if self.fold is None else self.columns)(j * block))
        rest = size // block * block

        def others() -> None:
            end = size // self.width * self.width
            self.f.loop(rest, end, self.width, whole)
            if end < size:
                self.row_at(d, end, size - end)

        self.step.alone(others) if shared else others()

    def row_at(self, d: int, i: Number, valid: int) -> None:
        self.at[d] = i
        self.row(valid)

    def row(self, valid: int) -> None:
        """One row, or a vector of rows, of which `valid` exist."""
        vectors = -(-self.inner[-1][0] // self.width) if self.in_row else 0
        positions = prod([n for n, _ in self.inner[:-1]]) * vectors if self.in_row else self.row_numbers
        short = positions <= self.target.registers // 2
        self.body((ShortRow if short else LongRow)(self, valid, positions))
        for _, d in self.inner:
            self.at[d] = 0

    def columns(self, first: Number) -> None:
        """Some vectors of rows from row `first`, folded together."""
        fold, f = self.fold, self.f
        assert fold is not None

        def nested(dims: Sequence[tuple[int, int]], sums: Sequence[Value]) -> list[Value]:
            if not dims:
                made = []
                for k, total in enumerate(sums):
                    self.at[self.along] = first + k * self.width
                    made.append(fold.combine(fold.of(self.read(self.width)), total))
                return made
            (size, d), *inner = dims

            def one(i: Number, *sums: Value) -> list[Value]:
                self.at[d] = i
                return nested(inner, sums)

            return f.loop(0, size, 1, one, sums)

        for k, total in enumerate(nested(self.inner, [f.number(FLOAT, fold.start, self.width)] * COLUMNS)):
            self.at[self.along] = first + k * self.width
            self.body(Folded(self, self.width, total))

    def lanes(self, valid: int) -> Lanes:
        return Lanes([*self.at], self.along, self.count, valid)

    def read(self, valid: int) -> Value:
        """x at the present place."""
        return self.source.read(self.lanes(valid))

    def folded(self, fold: Fold, x: Value) -> Value:
        """One number for each row, of the folded vector."""
        return llvm.total(x, fold.combine) if self.in_row and self.count else x

    def folds(self, fold: Fold, x: Value, valid: int) -> Value:
        """The numbers to fold: of(x), and `start` behind the end of the row."""
        return self.only(fold.of(x, self.position()) if fold.placed else fold.of(x), valid, fold.start)

    def position(self) -> Value:
        """The places of the present numbers in the row, as floats."""
        if len(self.inner) > 1:
            raise NotNative("places in rows of several dimensions")
        place = self.at[self.inner[0][1]] if self.inner else 0
        first = self.f.number(FLOAT, place) if isinstance(place, int) else llvm.converted(place, FLOAT)
        return lane_numbers(self.f, FLOAT, self.width) + first if self.in_row else first

    def only(self, x: Value, valid: int, start: float) -> Value:
        """The vector with `start` behind the end of the row."""
        if not self.in_row or valid >= self.width or not x.lanes:
            return x
        inside = self.f.mask(FLOAT, valid, self.width)[1]
        return llvm.select(inside, x, self.f.number(FLOAT, start, self.width))


class Folded:
    """A vector of rows that is folded already."""

    def __init__(self, rows: Rows, valid: int, total: Value):
        self.rows, self.valid, self.total = rows, valid, total

    def sweep(self, change: Change | None, *folds: Fold) -> list[Value]:
        return [self.total]


class ShortRow:
    """A row in registers."""

    def __init__(self, rows: Rows, valid: int, positions: int):
        self.rows, self.valid = rows, valid
        self.places = [*self.all_places(valid)]
        self.values = [self.go(place, rows.read) for place in self.places]

    def all_places(self, valid: int) -> Iterator[tuple[list[int], int]]:
        """Where the row's vectors begin, and how many of the lanes exist."""
        rows = self.rows
        *outer, (last, _) = rows.inner or [(1, 0)]
        step = rows.width if rows.in_row else 1
        for start in product(*[range(n) for n, _ in outer], range(0, last, step)):
            yield [*start], min(rows.width, last - start[-1]) if rows.in_row else valid

    def go(self, place: tuple[list[int], int], body: Callable) -> Value:
        """body(valid) at a place of the row."""
        start, valid = place
        for (_, d), i in zip(self.rows.inner, start):
            self.rows.at[d] = i
        return body(valid)

    def sweep(self, change: Change | None, *folds: Fold) -> list[Value]:
        """Change all numbers, and fold them. Returns a number for each fold: a vector of them if lanes are rows."""
        if change is not None:
            self.values = [change(x) for x in self.values]
        made = []
        for fold in folds:
            fold_one = partial(self.rows.folds, fold)
            found = [self.go(place, partial(fold_one, x)) for x, place in zip(self.values, self.places)]
            while len(found) > 1:
                halves = [fold.combine(a, b) for a, b in zip(found[::2], found[1::2])]
                found = halves + found[len(halves) * 2 :]
            made.append(self.rows.folded(fold, found[0]))
        return made

    def first(self) -> Value:
        """The first number of the row, or of each row in the lanes."""
        return llvm.lane(self.values[0], 0) if self.rows.in_row else self.values[0]

    def end(self, finish: Callable[[Value, Lanes], None]) -> None:
        """finish(vector, lanes) for all vectors of the row."""
        for x, place in zip(self.values, self.places):
            self.go(place, lambda valid, x=x: finish(x, self.rows.lanes(valid)))


class LongRow:
    """A row in memory: changed numbers are kept for the next sweep, or computed again."""

    def __init__(self, rows: Rows, valid: int, positions: int):
        self.rows, self.valid = rows, valid
        numbers = positions * rows.width
        self.room = rows.step.room(numbers) if numbers <= ROOM_NUMBERS else None
        self.changes: list[Change] = []
        self.kept = False  # whether the room has the numbers

    def loop(self, body: Callable, carried: Sequence[Value]) -> list[Value]:
        """carried = body(slot, position in the room, valid, carried) for all vectors of the row; `slot`: number of the
        vector in a round."""
        rows, f = self.rows, self.rows.f
        step = rows.width if rows.in_row else 1

        def nested(dims: Sequence[tuple[int, int]], before: Number, carried: Sequence[Value]) -> list[Value]:
            (size, d), *inner = dims
            vectors = -(-size // step)
            if inner:

                def one(i: Number, *carried: Value) -> list[Value]:
                    rows.at[d] = i
                    return nested(inner, before * size + i if type(before) is not int or before else i, carried)

                return f.loop(0, size, 1, one, carried)
            whole = size // step // UNROLL * UNROLL

            def at(j: Number, slot: int, valid: int, carried: Sequence[Value]) -> list[Value]:
                rows.at[d] = j * step
                return body(slot, (before * vectors + j) * rows.width, valid, carried)

            def several(j: Number, *carried: Value) -> list[Value]:
                made = [*carried]
                for slot in range(UNROLL):
                    made = at(j + slot, slot, rows.width if rows.in_row else self.valid, made)
                return made

            carried = f.loop(0, whole, UNROLL, several, carried)
            for j in range(whole, vectors):
                valid = min(rows.width, size - j * step) if rows.in_row else self.valid
                carried = at(j, j - whole, valid, carried)
            return [*carried]

        return nested(rows.inner, 0, carried)

    def current(self, position: Number, valid: int) -> Value:
        """The numbers after the changes of all sweeps before."""
        rows = self.rows
        if self.kept and self.room is not None:
            return rows.f.load(self.room, position, FLOAT, rows.width)
        x = rows.read(valid)
        for change in self.changes:
            x = change(x)
        return x

    def sweep(self, change: Change | None, *folds: Fold) -> list[Value]:
        f = self.rows.f
        again = change is not None or (self.rows.source.steps and not self.kept)  # else x is read again
        room = self.room if again else None

        def body(slot: int, position: Number, valid: int, carried: Sequence[Value]) -> list[Value]:
            x = self.current(position, valid)
            if change is not None:
                x = change(x)
            if room is not None:
                f.store(x, room, position)
            made = [*carried]
            for k, fold in enumerate(folds):
                own = k * UNROLL + slot
                made[own] = fold.combine(self.rows.folds(fold, x, valid), made[own])
            return made

        start = [f.number(FLOAT, fold.start, self.rows.width) for fold in folds for _ in range(UNROLL)]
        sums = self.loop(body, start)
        if room is not None:
            self.kept = True
        elif change is not None:
            self.changes.append(change)
        return [self.together(fold, sums[k * UNROLL : (k + 1) * UNROLL]) for k, fold in enumerate(folds)]

    def first(self) -> Value:
        """The first number of the row, or of each row in the lanes."""
        rows = self.rows
        for _, d in rows.inner:
            rows.at[d] = 0
        x = rows.read(min(rows.width, rows.inner[-1][0]) if rows.in_row else self.valid)
        return llvm.lane(x, 0) if rows.in_row else x

    def together(self, fold: Fold, sums: Sequence[Value]) -> Value:
        a, b, c, d = sums
        return self.rows.folded(fold, fold.combine(fold.combine(a, b), fold.combine(c, d)))

    def end(self, finish: Callable[[Value, Lanes], None]) -> None:
        def body(slot: int, position: Number, valid: int, carried: Sequence[Value]) -> list[Value]:
            finish(self.current(position, valid), self.rows.lanes(valid))
            return []

        self.loop(body, [])


Row = Any  # a ShortRow, LongRow or Folded
