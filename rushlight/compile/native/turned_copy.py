"""Copies between two orders of memory, such as from channels-last to C order: blocks of vectors are transposed in
registers, so reads and writes are whole vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rushlight.compile.native.loop_nest import index, over_vectors
from rushlight.compile.native.places import Place
from rushlight.compile.native.tiles import transposed
from rushlight.loops.llvm import FLOAT, Number

if TYPE_CHECKING:
    from rushlight.compile.native.lowering import Step


def innermost(place: Place) -> int | None:
    """The dimension whose elements are neighbours; None if there is none."""
    return next((d for d, (n, s) in enumerate(zip(place.shape, place.strides)) if n > 1 and s == 1), None)


def turned_dims(source: Place, target: Place) -> tuple[int, int] | None:
    """The innermost dimensions of both places, if they differ."""
    a, b = innermost(source), innermost(target)
    return None if source.dtype != np.float32 or a is None or b is None or a == b else (a, b)


class TurnedCopy:
    """Copies all elements. `a`, `b`: the innermost dimensions of the source and of the target."""

    def __init__(self, step: Step, source: Place, target: Place, dims: tuple[int, int]):
        self.step, self.f, self.places, self.dims = step, step.f, (source, target), dims
        self.shape, self.width = source.shape, step.f.module.target.lanes
        self.read, self.written = step.pointer(source), step.pointer(target)

    def write(self) -> None:
        """Loops over the other dimensions, then blocks; parts share the outermost dimension."""
        others = [d for d, n in enumerate(self.shape) if n > 1 and d not in self.dims]
        at: list[Number] = [0] * len(self.shape)

        def nested(depth: int) -> None:
            if depth == len(others):
                self.blocks(at, not others)
                return

            def one(i: Number) -> None:
                at[others[depth]] = i
                nested(depth + 1)

            count = self.shape[others[depth]]
            start, stop = self.step.share(count) if depth == 0 else (0, count)
            self.f.loop(start, stop, 1, one)

        nested(0)

    def blocks(self, at: list[Number], shared: bool) -> None:
        (a, b), width = self.dims, self.width

        def line(first: Number, valid: int) -> None:
            """Some elements along the target's dimension, and all along the source's."""
            over_vectors(
                self.f,
                (0, self.shape[a]),
                self.shape[a],
                lambda i, _, count: self.block(at, (i, first), (count, valid)),
            )

        full, rest = divmod(self.shape[b], width)
        start, stop = self.step.share(full) if shared else (0, full)
        self.f.loop(start, stop, 1, lambda k: line(self.f.whole(k) * width, width))
        if rest:
            last = lambda: line(full * width, rest)
            self.step.alone(last) if shared else last()

    def block(self, at: list[Number], first: tuple[Number, Number], valid: tuple[int, int]) -> None:
        """At most `width` elements along each of both dimensions."""
        f, (a, b), (source, target) = self.f, self.dims, self.places
        here = [*at]
        here[a], here[b] = first
        frm, to = (f.whole(index(p.offset, here, p.strides)) for p in (source, target))
        rows = [f.load(self.read, frm + k * source.strides[b], FLOAT, self.width, valid[0]) for k in range(valid[1])]
        rows += [f.number(FLOAT, 0.0, self.width)] * (self.width - valid[1])
        for i, x in enumerate(transposed(rows)[: valid[0]]):
            f.store(x, self.written, to + i * target.strides[a], valid[1])
