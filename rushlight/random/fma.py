"""a*b + c with one rounding, like a processor's FMA (fused multiply-add), and torch's roundings to narrow floats.

g++ contracts torch's `u * (to - from) + from` to one FMA, so two roundings would give other bits in half of the values.
NumPy has no FMA; the functions here compute the same result without one."""

from __future__ import annotations

import math

import numpy as np

_BELOW_FLOAT32 = np.array(0x1FFF_FFFF, np.int64)  # the bits that a float64 has and its float32 lacks
_HALFWAY = np.array(0x1000_0000, np.int64)
_NEARLY_HALFWAY = _HALFWAY - 8
_SPLIT = np.array(2.0**27 + 1)


def near_halfway(x: np.ndarray) -> np.ndarray:
    """A mask of the float64 values within 8 units in the last place of the midpoint between two float32."""
    rest = x.view(np.int64) & _BELOW_FLOAT32
    rest -= _NEARLY_HALFWAY
    return rest.view(np.uint64) < 16


def fma32(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """round32(a*b + c) for float32 `a` and numbers b, c that float32 represents exactly.

    The product of two float32 is exact in float64; the sum is not. Its two roundings, to 53 and to 24 bits, differ from
    a single one only if the first result is halfway between two float32. An inexact sum is at least 2^53 times the last
    bit of its terms, so it is never subnormal in float32, and its low 29 bits show whether it is halfway."""
    if b == 1.0:
        return a + np.float32(c)
    product = np.multiply(a, b, dtype=np.float64)
    total = product + c
    halfway = (total.view(np.int64) & _BELOW_FLOAT32) == _HALFWAY
    if halfway.any():
        total[halfway] = odd_sum(product[halfway], np.float64(c))
    return total.astype(np.float32)


def fma64(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """round64(a*b + c) for float64, without over- or underflow (S. Boldo, G. Melquiond, Emulation of a FMA, 2008)."""
    if b == 1.0:
        return a + c
    if not math.isfinite(b + c):  # the error terms would be inf - inf = nan
        return a * b + c
    high, low = two_product(a, np.float64(b))
    if c == 0.0:
        return high + c
    first, first_error = two_sum(np.float64(c), low)
    total, total_error = two_sum(high, first)
    return total + odd_sum(total_error, first_error)


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a + b rounded, the rounding error), exactly (D. Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(a * b rounded, the rounding error), exactly (T. J. Dekker)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    spread = _SPLIT * a
    high = spread - (spread - a)
    return high, a - high


def odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b rounded to odd: if inexact, the neighbour with an odd last bit. A second rounding then equals a single
    one."""
    total, error = two_sum(a, b)
    even = (total.view(np.int64) & 1) == 0
    step = np.where(error > 0, np.inf, -np.inf)
    return np.where(even & (error != 0), np.nextafter(total, step), total)


def narrow(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """float64 or float32 `values` in `dtype`. half and bfloat16 are rounded from float32, so there are two roundings,
    as in torch."""
    if dtype.itemsize < 4:
        values = values.astype(np.float32, copy=False)
    return values.astype(dtype, copy=False)
