"""Sine and cosine of float64, for which NumPy calls libm number by number.

A compiled loop uses the functions of loops/scalar_math.py for numbers below NEAR: 90,000 in 0.26 ms, by NumPy in 2. It
returns the largest magnitude; if that exceeds NEAR, or is nan, NumPy computes the numbers above it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.base.dependencies import has_llvmlite
from rushlight.fast.index import ELEMENTWISE_ELEMENTS, SIN_COS_PASSES
from rushlight.fast.policy import charge

DOUBLE = np.dtype(np.float64)
LOOP = """def kernel(x, out):
    restrict()
    wide()
    worst = f64(0)
    for i in range(x.shape[0]):
        a = x[i]
        worst = largest(worst, abs(a))
        out[i] = near_{name}64(a)
    return worst
"""


@cache
def loop(name: str) -> Callable:
    from rushlight.loops.cache import compiled

    return compiled(LOOP.format(name=name))


def of_angle(x: ndarray, ufunc: np.ufunc, out: ndarray | None) -> ndarray | None:
    """ufunc(x), either sin or cos, of float64; None if NumPy should do it."""
    if not x.flags.c_contiguous or not charge(SIN_COS_PASSES, x.size, ELEMENTWISE_ELEMENTS) or not has_llvmlite():
        return None
    made = memory.take(x.shape, DOUBLE)
    near(ufunc, x, made)
    if out is not None:  # out may be x, which `near` reads twice
        np.copyto(out, made)
    return made if out is None else out


def near(ufunc: np.ufunc, x: ndarray, out: ndarray) -> None:
    from rushlight.loops.scalar_math import NEAR

    if not loop(ufunc.__name__)(x.reshape(-1), out.reshape(-1)) <= NEAR:
        far = ~(np.abs(x) <= NEAR)
        out[far] = ufunc(x[far])
