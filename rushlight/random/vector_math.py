"""The logarithm, sine and cosine inside torch's random numbers, to the last bit.

For float32: the polynomials of the Cephes library (S. L. Moshier) in the form of avx_mathfun.h (G. Garberoglio, zlib
licence), evaluated with FMAs where g++ fuses them. For float64: the C library's functions, one number at a time,
because NumPy's vector functions may differ in the last bit. `loops` has these functions as compiled loops."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rushlight.random.choose_loop import Loop

F32, F64 = np.float32, np.float64


def _constants(values: object, dtype: type = F32) -> list[np.ndarray]:
    """float32 values as 0-d arrays, which are faster as operands of a ufunc than Python numbers."""
    return [np.asarray(v, F32).astype(dtype) for v in values]  # type: ignore[attr-defined]


_LOG = _constants(
    (
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    ),
    F64,
)
_COS_SIN = _constants(
    (
        ((2.443315711809948e-5,), (-1.9515295891e-4,)),
        ((-1.388731625493765e-3,), (8.3321608736e-3,)),
        ((4.166664568298827e-2,), (-1.6666654611e-1,)),
    ),
    F64,
)
# -pi / 4, split into three parts
_QUARTER_PI = _constants((-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8))
_FOUR_OVER_PI, _SQRT_HALF = _constants((1.27323954473516, 0.707106781186547524))
_LOG_2, _LOG_2_REST = _constants((0.693359375, -2.12194440e-4))
_ONE, _MINUS_HALF = _constants((1.0, -0.5))

_EACH = {function: Loop(function.__name__) for function in (math.log1p, math.log, math.cos, math.sin, math.tan)}


def each(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """A function of module `math` on every element of a float64 array."""
    loop = _EACH[function](values.size) if function in _EACH else None
    if loop is None:
        return np.fromiter(map(function, values.ravel().tolist()), F64, values.size).reshape(values.shape)
    out = np.empty(values.shape, F64)
    loop(values.reshape(-1), out.reshape(-1))
    return out


def log64(values: np.ndarray) -> np.ndarray:
    """Natural logarithm of non-negative float64; -inf for 0."""
    zero = values == 0.0
    logs = each(math.log, np.where(zero, 1.0, values))
    logs[zero] = -np.inf
    return logs


def log32(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of normal positive float32."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(F32)
    m = ((bits & 0x007F_FFFF) | 0x3F00_0000).view(F32)  # x = m * 2^exponent, m in [0.5, 1)
    small = m < _SQRT_HALF
    exponent -= small
    m = (m - _ONE) + m * small
    square = m * m
    y = _fma(_horner(m, _LOG) * m, square, exponent * _LOG_2_REST)
    y = _fma(square, _MINUS_HALF, y)
    return _fma(exponent, _LOG_2, m + y)


def sincos32(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine of float32 in [0, 2^13]."""
    octant = ((x * _FOUR_OVER_PI).astype(np.int32) + 1) & -2
    multiple = octant.astype(F32)
    for part in _QUARTER_PI:
        x = _fma(multiple, part, x)
    square = x * x
    both = _horner(square, _COS_SIN) * square  # (2, ...): for the cosine and the sine of the rest
    both = _fma(both, np.stack((square, x)), np.stack((square * _MINUS_HALF, x)))
    both[0] += _ONE
    cosine, sine = both
    swap = (octant & 2) != 0
    return (
        _signed(np.where(swap, cosine, sine), octant << 29),
        _signed(np.where(swap, sine, cosine), (octant + 2) << 29),
    )


def _horner(x: np.ndarray, coefficients: list[np.ndarray]) -> np.ndarray:
    """The polynomial in x by FMAs, the highest coefficient first."""
    wide = x.astype(F64)
    y = wide * coefficients[0]
    rounded = np.empty(y.shape, F32)
    for c in coefficients[1:-1]:
        y += c
        rounded[...] = y
        np.multiply(rounded, wide, out=y)
    y += coefficients[-1]
    return y.astype(F32)


def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a*b + c through float64. Not exact for all operands, but exact for the operands used here, which was checked for
    all 2^24 uniforms."""
    y = np.multiply(a, b, dtype=F64)
    y += c
    return y.astype(F32)


def _signed(x: np.ndarray, flips: np.ndarray) -> np.ndarray:
    """x, negated where the top bit of `flips` is set."""
    return (x.view(np.int32) ^ (flips & -(2**31))).view(F32)
