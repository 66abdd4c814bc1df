"""Products of matrices: linear layers, whose weights are packed in panels beforehand, and products of two computed
matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Value
from rushlight.compile.native.elements import written
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, Pieces, index
from rushlight.compile.native.lowering import Lowering, Step, anchor
from rushlight.compile.native.packing import pack, unraveled, wanted_order
from rushlight.compile.native.places import Buffer, Place
from rushlight.compile.native.schedule import Group
from rushlight.compile.native.sizes import new_value
from rushlight.compile.native.tiles import accumulate, best_tile, dots, in_tiles, packed
from rushlight.loops import llvm
from rushlight.loops.llvm import FLOAT, Number
from rushlight.ops.linalg import matmul
from rushlight.ops.math import elementwise as E

SINGLE = np.dtype(np.float32)
FEW_INSTRUCTIONS = 16


@anchor(matmul.linear)
def linear(low: Lowering, group: Group) -> None:
    """x (..., K), weight (N, K), bias (N,) -> (..., N)."""
    x, weight, bias = group.anchor.args
    known = [v for v in (weight, bias) if v is not None]
    if any(v.dtype != SINGLE for v in (x, *known)) or len(weight.shape) != 2:
        raise NotNative("a linear layer of other dtypes")
    if not all(low.schedule.is_known(v) for v in known):
        computed_layer(low, group)
        return
    rows, (columns, length) = x.size // max(x.shape[-1], 1), weight.shape
    tile, vectors = tile_of(low, rows, columns)
    width = low.module.target.lanes
    panels = low.derived(lambda w: packed(w.T, width, vectors), (weight,))
    matrix = as_rows(low, x, length)
    write_product(low, group, matrix, panels, (rows, columns, length), (tile, vectors), bias)


def computed_layer(low: Lowering, group: Group) -> None:
    """A linear layer whose weight or bias is computed: a product, then a sum."""
    x, weight, bias = group.anchor.args
    out, steps = group.anchor.outs[0], group.steps
    if bias is not None:
        total = Call(E.add.op.name, (product := like(out), bias), (out,))
        out, steps = product, [total, *steps]
    y = low.place(weight)
    y = Place(y.buffer, y.shape[::-1], y.dtype, y.strides[::-1], y.offset)
    computed_product(low, Group(Call(matmul.mm.op.name, (x, weight), (out,)), steps, group.out), low.place(x), y)


def like(v: Value) -> Value:
    """A new value of v's shape and dtype."""
    return new_value(v.shape, v.dtype)


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
    computed_product(low, group, low.place(x), low.place(y))


def computed_product(low: Lowering, group: Group, x: Place, y: Place) -> None:
    """x (..., M, K), y (..., K, N) -> (..., M, N), for two computed matrices with batch dimensions that broadcast.

    A matrix y whose columns are not neighbours, or that many rows pass, is packed by a step of its own. A single row
    or column becomes dot products if the numbers of a sum are neighbours."""
    length = x.shape[-1]
    if not length or not group.out.size or len(group.out.shape) < 2:
        raise NotNative("a product of empty matrices, or with a vector")
    *batch, rows, columns = group.out.shape
    tile = tile_of(low, rows, columns)
    x = Place(x.buffer, (*batch, rows, length), x.dtype, x.spread((*batch, rows, length)), x.offset)
    lines = 1 in (rows, columns) and x.strides[-1] == 1 and y.strides[-2] == 1
    packs = not lines and must_pack(y, rows > 4 * tile[0])
    if packs:
        y = pack(low, y, tile[1])
    low.make(group.out, wanted_order(low, group.out))
    step = low.step()
    low.memory.use(x.buffer), low.memory.use(y.buffer)
    if lines:
        Lines(step, group, x, y, (rows, columns, length)).write()
    else:
        Matrices(step, group, x, y, packs, (rows, columns, length), tile).write()


def must_pack(y: Place, many: bool) -> bool:
    """Whether products read y faster as panels. `many`: whether many rows pass. Rows of y at multiples of 1 KB share
    a few lines of the cache."""
    row, column = y.strides[-2:]
    return column != 1 or (many and y.shape[-2] > 32 and row % 256 == 0)


