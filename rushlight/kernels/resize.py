"""Sums along one dimension of elements at given positions, times given weights: resizing in every
mode, and its gradient, which is the same sums with a table turned around.

`how` names a table: (mode, size, *settings). All modes are functions from these to positions and
weights, of shape (taps, out); a position says which of `size` elements is meant, and weights None
are ones."""

from __future__ import annotations

from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.reductions import FLOAT, MUCH
from rushlight.kernels.im2col import wide_dtype
from rushlight.kernels.layout import suggests_last
from rushlight.loops.tiering import Loop

A = -0.75  # of the cubic convolution
Rows = tuple[ndarray, "ndarray | None"]  # positions and weights, (taps, out)


# -- positions and weights -------------------------------------------------------------------------


def nearest(size: int, out: int, scale: float, half: float = 0.0) -> Rows:
    """The positions that are picked, rounded as torch's."""
    at = np.floor((np.arange(out, dtype=np.float32) + np.float32(half)) * np.float32(scale))
    return at[None].astype(np.int64), None


def centres(out: int, scale: float, align: bool) -> ndarray:
    return np.arange(out) * scale if align else (np.arange(out) + 0.5) * scale - 0.5


def linear(size: int, out: int, scale: float, align: bool) -> Rows:
    centre = np.maximum(centres(out, scale, align), 0)
    low = np.floor(centre)
    return np.stack([low, low + 1]).astype(np.int64), np.stack([1 - (centre - low), centre - low])


def bicubic(size: int, out: int, scale: float, align: bool) -> Rows:
    centre = centres(out, scale, align)
    low = np.floor(centre)
    taps = np.array([[-1], [0], [1], [2]])
    return (low + taps).astype(np.int64), cubic(np.abs(centre - low - taps))


def cubic(t: ndarray, a: float = A) -> ndarray:
    """The weight of an element at distance t < 2 in cubic convolution."""
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def lanczos(t: ndarray) -> ndarray:
    """sinc(t) sinc(t / 3) for t < 3."""
    return np.where(t < 3, np.sinc(t) * np.sinc(t / 3), 0.0)


# how far a filter reaches, and its weight at a distance
FILTERS = {
    "bilinear": (1, lambda t: np.maximum(1 - t, 0)),
    "bicubic": (2, lambda t: cubic(t, -0.5)),
    "lanczos": (3, lanczos),
}


def antialias(size: int, out: int, scale: float, shape: str) -> Rows:
    """A filter as wide as what one element of the result stands for; aligned corners change the
    scale alone, as torch's."""
    width = max(scale, 1.0)
    taps, weight = FILTERS[shape]
    reach = width * taps
    centre = scale * (np.arange(out) + 0.5)
    low = np.maximum((centre - reach + 0.5).astype(np.int64), 0)
    high = np.minimum((centre + reach + 0.5).astype(np.int64), size)
    first = np.minimum(low, size - (high - low).max())  # as many taps for each, all of them inside
    at = first + np.arange((high - low).max())[:, None]
    t = np.abs((at - centre + 0.5) / width)
    weights = weight(t) * ((low <= at) & (at < high))
    return at, weights / weights.sum(0)


MODES = {"nearest": nearest, "linear": linear, "bicubic": bicubic, "antialias": antialias}


class Table(NamedTuple):
    """Tap k is for the elements `outs[k]` of the result, None for all; it has positions and
    weights, None for ones."""

    out: int
    outs: list[ndarray | None]
    places: list[ndarray]
    weights: list[ndarray | None]


@lru_cache(maxsize=256)
def table(how: tuple, back: bool) -> Table:
    """Positions outside are those of the nearest end."""
    mode, size, *settings = how
    places, weights = MODES[mode](size, *settings)
    places = np.clip(places, 0, size - 1)
    if back:
        return turned(places, weights, size)
    each = [None] * len(places) if weights is None else list(weights)
    return Table(places.shape[1], [None] * len(places), list(places), each)


