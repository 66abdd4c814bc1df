"""Products of matrices in vector registers, as instructions for compiled loops (fast/matmul_loops.py).

`tileRxV(x, i, row, y, j, across, more, m, apart, out, o, line, deep, columns)` makes R rows of V registers:

    out[o + r line + c] = more[m + r apart + c] + sum over p < deep of x[i + r row + p] y[j + p across + c]

for c < columns; the last of the V registers may be partial. The sums stay in registers: for each p there are V loads of
y, R loads of x and R V fused multiply-adds (with AVX-512: 24 for 10 loads, where the processor can do one load per
multiply-add). The loop handles two p at a time and prefetches the result's lines. `memory(address)` is a flat array at
an address, `word(address)` the 64-bit integer there.

`dots(x, i, row, y, j, across, more, m, out, o, line, deep, last)` is for a transposed y: the numbers of a column are
contiguous, and columns are `across` apart. It makes SQUARE[0] rows of SQUARE[1] numbers, one register of results, each
number from its own register of sums; 16 products for 8 loads:

    out[o + r line + c] = more[m + c] + sum over p < deep of x[i + r row + p] y[j + c across + p]

`acrossV(x, i, row, y, j, more, m, out, o, line, deep, last, then)` exchanges the operands, for rows that fill V
registers: x is the transposed operand, and y the packed one, with V registers for each p. It computes half a register's
width of columns at a time, writes them as rows, and prefetches the columns that begin at `then`:

    out[o + r line + c] = more[m + c] + sum over p < deep of x[i + c row + p] y[j + p V lanes + r]

Rows beyond row `last` repeat row `last`.
Written as LLVM instructions, since a text with a local variable for each sum would be long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

from rushlight.loops.llvm import FLOAT, INT64, POINTER, Value, call_intrinsic, machine, mixed, repeated, select
from rushlight.loops.loop_code import Writer
from rushlight.loops.loop_kinds import Array
from rushlight.loops.simd import fetch, first_lanes, masked_load, masked_store

HEIGHTS = 6, 5  # rows of a tile; any number from 20 on is a sum of sixes and fives
WIDTH = {32: 4, 16: 2}  # number of registers -> registers in a row of the widest tile
SQUARE = {16: (4, 4), 8: (2, 4), 4: (2, 2)}  # numbers in a register -> rows and columns of `dots`


@cache
def tiles() -> dict[str, Any]:
    """{name: function of the writer and the arguments}."""
    pairs = product(HEIGHTS, range(1, WIDTH[machine()[1]] + 1))
    return {
        "memory": memory,
        "word": word,
        "dots": lambda w, *args: Dots(w, *args).write(),
        **{f"across{width}": partial(across, width) for width in (1, 2)},
        **{f"tile{rows}x{width}": partial(tile, rows, width) for rows, width in pairs},
    }


def tile(rows: int, width: int, w: Writer, *args: Any) -> None:
    Tile(w, rows, width, *args).write()


def across(width: int, w: Writer, *args: Any) -> None:
    Across(w, width, *args).write()


def pointer_at(w: Writer, place: Any) -> Value:
    return w.f.put(f"inttoptr i64 {w.of_kind(place, INT64).v} to ptr", POINTER)


def memory(w: Writer, place: Any) -> Array:
    """A float32 array from this address on."""
    return Array(pointer_at(w, place), FLOAT, (w.f.whole(1),))


def word(w: Writer, place: Any) -> Value:
    return w.f.load(pointer_at(w, place), 0, INT64)


class Registers:
    """Helpers for writing the instructions of tiles, dots and across."""

    def __init__(self, w: Writer):
        self.w, self.f, self.lanes = w, w.f, machine()[0]
        self.zeros = self.f.number(FLOAT, 0.0, self.lanes)

    def whole(self, *numbers: Any) -> list[Value]:
        """Places and sizes as int64."""
        return [self.w.of_kind(n, INT64) for n in numbers]

    def pointer(self, array: Array, place: Any) -> Value:
        return self.w.element(array.pointer, place, FLOAT)

    def load(self, array: Array, place: Any, count: int | None = None) -> Value:
        """A register, or `count` numbers, or a single number if `count` is 0."""
        return self.f.load(self.pointer(array, place), 0, FLOAT, self.lanes if count is None else count)

    def first(self, count: Value) -> Value:
        return first_lanes(self.f, count, self.lanes)

    def spread(self, array: Array, place: Any) -> Value:
        return repeated(self.load(array, place, 0), self.lanes)

    def summed(self, sums: list[Value], start: Any, end: Any, step: int, factors: Callable) -> list[Value]:
        """The sums after a loop over p from start to end that adds the products of the pairs in `factors(p)`."""

        def body(p: Value, *made: Value) -> Sequence[Value]:
            for pairs in factors(p):
                made = tuple([call_intrinsic("fma", x, y, total) for (x, y), total in zip(pairs, made)])
            return made

        return self.f.loop(start, self.f.whole(end), step, body, sums)


class Tile(Registers):
    """The instructions of one tile."""

    def __init__(self, w: Writer, rows: int, width: int, *args: Any):
        super().__init__(w)  # each: (array, place, step between rows)
        self.x, self.y, self.more, self.out = ((args[i], *self.whole(*args[i + 1 : i + 3])) for i in (0, 3, 6, 9))
        self.deep, columns = self.whole(*args[12:])
        self.rows, self.width = rows, width
        self.known = self.first(columns - (width - 1) * self.lanes)

    def at(self, array: tuple, r: Any, c: Any, number: bool = False) -> tuple[Array, Value]:
        """(the array, the place of register c, or of number c, in row r)."""
        return array[0], array[1] + array[2] * r + (c if number else c * self.lanes)

    def write(self) -> None:
        places = list(product(range(self.rows), range(self.width)))
        for r, v in places:
            fetch(self.f, self.pointer(*self.at(self.out, r, v)), writing=True)
        sums, even = [self.zeros] * len(places), self.f.whole(0)
        if self.width == max(WIDTH.values()):
            even = self.deep & -2
            sums = self.summed(sums, 0, even, 2, lambda p: [self.factors(p), self.factors(p + 1)])
        sums = self.summed(sums, even, self.deep, 1, lambda p: [self.factors(p)])
        for (r, v), total in zip(places, sums):
            self.put(r, v, total)

    def factors(self, p: Value) -> Iterable[tuple[Value, Value]]:
        ys = [self.load(*self.at(self.y, p, v)) for v in range(self.width)]
        xs = [self.spread(*self.at(self.x, r, p, number=True)) for r in range(self.rows)]
        return product(xs, ys)

    def put(self, r: int, v: int, total: Value) -> None:
        frm, to = (self.pointer(*self.at(array, r, v)) for array in (self.more, self.out))
        if v < self.width - 1:
            self.f.store(total + self.f.load(frm, 0, FLOAT, self.lanes), to, 0)
        else:
            masked_store(self.f, total + masked_load(self.f, frm, self.known), to, self.known)


class Dots(Registers):
    """The instructions of one square of dot products."""

    def __init__(self, w: Writer, *args: Any):
        super().__init__(w)
        self.x, i, row, self.y, j, across, self.more, m, self.out, o, line, deep, last = args
        i, row, j, across, self.m, o, line, self.deep, last = self.whole(i, row, j, across, m, o, line, deep, last)
        rows, self.columns = SQUARE[self.lanes]
        numbers = [self.f.whole(r) for r in range(max(rows, self.columns))]
        those = [select(r < last, r, last) for r in numbers[:rows]]
        self.own, self.to = ([start + r * step for r in those] for start, step in ((i, row), (o, line)))
        self.other = [j + r * across for r in numbers[: self.columns]]

    def write(self) -> None:
        end = self.deep & -self.lanes
        known = self.first(self.deep - end)
        sums = self.summed([self.zeros] * self.lanes, 0, end, self.lanes, self.factors(self.load))
        partial = self.factors(lambda array, place: masked_load(self.f, self.pointer(array, place), known))
        sums = self.summed(sums, end, self.deep, self.lanes, partial)
        total, more = self.along(sums), self.load(self.more, self.m, self.columns)
        for r, place in enumerate(self.to):
            own = mixed(total, total, range(r * self.columns, (r + 1) * self.columns))
            self.f.store(own + more, self.pointer(self.out, place), 0)

    def factors(self, load: Callable) -> Callable:
        def loaded(array: Array, starts: list[Value], p: Value) -> list[Value]:
            return [load(array, start + p) for start in starts]

        return lambda p: [product(loaded(self.x, self.own, p), loaded(self.y, self.other, p))]

    def along(self, sums: list[Value]) -> Value:
        """The sum of each register: pairs of registers swap halves, then quarters..., and are added."""
        lanes = self.lanes
        while half := len(sums) // 2:
            ways = [
                [c + there if c & half else c + here for c in range(lanes)]
                for there, here in ((lanes - half, 0), (lanes, half))
            ]
            sums = [mixed(*pair, ways[0]) + mixed(*pair, ways[1]) for pair in zip(sums, sums[half:])]
        return sums[0]


class Across(Registers):
    """The instructions of one tile whose sums become columns.

    With one register, sums over even and odd p are separate: eight dependent sums would wait for each other."""

    def __init__(self, w: Writer, width: int, *args: Any):
        super().__init__(w)
        self.width, self.columns = width, self.lanes // 2
        self.x, i, row, self.y, j, self.more, m, self.out, o, line, deep, last, then = args
        i, row, self.j, self.m, o, line, self.deep, last, self.then = self.whole(
            i, row, j, m, o, line, deep, last, then
        )
        numbers = [self.f.whole(r) for r in range(width * self.lanes)]
        self.own = [i + row * c for c in numbers[: self.columns]]
        self.to = [o + line * select(r < last, r, last) for r in numbers]

    def write(self) -> None:
        count, apart = self.columns * self.width, self.width == 1
        even = self.deep & -2

        def two(p: Value) -> list[list]:
            fetch(self.f, self.pointer(self.x, self.then + p * self.columns))  # of the next tile
            pairs = [self.factors(p), self.factors(p + 1)]
            return [[*pairs[0], *pairs[1]]] if apart else pairs

        sums = self.summed([self.zeros] * (count + count * apart), 0, even, 2, two)
        sums = [a + b for a, b in zip(sums, sums[count:])] if apart else sums
        sums = self.summed(sums, even, self.deep, 1, lambda p: [self.factors(p)])
        more = self.load(self.more, self.m, self.columns)
        for v in range(self.width):
            self.put(self.to[v * self.lanes :], sums[v :: self.width], more)

    def factors(self, p: Value) -> list:
        start = self.j + p * (self.width * self.lanes)
        ys = [self.load(self.y, start + v * self.lanes) for v in range(self.width)]
        xs = [self.spread(self.x, place + p) for place in self.own]
        return [*product(xs, ys)]

    def put(self, to: list[Value], sums: list[Value], more: Value) -> None:
        """Write the transposed registers of sums, plus `more`."""
        lanes, columns = self.lanes, self.columns
        for half in [1 << n for n in range(columns.bit_length() - 1)]:  # squares of 2, 4... change their corners
            ways = [
                [c + there if bool(c & half) == turned else c + here for c in range(lanes)]
                for turned, there, here in ((True, lanes - half, 0), (False, half, lanes))
            ]
            for c in [c for c in range(columns) if not c & half]:
                pair = sums[c], sums[c + half]
                sums[c], sums[c + half] = [mixed(*pair, way) for way in ways]
        for r in range(lanes):
            first, turned = r // columns * columns, sums[r % columns]
            made = mixed(turned, turned, range(first, first + columns))
            self.f.store(made + more, self.pointer(self.out, to[r]), 0)
