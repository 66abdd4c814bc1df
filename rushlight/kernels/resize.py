"""Weighted sums of elements at given positions along one dimension: resizing in every mode. The gradient is the same
sum with the transposed table.

`how` names a table: (mode, size, *settings). Each mode is a function from `how` to (positions, weights), both of shape
(taps, out): indices into the `size` elements, and weights, or None if all are 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.base.intp import as_intp
from rushlight.kernels.im2col import wide_dtype
from rushlight.kernels.layout import suggests_last

A = -0.75  # the parameter of cubic convolution
Rows = tuple[ndarray, "ndarray | None"]  # positions and weights, (taps, out)


# -- positions and weights -------------------------------------------------------------------------


def nearest(size: int, out: int, scale: float, half: float = 0.0) -> Rows:
    """The positions of the nearest elements, rounded as in torch."""
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


# the reach of a filter, and its weight at a distance
FILTERS = {
    "bilinear": (1, lambda t: np.maximum(1 - t, 0)),
    "bicubic": (2, lambda t: cubic(t, -0.5)),
    "lanczos": (3, lanczos),
}


def antialias(size: int, out: int, scale: float, shape: str) -> Rows:
    """A filter as wide as the input elements per result element; aligned corners change only the scale, as in torch."""
    width = max(scale, 1.0)
    taps, weight = FILTERS[shape]
    reach = width * taps
    centre = scale * (np.arange(out) + 0.5)
    low = np.maximum((centre - reach + 0.5).astype(np.int64), 0)
    high = np.minimum((centre + reach + 0.5).astype(np.int64), size)
    first = np.minimum(low, size - (high - low).max())  # the same number of taps for each element, all inside
    at = first + np.arange((high - low).max())[:, None]
    t = np.abs((at - centre + 0.5) / width)
    weights = weight(t) * ((low <= at) & (at < high))
    return at, weights / weights.sum(0)


MODES: dict[str, Callable] = {"nearest": nearest, "linear": linear, "bicubic": bicubic, "antialias": antialias}


class Table(NamedTuple):
    """Tap k contributes to the result elements `outs[k]` (None: all), from these positions with these weights (None:
    ones).
    """

    out: int
    outs: list[ndarray | None]
    places: list[ndarray]
    weights: list[ndarray | None]


@lru_cache(maxsize=256)
def table(how: tuple, back: bool) -> Table:
    """The table that `how` names, or its transpose (`back`). Positions outside are clamped to the nearest end."""
    mode, size, *settings = how
    places, weights = MODES[mode](size, *settings)
    places = np.clip(places, 0, size - 1)
    if back:
        return turned(places, weights, size)
    each = [None] * len(places) if weights is None else list(weights)
    return Table(places.shape[1], [None] * len(places), list(places), each)


def turned(places: ndarray, weights: ndarray | None, size: int) -> Table:
    """The transposed table: for each input element, the result elements that it contributes to, in order."""
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
    """out[.., o, ..] = sum over k of weights[k, o] x[.., places[k, o], ..] along `dim`; `back`: the transpose."""
    if dim and suggests_last(x):  # computes with the array in memory order
        return np.moveaxis(blend(np.moveaxis(x, 1, -1), (dim - 1) or x.ndim - 1, how, back), -1, 1)
    found = table(how, back)
    picks = len(found.places) == 1 and found.outs[0] is None and found.weights[0] is None
    if x.dtype == np.uint8 and not picks:
        return np.clip(np.floor(by_taps(x.astype(np.float64), dim, in_short(found)) + 0.5), 0, 255).astype(np.uint8)
    wide = x if picks else x.astype(wide_dtype(x.dtype), copy=False)
    return mixed(wide, dim, how, back).astype(x.dtype, copy=False)


@site
def mixed(x: ndarray, dim: int, how: tuple, back: bool) -> ndarray:
    """Weighted sums of floating-point numbers, or lookups without weights."""
    return by_taps(x, dim, table(how, back))


def in_short(found: Table) -> Table:
    """The table with weights rounded to integers of at most 16 bits, as torch does for bytes."""
    weights = [np.ones(len(at)) if w is None else w for at, w in zip(found.places, found.weights)]
    most = max(0.0, *[w.max() for w in weights])
    unit = next((2.0**n for n in range(22) if int(0.5 + most * 2 ** (n + 1)) >= 1 << 15), 2.0**22)
    return found._replace(weights=[np.trunc(w * unit + np.copysign(0.5, w)) / unit for w in weights])


def by_taps(x: ndarray, dim: int, found: Table) -> ndarray:
    shape = (*x.shape[:dim], found.out, *x.shape[dim + 1 :])
    column = (-1,) + (1,) * (x.ndim - dim - 1)
    total: Any = None
    for k, (outs, places, weights) in enumerate(zip(found.outs, found.places, found.weights)):
        part = x.take(as_intp(places), dim)
        if weights is not None:
            part *= weights.astype(x.dtype).reshape(column)
        if outs is not None:
            total = np.zeros(shape, x.dtype) if total is None else total
            where = (slice(None),) * dim + (outs,)
            total[where] = part if k == 0 else total[where] + part
        else:
            total = part if total is None else np.add(total, part, out=total)
    return total
