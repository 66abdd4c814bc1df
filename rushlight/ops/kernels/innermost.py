"""Channels innermost: what Winograd's loops (kernels/winograd.py) and gathered ones (kernels/gathered.py) share.

Arrays are float32, (N, C, *size), or lie with their channels last; in the loops' rooms a place has its channels in whole
vectors one after the other. Products of matrices are made in blocks, `height` rows times `width` vectors of columns in
registers: of AVX-512's 6 times 4, so that 24 fused multiply-adds need 10 loads.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import local

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.strided import suggests_last

FLOAT = np.dtype(np.float32)
KEPT = 1 << 22       # numbers of the largest room that is kept for the next call


class Rooms(local):
    """Each thread's rooms, used again: fresh pages cost as much as filling them."""

    def __init__(self) -> None:
        self.known: dict[str, ndarray] = {}

    def take(self, name: str, size: int) -> ndarray:
        """So many numbers and a vector more, of any content, from a line of the cache on."""
        room = self.known.get(name)
        if room is None or len(room) < size + 16:
            fresh = np.zeros(size + 32, FLOAT)
            room = fresh[-fresh.ctypes.data % 64 // 4:][:size + 16]
            if size <= KEPT:
                self.known[name] = room
        return room

    def zeros(self, name: str, size: int) -> ndarray:
        room = self.take(name, size)
        room[:size] = 0
        return room


rooms = Rooms()


@cache
def lanes() -> int:
    from rushlight.compile.vectors import machine
    return machine()[0]


def whole(channels: int) -> int:
    """The numbers of whole vectors."""
    return -(-channels // lanes()) * lanes()


def flat(x: ndarray) -> tuple[ndarray, bool]:
    """x (N, C, *size) as it lies in memory, and whether its channels lie innermost."""
    last = suggests_last(x)
    if last:
        x = np.moveaxis(x, 1, -1)
    return (x if x.flags.carray else x.copy()).reshape(-1), last


def packed(w: ndarray, given: int, made: int, taps: int, back: bool) -> ndarray:
    """Filters w (made, given, *kernel), or (given, made, *kernel) for a gradient of the input (`back`), with what they make
    innermost: flat, (given, taps, whole vectors)."""
    out = rooms.take("packed", given * taps * whole(made))
    if made < whole(made):
        out[:] = 0
    pack()((w if w.flags.carray else w.copy()).reshape(-1), given, made, taps, back, out, whole(made))
    return out


# -- the text of loops ---------------------------------------------------------------------------------------------

PACK = """def kernel(w, given, made, taps, back, out, broad):
    if back:
        for c in range(given):
            turn(w, c * made * taps, made, taps, taps, out, c * taps * broad, broad)
    else:
        turn(w, 0, made, given * taps, given * taps, out, 0, broad)
"""

TURN = """def kernel(x, at, rows, columns, pitch, out, to, wide):
    \"\"\"out[to + j wide + i] = x[at + i pitch + j], i < rows, j < columns.\"\"\"
    restrict()
    if rows >= {lanes} and columns >= {lanes}:
        for a in range(0, rows, {lanes}):
            i = min(a, rows - {lanes})            # the last square may overlap the one before
            for b in range(0, columns, {lanes}):
                j = min(b, columns - {lanes})
                transpose(x, at + i * pitch + j, pitch, out, to + j * wide + i, wide)
    else:
        for i in range(rows):
            for j in range(columns):
                put(out, to + j * wide + i, get(x, at + i * pitch + j))
"""


def indented(lines: list[str], by: int) -> str:
    return "\n".join(" " * by + line for line in lines)


@cache
def turning() -> Callable:
    """The loop `TURN`, which others call by the name `turn`: LLVM takes long for a square of vectors."""
    from rushlight.compile.cache import compiled
    return compiled(TURN.format(lanes=lanes()))


@cache
def pack() -> Callable:
    from rushlight.compile.cache import calling
    return calling(PACK, turn=turning())


@cache
def shapes() -> dict[int, int]:
    """By the number of vectors of columns that are added up at once, the number of rows; the first is the usual one."""
    from rushlight.compile.vectors import machine
    return {4: 6, 3: 8, 2: 8, 1: 8} if machine()[1] == 32 else {2: 6, 1: 8}


def usual() -> tuple[int, int]:
    return next(iter(shapes().items()))


def kind(columns: int) -> int:
    """Of so many columns, in whole vectors, what the text of a loop depends on."""
    vectors, width = columns // lanes(), usual()[0]
    return min(vectors, width + vectors % width)


def sums(width: int, height: int) -> list[tuple[int, int]]:
    return [(a, k) for a in range(height) for k in range(width)]


def step(width: int, height: int, panel: str, left: Callable[[int], str]) -> list[str]:
    """One step along the sums s: `width` vectors of the panel, from b on, times `height` numbers."""
    return [*[f"b{k} = load({panel}, b + {k * lanes()})" for k in range(width)],
            *[line for a in range(height) for line in (
                f"v = spread({left(a)})", *[f"s{a}_{k} = fma(v, b{k}, s{a}_{k})" for k in range(width)])]]


def blocks(block: Callable, columns: str, vectors: int, by: int, height: int = 0) -> str:
    """Loops over all columns: `block(width, height)` of the usual width, and of what is left over; from column o on."""
    width, rest = usual()[0], vectors % usual()[0]
    lines: list[str] = []
    if vectors >= width:
        lines += [f"for o in range(0, {columns} - {width * lanes() - 1}, {width * lanes()}):",
                  *["    " + line for line in block(width, height or shapes()[width])]]
    if rest:
        lines += [f"o = {columns} - {rest * lanes()}", *block(rest, height or shapes()[rest])]
    return indented(lines, by)
