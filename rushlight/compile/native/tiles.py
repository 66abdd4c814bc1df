"""Products in registers: tiles of rows times vectors of columns, whose sums stay in registers over the whole length.

    sums[m][j] += a[row m, k] * b[k, vector j]

The rows are read one number at a time, from memory of any strides. The columns come from panels: `packed` gives the
matrix as panels of some vectors of columns, each with its rows one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np

from rushlight.loops.llvm import FLOAT, Function, Number, Target, Value, mixed, multiply_add, repeated

MANY_ROWS = 64  # the rows for which a tile is chosen where their number is not known
UNROLL_FMAS = 16  # an inner loop has at least about this many multiply-adds


def packed(b: np.ndarray, width: int, vectors: int) -> np.ndarray:
    """A matrix (K, N) as panels (K, vectors width) side by side, filled with zeros up to whole vectors. The last panel
    may have fewer vectors."""
    length, columns = b.shape
    whole = -(-columns // width) * width
    b = np.pad(b, ((0, 0), (0, whole - columns)))
    panel = vectors * width
    cuts = range(0, whole, panel)
    return np.concatenate([np.ascontiguousarray(b[:, k : k + panel]).ravel() for k in cuts] or [np.zeros(0, b.dtype)])


def best_tile(target: Target, rows: Number, vectors: int) -> tuple[int, int]:
    """(rows, vectors) of a tile: the least estimated time for all rows and vectors that fits the registers.

    In cycles: two multiply-adds or two loads take one; a chain of multiply-adds takes four for each."""
    rows = rows if isinstance(rows, int) else MANY_ROWS
    best, found = float("inf"), (1, 1)
    for v in range(1, min(vectors, 8) + 1):
        for m in range(1, min(rows, 16) + 1):
            if m * v + v + 1 > target.registers:
                break
            one = max(m * v / 2, (m + v) / 2, 4 if m * v < 8 else 0)
            time = ceil(rows / m) * ceil(vectors / v) * (one + 0.25)
            if time < best - 1e-9:
                best, found = time, (m, v)
    return found


def in_tiles(f: Function, start: Number, stop: Number, tile: int, body: Callable[[Number, int], None]) -> None:
    """body(first, count) for the rows from `start` to `stop`, where the number of rows is not known: tiles of `tile`
    rows, then the rows that are left, in tiles of 32, 16, 8, 4, 2 and 1 rows."""
    whole = f.whole(stop) - start
    rest = whole % tile
    at = whole - rest + start
    f.loop(start, at, tile, lambda m: body(m, tile))
    for count in (32, 16, 8, 4, 2, 1):
        if count < tile:
            f.when((rest & count) != 0, partial(body, at, count))
            at = at + (rest & count)


def accumulate(
    f: Function,
    pointer: Value,
    rows: Sequence[Number],
    lengths: Sequence[tuple[Number, int]],
    panel: Value,
    vectors: int,
    start: Sequence[Value],
    panel_row: int | None = None,
    valid: int | None = None,
) -> list[Value]:
    """The sums of a tile. `rows`: the place of each row's first number; `lengths`: (length, stride) of the dimensions
    that are summed, from the outermost; `panel`: the address of the tile's panel; `start`: for each row the sums at
    the beginning, vector by vector; `panel_row`: the distance of the panel's rows in memory, if the panel is part of a
    matrix, of which `valid` columns may be read."""
    spans = [None if valid is None else valid - j * f.module.target.lanes for j in range(vectors)]
    row = vectors * f.module.target.lanes if panel_row is None else panel_row
    tile = Tile(f, pointer, rows, panel, vectors, row, spans)
    return tile.over(lengths, 0, 0, start)


@dataclass
class Tile:
    """Rows times a panel (see `accumulate`). `spans`: the columns of each vector that may be read."""

    f: Function
    pointer: Value
    rows: Sequence[Number]
    panel: Value
    vectors: int
    panel_row: int
    spans: Sequence[int | None]

    def at(self, k: Number, offset: Number, sums: Sequence[Value]) -> list[Value]:
        """One step: number `offset` of each row times row k of the panel."""
        f, width = self.f, self.f.module.target.lanes
        place = k * self.panel_row
        columns = [f.load(self.panel, place + j * width, FLOAT, width, span) for j, span in enumerate(self.spans)]
        made: list[Value] = []
        for m, row in enumerate(self.rows):
            x = repeated(f.load(self.pointer, f.whole(row) + offset, FLOAT), width)
            made += [multiply_add(x, column, sums[m * self.vectors + j]) for j, column in enumerate(columns)]
        return made

    def over(self, dims: Sequence[tuple[Number, int]], k: Number, offset: Number, sums: Sequence[Value]) -> list[Value]:
        """The sums over all dimensions `dims`."""
        if not dims:
            return self.at(k, offset, sums)
        (length, stride), *inner = dims
        inside = int(np.prod([n for n, _ in inner], dtype=int))

        def body(i: Number, *sums: Value) -> list[Value]:
            return self.over(inner, k + i * inside, offset + i * stride, sums)

        if not isinstance(length, int):
            return self.f.loop(0, length, 1, body, sums)
        per_round = len(self.rows) * self.vectors * inside
        unroll = 1 if inside > 8 else min(length, max(1, UNROLL_FMAS // per_round))
        whole = length // unroll * unroll

        def several(i: Number, *sums: Value) -> list[Value]:
            made: Sequence[Value] = sums
            for u in range(unroll):
                made = body(i + u, *made)
            return [*made]

        sums = self.f.loop(0, whole, unroll, several, sums)
        for i in range(whole, length):
            sums = body(i, *sums)
        return [*sums]


def dots(f: Function, x: tuple[Value, Number], y: Value, rows: Sequence[Number], length: int) -> Value:
    """A vector with the product of x and each of `lanes` rows of y. x: (address, place); `rows`: the place of each
    row's first number. Numbers of x and of a row are neighbours: the lanes run along the sum."""
    width, (pointer, place) = f.module.target.lanes, x

    def step(k: Number, sums: Sequence[Value], valid: int) -> list[Value]:
        part = f.load(pointer, f.whole(place) + k, FLOAT, width, valid)
        return [multiply_add(f.load(y, f.whole(r) + k, FLOAT, width, valid), part, s) for r, s in zip(rows, sums)]

    whole = length // width * width
    sums: Sequence[Value] = [f.number(FLOAT, 0.0, width)] * len(rows)
    sums = f.loop(0, whole, width, lambda k, *sums: step(k, sums, width), sums)
    if whole < length:
        sums = step(whole, sums, length - whole)
    return summed(sums)


def summed(vectors: Sequence[Value]) -> Value:
    """The sums of `lanes` vectors, as one vector. A round adds neighbours, and leaves half of the vectors."""
    lanes, step, left = vectors[0].lanes, 1, [*vectors]
    while step < lanes:
        left = [a + b for a, b in (exchanged(a, b, step) for a, b in zip(left[::2], left[1::2]))]
        step *= 2
    return left[0]


def exchanged(a: Value, b: Value, step: int) -> tuple[Value, Value]:
    """Blocks of `step` numbers: (the even blocks of a and b, the odd blocks), a's before b's."""
    places = range(a.lanes)
    low = [k if not k & step else a.lanes + k - step for k in places]
    high = [k + step if not k & step else a.lanes + k for k in places]
    return mixed(a, b, low), mixed(a, b, high)


def transposed(vectors: Sequence[Value]) -> list[Value]:
    """`lanes` vectors as the rows of a matrix -> its columns."""
    made, step = [*vectors], 1
    while step < len(made):
        for k in range(len(made)):
            if not k & step:
                made[k], made[k + step] = exchanged(made[k], made[k + step], step)
        step *= 2
    return made
