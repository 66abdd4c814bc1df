"""Products of float32 matrices as compiled loops, for shapes for which OpenBLAS is slower (benchmarks/products.py).

After Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a block of y, half as large as
the L2 cache, is copied to panels of 64 columns, in the order in which it is read. Six rows of x at a time are
multiplied with all panels (loops/matmul_tiles.py), so that these rows stay in the L1 cache, and rows of the result are
written from left to right. Rows of x are read in place; a transposed x is copied first, part by part. Fewer than 20
rows of x read y in place, one panel at a time. 16 rows, and 24 to 32, also read y in place if y is a transpose, such as
a layer's weight: up to 8 or 12 rows use dot products with rows of y, 16 at a time; more rows exchange the operands,
with x transposed (16 and 32 rows by 128 x 512: 0.7 of the time; 24 rows 0.9 on a Xeon, 1.15 on an EPYC; 18 would take
1.4).

`product` supports any strides; k is at least 2, and m at least LOW, or, for two matrices, m at least 2 and n 16.

`kernel(x_id, y_id, out_id, more_id, room_at)`: out = x y + more for all matrices of x (..., m, deep) and y (..., deep,
n); returns False unless one of the last two strides of each is the size of a number. The rows of out (..., m, n) are
contiguous; more (n,), or zeros (1, a panel). room: memory for a block of y, then for rows of x. The kernel reads shapes
and strides from the C structs of the arrays (PyArrayObject_fields): reading them in Python took 3 us, a tenth of the
time of a product (32, 128) (128, 512).

`lay(x, at, down, beside, high, many, out, gap, apart)`: out[p gap + c] = x[at + p down + c beside], p < high, c < many;
panels as wide as a tile are `apart` floats apart. down or beside is 1; if down is 1, high is at least a register.
"""

from __future__ import annotations

from functools import cache
from threading import local
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.fast.index import MATMUL_PARALLEL_PRODUCTS
from rushlight.loops.cache import compiled
from rushlight.loops.llvm import machine
from rushlight.loops.matmul_tiles import HEIGHTS, SQUARE, WIDTH
from rushlight.loops.parallel import cores, pool

DEEP, TURNED = 512, 256  # the most numbers added up sequentially; TURNED for a transposed x
# numbers in y's block: SHARE for each row of x, but at least SMALL and at most BLOCK. Few rows reuse a block little.
BLOCK, SMALL, SHARE = 1 << 17, 1 << 15, 128
FEW, NEAR = 48, 1 << 16  # most rows, and most numbers of y, for reading y in place: y stays in L2
ROWS = 128  # rows of a transposed x that are transposed at a time, beside the block in L2
LEAST = 64  # the least rows or columns for each core: a panel
BROAD = 128  # the least columns for each core if y is divided by columns: no core then copies another's y
LOW, THIN = 20, 32  # below LOW rows y is read in place, THIN of its rows at a time
TURN = 16  # most rows for transposing x
DOTS, LONG = 8, 256  # most rows of x for dot products with a transpose; 4 more if rows are long

