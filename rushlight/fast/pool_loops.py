"""Compiled loops of pooling. They give the results of kernels/pool.py to the last bit, so they are compiled once
NumPy's passes have cost as much (loops/tiering.py). All work in three spatial dimensions, on planes (P, *size) one
after the other.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.index import POOL_CORE_ELEMENTS, POOL_OWN_LOOP_TAPS
from rushlight.kernels.im2col import Ints, in_3d
from rushlight.loops.tiering import Loop

MAXIMA = """def kernel(x, size, kernel, stride, padding, dilation, out, values, indices):
    \"\"\"values[p, o] = the maximum of window o of x[p]; indices[p, o] = its flat index in the plane.\"\"\"
    restrict()
    deep, high, wide = size[0], size[1], size[2]
    to = 0
    for plane in range(0, x.shape[0], deep * high * wide):
        for d in range(out[0]):
            i0 = d * stride[0] - padding[0]
            i1 = min(deep, i0 + (kernel[0] - 1) * dilation[0] + 1)
            i0 = i0 if i0 >= 0 else i0 % dilation[0]
            for h in range(out[1]):
                k0 = h * stride[1] - padding[1]
                k1 = min(high, k0 + (kernel[1] - 1) * dilation[1] + 1)
                k0 = k0 if k0 >= 0 else k0 % dilation[1]
                first, last = 0, 0                # the windows inside the plane: their loop is unrolled
                if {few} and i1 - i0 == {kernel[0]} and k1 - k0 == {kernel[1]}:
                    first = min((padding[2] + {stride[2]} - 1) // {stride[2]}, out[2])
                    last = max(first, min(out[2], (wide - {kernel[2]} + padding[2]) // {stride[2]} + 1))
                near = (i0 * high + k0) * wide - padding[2]
                for o in range(first, last):
                    where = near + {stride[2]} * o
                    best = get(x, plane + where)
{taps}
                    put(values, to + o, best)
                    put(indices, to + o, where)
                for p in range(out[2] - last + first):
                    o = p if p < first else p + last - first
                    j0 = o * stride[2] - padding[2]
                    j1 = min(wide, j0 + (kernel[2] - 1) * dilation[2] + 1)
                    j0 = j0 if j0 >= 0 else j0 % dilation[2]
                    best = f32(-inf)
                    where = (i0 * high + k0) * wide + j0
                    i = i0
                    while i < i1:
                        k = k0
                        while k < k1:
                            j = j0
                            while j < j1:
                                at = (i * high + k) * wide + j
                                v = get(x, plane + at)
                                better = (v > best) | (v != v)
                                best = select(better, v, best)
                                where = select(better, at, where)
                                j += dilation[2]
                            k += dilation[1]
                        i += dilation[0]
                    put(values, to + o, best)
                    put(indices, to + o, where)
                to += out[2]
"""

# the windows of most networks
FREQUENT = (((1, 2, 2), (1, 2, 2)), ((1, 3, 3), (1, 2, 2)), ((1, 1, 2), (1, 1, 2)))

SCATTER = """def kernel(g, indices, volume, out):
    \"\"\"out[p, i] = the sum of g[p, q] with indices[p, q] = i. Returns whether all indices are below `volume`.\"\"\"
    restrict()
    many = g.shape[0] // (out.shape[0] // volume)
    for p in range(out.shape[0] // volume):
        for i in range(p * volume, (p + 1) * volume):
            put(out, i, f32(0))
        for q in range(p * many, (p + 1) * many):
            at = get(indices, q)
            if at < 0 or at >= volume:
                return False
            at += p * volume
            put(out, at, get(out, at) + get(g, q))
    return True
"""


def example() -> tuple:
    one, x, i = np.ones(3, np.int64), np.zeros(1, np.float32), np.zeros(1, np.int64)
    return x, one, one, one, 0 * one, one, one, x, i


@lru_cache(maxsize=64)
def maxima(kernel: tuple, stride: tuple) -> Loop:
    """The loop for windows of this kernel and stride, without dilation; with () and (), for all windows."""
    return Loop(lambda: text_of(kernel, stride), 40, example)


def text_of(kernel: tuple, stride: tuple) -> str:
    lines = [
        line
        for a, b, c in product(*map(range, kernel or (1, 1, 1)))
        if a or b or c
        for line in (
            f"at = near + {stride[2]} * o + ({a} * high + {b}) * wide + {c}",
            "v = get(x, plane + at)",
            "better = (v > best) | (v != v)",
            "best = select(better, v, best)",
            "where = select(better, at, where)",
        )
    ]
    return MAXIMA.format(
        few=bool(kernel),
        kernel=kernel or (1, 1, 1),
        stride=stride or (1, 1, 1),
        taps="\n".join(" " * 20 + line for line in lines),
    )


@cache
def scatter() -> Loop:
    def example() -> tuple:
        x = np.zeros(1, np.float32)
        return x, np.zeros(1, np.int64), 1, x.copy()

    return Loop(lambda: SCATTER, 40, example)


def best_of_taps(
    x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints
) -> tuple[ndarray, ndarray] | None:
    """Maxima and indices of x (P, *size); None if NumPy should do it."""
    how, n = (in_3d(kernel, 1), in_3d(stride, 1)), len(x)
    loop = maxima(*how) if prod(kernel) <= POOL_OWN_LOOP_TAPS and set(dilation) == {1} else maxima((), ())
    if x.dtype != np.float32 or len(out) > 3 or not x.flags.carray:
        return None
    function = loop.ready(x.size)
    if function is None:
        return None
    values, indices = memory.take((n, *out), np.dtype(np.float32)), memory.take((n, *out), np.dtype(np.int64))
    sizes = [*map(np.array, (in_3d(x.shape[1:], 1), *how, in_3d(padding, 0), in_3d(dilation, 1), in_3d(out, 1)))]

    def part(first: int, end: int, step: int) -> None:
        function(x[first:end].reshape(-1), *sizes, *[a[first:end].reshape(-1) for a in (values, indices)])

    from rushlight.loops.parallel import parallel_for

    parallel_for(part, n, planes(x.shape[1:]))
    return values, indices


def scattered(g: ndarray, indices: ndarray, size: Ints) -> ndarray | None:
    """The sums of float32 g at their indices; None if NumPy should do it, or if an index is out of range."""
    volume = prod(size)
    if g.dtype != np.float32 or indices.dtype != np.int64 or not (g.flags.carray and indices.flags.carray):
        return None
    function = scatter().ready(g.size)
    if function is None:
        return None
    out, many = memory.take((*g.shape[:2], *size), np.dtype(np.float32)), prod(g.shape[2:])
    flat, inside = [a.reshape(-1) for a in (g, indices, out)], []

    def part(first: int, end: int, step: int) -> None:
        given, at, made = (a[first * n : end * n] for a, n in zip(flat, (many, many, volume)))
        inside.append(function(given, at, volume, made))

    if out.size:
        from rushlight.loops.parallel import parallel_for

        parallel_for(part, prod(g.shape[:2]), planes(size))
    return out if all(inside) else None


def planes(size: Ints) -> int:
    """The least number of planes of this size for one core."""
    return -(-POOL_CORE_ELEMENTS // max(1, prod(size)))
