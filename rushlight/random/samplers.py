"""Numbers that take as many uniforms as chance wants, one after another: Poisson, binomial, gamma, Dirichlet."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from rushlight.dtypes import of

from .filling import kind_of
from .normal import next_standard
from .rounding import narrow
from .stream import Stream

# log k! minus Stirling's formula, for k < 10
_STIRLING_REST = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                  0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                  0.00925546218271273, 0.00833056343336287)  # fmt: skip
_THIRD, _SQUEEZE = np.float32(1) / np.float32(3), float(np.float32(0.0331))


def check(op: str, values: np.ndarray, good: np.ndarray, wanted: str, half: bool = False) -> None:
    """NotImplementedError unless floating, of 32 bits or more if not `half`; RuntimeError unless all are good."""
    if kind_of(values.dtype) != "f" or (values.itemsize < 4 and not half):
        raise NotImplementedError(f"\"{op}\" not implemented for '{of(values.dtype).scalar_type}': convert to float32 or "
                                  "float64")
    if not good.all():
        raise RuntimeError(f"{op} needs {wanted}, got {values[~good].ravel()[0]}")


def _sampled(like: np.ndarray, numbers: Iterable[float]) -> np.ndarray:
    """The numbers, in order, in an array of the shape and dtype of `like`."""
    flat = np.fromiter(numbers, np.float64, like.size)
    return narrow(flat, like.dtype).reshape(like.shape)


def poisson(stream: Stream, rate: np.ndarray) -> np.ndarray:
    """k with probability exp(-rate) rate^k / k!, for a rate per element.

    Shape and dtype: those of `rate`, floating. RuntimeError for a rate that is negative, infinite or nan. Products of
    uniforms below a rate of 10 (D. Knuth), else transformed rejection (W. Hoermann, PTRS, 1993).

    >>> rushlight.Generator().manual_seed(0).poisson(np.array([4.0, 50.0]))
    array([ 7., 52.])
    """
    check("poisson", rate, (rate >= 0) & np.isfinite(rate), "rates that are finite (invalid Poisson rate, expected rate to "
          "be non-negative)", half=True)
    return _sampled(rate, (_poisson(stream, r) for r in rate.ravel().tolist()))


def _poisson(stream: Stream, rate: float) -> int:
    if rate >= 10.0:
        return _poisson_by_rejection(stream, rate)
    if rate == 0.0:
        return 0
    bound, product, count = math.exp(-rate), stream.next_uniform53(), 0
    while product > bound:
        product *= stream.next_uniform53()
        count += 1
    return count


def _poisson_by_rejection(stream: Stream, rate: float) -> int:
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = stream.next_uniform53() - 0.5, stream.next_uniform53()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        height = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if height <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return k


def binomial(stream: Stream, count: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Successes among `count` trials of probability p each.

    Shapes: p broadcasts to that of `count`. Dtypes: float32 or float64, the same for both; so is the result. TypeError
    for other dtypes, RuntimeError for a count that is negative or infinite, and for p outside [0, 1]. Geometric gaps
    where count * p < 10, else transformed rejection (W. Hoermann, BTRS, 1993).

    >>> rushlight.Generator().manual_seed(0).binomial(np.array([10.0, 100.0]), np.array([0.5, 0.5]))
    array([ 7., 51.])
    """
    if p.dtype != count.dtype:
        raise TypeError(f"binomial: count is {count.dtype} and p is {p.dtype}: convert one to the other's dtype")
    check("binomial", count, (count >= 0) & np.isfinite(count), "counts that are finite and non-negative")
    check("binomial", p, (p >= 0) & (p <= 1), "probabilities in [0, 1]")
    pairs = zip(count.ravel().tolist(), np.broadcast_to(p, count.shape).ravel().tolist())
    return _sampled(count, (_binomial(stream, n, q) for n, q in pairs))