TEXT = """def kernel(x_id, y_id, out_id, more_id, room_at):
    x_sizes, x_steps = word(x_id + {sizes}), word(x_id + {steps})
    y_sizes, y_steps = word(y_id + {sizes}), word(y_id + {steps})
    out_steps, above = word(out_id + {steps}), (word(x_id + {dimensions}) & 255) - 2
    m, deep, n = word(x_sizes + 8 * above), word(y_sizes + 8 * above), word(y_sizes + 8 * above + 8)
    row, step = word(x_steps + 8 * above), word(x_steps + 8 * above + 8)
    down, beside = word(y_steps + 8 * above), word(y_steps + 8 * above + 8)
    line, given = word(out_steps + 8 * above), 2 - (word(more_id + {dimensions}) & 255)
    x_at, y_at, out_at = word(x_id + {data}), word(y_id + {data}), word(out_id + {data})
    if (row != 4 and step != 4) or (down != 4 and beside != 4) or (row | step | down | beside | x_at | y_at) & 3:
        return False
    room, turned, more = memory(room_at), memory(room_at + {block} * 4), memory(word(more_id + {data}))
    row, step, down, beside, line = row >> 2, step >> 2, down >> 2, beside >> 2, line >> 2
    passing = m <= {low} and step == 1 == beside
    most = {turned} if step != 1 else {thin} if passing else {deep}
    groups = 1 if step == 1 else (m + {rows} - 1) // {rows}
    pieces = (deep + most - 1) // most
    panels = (n + {panel} - 1) // {panel}
    some = min({block}, max({small}, m * {share})) // ((deep + pieces - 1) // pieces * {panel})
    parts = panels if passing else (panels + some - 1) // some
    products = 1
    for d in range(above):
        products *= word(x_sizes + 8 * d)
    for product in range(products):
        x_now, y_now, out_now, rest = x_at, y_at, out_at, product
        for d in range(above - 1, -1, -1):
            k = rest % word(x_sizes + 8 * d)
            rest //= word(x_sizes + 8 * d)
            x_now, y_now = x_now + k * word(x_steps + 8 * d), y_now + k * word(y_steps + 8 * d)
            out_now += k * word(out_steps + 8 * d)
        x, y, out = memory(x_now), memory(y_now), memory(out_now)
        filled = {dots_of} + 4 * (deep > {long}) < m <= {lanes} or 3 * {lanes} <= 2 * m <= 4 * {lanes}
        if (down == 1 == step and filled and n >= 2 * {lanes} and deep >= {lanes}
                and 3 * {lanes} * (deep + 2 * {lanes}) <= {block}):
            turn(x, row, m, deep, room)
            for at in range(0, n, {half}):
                j, then = min(at, n - {half}), min(at + {half}, n - {half}) * beside
                if m <= {lanes}:
                    across1(y, j * beside, beside, room, 0, more, j * given, out, j, line, deep, m - 1, then)
                else:
                    across2(y, j * beside, beside, room, 0, more, j * given, out, j, line, deep, m - 1, then)
            continue
        if m < {low} and down == 1:
            for at in range(0, n, {columns}):
                j = min(at, n - {columns})
                for i in range(0, m, {high}):
                    dots(x, i * row, row, y, j * beside, beside, more, j * given, out, i * line + j, line, deep, m - 1 - i)
            continue
        for piece in range(pieces):
            first = deep * piece // pieces
            length = deep * (piece + 1) // pieces - first
            for part in range(parts):
                start = panels * part // parts * {panel}
                broad = min(n, panels * (part + 1) // parts * {panel}) - start
                laid, place, across, apart = room, 0, {panel}, length * {panel}
                if beside == 1 and n % {lanes} == 0 and (m <= {few} and down * length <= {near} or passing):
                    laid, place, across, apart = y, first * down + start, down, {panel}
                else:
                    lay(y, first * down + start * beside, down, beside, length, broad, room, {panel}, apart)
                for group in range(groups):
                    top = m * group // groups
                    high = m * (group + 1) // groups - top
                    rows, at, far = x, top * row + first, row
                    if step != 1:     # an odd number of vectors: rows map to different cache sets
                        rows, at, far = turned, 0, ((length + {lanes} - 1) // {lanes} | 1) * {lanes}
                        lay(x, top + first * step, 1, step, high, length, turned, far, {panel})
                    tiles = (high + {six} - 1) // {six}
                    sixes = high - {five} * tiles
                    for t in range(tiles):
                        i = {five} * t + min(t, sixes)
                        for j in range(0, broad, {panel}):
                            many = min({panel}, broad - j)
                            registers = (many + {lanes} - 1) // {lanes}
                            o = (top + i) * line + start + j
                            base, m0, below = more, (start + j) * given, 0
                            if piece > 0:
                                base, m0, below = out, o, line
{tiles}
    return True
"""

LAY = """

@cached
def turn(x, row, m, deep, room):
    \"\"\"room[p wide + r] = x[r row + p], a register or two for each p; rows beyond the last repeat the last row.\"\"\"
    wide, apart = (m + {lanes} - 1) // {lanes} * {lanes}, ((deep + {lanes} - 1) // {lanes} | 1) * {lanes}
    last = part(room, wide * deep)
    for r in range(0, m, {lanes}):
        if r + {lanes} <= m:
            lay(x, r * row, 1, row, deep, {lanes}, part(room, r), wide, 0)
        else:
            for i in range({lanes}):
                copy(last, i * apart, x, min(r + i, m - 1) * row, deep)
            lay(last, 0, 1, apart, deep, {lanes}, part(room, r), wide, 0)

@cached
def lay(x, at, down, beside, high, many, out, gap, apart):
    whole = many // {lanes} * {lanes}
    last = whole // {panel} * apart + whole % {panel}
    if beside == 1:
        for p in range(high):
            for c in range(0, whole, {lanes}):
                store(out, p * gap + c // {panel} * apart + c % {panel}, load(x, at + p * down + c))
            if whole < many:
                store(out, p * gap + last, load_first(x, at + p * down + whole, many - whole))
        return
    for c in range(0, whole, {lanes}):            # the processor prefetches cache lines of x
        for part in range(0, high, {lanes}):
            p = min(part, high - {lanes})
            transpose(x, at + p + c * beside, beside, out, p * gap + c // {panel} * apart + c % {panel}, gap)
    for p in range(high if whole < many else 0):
        store(out, p * gap + last, none())
        for c in range(whole, many):
            put(out, p * gap + last + c - whole, get(x, at + p + c * beside))
"""


