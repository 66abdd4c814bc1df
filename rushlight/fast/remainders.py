"""Remainders and integer quotients of large arrays, equal to NumPy's to the bit; NumPy calls libm or divides for each
number.

float32: x - n y, n = trunc(x / y), is exact in float64 if |n| < 2^28: n y has 24 + 28 bits, and n is right, since x / y
is an integer or at least 2^-24 away from integers. With n = floor(x / y), y is added to a remainder of the wrong sign,
which is exact enough for the nearest float32. NumPy computes all other blocks, and blocks with nan or infinity, in four
times the time. A compiled loop takes over once NumPy has worked for as long as compiling takes: 2 million take 4 ms, in
blocks 16.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.fast.index import REMAINDER_BLOCK_ELEMENTS, REMAINDER_LOOP_ELEMENTS

BLOCK = 1 << 13  # elements per block: they stay in the cache
SURE = 2.0**28
FLOAT = np.dtype(np.float32)


def whole_remainder(x: ndarray, y: ndarray) -> ndarray:
    """x - y floor(x / y) of integers: NumPy has SIMD loops for the quotient, but not for the remainder."""
    with np.errstate(all="ignore"):  # the least integer divided by -1
        r = np.floor_divide(x, y)
        r *= y
        return np.subtract(x, r, out=r)


def rest(rounded: np.ufunc, q: ndarray, x: ndarray, y: ndarray) -> bool:
    """x - y rounded(x / y), computed in x, all float64. Returns whether the result is certainly right. q: memory for
    the quotient.
    """
    np.divide(x, y, out=q)
    rounded(q, out=q)
    sure = -q.min() < SURE and q.max() < SURE
    q *= y
    x -= q
    return bool(sure and np.isfinite(x.sum()))


def fmod(q: ndarray, wide: ndarray, x: ndarray, y: ndarray, out: ndarray) -> None:
    if not rest(np.trunc, q, wide, y):
        np.fmod(x, y.astype(FLOAT), out=out)
        return
    np.copyto(out, wide, casting="same_kind")
    np.copysign(out, x, out=out)


def remainder(q: ndarray, wide: ndarray, x: ndarray, y: ndarray, out: ndarray) -> None:
    if not rest(np.floor, q, wide, y):
        np.remainder(x, y.astype(FLOAT), out=out)
        return
    np.copyto(out, wide, casting="same_kind")
    if y.min() < 0:  # a result of 0 also has the sign of y
        np.copysign(out, y, out=out)


def floor_divide(q: ndarray, wide: ndarray, x: ndarray, y: ndarray, out: ndarray) -> None:
    np.divide(wide, y, out=q)
    np.floor(q, out=q)
    if -q.min() < 2.0**22 and q.max() < 2.0**22 and np.abs(y).max() < np.inf:
        np.copyto(out, q, casting="same_kind")
    else:
        np.floor_divide(x, y.astype(FLOAT), out=out)


BLOCKS: dict[np.ufunc, Callable] = {np.fmod: fmod, np.remainder: remainder, np.floor_divide: floor_divide}


def divided(x: ndarray, y: ndarray, ufunc: np.ufunc) -> ndarray | None:
    """ufunc(x, y), one of BLOCKS; None if NumPy is as fast."""
    size = max(x.size, y.size)
    if size < REMAINDER_BLOCK_ELEMENTS or x.dtype != y.dtype:
        return None
    if ufunc is np.remainder and x.dtype.kind in "iu":
        return whole_remainder(x, y)
    if x.dtype is not FLOAT:
        return None
    made = by_loop(ufunc, x, y) if size >= REMAINDER_LOOP_ELEMENTS and ufunc in LOOPS else None
    return by_blocks(BLOCKS[ufunc], x, y) if made is None else made


# the rounding of the quotient, and the operand whose sign the remainder has
LOOPS: dict[np.ufunc, tuple[str, str]] = {np.fmod: ("trunc64", "a"), np.remainder: ("floor64", "b")}
REST = """def kernel(x, y, out):
    restrict()
    wide()
    worst = f64(0)
    for i in range(out.shape[0]):
        a = f64(x[i])
        b = f64(y[{at}])
        n = {rounded}(a / b)
        r = a - n * b
        worst = largest(worst, abs(n) + (r - r))
        out[i] = copysign(f32(r), f32({sign}))
    return worst
"""


@cache
def loop(ufunc: np.ufunc, one: bool) -> Any:
    """The loop for arrays, or for an array and `one` number; it returns the largest |n|, or nan if some remainder is
    undefined.
    """
    from rushlight.loops.tiering import Loop

    rounded, sign = LOOPS[ufunc]
    text = REST.format(at="()" if one else "i", rounded=rounded, sign=sign)
    return Loop(lambda: text, 25, lambda: (np.ones(1, FLOAT), np.ones(() if one else 1, FLOAT), np.ones(1, FLOAT)))


def by_loop(ufunc: np.ufunc, x: ndarray, y: ndarray) -> ndarray | None:
    """The remainders of large arrays; None if NumPy should do it, or if a remainder is not certain."""
    if not all([a.flags.c_contiguous and a.flags.aligned for a in (x, y)]) or y.ndim and x.shape != y.shape:
        return None
    function = loop(ufunc, not y.ndim).ready(x.size)
    if function is None:
        return None
    from rushlight.base.buffer_pool import memory
    from rushlight.loops.parallel import parallel_for

    out, worst = memory.take(x.shape, FLOAT), []
    flat, others, made = x.reshape(-1), y.reshape(-1) if y.ndim else y, out.reshape(-1)

    def part(first: int, end: int, step: int) -> None:
        worst.append(function(flat[first:end], others[first:end] if others.ndim else others, made[first:end]))

    parallel_for(part, x.size, REMAINDER_LOOP_ELEMENTS)
    return out if all([n < SURE for n in worst]) else None


def by_blocks(function: Callable, x: ndarray, y: ndarray) -> ndarray:
    x, y = np.broadcast_arrays(x, y) if x.shape != y.shape and y.ndim else (x, y)
    out = np.empty(x.shape, FLOAT)
    if not out.size:
        return out
    rows = max(1, BLOCK * len(out) // out.size)  # rows computed at a time
    rooms = np.empty((2, rows, *out.shape[1:]))
    number = None if y.ndim else y.astype(np.float64)
    with np.errstate(all="ignore"):
        for start in range(0, len(out), rows):
            here = slice(start, start + rows)
            part = out[here]
            q, wide = rooms[:, : len(part)]
            wide[...] = x[here]
            function(q, wide, x[here], y[here].astype(np.float64) if number is None else number, part)
    return out
