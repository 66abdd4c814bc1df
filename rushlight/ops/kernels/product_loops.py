"""Products of float32 matrices as compiled loops, for shapes at which OpenBLAS is slower (benchmarks/products.py).

After Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a panel of y, 64 columns wide and at
most 512 deep, is copied so that it lies as it is read, and stays in the L2 cache while all rows of x go by, six at a time
(compile/tiles.py). Rows of x are read where they are; a transposed x is turned first, part by part.
"""
from __future__ import annotations

from functools import cache
from threading import local
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.compile.cache import compiled
from rushlight.compile.parallel import cores, pool
from rushlight.compile.tiles import HEIGHTS, WIDTH
from rushlight.compile.vectors import machine

DEEP, TURNED = 512, 256                           # numbers added up one after the other; of a transposed x
SHARED = 1 << 24                                  # multiplications from which all cores share the work: 0.27 ms on one
LEAST = 64                                        # rows or columns for each
ROWS = 480                                        # of a transposed x turned at a time: 480 KB, half the L2 cache

TEXT = """def kernel(x_at, row, step, y_at, down, beside, out_at, line, more_at, given, room_at, m, deep, n):
    \"\"\"out = x y + more; x (m, deep) and y (deep, n) with these steps, of each one is 1, out (m, n) in lines.

    more (n,) if `given` is 1, or a panel's width of zeros; room: for a panel of y, then for rows of x.
    \"\"\"
    x, y, out, room, more = memory(x_at), memory(y_at), memory(out_at), memory(room_at), memory(more_at)
    turned = memory(room_at + {deep} * {panel} * 4)
    most = {deep} if step == 1 else {turned}
    groups = 1 if step == 1 else (m + {rows} - 1) // {rows}
    pieces = (deep + most - 1) // most
    columns = (n + {lanes} - 1) // {lanes}
    panels = (columns + {width} - 1) // {width}
    wide = (columns + panels - 1) // panels * {lanes}
    for group in range(groups):
        top = m * group // groups
        high = m * (group + 1) // groups - top
        tiles = (high + {six} - 1) // {six}
        sixes = high - {five} * tiles
        for piece in range(pieces):
            first = deep * piece // pieces
            length = deep * (piece + 1) // pieces - first
            rows, at, far = x, top * row + first, row
            if step != 1:
                rows, at, far = turned, 0, ((length + {lanes} - 1) // {lanes} | 1) * {lanes}    # odd: rows do not meet in
                lay(x, top + first * step, 1, step, high, length, turned, far)                 # the same lines of the cache
            for j in range(0, n, wide):
                many = min(wide, n - j)
                registers = (many + {lanes} - 1) // {lanes}
                lay(y, first * down + j * beside, down, beside, length, many, room, {panel})
                for t in range(tiles):
                    i = {five} * t + min(t, sixes)
                    o = (top + i) * line + j
                    base, m0, apart = more, j * given, 0
                    if piece > 0:
                        base, m0, apart = out, o, line
{tiles}
"""

LAY = """

@cached
def lay(x, at, down, beside, high, many, out, gap):
    \"\"\"out[p gap + c] = x[at + p down + c beside], p < high, c < many; down or beside is 1, high at least {lanes}.\"\"\"
    whole = many // {lanes} * {lanes}
    if beside == 1:
        for p in range(high):
            for c in range(0, whole, {lanes}):
                store(out, p * gap + c, load(x, at + p * down + c))
            if whole < many:
                store(out, p * gap + whole, load_first(x, at + p * down + whole, many - whole))
        return
    for c in range(0, whole, {lanes}):
        for part in range(0, high, {lanes}):
            p = min(part, high - {lanes})
            transpose(x, at + p + c * beside, beside, out, p * gap + c, gap)
    for p in range(high if whole < many else 0):
        store(out, p * gap + whole, none())
        for c in range(whole, many):
            put(out, p * gap + c, get(x, at + p + c * beside))
"""


@cache
def kernel() -> Any:
    """The loop for this processor, and how many numbers it needs room for."""
    lanes, registers = machine()
    width, (six, five) = WIDTH[registers], HEIGHTS
    lines = []
    for rows in HEIGHTS:
        for count in range(width, 0, -1):
            lines += [f"{'el' * bool(lines)}if registers == {count} and t {'<' if rows == six else '>='} sixes:",
                      f"    tile{rows}x{count}(rows, at + i * far, far, room, 0, {width * lanes}, base, m0, apart, out, o, "
                      "line, length, many)"]
    numbers = {"lanes": lanes, "width": width, "panel": width * lanes, "six": six, "five": five, "deep": DEEP,
               "turned": TURNED, "rows": ROWS}
    tiles = "\n".join(" " * 20 + line for line in lines)
    return compiled((TEXT + LAY).format(tiles=tiles, **numbers))


@cache
def where() -> Any:
    """The address of an array: a third of the time that NumPy takes to tell it."""
    return compiled("def kernel(x):\n    return x.ctypes.data\n")


class Room(local):
    """Each thread's memory for panels, used again; it begins with a line of the cache."""

    def __init__(self) -> None:
        lanes, registers = machine()
        panel = WIDTH[registers] * lanes
        self.held = np.empty(DEEP * panel + ROWS * (TURNED + 2 * lanes) + 16, np.float32)
        self.place = self.held.ctypes.data + -self.held.ctypes.data % 64


@cache
def room() -> Room:
    return Room()


NOTHING = np.zeros(64, np.float32)                # what is added to a panel of the result where there is no bias
NOWHERE = NOTHING.ctypes.data


def product(x: ndarray, y: ndarray, out: ndarray, more: ndarray | None = None) -> None:
    """out = x y + more, all float32: x (m, k), y (k, n), out (m, n) whose rows lie number by number, as more (n,) does;
    m at least 20, k at least 16."""
    x, y = straight(x), straight(y)
    size = max(out.shape)
    parts = min(cores(), size // LEAST) if x.size * y.shape[1] >= SHARED else 1
    if parts <= 1:
        run(*places(x, y, out, more))
        return
    cuts = [slice(size * k // parts, size * (k + 1) // parts) for k in range(parts)]
    if len(out) == size:
        calls = [places(x[cut], y, out[cut], more) for cut in cuts]
    else:
        calls = [places(x, y[:, cut], out[:, cut], None if more is None else more[cut]) for cut in cuts]
    pool.run(run, calls)                          # threads that ask for places wait for each other: 0.1 ms a product


def straight(x: ndarray) -> ndarray:
    """The matrix, or a copy, whose rows or columns lie number by number."""
    return x if x.flags.aligned and 4 in x.strides else np.ascontiguousarray(x)


def places(x: ndarray, y: ndarray, out: ndarray, more: ndarray | None) -> tuple[int, ...]:
    """Where the loop finds what, and the sizes: x, y, out, more, m, k, n."""
    address, (row, step), (down, beside) = where(), x.strides, y.strides
    return (address(x if step == 4 else x.T), row >> 2, step >> 2,
            address(y if beside == 4 else y.T), down >> 2, beside >> 2,
            address(out), out.strides[0] >> 2,
            NOWHERE if more is None else address(more), int(more is not None),
            len(x), len(y), y.shape[1])


def run(*given: int) -> None:
    """The loop, in this thread's room; the arrays are held by who asks for it."""
    kernel()(*given[:-3], room().place, *given[-3:])
