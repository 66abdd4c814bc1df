"""Sampling images at points by loops. They give the bits of kernels/grid_sample.py, so they are compiled once NumPy has
worked for as long as compiling takes (loops/tiering.py).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.index import TAP_ELEMENTS
from rushlight.fast.reductions import FLOAT, shared
from rushlight.loops.tiering import Loop

Ints = tuple[int, ...]


def sampled(x: ndarray, weight: ndarray, at: ndarray) -> ndarray | None:
    return by_loop(SAMPLED, (*x.shape[:2], at.shape[2]), x, weight, at)


def sampled_back(g: ndarray, weight: ndarray, at: ndarray, size: int) -> ndarray | None:
    return by_loop(SAMPLED_BACK, (*g.shape[:2], size), g, weight, at)


def sampled_slope(g: ndarray, x: ndarray, at: ndarray) -> ndarray | None:
    return by_loop(SAMPLED_SLOPE, at.shape, g, x, at)


# Without `restrict`, as in gather_loops.py: 240 us instead of 430 for 65,536 numbers of 4 taps
SAMPLED = """def kernel(x, weight, at, out):
    channels, size, taps, points = x.shape[1], x.shape[2], at.shape[1], at.shape[2]
    for n in range(x.shape[0]):
        for c in range(channels):
            image, to = (n * channels + c) * size, (n * channels + c) * points
            for p in range(points):
                put(out, to + p, f32(0))
            for near in range(n * taps * points, (n + 1) * taps * points, points):
                for p in range(points):
                    put(out, to + p, get(out, to + p) + get(weight, near + p) * get(x, image + get(at, near + p)))
"""
SAMPLED_BACK = """def kernel(g, weight, at, out):
    channels, size, taps, points = g.shape[1], out.shape[2], at.shape[1], at.shape[2]
    total = empty(size, f64)
    for n in range(g.shape[0]):
        for c in range(channels):
            image, plane = (n * channels + c) * size, (n * channels + c) * points
            for i in range(size):
                put(total, i, f64(0))
            for near in range(n * taps * points, (n + 1) * taps * points, points):
                for p in range(points):
                    i = get(at, near + p)
                    put(total, i, get(total, i) + f64(get(weight, near + p) * get(g, plane + p)))
            for i in range(size):
                put(out, image + i, f32(get(total, i)))
"""
SAMPLED_SLOPE = """def kernel(g, x, at, out):
    restrict()
    wide()
    channels, size, taps, points = x.shape[1], x.shape[2], at.shape[1], at.shape[2]
    for n in range(x.shape[0]):
        for near in range(n * taps * points, (n + 1) * taps * points, points):
            for p in range(points):
                put(out, near + p, f32(0))
            for c in range(channels):
                image, plane = (n * channels + c) * size, (n * channels + c) * points
                for p in range(points):
                    put(out, near + p, get(out, near + p) + get(g, plane + p) * get(x, image + get(at, near + p)))
"""


@cache
def loop_of(text: str) -> Loop:
    def example() -> tuple:
        x = np.zeros((1, 1, 1), FLOAT)
        return x, x, np.zeros((1, 1, 1), np.int64), x.copy()

    return Loop(lambda: text, 15, example)


def by_loop(text: str, shape: Ints, x: ndarray, y: ndarray, at: ndarray) -> ndarray | None:
    """The result of the loop with this text, in C order; None if NumPy should do it."""
    if not x.dtype is FLOAT is y.dtype or not all([a.size for a in (x, y, at)]):
        return None
    size = at.size * x.shape[1]
    function = loop_of(text).ready(size + TAP_ELEMENTS * at.shape[0] * at.shape[1])
    if function is None:
        return None
    out = memory.take(shape, FLOAT)
    shared(function, (*map(np.ascontiguousarray, (x, y, at)), out), (1, 1, 1, 1), size)
    return out
