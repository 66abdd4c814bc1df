"""Kernels of rarely used elementwise ops: divisors of integers, parts of floating-point numbers, polar coordinates."""

from __future__ import annotations

import numpy as np
from numpy import isreal, ndarray  # noqa: F401

from rushlight.base.faster import site
from rushlight.kernels.layout import led

NEXT, LAST = np.array([1, 2, 0]), np.array([2, 0, 1])  # the next and the previous of three coordinates


def least_multiple(x: ndarray, y: ndarray) -> ndarray:
    """|x y| / gcd(x, y). Like torch, computes small dtypes in 32 bits and truncates the result, which may then be
    negative.
    """
    if x.dtype.itemsize >= 4:
        return np.abs(np.lcm(x, y))
    return np.lcm(x, y, dtype=np.int32).astype(x.dtype)


gcd, lcm = np.gcd, least_multiple


def nextafter(x: ndarray, y: ndarray) -> ndarray:
    """The floating-point number next to x in the direction of y."""
    return np.nextafter(x, y)


def frexp(x: ndarray) -> tuple[ndarray, ndarray]:
    """m and e with x = m 2^e, 1/2 <= |m| < 1; e is 0 where x is 0, infinite or nan."""
    m, e = np.frexp(x.astype(np.float32) if x.dtype.kind == "V" else x)
    return np.asarray(m).astype(x.dtype, copy=False), np.where(np.isfinite(x), e, 0).astype(np.int32)


def polar(x: ndarray, y: ndarray) -> ndarray:
    """x (cos y + i sin y)"""
    r = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype, np.complex64))
    r.real, r.imag = x * np.cos(y), x * np.sin(y)
    return led(r, x, y)


def addcdiv(x: ndarray, y: ndarray, z: ndarray, value: float = 1) -> ndarray:
    return x + y / z * value


@site
def crossed(x: ndarray, y: ndarray, behind: int) -> ndarray:
    """(x1 y2 - x2 y1, x2 y0 - x0 y2, x0 y1 - x1 y0); `behind`: the number of dimensions after the one of size 3."""
    dim = -1 - behind
    return x.take(NEXT, dim) * y.take(LAST, dim) - x.take(LAST, dim) * y.take(NEXT, dim)