def tile_of(low: Lowering, rows: Number, columns: int) -> tuple[int, int]:
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
    low.make(together.out, None, merge)
    step = low.step()
    low.memory.use(x.buffer)
    pieces = Product(step, together, x, panels, bias, sizes, tile, merge)
    few = isinstance(rows, int) and rows <= tile[0] * 2
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
        self, step: Step, group: Group, x: Place, panels: Any, bias: Any, sizes: tuple, tile: tuple, merge: Any
    ):
        self.step, self.group, self.x, self.bias = step, group, x, bias
        (self.rows, self.columns, self.length), (self.tile, self.vectors) = sizes, tile
        self.width = step.f.module.target.lanes
        self.pieces = Pieces(step, group, group.out.shape, merge)
        self.made = group.anchor.outs[0]
        self.a, self.panels = step.pointer(x), step.pointer(panels)
        self.biases = None if bias is None else step.pointer(step.place(bias))
        # many instructions for each number are written once, in a loop over the tile's rows
        wide = written(step.f.module.target, group) > FEW_INSTRUCTIONS
        self.room: Any = step.room(self.tile * self.vectors * self.width) if wide else None
        self.head: list[Number] = []  # coordinates of the batch dimensions
        self.base: Number = x.offset
        self.panel_row: int | None = None  # the distance of the rows of a second factor that is not packed

    def share_rows(self) -> tuple[Number, Number]:
        """The rows of this part, in whole tiles."""
        return self.step.share_tiles(self.rows, self.tile)

    def panel(self, j: Number) -> llvm.Value:
        """The address of panel j."""
        f = self.step.f
        return f.at(self.panels, f.whole(j) * (self.length * self.vectors * self.width), FLOAT)

    def rows_of(self, rows: tuple[Number, Number], j: Number, vectors: int, valid: int) -> None:
        """All rows of one panel. j: its number."""
        f, (start, stop) = self.step.f, rows
        panel = self.panel(j)
        column = f.whole(j) * (self.vectors * self.width)
        if isinstance(stop, int) and isinstance(start, int):
            whole = start + (stop - start) // self.tile * self.tile
            f.loop(start, whole, self.tile, lambda m: self.one(m, self.tile, panel, column, vectors, valid))
            if whole < stop:
                self.one(whole, stop - whole, panel, column, vectors, valid)
            return
        if not isinstance(self.rows, int):
            in_tiles(f, start, stop, self.tile, lambda m, count: self.one(m, count, panel, column, vectors, valid))
            return
        rest = self.rows % self.tile
        full = llvm.smaller(f.whole(stop), self.rows - rest)
        f.loop(start, full, self.tile, lambda m: self.one(m, self.tile, panel, column, vectors, valid))
        if rest:
            last = lambda: self.one(self.rows - rest, rest, panel, column, vectors, valid)
            f.when(f.whole(stop) == self.rows, last)

    def one(self, m: Number, count: int, panel: llvm.Value, column: Number, vectors: int, valid: int) -> None:
        """One tile: `count` rows from row m, some vectors of columns."""
        f, (row_stride, stride) = self.step.f, self.x.strides[-2:]
        base = f.whole(m) * row_stride + self.base
        rows = [base + k * row_stride for k in range(count)]
        spans = [min(self.width, valid - v * self.width) for v in range(vectors)]
        start = [self.started(column, v, spans[v]) for v in range(vectors)] * count
        read = None if self.panel_row is None else valid
        sums = accumulate(f, self.a, rows, [(self.length, stride)], panel, vectors, start, self.panel_row, read)
        if self.room is None or count == 1:
            for k in range(count):
                self.finish(m + k, column, sums[k * vectors : (k + 1) * vectors], spans)
            return
        for k, x in enumerate(sums):
            f.store(x, self.room, k * self.width)
        f.loop(0, count, 1, lambda k: self.finish(m + k, column, self.kept(k, vectors), spans))

    def kept(self, k: Number, vectors: int) -> list[llvm.Value]:
        """The sums of a row of the tile, from memory."""
        return [self.step.f.load(self.room, (k * vectors + v) * self.width, FLOAT, self.width) for v in range(vectors)]

    def finish(self, m: Number, column: Number, sums: Sequence[llvm.Value], spans: Sequence[int]) -> None:
        """The elementwise steps of a row of the tile."""
        for v, total in enumerate(sums):
            at = [*self.head, m, column + v * self.width]
            if len(self.made.shape) == 1:
                at = at[1:]
            self.pieces.finish({self.made: total}, Lanes(at, len(at) - 1, self.width, spans[v]))

    def started(self, column: Number, v: int, valid: int) -> llvm.Value:
        """The bias of a vector of columns, or zeros."""
        f = self.step.f
        if self.biases is None:
            return f.number(FLOAT, 0.0, self.width)
        return f.load(self.biases, f.whole(column) + v * self.width, FLOAT, self.width, valid)


