"""Resizing by loops. They give the bits of kernels/resize.py, so they are compiled once NumPy has worked for as long as
compiling takes (loops/tiering.py).
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.index import REDUCTION_PARALLEL_ELEMENTS
from rushlight.fast.reductions import FLOAT
from rushlight.kernels.resize import table
from rushlight.loops.tiering import Loop

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

# the last dimension: x (planes, size), out (planes, out). Blocks of one plane per SIMD lane are transposed; 3 to 6
# times faster than a plane at a time
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
REMEMBERED = 1 << 12  # elements from which memory is reused
PLANES = 16  # enough padding for `ALONG` on any processor


def along_text() -> str:
    from rushlight.loops.llvm import machine

    return ALONG.format(n=machine()[0])


def example(*shape: int) -> tuple:
    x = np.zeros(shape, FLOAT)
    return x, np.arange(2), np.zeros(1, np.int64), np.ones(1, FLOAT), x.copy()


@cache
def loop_of(flat: bool) -> Loop:
    if flat:
        return Loop(along_text, 30, lambda: example(PLANES, 1))
    return Loop(lambda: ACROSS, 30, lambda: example(1, 1, 1))


@lru_cache(maxsize=256)
def listed(how: tuple, back: bool) -> tuple[ndarray, ...]:
    """The table sorted by element: the start of each element's taps, positions, weights."""
    found = table(how, back)
    weights = [np.ones(len(at)) if w is None else w for at, w in zip(found.places, found.weights)]
    outs = np.concatenate([np.arange(found.out) if o is None else o for o in found.outs])
    order = np.argsort(outs, kind="stable")
    starts = np.searchsorted(outs[order], np.arange(found.out + 1))
    return starts, np.concatenate(found.places)[order], np.concatenate(weights).astype(FLOAT)[order]


def mixed(x: ndarray, dim: int, how: tuple, back: bool) -> ndarray | None:
    """The resized array; None if NumPy should do it. A sum's gradient, one repeated number, is copied to C order first:
    a step takes 3.7 ms instead of 16.
    """
    if x.dtype is not FLOAT:
        return None
    after, out = prod(x.shape[dim + 1 :]), table(how, back).out
    many = x.size // max(1, x.shape[dim] * after)
    few = many * after * max(x.shape[dim], out) < REMEMBERED
    if not x.size or after == 1 and many < PLANES and not few:
        return None
    flat = after == 1 and many >= PLANES
    function = loop_of(flat).ready(many * after * max(x.shape[dim], out))
    if function is None:
        return None
    shape = (*x.shape[:dim], out, *x.shape[dim + 1 :])
    made = np.empty(shape, FLOAT) if few else memory.take(shape, FLOAT)
    tail = () if flat else (after,)
    arguments = (np.ascontiguousarray(x).reshape(many, -1, *tail), *listed(how, back), made.reshape(many, out, *tail))
    if max(x.size, made.size) >= REDUCTION_PARALLEL_ELEMENTS:
        from rushlight.loops.parallel import cores, in_parts  # imported late: the browser has no threads

        if many >= PLANES * cores():
            in_parts(function, arguments, (1, 0, 0, 0, 1))
            return made
    function(*arguments)
    return made
