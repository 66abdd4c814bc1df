"""Products of matrices: linear layers, whose weights are packed in panels beforehand, and products of two computed
matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.compile.graph import Value
from rushlight.compile.native.loop_nest import Lanes, Pieces
from rushlight.compile.native.lowering import Lowering, Step, anchor
from rushlight.compile.native.places import Buffer, NotNative, Place
from rushlight.compile.native.schedule import Group
from rushlight.compile.native.tiles import accumulate, best_tile, packed
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, Number
from rushlight.ops.linalg import matmul

SINGLE = np.dtype(np.float32)


@anchor(matmul.linear)
def linear(low: Lowering, group: Group) -> None:
    """x (..., K), weight (N, K), bias (N,) -> (..., N)."""
    x, weight, bias = group.anchor.args
    known = [v for v in (weight, bias) if v is not None]
    if x.dtype != SINGLE or not all(low.schedule.is_known(v) for v in known) or len(weight.shape) != 2:
        raise NotNative("a linear layer of other dtypes, or of computed weights")
    rows, (columns, length) = x.size // max(x.shape[-1], 1), weight.shape
    tile, vectors = tile_of(low, rows, columns)
    width = low.module.target.lanes
    panels = low.derived(lambda w: packed(w.T, width, vectors), (weight,))
    matrix = as_rows(low, x, length)
    write_product(low, group, matrix, panels, (rows, columns, length), (tile, vectors), bias)


@anchor(matmul.mm)
def mm(low: Lowering, group: Group) -> None:
    """x (..., M, K), y (..., K, N) -> (..., M, N)."""
    x, y = group.anchor.args
    if x.dtype != SINGLE or y.dtype != SINGLE or len(x.shape) < 2 or len(y.shape) < 2:
        raise NotNative("a product of other dtypes")
    if len(y.shape) == 2 and low.schedule.is_known(y):
        length, columns = y.shape
        rows = x.size // max(length, 1)
        tile, vectors = tile_of(low, rows, columns)
        width = low.module.target.lanes
        panels = low.derived(lambda w: packed(w, width, vectors), (y,))
        write_product(low, group, as_rows(low, x, length), panels, (rows, columns, length), (tile, vectors), None)
        return
    raise NotNative("a product of two computed matrices")


def tile_of(low: Lowering, rows: int, columns: int) -> tuple[int, int]:
    target = low.module.target
    return best_tile(target, rows, -(-columns // target.lanes))


def as_rows(low: Lowering, x: Value, length: int) -> Place:
    """x as a matrix of rows (M, K)."""
    shape = x.size // max(length, 1), length
    found = low.place(x).reshaped(shape)
    return found if found is not None else low.contiguous(x).reshaped(shape)  # type: ignore[return-value]


def write_product(
    low: Lowering, group: Group, x: Place, panels: Buffer, sizes: tuple[int, int, int], tile: tuple[int, int], bias: Any
) -> None:
    """out[m, n] = sum over k of x[m, k] b[k, n] + bias[n], then the elementwise steps of the group.

    The panel of some columns stays in the cache while all rows pass. With one tile of rows, threads share the panels,
    otherwise the tiles."""
    rows, columns, length = sizes
    n = len(group.out.shape)
    merge = (tuple(range(n - 1)), (n - 1,)) if n > 1 else ((0,),)
    together = low.apart(group, merge)
    low.make(together.out)
    step = low.step()
    low.memory.use(x.buffer)
    pieces = Product(step, together, x, panels, bias, sizes, tile, merge)
    few = rows <= tile[0] * 2
    f, wide = step.f, tile[1] * pieces.width
    whole = columns // wide

    def panel(j: Number, tile_rows: tuple[Number, Number], vectors: int, valid: int) -> None:
        pieces.rows_of(tile_rows, j, vectors, valid)

    start, stop = step.share(whole) if few else (0, whole)
    all_rows = (0, rows) if few else pieces.share_rows()
    f.loop(start, stop, 1, lambda j: panel(j, all_rows, tile[1], wide))
    rest = columns - whole * wide
    if rest:
        last = lambda: panel(whole, all_rows, -(-rest // pieces.width), rest)
        step.alone(last) if few else last()
    low.write_rest(group, together)


class Product:
    """The tiles of a product. Dimensions of the space: (M, N)."""

    def __init__(
        self, step: Step, group: Group, x: Place, panels: Buffer, bias: Any, sizes: tuple, tile: tuple, merge: Any
    ):
        self.step, self.group, self.x, self.bias = step, group, x, bias
        (self.rows, self.columns, self.length), (self.tile, self.vectors) = sizes, tile
        self.width = step.f.module.target.lanes
        self.pieces = Pieces(step, group, group.out.shape, merge)
        self.made = group.anchor.outs[0]
        self.a, self.panels = step.pointer(x), step.pointer(panels)
        self.biases = None if bias is None else step.pointer(step.place(bias))

    def share_rows(self) -> tuple[Number, Number]:
        """The rows of this part, in whole tiles."""
        tiles = -(-self.rows // self.tile)
        start, stop = self.step.share(tiles)
        if isinstance(stop, int):
            return 0, self.rows
        return start * self.tile, llvm.smaller(stop * self.tile, self.rows)

    def rows_of(self, rows: tuple[Number, Number], j: Number, vectors: int, valid: int) -> None:
        """All rows of one panel. j: its number."""
        f, (start, stop) = self.step.f, rows
        panel = f.at(self.panels, f.whole(j) * (self.length * self.vectors * self.width), FLOAT)
        column = f.whole(j) * (self.vectors * self.width)
        if isinstance(stop, int) and isinstance(start, int):
            whole = start + (stop - start) // self.tile * self.tile
            f.loop(start, whole, self.tile, lambda m: self.one(m, self.tile, panel, column, vectors, valid))
            if whole < stop:
                self.one(whole, stop - whole, panel, column, vectors, valid)
            return
        rest = self.rows % self.tile
        full = llvm.smaller(f.whole(stop), self.rows - rest)
        f.loop(start, full, self.tile, lambda m: self.one(m, self.tile, panel, column, vectors, valid))
        if rest:
            last = lambda: self.one(self.rows - rest, rest, panel, column, vectors, valid)
            f.when(f.whole(stop) == self.rows, last)

    def one(self, m: Number, count: int, panel: llvm.Value, column: Number, vectors: int, valid: int) -> None:
        """One tile: `count` rows from row m, some vectors of columns."""
        f, (row_stride, stride) = self.step.f, self.x.strides
        base = f.whole(m) * row_stride + self.x.offset
        rows = [base + k * row_stride for k in range(count)]
        spans = [min(self.width, valid - v * self.width) for v in range(vectors)]
        start = [self.started(column, v, spans[v]) for v in range(vectors)] * count
        sums = accumulate(f, self.a, rows, [(self.length, stride)], panel, vectors, start)
        for k in range(count):
            for v in range(vectors):
                at = [m + k, column + v * self.width]
                if len(self.made.shape) == 1:
                    at = at[1:]
                self.pieces.finish({self.made: sums[k * vectors + v]}, Lanes(at, len(at) - 1, self.width, spans[v]))

    def started(self, column: Number, v: int, valid: int) -> llvm.Value:
        """The bias of a vector of columns, or zeros."""
        f = self.step.f
        if self.biases is None:
            return f.number(FLOAT, 0.0, self.width)
        return f.load(self.biases, f.whole(column) + v * self.width, FLOAT, self.width, valid)