@cache
def kernel() -> Any:
    lanes, registers = machine()
    width, (six, five), (high, columns), head = WIDTH[registers], HEIGHTS, SQUARE[lanes], object.__basicsize__
    lines: list[str] = []
    for rows in HEIGHTS:
        for count in range(width, 0, -1):
            lines += [
                f"{'el' * bool(lines)}if registers == {count} and t {'<' if rows == six else '>='} sixes:",
                f"    tile{rows}x{count}(rows, at + i * far, far, laid, place + j // {width * lanes} * apart, across, "
                "base, m0, below, out, o, line, length, many)",
            ]
    tiles = "\n".join(" " * 28 + line for line in lines)
    return compiled(
        (TEXT + LAY).format(
            tiles=tiles,
            lanes=lanes,
            width=width,
            panel=width * lanes,
            six=six,
            five=five,
            deep=DEEP,
            turned=TURNED,
            rows=ROWS,
            dots_of=DOTS,
            long=LONG,
            half=lanes // 2,
            block=BLOCK,
            small=SMALL,
            share=SHARE,
            few=FEW,
            near=NEAR,
            low=LOW,
            thin=THIN,
            high=high,
            columns=columns,
            data=head,
            dimensions=head + 8,
            sizes=head + 16,
            steps=head + 24,
        )
    )


class Room(local):
    """Each thread's memory for y's block and rows of x, reused; aligned to a cache line."""

    def __init__(self) -> None:
        self.held = np.empty(BLOCK + ROWS * (TURNED + 2 * machine()[0]) + 16, np.float32)
        self.place = self.held.ctypes.data + -self.held.ctypes.data % 64


@cache
def room() -> Room:
    return Room()


# the addend of a result's panel if there is no bias
NOTHING = np.zeros((1, 64), np.float32)


def product(x: ndarray, y: ndarray, out: ndarray, more: ndarray | None = None) -> None:
    """out = x y + more: x (..., m, k), y (..., k, n), out (..., m, n) with contiguous rows, more (n,)."""
    _ = x.base, y.base  # reading `base` makes a batch of vmap raise its error
    more = NOTHING if more is None else more
    if x.size * y.shape[-1] < MATMUL_PARALLEL_PRODUCTS or cores() == 1:
        run(x, y, out, more)
        return
    axis = 0 if out.ndim > 2 or out.shape[1] < min(len(out), BROAD * cores()) else 1
    size, unit = out.shape[axis], LEAST if axis else 1
    parts = max(1, min(cores(), size // LEAST if out.ndim == 2 else size))
    bounds = [size * k // parts // unit * unit for k in range(parts)] + [size]
    cuts = [slice(*bounds[k : k + 2]) for k in range(parts)]
    if axis == 0:
        calls = [(x[cut], y[cut] if y.ndim > 2 else y, out[cut], more) for cut in cuts]
    else:
        calls = [(x, y[:, cut], out[:, cut], more if more is NOTHING else more[cut]) for cut in cuts]
    pool.run(run, calls)


def run(x: ndarray, y: ndarray, out: ndarray, more: ndarray) -> None:
    """The loop, with this thread's workspace."""
    (m, n), (six, five) = out.shape[-2:], HEIGHTS
    rows = max(m, five * -(-m // six))  # the rows that tiles make
    if m <= LOW and out.ndim == 2 and (x.strides[1] != 4 or y.strides[0] != 4 and m < rows):
        few, made = np.zeros((rows, x.shape[1]), np.float32), np.empty((rows, n), np.float32)
        few[:m] = x
        run(few, y, made, more)
        out[...] = made[:m]
    elif n < LOW <= m and out.ndim == 2 and x.strides[1] != 4:  # (y^T x^T)^T
        turned = np.empty((n, m), np.float32)
        run(y.T, x.T, turned, NOTHING)
        np.add(turned.T, more if more.ndim == 1 else 0, out=out)
    elif x.shape[-1] < TURN and y.strides[-1] != 4:
        run(x, y.copy(), out, more)
    elif not kernel()(id(x), id(y), id(out), id(more), room().place):
        run(straight(x), straight(y), out, more)


def straight(x: ndarray) -> ndarray:
    """x, copied if neither rows nor columns are contiguous."""
    return x if x.flags.aligned and 4 in x.strides[-2:] else np.ascontiguousarray(x)