class Matrices(Product):
    """Products of two computed matrices. Dimensions of the space: (..., M, N). `packed`: whether y has panels,
    (..., numbers), otherwise y is (..., K, N) with columns that are neighbours."""

    def __init__(self, step: Step, group: Group, x: Place, y: Place, packs: bool, sizes: tuple, tile: tuple):
        super().__init__(step, group, x, y, None, sizes, tile, None)
        self.y, self.packs, self.batch = y, packs, [*group.out.shape[:-2]]
        batch = tuple(self.batch)
        self.y_strides = y.spread((*batch, y.shape[-1]) if packs else (*batch, *y.shape[-2:]))
        self.panel_row = None if packs else y.strides[-2]
        self.matrix = self.panels

    def write(self) -> None:
        """Threads share the matrices; the tiles of rows if there is one matrix."""
        start, stop = self.step.share(prod(self.batch))
        one = prod(self.batch) == 1
        rows = self.share_rows() if one else (0, self.rows)
        if one:
            self.multiply(0, rows)
        else:
            self.step.f.loop(start, stop, 1, lambda i: self.multiply(i, rows))

    def multiply(self, i: Number, rows: tuple[Number, Number]) -> None:
        """The product of two matrices."""
        f, wide = self.step.f, self.vectors * self.width
        self.head = unraveled(i, self.batch)
        self.base = index(self.x.offset, self.head, self.x.strides)
        self.matrix = f.at(self.panels, index(self.y.offset, self.head, self.y_strides), FLOAT)
        whole = self.columns // wide
        f.loop(0, whole, 1, lambda j: self.rows_of(rows, j, self.vectors, wide))
        rest = self.columns - whole * wide
        if rest:
            self.rows_of(rows, whole, -(-rest // self.width), rest)

    def panel(self, j: Number) -> llvm.Value:
        f, wide = self.step.f, self.vectors * self.width
        return f.at(self.matrix, f.whole(j) * (self.length * wide if self.packs else wide), FLOAT)


class Lines:
    """Products with one row of x or one column of y: dot products, a vector of results at a time."""

    def __init__(self, step: Step, group: Group, x: Place, y: Place, sizes: tuple[int, int, int]):
        self.step, self.x, self.y = step, x, y
        self.rows, self.columns, self.length = sizes
        self.pieces, self.made = Pieces(step, group, group.out.shape), group.anchor.outs[0]
        self.batch = [*group.out.shape[:-2]]
        self.y_strides = y.spread((*self.batch, *y.shape[-2:]))
        self.width = step.f.module.target.lanes

    def write(self) -> None:
        count, f = (self.columns if self.rows == 1 else self.rows), self.step.f
        whole = count // self.width
        rest = count - whole * self.width

        def line(i: Number) -> None:
            head = unraveled(i, self.batch)
            f.loop(0, whole, 1, lambda j: self.vector(head, j * self.width, self.width))
            if rest:
                self.vector(head, whole * self.width, rest)

        start, stop = self.step.share(prod(self.batch))
        if prod(self.batch) == 1:
            self.step.alone(lambda: line(0))
        else:
            f.loop(start, stop, 1, line)

    def vector(self, head: list[Number], first: Number, valid: int) -> None:
        """`valid` results, from number `first`."""
        f = self.step.f
        of_x = self.step.pointer(self.x), index(self.x.offset, head, self.x.strides)
        of_y = self.step.pointer(self.y), index(self.y.offset, head, self.y_strides)
        line, (pointer, base), stride = of_x, of_y, self.y.strides[-1]
        along = len(head) + 1
        if self.rows != 1:
            line, (pointer, base), stride, along = of_y, of_x, self.x.strides[-2], len(head)
        rows = [f.whole(base) + (first + min(k, valid - 1)) * stride for k in range(self.width)]
        at = [*head, 0, 0]
        at[along] = first
        found = dots(f, line, pointer, rows, self.length)
        self.pieces.finish({self.made: found}, Lanes(at, along, self.width, valid))