def _binomial(stream: Stream, n: float, p: float) -> float:
    if n <= 0.0 or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return n
    if p > 0.5:
        return n - _binomial(stream, n, 1.0 - p)
    return _binomial_by_rejection(stream, n, p) if n * p >= 10.0 else _binomial_by_gaps(stream, n, p)


def _binomial_by_gaps(stream: Stream, n: float, p: float) -> int:
    log_failure = math.log1p(-p)
    trials, successes = 0.0, 0
    while True:
        u = stream.next_uniform53()
        trials += math.ceil(math.log(u) / log_failure) if u else n + 1
        if trials > n:
            return successes
        successes += 1


def _binomial_by_rejection(stream: Stream, n: float, p: float) -> int:
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((n + 1) * p)
    while True:
        u, v = stream.next_uniform53() - 0.5, stream.next_uniform53()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c)
        if k < 0 or k > n:
            continue
        if us >= 0.07 and v <= v_r:
            return k
        height = math.log(v * alpha / (a / (us * us) + b))
        bound = ((mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
                 + (n + 1) * math.log((n - mode + 1) / (n - k + 1))
                 + (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
                 + _stirling_rest(mode) + _stirling_rest(n - mode) - _stirling_rest(k) - _stirling_rest(n - k))
        if height <= bound:
            return k


def _stirling_rest(k: float) -> float:
    if k <= 9:
        return _STIRLING_REST[int(k)]
    square = (k + 1) ** 2
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def standard_gamma(stream: Stream, alpha: np.ndarray) -> np.ndarray:
    """Density x^(alpha-1) exp(-x) / Gamma(alpha), for an alpha per element (G. Marsaglia, W. Tsang, 2000).

    Shape and dtype: those of `alpha`, float32 or float64. RuntimeError for an alpha that is negative, infinite or nan.
    Results are at least the dtype's smallest normal number.

    >>> rushlight.Generator().manual_seed(0).standard_gamma(np.array([1.0, 5.0]))
    array([2.88243278, 4.06105479])
    """
    check("standard_gamma", alpha, (alpha >= 0) & np.isfinite(alpha), "alphas that are finite and non-negative")
    draws = _sampled(alpha, (_gamma(stream, a) for a in alpha.ravel()))
    return np.maximum(draws, np.finfo(alpha.dtype).tiny)


def _gamma(stream: Stream, alpha: np.floating) -> float:
    """Products and sums are rounded to alpha's dtype where torch's are."""
    one = type(alpha)(1)
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = math.pow(1 - stream.next_uniform53(), float(one / alpha))
        alpha = alpha + one
    d = float(alpha - type(alpha)(_THIRD))
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = next_standard(stream)
        y = 1.0 + c * x
        if y <= 0:
            continue
        cube, u, square = y * y * y, 1 - stream.next_uniform53(), x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * cube
        if math.log(u) < 0.5 * square + d * (1.0 - cube + math.log(cube)):
            return scale * d * cube


def dirichlet(stream: Stream, alpha: np.ndarray) -> np.ndarray:
    """Gammas of the alphas, divided by their sum over the last dimension.

    Shape and dtype: those of `alpha`, which has a dimension at least; float32 or float64. RuntimeError as of
    `standard_gamma`. Results lie between the dtype's smallest normal number and the last number before 1. In float64
    the last bit may differ from torch's, which adds up in an order that depends on the processor.

    >>> rushlight.Generator().manual_seed(0).dirichlet(np.array([1.0, 1.0, 1.0]))
    array([0.83490015, 0.13168619, 0.03341366])
    """
    if alpha.ndim == 0:
        raise RuntimeError("dirichlet: alpha needs a dimension, of an element per category; got a 0-d array")
    gammas = standard_gamma(stream, alpha.astype(np.float64))
    shares = (gammas / gammas.sum(-1, keepdims=True)).astype(alpha.dtype)
    limits = np.finfo(alpha.dtype)
    return np.clip(shares, limits.tiny, np.nextafter(alpha.dtype.type(1), alpha.dtype.type(0)))
