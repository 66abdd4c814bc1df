"""Rejection samplers, which use a random number of words. They run as Python and, through `loops`, as compiled
loops.

Each sampler is a function (words, at, spare, x, y) -> (number, at, spare). It reads `words` from index `at` on; `spare`
is the second normal of the last pair, or nan; x and y are the parameters of this number. IndexError at the end of the
words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

# log k! minus Stirling's approximation, for k < 10
STIRLING_REST = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
)  # fmt: skip
TWO_PI = 2.0 * math.pi
SQUEEZE = float(np.float32(0.0331))
Drawn = tuple[float, int]


def filler(one: Callable) -> Callable:
    """A function fill(words, progress, out, x, y) that draws all numbers of a sampler, from index progress[0] on.

    `progress` holds the state at the beginning of the current number: its index in `out`, the index of its first word,
    and the spare normal. When the words run out, the caller continues from there with more words."""

    def fill(words: Any, progress: Any, out: Any, x: Any, y: Any) -> None:
        at, spare = int(progress[1]), progress[2]
        for i in range(int(progress[0]), len(out)):
            out[i], at, spare = one(words, at, spare, x[i], y[i])
            progress[0], progress[1], progress[2] = i + 1, at, spare

    return fill


def uniform(words: Any, at: int) -> float:
    """The uniform of 53 bits in words[at] and words[at + 1]."""
    if at + 2 > len(words):
        raise IndexError("words")
    return ((words[at] & 0x1F_FFFF) << 32 | words[at + 1]) * 2.0**-53


def pair(of_angle: float, of_radius: float) -> tuple[float, float]:
    """Two standard normals from two uniforms."""
    radius = math.sqrt(-2.0 * math.log1p(-of_radius))
    angle = TWO_PI * of_angle
    return radius * math.cos(angle), radius * math.sin(angle)


def poisson(words: Any, at: int, spare: float, rate: float, _: float) -> tuple[float, int, float]:
    """Products of uniforms below a rate of 10 (D. Knuth), else transformed rejection (W. Hoermann, PTRS, 1993)."""
    k = 0.0
    if rate >= 10.0:
        k, at = poisson_by_rejection(words, at, rate)
    elif rate > 0.0:
        bound, product, at = math.exp(-rate), uniform(words, at), at + 2
        while product > bound:
            product *= uniform(words, at)
            at += 2
            k += 1.0
    return k, at, spare


def poisson_by_rejection(words: Any, at: int, rate: float) -> Drawn:
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v, at = uniform(words, at) - 0.5, uniform(words, at + 2), at + 4
        us = 0.5 - abs(u)
        k = float(math.floor((2 * a / us + b) * u + rate + 0.43))
        if us >= 0.07 and v <= v_r:
            return k, at
        if k < 0 or (us < 0.013 and v > us):
            continue
        height = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if height <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return k, at


def binomial(words: Any, at: int, spare: float, n: float, p: float) -> tuple[float, int, float]:
    """Geometric gaps where n * p < 10, else transformed rejection (W. Hoermann, BTRS, 1993)."""
    if n <= 0.0 or p <= 0.0:
        return 0.0, at, spare
    if p >= 1.0:
        return n, at, spare
    q = 1.0 - p if p > 0.5 else p
    k, at = binomial_by_rejection(words, at, n, q) if n * q >= 10.0 else binomial_by_gaps(words, at, n, q)
    return n - k if p > 0.5 else k, at, spare


def binomial_by_gaps(words: Any, at: int, n: float, p: float) -> Drawn:
    log_failure = math.log1p(-p)
    trials, successes = 0.0, 0.0
    while True:
        u, at = uniform(words, at), at + 2
        gap = math.log(u) / log_failure if u > 0.0 else n + 1
        if trials + gap > n:
            return successes, at
        trials += math.ceil(gap)
        if trials > n:
            return successes, at
        successes += 1.0


def binomial_by_rejection(words: Any, at: int, n: float, p: float) -> Drawn:
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = float(math.floor((n + 1) * p))
    while True:
        u, v, at = uniform(words, at) - 0.5, uniform(words, at + 2), at + 4
        us = 0.5 - abs(u)
        k = float(math.floor((2 * a / us + b) * u + c))
        if k < 0 or k > n:
            continue
        if us >= 0.07 and v <= v_r:
            return k, at
        height = math.log(v * alpha / (a / (us * us) + b))
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * math.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
            + stirling_rest(mode)
            + stirling_rest(n - mode)
            - stirling_rest(k)
            - stirling_rest(n - k)
        )
        if height <= bound:
            return k, at


def stirling_rest(k: float) -> float:
    if k <= 9:
        return STIRLING_REST[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def gamma(words: Any, at: int, spare: float, alpha: Any, third: Any) -> tuple[float, int, float]:
    """The method of Marsaglia and Tsang (2000). As in torch, some sums and quotients are rounded to alpha's dtype, the
    dtype of `third`."""
    if alpha == 0:
        return 0.0, at, spare
    one, scale = alpha / alpha, 1.0
    if alpha < one:
        scale = math.pow(1 - uniform(words, at), float(np.float64(one / alpha)))
        at += 2
        alpha = alpha + one
    d = float(np.float64(alpha - third))
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        if math.isnan(spare):
            x, spare = pair(uniform(words, at), uniform(words, at + 2))
            at += 4
        else:
            x, spare = spare, math.nan
        y = 1.0 + c * x
        if y <= 0:
            continue
        cube, u, square, at = y * y * y, 1 - uniform(words, at), x * x, at + 2
        if u < 1.0 - SQUEEZE * square * square:
            return scale * d * cube, at, spare
        if math.log(u) < 0.5 * square + d * (1.0 - cube + math.log(cube)):
            return scale * d * cube, at, spare