def turned(places: ndarray, weights: ndarray | None, size: int) -> Table:
    """For each element those that were made of it, in order."""
    flat = places.T.reshape(-1)
    order = np.argsort(flat, kind="stable")
    ends = np.searchsorted(flat[order], np.arange(size + 1))
    counts = np.diff(ends)
    found = Table(size, [], [], [])
    for k in range(counts.max(initial=1)):
        there = np.flatnonzero(counts > k)
        chosen = order[ends[there] + k]
        found.outs.append(None if len(there) == size else there)
        found.places.append(chosen // len(places))
        found.weights.append(None if weights is None else weights.T.reshape(-1)[chosen])
    return found


# -- sums ------------------------------------------------------------------------------------------


def blend(x: ndarray, dim: int, how: tuple, back: bool) -> ndarray:
    """out[.., o, ..] = sum over k of weights[k, o] x[.., places[k, o], ..] along `dim`; `back`: the
    transpose of that."""
    if dim and suggests_last(x):  # the same of the array as it lies
        return np.moveaxis(blend(np.moveaxis(x, 1, -1), (dim - 1) or x.ndim - 1, how, back), -1, 1)
    found = table(how, back)
    picks = len(found.places) == 1 and found.outs[0] is None and found.weights[0] is None
    if x.dtype == np.uint8 and not picks:
        return np.clip(
            np.floor(by_taps(x.astype(np.float64), dim, in_short(found)) + 0.5), 0, 255
        ).astype(np.uint8)
    wide = x if picks else x.astype(wide_dtype(x.dtype), copy=False)
    made = by_loop(wide, dim, how, back) if wide.dtype is FLOAT else None
    return (by_taps(wide, dim, found) if made is None else made).astype(x.dtype, copy=False)


def in_short(found: Table) -> Table:
    """The table with weights in as many binary places as fit into 16 bits, in which torch mixes
    bytes."""
    weights = [np.ones(len(at)) if w is None else w for at, w in zip(found.places, found.weights)]
    most = max(0.0, *[w.max() for w in weights])
    unit = next((2.0**n for n in range(22) if int(0.5 + most * 2 ** (n + 1)) >= 1 << 15), 2.0**22)
    return found._replace(
        weights=[np.trunc(w * unit + np.copysign(0.5, w)) / unit for w in weights]
    )


def by_taps(x: ndarray, dim: int, found: Table) -> ndarray:
    shape = (*x.shape[:dim], found.out, *x.shape[dim + 1 :])
    column = (-1,) + (1,) * (x.ndim - dim - 1)
    total: Any = None
    for k, (outs, places, weights) in enumerate(zip(found.outs, found.places, found.weights)):
        part = x.take(places, dim)
        if weights is not None:
            part *= weights.astype(x.dtype).reshape(column)
        if outs is not None:
            total = np.zeros(shape, x.dtype) if total is None else total
            where = (slice(None),) * dim + (outs,)
            total[where] = part if k == 0 else total[where] + part
        else:
            total = part if total is None else np.add(total, part, out=total)
    return total


# -- the same in loops, to the last bit ------------------------------------------------------------

# x is (planes, size, after), starts (out + 1,), the k-th tap of element o has place[starts[o] + k]
ACROSS = """def kernel(x, starts, places, weights, out):
    restrict()
    wide()
    n, many = x.shape[2], starts.shape[0] - 1
    for i in range(x.shape[0]):
        for o in range(many):
            first, last = starts[o], starts[o + 1]
            if last - first == 2:
                p, q, v, w = places[first], places[first + 1], weights[first], weights[first + 1]
                for j in range(n):
                    out[i, o, j] = x[i, p, j] * v + x[i, q, j] * w
            elif last == first:
                for j in range(n):
                    out[i, o, j] = f32(0)
            else:
                p, v = places[first], weights[first]
                for j in range(n):
                    out[i, o, j] = x[i, p, j] * v
                for k in range(first + 1, last):
                    p, v = places[k], weights[k]
                    for j in range(n):
                        out[i, o, j] += x[i, p, j] * v
"""

# where nothing comes after: x (planes, size), out (planes, out). As many planes as a register has
# numbers are turned, so that those of one position lie together: 3 to 6 times as fast as one by one
ALONG = """def kernel(x, starts, places, weights, out):
    restrict()
    planes, size, many = x.shape[0], x.shape[1], out.shape[1]
    square, turned = empty({n} * size, f32), empty({n} * many, f32)
    for i in range(0, planes, {n}):
        i = min(i, planes - {n})
        for j in range(0, size if size >= {n} else 0, {n}):
            j = min(j, size - {n})
            transpose(x, i * size + j, size, square, j * {n}, {n})
        for j in range(size if size < {n} else 0):
            for k in range({n}):
                put(square, j * {n} + k, get(x, (i + k) * size + j))
        first = get(starts, 0)
        for o in range(many):
            last = get(starts, o + 1)
            total = none()
            if last > first:
                total = mul(load(square, get(places, first) * {n}), spread(weights, first))
            for k in range(first + 1, last):
                total = add(total, mul(load(square, get(places, k) * {n}), spread(weights, k)))
            store(turned, o * {n}, total)
            first = last
        for j in range(0, many if many >= {n} else 0, {n}):
            j = min(j, many - {n})
            transpose(turned, j * {n}, {n}, out, i * many + j, many)
        for j in range(many if many < {n} else 0):
            for k in range({n}):
                put(out, (i + k) * many + j, get(turned, j * {n} + k))
"""
PLANES = 16  # as many as `ALONG` needs on any processor


def along_text() -> str:
    from rushlight.loops.simd import machine

    return ALONG.format(n=machine()[0])


def example(*shape: int) -> tuple:
    x = np.zeros(shape, FLOAT)
    return x, np.arange(2), np.zeros(1, np.int64), np.ones(1, FLOAT), x.copy()


@cache
def loop_of(flat: bool) -> Loop:
    return (
        Loop(along_text, 30, lambda: example(PLANES, 1))
        if flat
        else Loop(lambda: ACROSS, 30, lambda: example(1, 1, 1))
    )


@lru_cache(maxsize=256)
def listed(how: tuple, back: bool) -> tuple[ndarray, ...]:
    """The table element by element: where each one's taps begin, positions, weights."""
    found = table(how, back)
    weights = [np.ones(len(at)) if w is None else w for at, w in zip(found.places, found.weights)]
    outs = np.concatenate([np.arange(found.out) if o is None else o for o in found.outs])
    order = np.argsort(outs, kind="stable")
    starts = np.searchsorted(outs[order], np.arange(found.out + 1))
    return starts, np.concatenate(found.places)[order], np.concatenate(weights).astype(FLOAT)[order]


def by_loop(x: ndarray, dim: int, how: tuple, back: bool) -> ndarray | None:
    """float32, laid out in C order (a sum's gradient is one number: 16 to 3.7 ms a step); None
    while NumPy is to do it."""
    after, out = prod(x.shape[dim + 1 :]), table(how, back).out
    flat, loop = after == 1, loop_of(after == 1)
    many = x.size // max(1, x.shape[dim] * after)
    if not x.size or flat and many < PLANES:
        return None
    if loop.function is None:
        loop.pay(many * after * max(x.shape[dim], out))
        return None
    made = memory.take((*x.shape[:dim], out, *x.shape[dim + 1 :]), FLOAT)
    tail = () if flat else (after,)
    arguments = (
        np.ascontiguousarray(x).reshape(many, -1, *tail),
        *listed(how, back),
        made.reshape(many, out, *tail),
    )
    if max(x.size, made.size) < MUCH:
        loop.function(*arguments)
        return made
    from rushlight.loops.parallel import cores, in_parts  # not where there are no threads

    if many < PLANES * cores():
        loop.function(*arguments)
    else:
        in_parts(loop.function, arguments, (1, 0, 0, 0, 1))
    return made
