"""Convolution with kernels of 3 x 3 by Winograd's F(2 x 2, 3 x 3), for float32, where Numba is installed.

Four results that stand together are made of 4 x 4 numbers of the source with 16 products instead of 36,

    y = A^T [(G w G^T) * (B^T d B)] A,

A. Lavin and S. Gray, *Fast algorithms for convolutional neural networks*, 2016. Sums over channels are added up before the
last step, so that the work is 16 products of matrices; the weight's gradient is the same bilinear form, turned around:
G^T [(A g A^T) * (B^T d B)] G, added up over tiles. It is as exact as sums of nine products are (2e-7 off, torch 2e-7) unless
numbers that stand beside each other differ much in size: images with a number far above their mean, and what is not finite,
are for other loops to do.
"""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.direct import in_order, in_parts
from rushlight.ops.kernels.innermost import FLOAT, flat, kind, lanes, packed, rooms, usual, whole
from rushlight.ops.kernels.matmul import alone
from rushlight.ops.kernels.memory import memory
from rushlight.ops.kernels.windows import Ints

LEAST = 16           # channels on either side: fewer do not fill a vector
FEWEST = 64, 130     # tiles: of fewer, to transform the filters takes longer than it saves, in the cache and beyond it
LARGE = 1 << 17      # channels times filters that no cache holds
TILES = 72           # of which products are made at a time, so that they stay in the L2 cache
HELD = 1 << 18       # numbers of them
SUMMED = 1 << 12     # tiles whose gradients are added up one after the other
HALF = np.array([.5], FLOAT)
GT = np.array([[1, .5, .5, 0], [0, .5, -.5, 0], [0, .5, .5, 1]], FLOAT)


def suits(p: Any, images: int) -> bool:
    """Whether these loops are made for the plan (kernels/conv.py), and do little more than half of the work."""
    if p.kernel != (3, 3) or p.groups != 1 or p.stride != (1, 1) or p.dilation != (1, 1):
        return False
    few = FEWEST[p.channels * p.filters >= LARGE]
    if min(p.channels, p.filters) < LEAST or images * tiles_of(p.out) < few:
        return False
    return 36 * prod(p.out) * p.channels * p.filters >= 60 * tiles_of(p.out) * whole(p.channels) * whole(p.filters)


