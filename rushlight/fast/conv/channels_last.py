"""Channels last: code shared by the compiled loops of winograd.py and indirect.py.

Arrays are float32, (N, C, *size), channels-last in memory or not. In the loops' workspaces the channels of a position
are contiguous and padded to whole vectors. Matrix products are made in blocks, `height` rows times `width` vectors of
columns in registers: 6 times 4 for AVX-512, so that 24 fused multiply-adds need 10 loads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.conv.tiling import FLOAT, contiguous, lanes, whole_vectors, workspaces
from rushlight.kernels.conv import Plan
from rushlight.kernels.layout import suggests_last


def flat(x: ndarray) -> tuple[ndarray, bool]:
    """x (N, C, *size) flat, in memory order, and whether it is channels-last."""
    last = suggests_last(x)
    return contiguous(np.moveaxis(x, 1, -1) if last else x).reshape(-1), last


def empty_result(p: Plan, last: bool) -> tuple[ndarray, ndarray]:
    """Memory for the result of a plan: flat, and as (N, channels made, *size), channels-last in memory or not."""
    channels, size = p.made
    if last:
        result = memory.take((p.images, *size, channels), FLOAT)
        return result.reshape(-1), np.moveaxis(result, -1, 1)
    result = memory.take((p.images, channels, *size), FLOAT)
    return result.reshape(-1), result


def packed_filters(w: ndarray, p: Plan) -> ndarray:
    """w (O, C / groups, *kernel) in the layout of the loops: flat, (channels read, taps, channels made, padded to whole
    vectors).
    """
    (read, _), (made, _) = p.read, p.made
    read, made = (read * p.groups, made) if p.back else (read, made * p.groups)
    broad = whole_vectors(made)
    out = workspaces.take("packed", read * p.taps * broad)
    if made < broad:
        out[:] = 0
    pack()(contiguous(w).reshape(-1), read, made, p.taps, p.back, out, broad)
    return out


# -- the text of loops ---------------------------------------------------------------------------

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
    """The loop `TURN`, called by other loops as `turn`. It is compiled once, because LLVM takes long for a square of
    vectors."""
    from rushlight.loops.cache import compiled

    return compiled(TURN.format(lanes=lanes()))


@cache
def pack() -> Callable:
    from rushlight.loops.cache import calling

    return calling(PACK, turn=turning())


@cache
def shapes() -> dict[int, int]:
    """{vectors of columns: rows} for blocks whose sums fit in registers; the first is the usual block."""
    from rushlight.loops.llvm import machine

    return {4: 6, 3: 8, 2: 8, 1: 8} if machine()[1] == 32 else {2: 6, 1: 8}


def usual() -> tuple[int, int]:
    return next(iter(shapes().items()))


def kind(columns: int) -> int:
    """The number of vectors that the text of a loop depends on, for `columns` columns padded to whole vectors."""
    vectors, width = columns // lanes(), usual()[0]
    return min(vectors, width + vectors % width)


def sums(width: int, height: int) -> list[tuple[int, int]]:
    return [(a, k) for a in range(height) for k in range(width)]


def step(width: int, height: int, panel: str, left: Callable[[int], str]) -> list[str]:
    """One step of the sums s: `width` vectors of the panel, from b on, times `height` numbers."""
    return [
        *[f"b{k} = load({panel}, b + {k * lanes()})" for k in range(width)],
        *[
            line
            for a in range(height)
            for line in (f"v = spread({left(a)})", *[f"s{a}_{k} = fma(v, b{k}, s{a}_{k})" for k in range(width)])
        ],
    ]


def block_sums(
    width: int,
    height: int,
    loop: str,
    panel: str,
    left: Callable[[int], str],
    before: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
) -> list[str]:
    """The sums s of a block, from zero: a `step` in each iteration of `loop`, with the lines `before` and `after` it."""
    return [
        *[f"s{a}_{k} = none()" for a, k in sums(width, height)],
        loop,
        *["    " + line for line in (*before, *step(width, height, panel, left), *after)],
    ]


def block_added(width: int, height: int, at: Callable[[int, int], str]) -> list[str]:
    """The sums s of a block plus the vectors at `at(row, column)`."""
    return [f"s{a}_{k} = add(s{a}_{k}, load({at(a, k)}))" for a, k in sums(width, height)]


def block_stored(width: int, height: int, at: Callable[[int, int], str]) -> list[str]:
    return [f"store({at(a, k)}, s{a}_{k})" for a, k in sums(width, height)]


def blocks(block: Callable, columns: str, vectors: int, by: int, height: int = 0) -> str:
    """Loops over all columns, from column o on: `block(width, height)` of the usual width, then a block for the rest."""
    width, rest = usual()[0], vectors % usual()[0]
    lines: list[str] = []
    if vectors >= width:
        lines += [
            f"for o in range(0, {columns} - {width * lanes() - 1}, {width * lanes()}):",
            *["    " + line for line in block(width, height or shapes()[width])],
        ]
    if rest:
        lines += [f"o = {columns} - {rest * lanes()}", *block(rest, height or shapes()[rest])]
    return indented(lines, by)
