"""Special functions: SciPy's, imported when first called, under torch's names."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.elementwise import from_scipy, of_reals, scipy_function

digamma, erfinv, erfcx, entr = from_scipy("digamma"), from_scipy("erfinv"), from_scipy("erfcx"), from_scipy("entr")
i0, i0e, i1, i1e = from_scipy("i0"), from_scipy("i0e"), from_scipy("i1"), from_scipy("i1e")
modified_bessel_k0, modified_bessel_k1 = from_scipy("k0"), from_scipy("k1")
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = from_scipy("k0e"), from_scipy("k1e")
bessel_j0, bessel_j1, bessel_y0, bessel_y1 = from_scipy("j0"), from_scipy("j1"), from_scipy("y0"), from_scipy("y1")
ndtr, log_ndtr, ndtri = from_scipy("ndtr"), from_scipy("log_ndtr"), from_scipy("ndtri")
zeta, xlog1py = from_scipy("zeta"), from_scipy("xlog1py")
airy_ai = of_reals(lambda x: scipy_function("airy")(x)[0])
_gammaln, _gammainc, _gammaincc = from_scipy("gammaln"), from_scipy("gammainc"), from_scipy("gammaincc")


def lgamma(x: ndarray) -> ndarray:
    return np.where(np.isneginf(x), -x, _gammaln(x))         # SciPy has -inf there


def polygamma(x: ndarray, n: int) -> ndarray:
    """The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, x)."""
    if n < 0:
        raise ValueError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(x)
    wide = x.astype(np.float64)                   # n! may be too large for single precision
    factor = (-1.0) ** (n + 1) * (math.gamma(n + 1) if n < 171 else math.inf)
    return (factor * zeta(np.full_like(wide, n + 1), wide)).astype(x.dtype)


def igamma(x: ndarray, y: ndarray) -> ndarray:
    """The regularized lower incomplete gamma function: of y, with the parameter x."""
    return _gammainc(_real(x), y)


def igammac(x: ndarray, y: ndarray) -> ndarray:
    """1 - igamma(x, y), exact also where that is tiny."""
    return _gammaincc(_real(x), y)


def _real(x: ndarray) -> ndarray:
    if x.dtype.kind in "iub":
        raise TypeError("not supported for whole numbers")
    return x


def logit(x: ndarray, eps: float | None = None) -> ndarray:
    """log(x / (1 - x)); that of eps where x is less, of 1 - eps where x is more."""
    if eps is not None and eps >= 0:
        x = np.minimum(np.maximum(x, x.dtype.type(eps)), x.dtype.type(1 - eps))
    return np.log(x / (1 - x))


def sinc(x: ndarray) -> ndarray:
    """sin(pi x) / (pi x), and 1 at 0."""
    y = np.where(x == 0, 1, x * np.pi)
    return np.where(x == 0, 1, np.sin(y) / y).astype(x.dtype, copy=False)


def spherical_bessel_j0(x: ndarray) -> ndarray:
    """sin(x) / x, and its limits: 1 at 0, 0 far away."""
    y = np.where((x == 0) | np.isinf(x), 1, x)
    return np.where(x == 0, 1, np.where(np.isinf(x), 0, np.sin(y) / y)).astype(x.dtype, copy=False)


# -- polynomials: kernel(x, n), a degree for each element; what stands behind its point does not count -----------------

def _polynomial(name: str, most: dict[str, int] | None = None) -> Callable:
    """SciPy's polynomial of degree n at x; 0 for negative n, and nan for n above `most`, by dtype, as in torch."""
    def evaluate(x: ndarray, n: ndarray) -> ndarray:
        degree = np.where(n > -1, n, -1).astype(np.int64)    # nan is none
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
