"""Convolution with kernels of 3 x 3 by Winograd's F(2 x 2, 3 x 3), for float32.

Four adjacent results are made from 4 x 4 numbers of the source with 16 products instead of 36,

    y = A^T [(G w G^T) * (B^T d B)] A,

A. Lavin and S. Gray, *Fast algorithms for convolutional neural networks*, 2016. Sums over channels are computed before
the last step, so that the work is 16 matrix products. The weight's gradient is the same bilinear form, transposed: G^T
[(A g A^T) * (B^T d B)] G, added up over tiles. The result is as accurate as sums of nine products (errors of 2e-7, as
in torch) unless neighbouring numbers differ much in magnitude: numbers far above the mean of their image, and
infinities and nan, are Inexact.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.threads import alone
from rushlight.fast.conv.channels_last import empty_result, flat, kind, packed_filters, usual
from rushlight.fast.conv.tiling import (
    FLOAT,
    Inexact,
    for_images,
    lanes,
    padded_bias,
    sum_over_images,
    whole_vectors,
    workspaces,
)
from rushlight.fast.index import (
    WINOGRAD_LARGE_FILTERS,
    WINOGRAD_MIN_CHANNELS,
    WINOGRAD_MIN_TILES,
    WINOGRAD_MIN_TILES_LARGE,
    WINOGRAD_SUM_TILES,
    WINOGRAD_TILE_FLOATS,
    WINOGRAD_TILES,
)
from rushlight.kernels.conv import Plan
from rushlight.kernels.im2col import Ints

HALF = np.array([0.5], FLOAT)
GT = np.array([[1, 0.5, 0.5, 0], [0, 0.5, -0.5, 0], [0, 0.5, 0.5, 1]], FLOAT)


def tiles_of(size: Ints) -> int:
    """The number of 2 x 2 tiles in an image of this size."""
    return prod([-(-n // 2) for n in size])


@lru_cache(maxsize=64)
def tile_sources(size: Ints, out: Ints, padding: Ints, images: int, width: int) -> ndarray:
    """For each tile of all images, the start of its 4 x 4 numbers in the workspace."""
    at = tuple([np.arange(-p, n - p, 2)[:, None] + np.arange(4) for n, p in zip(out, padding)])
    return tile_table(size, at, images, width)


@lru_cache(maxsize=64)
def tile_results(out: Ints, images: int, width: int) -> ndarray:
    """For each tile, the start of its 2 x 2 results."""
    return tile_table(out, tuple([np.arange(0, n, 2)[:, None] + np.arange(2) for n in out]), images, width)


def tile_table(size: Ints, at: tuple, images: int, width: int) -> ndarray:
    """Offsets of rows at[0] (tiles, r) times columns at[1] (tiles, c) in images of this size. Positions outside an
    image get the offset of the workspace's last position, which is zero.
    """
    (high, broad), (rows, columns) = size, at
    rows, columns = rows[:, None, :, None], columns[None, :, None, :]
    inside = (rows >= 0) & (rows < high) & (columns >= 0) & (columns < broad)
    one = rows * broad + columns
    shifted = one + np.arange(images).reshape(-1, 1, 1, 1, 1) * (high * broad)
    return np.where(inside, shifted, images * high * broad).reshape(-1) * width


class Job(NamedTuple):
    """The values of a call that depend on its plan alone."""

    images: int  # images that are copied at a time
    block: int  # tiles that are multiplied at a time
    tiles: int  # tiles of an image
    deep: int  # deep, broad: the channels read, and the channels made, padded to whole vectors
    broad: int
    sources: ndarray  # the result of `tile_sources`
    results: ndarray  # the result of `tile_results`
    xs: int  # floats of the workspaces: images read and made, and their transformed tiles
    ys: int
    vs: int
    ms: int


@lru_cache(maxsize=256)
def job_of(p: Plan) -> Job:
    (read, size), (made, out) = p.read, p.made
    deep, broad, tiles = whole_vectors(read), whole_vectors(made), tiles_of(out)
    most = max(12, min(WINOGRAD_TILES, WINOGRAD_TILE_FLOATS // (16 * (deep + broad))))
    images = max(1, most // tiles)
    block = -(-images * tiles // -(-images * tiles // most))
    padding = tuple([2 - n for n in p.padding]) if p.back else p.padding
    return Job(
        images,
        block,
        tiles,
        deep,
        broad,
        tile_sources(size, out, padding, images, deep),
        tile_results(out, images, broad),
        (images * prod(size) + 1) * deep,
        (images * prod(out) + 1) * broad,
        transformed_floats(block, deep),
        transformed_floats(block, broad),
    )


def transformed_floats(tiles: int, width: int) -> int:
    """The size of 16 planes of transformed tiles, each padded by 16 tiles and a vector, so that planes do not map to
    the same cache sets.
    """
    return 16 * ((tiles + 16) * width + lanes())


def transformed_filters(w: ndarray, p: Plan, j: Job) -> ndarray:
    """G w G^T of filters w, in the loops' layout; for the input's gradient with the kernel reversed."""
    from rushlight.fast.conv import winograd_loops as loops

    read, _ = p.read
    out = workspaces.take("filters", 16 * read * j.broad)
    loops.transform()(packed_filters(w, p), HALF, *((8, -1) if p.back else (0, 1)), read, j.broad, out)
    return out


def clear(space: ndarray, width: int, channels: int) -> None:
    """Set the last position, and the lanes without a channel, to zero."""
    space[-width:] = 0
    if channels < width:
        space[:-width] = 0


def suits(p: Plan) -> bool:
    """True for 3 x 3 and stride 1, with enough tiles to need little more than half of the products."""
    if p.kernel != (3, 3) or p.groups != 1 or p.stride != (1, 1) or p.dilation != (1, 1):
        return False
    pairs, tiles = p.channels * p.filters, tiles_of(p.out)
    least = WINOGRAD_MIN_TILES if pairs < WINOGRAD_LARGE_FILTERS else WINOGRAD_MIN_TILES_LARGE
    if min(p.channels, p.filters) < WINOGRAD_MIN_CHANNELS or p.images * tiles < least:
        return False
    return 36 * prod(p.out) * pairs >= 60 * tiles * whole_vectors(p.channels) * whole_vectors(p.filters)


def conv(p: Plan, x: ndarray, w: ndarray, bias: ndarray | None = None) -> ndarray:
    """x (N, C, H, W), w (O, C, 3, 3), bias (O,) -> (N, O, *out), channels-last in memory if x is.

    Or the input's gradient, with g (N, O, *out) instead of x: (N, C, *size).
    """
    from rushlight.fast.conv import winograd_loops as loops

    j, (read, size), (made, out) = job_of(p), p.read, p.made
    filters, added, loop = transformed_filters(w, p, j), padded_bias(bias, j.broad), loops.conv(kind(j.broad))
    source, last = flat(x)
    result, shaped = empty_result(p, last)
    given = source, last, read, prod(size), j.sources, filters, added
    target, exact = (made, prod(out), j.results, result), []

    def part(first: int, end: int, step: int) -> None:
        xs, ys, vs, ms = [workspaces.take(name, getattr(j, name)) for name in ("xs", "ys", "vs", "ms")]
        clear(xs[: j.xs], j.deep, read)
        exact.append(loop(*given, *target, xs, vs, ms, ys, j.images, j.block, first, end))

    for_images(part, p.images, j.images)
    if not all(exact):
        raise Inexact
    return shaped


def conv_weight_grad(p: Plan, g: ndarray, x: ndarray) -> ndarray:
    """The weight's gradient (O, C, 3, 3)."""
    from rushlight.fast.conv import winograd_loops as loops

    j, height, loop = job_of(p), usual()[1], loops.weight_grad(kind(whole_vectors(p.channels)))
    rows = -(-p.filters // height) * height
    given = *flat(x), p.channels, prod(p.size), j.sources, *flat(g), p.filters, prod(p.out), j.results
    exact = []

    def start() -> Callable:
        xs, gs, vs, es = [workspaces.take(name, getattr(j, name)) for name in ("xs", "ys", "vs", "ms")]
        clear(xs[: j.xs], j.deep, p.channels)
        clear(gs[: j.ys], j.broad, p.filters)
        return lambda total, first, end, step: exact.append(
            loop(*given, total, xs, vs, gs, es, j.images, j.block, first, end)
        )

    each = j.images * max(1, min(WINOGRAD_SUM_TILES // (j.images * j.tiles), -(-p.images // j.images)))
    total = sum_over_images(start, 16 * rows * j.deep, p.images, j.images, each)
    if not all(exact):
        raise Inexact
    by_rows = alone(np.matmul, GT, total.reshape(4, 4 * rows * j.deep)).reshape(3, 4, rows * j.deep)
    w = alone(np.matmul, GT, by_rows).reshape(3, 3, rows, j.deep)[..., : p.filters, : p.channels]
    if not np.isfinite(w).all():
        raise Inexact
    return np.ascontiguousarray(w.transpose(2, 3, 0, 1))
