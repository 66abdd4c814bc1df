"""SciPy's special functions with torch's names, imported when first called."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy import ndarray

from rushlight.kernels.elementwise import from_scipy, of_reals, scipy_function

erfcx, entr = from_scipy("erfcx"), from_scipy("entr")
i0, i0e, i1, i1e = from_scipy("i0"), from_scipy("i0e"), from_scipy("i1"), from_scipy("i1e")
modified_bessel_k0, modified_bessel_k1 = from_scipy("k0"), from_scipy("k1")
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = from_scipy("k0e"), from_scipy("k1e")
bessel_j0, bessel_j1, bessel_y0, bessel_y1 = from_scipy("j0"), from_scipy("j1"), from_scipy("y0"), from_scipy("y1")
ndtr, log_ndtr, ndtri = from_scipy("ndtr"), from_scipy("log_ndtr"), from_scipy("ndtri")
zeta, xlog1py = from_scipy("zeta"), from_scipy("xlog1py")
airy_ai = of_reals(lambda x: scipy_function("airy")(x)[0])
_digamma, _erfinv = from_scipy("digamma"), from_scipy("erfinv")
_gammaln, _gammainc, _gammaincc = from_scipy("gammaln"), from_scipy("gammainc"), from_scipy("gammaincc")


def lgamma(x: ndarray) -> ndarray:
    r, ends = _gammaln(x), x == -np.inf
    if np.count_nonzero(ends):
        np.copyto(r, np.inf, where=ends)  # SciPy returns -inf
    return r


@of_reals
def erfinv(x: ndarray) -> ndarray:
    """The inverse of erf. Single precision is computed in double: initial weights made with it equal torch's to the bit
    except for 3 in 10,000. (The polynomials of M. Giles, 2010, are 3.5 units in the last place off; they take 0.3 ms
    for 100,000 numbers, this 2.2.) Numbers beyond 1 are handled before SciPy, which would take 3 us for each.
    """
    wide = x.astype(np.float64)
    beyond = np.absolute(wide) > 1
    y = np.where(beyond, np.nan, _erfinv(np.where(beyond, 0, wide))) if beyond.any() else _erfinv(wide)
    return np.copysign(y, wide)  # SciPy returns 0 for -0


def horner(x: ndarray, coefficients: tuple[float, ...]) -> ndarray:
    """The polynomial in x, coefficients of high powers first."""
    c = np.asarray(coefficients, x.dtype)
    y = np.asarray(x * c[0])
    for a in c[1:-1]:
        np.multiply(np.add(y, a, y), x, y)
    return np.add(y, c[-1], y)


@of_reals
def digamma(x: ndarray) -> ndarray:
    """d log(gamma(x)) / dx. Single precision below 0 is computed by reflection, digamma(1 - x) - pi / tan(pi x), in
    double, as in torch: SciPy sums a series around each root, 210 ms for 100,000 numbers from -1 to 0; this takes 3.
    """
    if x.dtype != np.float32 or not (below := x < 0).any():
        return _digamma(x)
    wide = x.astype(np.float64)
    rest = from_whole(wide)
    with np.errstate(all="ignore"):
        reflected = np.where(rest == 0, np.nan, np.pi / np.tan(np.pi * rest))
        return _digamma(np.where(below, 1 - wide, wide)) - np.where(below, reflected, 0)


def from_whole(x: ndarray) -> ndarray:
    """x minus the nearest integer: sin^2 and tan of pi times the result equal sin^2 and tan of pi x."""
    with np.errstate(invalid="ignore"):  # inf - inf
        return x - np.rint(x)


def trigamma(x: ndarray) -> ndarray:
    """The derivative of digamma, for single precision, in double: sum 1/(x + k)^2 up to x >= 6, Stirling's series
    above, and pi^2 / sin^2(pi x) - trigamma(1 - x) for x < 1/2. 100,000 numbers in 3 ms, by zeta in 20.
    """
    wide = x.astype(np.float64)
    low = wide < 0.5
    z, total = np.where(low, 1 - wide, wide), np.zeros_like(wide)
    with np.errstate(all="ignore"):
        for _ in range(6):
            total += 1 / (z * z)
            z += 1
        r = 1 / z
        total += r * (1 + r / 2 + r * r * horner(r * r, (-1 / 30, 1 / 42, -1 / 30, 1 / 6)))
        if low.any():
            sine = np.sin(np.pi * from_whole(wide))
            total = np.where(low, np.pi**2 / (sine * sine) - total, total)
        return total.astype(x.dtype)


def polygamma(x: ndarray, n: int) -> ndarray:
    """The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, x)."""
    if n < 0:
        raise ValueError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(x)
    if n == 1 and x.dtype == np.float32:
        return trigamma(x)
    wide = x.astype(np.float64)  # n! may be too large for single precision
    factor = (-1.0) ** (n + 1) * (math.gamma(n + 1) if n < 171 else math.inf)
    return (factor * zeta(np.full_like(wide, n + 1), wide)).astype(x.dtype)


def igamma(x: ndarray, y: ndarray) -> ndarray:
    """The regularized lower incomplete gamma function of y, with the parameter x."""
    return _gammainc(_real(x), y)


def igammac(x: ndarray, y: ndarray) -> ndarray:
    """1 - igamma(x, y), accurate even if it is tiny."""
    return _gammaincc(_real(x), y)


def _real(x: ndarray) -> ndarray:
    if x.dtype.kind in "iub":
        raise TypeError("not supported for whole numbers")
    return x


def logit(x: ndarray, eps: float | None = None) -> ndarray:
    """log(x / (1 - x)), with x clamped to [eps, 1 - eps]."""
    if eps is not None and eps >= 0:
        x = np.minimum(np.maximum(x, x.dtype.type(eps)), x.dtype.type(1 - eps))
    return np.log(x / (1 - x))


def sinc(x: ndarray) -> ndarray:
    """sin(pi x) / (pi x); 1 at 0."""
    none = x == 0
    y = np.where(none, 1, x * np.pi) if np.count_nonzero(none) else x * np.pi
    r = np.asarray(np.sin(y) / y)
    if np.count_nonzero(none):
        np.copyto(r, 1, where=none)
    return r.astype(x.dtype, copy=False)


def spherical_bessel_j0(x: ndarray) -> ndarray:
    """sin(x) / x, with its limits: 1 at 0, 0 at infinity."""
    y = np.where((x == 0) | np.isinf(x), 1, x)
    return np.where(x == 0, 1, np.where(np.isinf(x), 0, np.sin(y) / y)).astype(x.dtype, copy=False)


# -- polynomials: kernel(x, n), with a degree for each element; its fraction does not count -----------


def _polynomial(name: str, most: dict[str, int] | None = None) -> Callable:
    """SciPy's polynomial of degree n at x; 0 for negative n, and nan for n above `most` (by dtype), as in torch."""

    def evaluate(x: ndarray, n: ndarray) -> ndarray:
        degree = np.where(n > -1, n, -1).astype("l")  # nan is not a degree; SciPy converts to C long
        values = np.where(degree < 0, 0, scipy_function(name)(np.maximum(degree, 0), x))
        return values if most is None else np.where(degree > most[x.dtype.name], np.nan, values)

    return of_reals(evaluate)


_FINITE = {"float32": 128, "float64": 512}

chebyshev_polynomial_t, chebyshev_polynomial_u = _polynomial("eval_chebyt"), _polynomial("eval_chebyu")
hermite_polynomial_h = _polynomial("eval_hermite", _FINITE)
hermite_polynomial_he = _polynomial("eval_hermitenorm", _FINITE)
laguerre_polynomial_l, legendre_polynomial_p = _polynomial("eval_laguerre"), _polynomial("eval_legendre")


def chebyshev_polynomial_v(x: ndarray, n: ndarray) -> ndarray:
    return chebyshev_polynomial_u(x, n) - chebyshev_polynomial_u(x, np.trunc(n) - 1)


def chebyshev_polynomial_w(x: ndarray, n: ndarray) -> ndarray:
    return chebyshev_polynomial_u(x, n) + chebyshev_polynomial_u(x, np.trunc(n) - 1)
