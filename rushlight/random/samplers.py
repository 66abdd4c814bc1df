"""Distributions by rejection sampling: Poisson, binomial, gamma, Dirichlet."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rushlight.base.dtypes import of
from rushlight.base.errors import not_implemented_error, runtime_error, type_error
from rushlight.random.blocks import kind_of
from rushlight.random.choose_loop import Loop
from rushlight.random.fma import narrow

from .rejection import binomial as binomial_one
from .rejection import filler
from .rejection import gamma as gamma_one
from .rejection import poisson as poisson_one
from .stream import Stream

_THIRD = np.float32(1) / np.float32(3)
_MAX_WORDS_AHEAD = 2**16  # number of words that are read ahead
_NO_WORDS = np.empty(0, np.uint32)
_LOOPS = {one: Loop(one.__name__, cost=20) for one in (poisson_one, binomial_one, gamma_one)}


def check(op: str, values: np.ndarray, good: np.ndarray, wanted: str, half: bool = False) -> None:
    """NotImplementedError unless the dtype is floating (16 bits only if `half`); RuntimeError unless all are `good`."""
    if kind_of(values.dtype) != "f" or (values.itemsize < 4 and not half):
        raise not_implemented_error(
            f"\"{op}\" not implemented for '{of(values.dtype).scalar_type}': convert to float32 or float64"
        )
    if not good.all():
        raise runtime_error(f"{op} needs {wanted}, got {values[~good].ravel()[0]}")


def _sampled(stream: Stream, one: Callable, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A sample for each x and y, in float64. Inside, a sampler may round to the dtype of x."""
    compiled, spare = _LOOPS[one](x.size), stream.spare_normal
    fill, progress = compiled or filler(one), np.array((0.0, 0.0, math.nan if spare is None else spare))
    flat: list = [a.reshape(-1) for a in (x, y)]
    numbers = np.empty(x.size)
    if not compiled:  # lists, because a Python loop reads arrays slowly
        flat = [list(a) if one is gamma_one else a.tolist() for a in flat]
        numbers, progress = numbers.tolist(), progress.tolist()
    # few numbers: reuse the remaining words
    words, ahead = _NO_WORDS, min(stream.left or 32, 16 + 16 * x.size)
    while True:
        mark, left = stream.mark(ahead), words[int(progress[1]) :]
        words, progress[1] = stream.words(ahead), 0
        if len(left):
            words = np.concatenate((left, words))
        try:
            fill(words if compiled else words.tolist(), progress, numbers, *flat)
            break
        except IndexError:
            ahead = min(_MAX_WORDS_AHEAD, 16 * x.size)
    stream.back_to(mark)
    stream.words(int(progress[1]) - len(left))
    stream.spare_normal = None if math.isnan(progress[2]) else float(progress[2])
    return np.array(numbers).reshape(x.shape)


def poisson(stream: Stream, rate: np.ndarray) -> np.ndarray:
    """k with probability exp(-rate) rate^k / k!, for a rate per element.

    Shape and dtype: as `rate`, floating. RuntimeError for a rate that is negative, infinite or nan. Products of
    uniforms below a rate of 10 (D. Knuth), else transformed rejection (W. Hoermann, PTRS, 1993).

    >>> rushlight.Generator().manual_seed(0).poisson(np.array([4.0, 50.0]))
    array([ 7., 52.])
    """
    check(
        "poisson",
        rate,
        (rate >= 0) & np.isfinite(rate),
        "rates that are finite (invalid Poisson rate, expected rate to be non-negative)",
        half=True,
    )
    rates = rate.astype(np.float64)
    return narrow(_sampled(stream, poisson_one, rates, rates), rate.dtype)


def binomial(stream: Stream, count: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Successes among `count` trials of probability p each.

    Shapes: p broadcasts to the shape of `count`. Dtypes: float32 or float64, the same for `count`, p and the result.
    TypeError for other dtypes, RuntimeError for a count that is negative or infinite, and for p outside [0, 1].
    Geometric gaps where count * p < 10, else transformed rejection (W. Hoermann, BTRS, 1993).

    >>> rushlight.Generator().manual_seed(0).binomial(np.array([10.0, 100.0]), np.array([0.5, 0.5]))
    array([ 7., 51.])
    """
    if p.dtype != count.dtype:
        raise type_error(f"binomial: count is {count.dtype} and p is {p.dtype}: convert one to the other's dtype")
    check("binomial", count, (count >= 0) & np.isfinite(count), "counts that are finite and non-negative")
    check("binomial", p, (p >= 0) & (p <= 1), "probabilities in [0, 1]")
    trials, chances = (np.broadcast_to(a, count.shape).astype(np.float64) for a in (count, p))
    return narrow(_sampled(stream, binomial_one, trials, chances), count.dtype)


def standard_gamma(stream: Stream, alpha: np.ndarray) -> np.ndarray:
    """Density x^(alpha-1) exp(-x) / Gamma(alpha), for an alpha per element (G. Marsaglia, W. Tsang, 2000).

    Shape and dtype: as `alpha`, float32 or float64. RuntimeError for an alpha that is negative, infinite or nan.
    Results are at least the dtype's smallest normal number.

    >>> rushlight.Generator().manual_seed(0).standard_gamma(np.array([1.0, 5.0]))
    array([2.88243278, 4.06105479])
    """
    check("standard_gamma", alpha, (alpha >= 0) & np.isfinite(alpha), "alphas that are finite and non-negative")
    numbers = _sampled(stream, gamma_one, alpha, np.full(alpha.shape, _THIRD, alpha.dtype))
    return np.maximum(narrow(numbers, alpha.dtype), np.finfo(alpha.dtype).tiny)


def dirichlet(stream: Stream, alpha: np.ndarray) -> np.ndarray:
    """Gammas of the alphas, divided by their sum over the last dimension.

    Shape and dtype: as `alpha`, of at least one dimension; float32 or float64. RuntimeError as for `standard_gamma`.
    Results lie between the dtype's smallest normal number and the last number before 1. In float64 the last bit may
    differ from torch's, whose order of summation depends on the processor.

    >>> rushlight.Generator().manual_seed(0).dirichlet(np.array([1.0, 1.0, 1.0]))
    array([0.83490015, 0.13168619, 0.03341366])
    """
    if alpha.ndim == 0:
        raise runtime_error("dirichlet: alpha needs a dimension, of an element per category; got a 0-d array")
    gammas = standard_gamma(stream, alpha.astype(np.float64))
    shares = (gammas / gammas.sum(-1, keepdims=True)).astype(alpha.dtype)
    limits = np.finfo(alpha.dtype)
    return np.clip(shares, limits.tiny, np.nextafter(alpha.dtype.type(1), alpha.dtype.type(0)))