def tiles_of(out: Ints) -> int:
    return prod([-(-n // 2) for n in out])


@lru_cache(maxsize=64)
def sources(size: Ints, out: Ints, padding: Ints, images: int, width: int) -> ndarray:
    """For each tile of so many images, where in their room its 16 numbers begin; beside them is zero, the last place."""
    return table(size, tuple([np.arange(-p, n - p, 2)[:, None] + np.arange(4) for n, p in zip(out, padding)]), images, width)


@lru_cache(maxsize=64)
def targets(out: Ints, images: int, width: int) -> ndarray:
    """For each tile where its 4 results begin."""
    return table(out, tuple([np.arange(0, n, 2)[:, None] + np.arange(2) for n in out]), images, width)


def table(size: Ints, at: tuple, images: int, width: int) -> ndarray:
    (high, broad), (rows, columns) = size, at
    rows, columns = rows[:, None, :, None], columns[None, :, None, :]
    inside = (rows >= 0) & (rows < high) & (columns >= 0) & (columns < broad)
    one = rows * broad + columns
    shifted = one + np.arange(images).reshape(-1, 1, 1, 1, 1) * (high * broad)
    return np.where(inside, shifted, images * high * broad).reshape(-1) * width


def cut(tiles: int, channels: int) -> tuple[int, int]:
    """How many images, and how many of their tiles, at a time."""
    most = max(12, min(TILES, HELD // (16 * channels)))
    some = max(1, most // tiles)
    pieces = -(-some * tiles // most)
    return some, -(-some * tiles // pieces)


def plane(block: int, width: int) -> int:
    """16 planes of a room, some tiles and a vector apart, for lines of the cache to differ."""
    return 16 * ((block + 16) * width + lanes())


def transformed(w: ndarray, made: int, read: int, turned: bool) -> ndarray:
    """G w G^T of filters w, as the loops read them; `turned`: of the kernel turned around, from filters to channels."""
    from rushlight.ops.kernels import winograd_loops as loops
    out = rooms.take("filters", 16 * read * whole(made))
    loops.transform()(packed(w, read, made, 9, turned), HALF, *((8, -1) if turned else (0, 1)), read, whole(made), out)
    return out


def correlate(x: ndarray, w: ndarray, p: Any, bias: ndarray | None = None) -> ndarray | None:
    """conv: x (N, C, H, W), w (O, C, 3, 3), bias (O,) -> (N, O, *out), laid out as x; None where others do it."""
    return slid(x, transformed(w, p.filters, p.channels, False), p.channels, p.filters, p.size, p.out, p.padding, bias)


def spread(g: ndarray, w: ndarray, p: Any) -> ndarray | None:
    """conv_input_grad: g (N, O, *out) -> (N, C, H, W)."""
    padding = tuple([2 - n for n in p.padding])
    return slid(g, transformed(w, p.channels, p.filters, True), p.filters, p.channels, p.out, p.size, padding)


def slid(x: ndarray, filters: ndarray, read: int, made: int, size: Ints, out: Ints, padding: Ints,
         bias: ndarray | None = None) -> ndarray | None:
    from rushlight.ops.kernels import winograd_loops as loops
    deep, broad = whole(read), whole(made)
    some, block = cut(tiles_of(out), deep + broad)
    source, last = flat(x)
    result = memory.take((len(x), *out, made) if last else (len(x), made, *out), FLOAT)
    added = np.zeros(broad, FLOAT)
    if bias is not None:
        added[:made] = bias
    loop = loops.correlate(kind(broad))
    within, beyond = prod(size), prod(out)
    reads, writes = sources(size, out, padding, some, deep), targets(out, some, broad)
    well = []

    def part(first: int, end: int, step: int) -> None:
        xs = rooms.take("xs", (some * within + 1) * deep)
        ys = rooms.take("ys", (some * beyond + 1) * broad)
        cleared(xs, some * within * deep, deep, read)
        vs, ms = rooms.take("vs", plane(block, deep)), rooms.take("ms", plane(block, broad))
        well.append(loop(source, last, read, within, reads, filters, added, made, beyond, writes, result.reshape(-1), xs, vs,
                         ms, ys, some, block, first, end))

    in_parts(part, len(x), some)
    return (result.transpose(0, 3, 1, 2) if last else result) if all(well) else None


def cleared(room: ndarray, end: int, width: int, channels: int) -> None:
    """Zeros at the last place, and in the lanes without a channel."""
    room[end:end + width] = 0
    if channels < width:
        room[:end] = 0


def weigh(g: ndarray, x: ndarray, p: Any) -> ndarray | None:
    """conv_weight_grad: (O, C, 3, 3); None where other loops do it."""
    from rushlight.ops.kernels import winograd_loops as loops
    deep, broad = whole(p.channels), whole(p.filters)
    tiles = tiles_of(p.out)
    some, block = cut(tiles, deep + broad)
    rows = -(-p.filters // usual()[1]) * usual()[1]
    (xf, x_last), (gf, g_last) = flat(x), flat(g)
    loop = loops.weigh(kind(deep))
    within, beyond = prod(p.size), prod(p.out)
    reads, writes = sources(p.size, p.out, p.padding, some, deep), targets(p.out, some, broad)
    found: dict[int, ndarray] = {}
    well: list[bool] = []

    def part(first: int, end: int, step: int) -> None:
        xs = rooms.take("xs", (some * within + 1) * deep)
        gs = rooms.take("ys", (some * beyond + 1) * broad)
        cleared(xs, some * within * deep, deep, p.channels)
        cleared(gs, some * beyond * broad, broad, p.filters)
        vs, es = rooms.take("vs", plane(block, deep)), rooms.take("ms", plane(block, broad))
        for start in range(first, end, step):
            total = np.zeros(16 * rows * deep, FLOAT)
            well.append(loop(xf, x_last, p.channels, within, reads, gf, g_last, p.filters, beyond, writes, total, xs, vs, gs,
                             es, some, block, start, min(start + step, end)))
            found[start] = total

    in_parts(part, len(x), some * max(1, min(SUMMED // (some * tiles), -(-len(x) // some))), some)
    if not all(well):
        return None
    total = in_order(found).reshape(4, 4 * rows * deep)
    by_rows = alone()(np.matmul, GT, total).reshape(3, 4, rows * deep)
    w = alone()(np.matmul, GT, by_rows).reshape(3, 3, rows, deep)[..., :p.filters, :p.channels]
    return np.ascontiguousarray(w.transpose(2, 3, 0, 1)) if np.isfinite(w).all() else None
