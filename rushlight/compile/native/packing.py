"""A computed matrix in panels, as products read it, and the order of a result's memory that saves copies."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from rushlight.compile.graph import Call, Value, is_reshape, is_view
from rushlight.compile.native.loop_nest import Lanes, index, load, over_vectors
from rushlight.compile.native.places import Place
from rushlight.compile.native.tiles import transposed
from rushlight.core.table import TABLE
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, Function, Number

if TYPE_CHECKING:
    from rushlight.compile.native.lowering import Lowering

DISTINCT = (2, 3, 5, 7, 11, 13)  # sizes that tell dimensions apart


class Packing:
    """Writes a matrix (length, columns) as panels (length, vectors width), the last with as many vectors as it needs;
    behind the last column stand zeros. `strides`: of the matrix."""

    def __init__(self, f: Function, source: llvm.Value, strides: tuple[int, int], shape: tuple[int, int], vectors: int):
        self.f, self.source, self.strides, self.vectors = f, source, strides, vectors
        self.length, self.columns = shape
        self.width = f.module.target.lanes

    def write(self, base: Number, target: llvm.Value) -> None:
        """base: the place of the first number. target: the address of the panels."""
        f, width, wide = self.f, self.width, self.vectors * self.width
        whole, distance = self.columns // wide, width * self.strides[1]

        def panel(j: Number, vectors: int, full: int) -> None:
            """`full` vectors of a panel with `vectors` vectors."""
            to, start = f.at(target, j * (self.length * wide), FLOAT), f.whole(base) + j * wide * self.strides[1]
            f.loop(0, full, 1, lambda v: self.column(start + v * distance, to, v, vectors, width))
            if full < vectors:
                self.column(start + full * distance, to, full, vectors, self.columns % width)

        f.loop(0, whole, 1, lambda j: panel(j, self.vectors, self.vectors))
        rest = self.columns - whole * wide
        if rest:
            panel(whole, -(-rest // width), rest // width)

    def column(self, base: Number, to: llvm.Value, v: Number, vectors: int, valid: int) -> None:
        """One vector of columns: the numbers of all rows."""
        f, width = self.f, self.width
        place = lambda k: (f.whole(k) * vectors + v) * width
        if self.strides[0] != 1 or self.strides[1] == 1:
            lanes = Lanes([], 0, width, valid)

            def row(k: Number) -> None:
                x = load(f, self.source, base + k * self.strides[0], FLOAT, self.strides[1], lanes)
                f.store(self.filled(x, valid), to, place(k))

            f.loop(0, self.length, 1, row)
            return

        def block(k: Number, rows: int) -> None:
            found = [f.load(self.source, base + c * self.strides[1] + k, FLOAT, width, rows) for c in range(valid)]
            found += [f.number(FLOAT, 0.0, width)] * (width - valid)
            for i, x in enumerate(transposed(found)[:rows]):
                f.store(x, to, place(k + i))

        over_vectors(f, (0, self.length), self.length, lambda k, _, rows: block(k, rows))

    def filled(self, x: llvm.Value, valid: int) -> llvm.Value:
        """The vector with zeros behind the valid lanes; a number repeated if the stride is 0."""
        f, width = self.f, self.width
        x = x if x.lanes else llvm.repeated(x, width)
        if valid == width:
            return x
        return llvm.select(f.mask(FLOAT, valid, width)[1], x, f.number(FLOAT, 0.0, width))


def packed_numbers(shape: tuple[int, int], width: int) -> int:
    """The numbers of all panels of a matrix."""
    return shape[0] * -(-shape[1] // width) * width


def pack(low: Lowering, y: Place, vectors: int) -> Place:
    """A step that packs the matrices y (..., length, columns). The place of (..., numbers of the panels)."""
    *batch, length, columns = y.shape
    numbers = packed_numbers((length, columns), low.module.target.lanes)
    shape = *batch, numbers
    buffer = low.memory.scratch(prod(shape), y.dtype)
    made = Place(buffer, shape, y.dtype, tuple([prod(shape[d + 1 :]) for d in range(len(shape))]))
    step = low.step()
    low.memory.use(y.buffer), low.memory.use(buffer)
    f, target = step.f, step.pointer(buffer)
    packing = Packing(f, step.pointer(y), y.strides[-2:], (length, columns), vectors)

    def matrix(i: Number) -> None:
        at = unraveled(i, batch)
        packing.write(index(y.offset, at, y.strides[:-2]), f.at(target, f.whole(i) * numbers, FLOAT))

    start, stop = step.share(prod(batch))
    if prod(batch) > 1:
        f.loop(start, stop, 1, matrix)
    else:
        step.alone(lambda: matrix(0))
    return made


def unraveled(i: Number, sizes: list[int]) -> list[Number]:
    """The coordinates of element i of an array in C order."""
    found: list[Number] = []
    for k, n in enumerate(sizes):
        rest = prod(sizes[k + 1 :])
        at = i // rest if rest > 1 else i
        found.append(0 if n == 1 else at % n if k and prod(sizes[:k]) > 1 else at)
    return found


def wanted_order(low: Lowering, v: Value) -> tuple[int, ...] | None:
    """The order of v's dimensions in memory with which the only use of v, a permutation before a reshape, needs no
    copy."""
    if low.schedule.uses.get(v) != 1 or len(v.shape) > len(DISTINCT):
        return None
    items = [item for item in low.schedule.items if isinstance(item, Call)]
    view = next((c for c in items if c.args and c.args[0] is v), None)
    if view is None or not is_view(view) or len(view.outs) != 1:
        return None
    if not any(is_reshape(c) and c.args[0] is view.outs[0] for c in items):
        return None
    sizes = DISTINCT[: len(v.shape)]
    try:
        made = TABLE[view.op].kernel(np.empty(sizes, np.uint8), *view.args[1:])
    except (ValueError, IndexError, TypeError):
        return None
    return tuple([sizes.index(n) for n in made.shape]) if sorted(made.shape) == [*sizes] else None
