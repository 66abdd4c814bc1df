"""Derives the coefficients in rushlight/loops/minimax_polynomials.py: `python tools/minimax.py` prints them (needs
mpmath).

Method: Remez' exchange on p(x) = sum c_k x^k, minimising max |w(x) (p(x) - f(x))| in 40-digit arithmetic. The lowest
coefficient is rounded to the target type first and the others are fitted again around it, so that they absorb its
rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mpmath import atanh, cos, erf, erfc, erfinv, exp, expm1, lu_solve, matrix, mp, mpf, pi, sin, sqrt
from mpmath import log as ln

mp.dps = 40


def evaluate(coefficients: list, x: mpf) -> mpf:
    """Horner's scheme, lowest degree first in the list."""
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def extrema(error: np.ndarray, count: int) -> list[int]:
    """Indices of `count` neighbouring alternating extrema of a sampled error, the largest ones."""
    picks = []
    for i in range(len(error)):
        if picks and (error[i] > 0) == (error[picks[-1]] > 0):
            if abs(error[i]) > abs(error[picks[-1]]):
                picks[-1] = i
        else:
            picks.append(i)
    while len(picks) > count:  # ignored at the end, where the error is smaller
        picks.pop(0 if abs(error[picks[0]]) < abs(error[picks[-1]]) else -1)
    return picks


def remez(f: Callable, low: mpf, high: mpf, degree: int, weight: Callable, fixed: list, samples: int = 800):
    """Best c_k for k = len(fixed)..degree, with the lower ones given; returned with `fixed` in front."""
    k0, n = len(fixed), degree + 1 - len(fixed)
    t = [mp.cos(pi * (2 * i + 1) / (2 * samples)) for i in range(samples)]
    grid = sorted((low + high) / 2 + (high - low) / 2 * s for s in t)
    grid = [x for x in grid if abs(x) > mpf(10) ** -9]
    target = [f(x) - evaluate(fixed, x) for x in grid]
    scale = [abs(weight(x)) for x in grid]
    at = [round(i * (len(grid) - 1) / n) for i in range(n + 1)]
    for _ in range(30):
        rows = matrix(n + 1, n + 1)
        right = matrix(n + 1, 1)
        for r, i in enumerate(at):
            for k in range(n):
                rows[r, k] = grid[i] ** (k0 + k)
            rows[r, n] = (-1) ** r / scale[i]
            right[r] = target[i]
        solution = lu_solve(rows, right)
        free = [solution[k] for k in range(n)]
        error = np.array([w * (x**k0 * evaluate(free, x) - y) for x, y, w in zip(grid, target, scale)])
        known, at = at, extrema(error, n + 1)
        if len(at) < n + 1 or at == known:
            break
    return fixed + free


def minimax(f: Callable, low, high, degree: int, weight: Callable, real: type) -> tuple[list, float]:
    """Rounded coefficients and the largest weighted error that remains."""

    def rounded(c):
        return mpf(float(real(mp.nstr(c, 30))))

    low, high = mpf(low), mpf(high)
    first = rounded(remez(f, low, high, degree, weight, [])[0])
    done = [rounded(c) for c in remez(f, low, high, degree, weight, [first])]
    grid = [low + (high - low) * mpf(i) / 2001 for i in range(2002)]
    worst = max(abs(weight(x) * (evaluate(done, x) - f(x))) for x in grid if abs(x) > mpf(10) ** -9)
    return [real(float(c)) for c in done], float(worst)


TINY = mpf(10) ** -12
half = ln(2) / 2
near = (3 - 2 * sqrt(mpf(2))) ** 2 * mpf("1.001")  # s^2 for f = sqrt(2) - 1, s = f / (2 + f)
quarter = (pi / 4) ** 2 * mpf("1.001")


def tail(t: mpf) -> mpf:
    """erfc(x) exp(x^2) where t = 1 / (1 + x / 2)."""
    x = 2 / t - 2
    return erfc(x) * exp(x * x)


def exp_tail(r: mpf) -> mpf:
    return (expm1(r) - r) / r**2


def erfinv_of(w: mpf) -> mpf:
    """erfinv(x) / x where w = -log(1 - x^2)."""
    x = sqrt(-expm1(-w))
    return erfinv(x) / x


# name: f, low, high, weight, degree in float32, degree in float64 (0: not needed)
TABLE = {
    # exp(r) = 1 + r + r^2 p(r), expm1(r) = r + r^2 p(r): the error counts relative to expm1
    "EXP": (exp_tail, -half * 1.001, half * 1.001, lambda r: r * r / expm1(r), 4, 10),
    # log(1 + f) = 2 atanh(s) = f - s (f - z p(z)), z = s^2
    "LOG": (lambda z: (2 * atanh(sqrt(z)) / sqrt(z) - 2) / z, TINY, near, lambda z: z, 3, 6),
    # sin(r) = r + r^3 p(r^2), cos(r) = 1 - r^2/2 + r^4 p(r^2)
    "SIN": (lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, TINY, quarter, lambda z: z, 2, 5),
    "COS": (lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, TINY, quarter, lambda z: z**2, 2, 5),
    # |x| < 1: erf(x) = x + x p(x^2); beyond: erf(x) = 1 - exp(-p(x - 1)), the error counts absolutely
    "ERF_NEAR": (lambda z: erf(sqrt(z)) / sqrt(z) - 1, TINY, 1, lambda z: sqrt(z) / erf(sqrt(z)), 6, 0),
    "ERF_FAR": (lambda x: -ln(erfc(x + 1)), 0, 3, lambda x: erfc(x + 1), 8, 0),
    # erfc(x) = exp(-x^2) p(t), t = 1 / (1 + x / 2), for float32 but evaluated in float64
    "ERFC": (tail, 1 / (1 + mpf("10.1") / 2), 1, lambda t: 1 / tail(t), 0, 11),
    # erfinv(x) = x p(w), w = -log(1 - x^2); from w = 5.5 on x p(sqrt(w)). For float32, in float64
    "ERFINV_NEAR": (erfinv_of, TINY, 5.5, lambda w: 1 / erfinv_of(w), 0, 14),
    "ERFINV_FAR": (lambda s: erfinv_of(s * s), sqrt(mpf("5.5")), 4.1, lambda s: 1 / erfinv_of(s * s), 0, 12),
    # |t| <= 1/2: sin(pi t) = t p(t^2)
    "SIN_PI": (lambda z: sin(pi * sqrt(z)) / sqrt(z), TINY, 0.2501, lambda z: sqrt(z) / sin(pi * sqrt(z)), 0, 7),
}


if __name__ == "__main__":
    for name, (f, low, high, weight, *degrees) in TABLE.items():
        for real, degree in zip((np.float32, np.float64), degrees):
            if degree:
                found, error = minimax(f, low, high, degree, weight, real)
                print(f"{name}{np.finfo(real).bits} = ({', '.join(map(str, found))})  # {error:.1e}")
