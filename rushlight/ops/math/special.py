"""Special functions: gamma functions, the normal distribution, Bessel functions, orthogonal polynomials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, floating, op
from rushlight.core.worlds import adopt, shared
from rushlight.kernels import special as kernels

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import (
        airy_ai,
        bessel_j0,
        bessel_j1,
        bessel_y0,
        bessel_y1,
        chebyshev_polynomial_t,
        chebyshev_polynomial_u,
        chebyshev_polynomial_v,
        chebyshev_polynomial_w,
        cos,
        entr,
        erfcx,
        exp,
        hermite_polynomial_h,
        hermite_polynomial_he,
        i0e,
        i1,
        i1e,
        laguerre_polynomial_l,
        legendre_polynomial_p,
        log,
        log1p,
        log_ndtr,
        modified_bessel_k0,
        modified_bessel_k1,
        ndtr,
        ndtri,
        scaled_modified_bessel_k0,
        scaled_modified_bessel_k1,
        sgn,
        spherical_bessel_j0,
        where,
        xlog1py,
        zeta,
    )

adopt(kernels)

# -- gamma and its derivatives

# fmt: off
lgamma = floating(lambda x, /: lgamma(x), x=lambda g, x: g * digamma(x), alias="special_gammaln", takes="buif")
digamma = floating(lambda x, /: digamma(x), x=lambda g, x: g * polygamma(x, 1),
    alias="special_digamma special_psi", fused=False, takes="buif")
polygamma = floating(lambda x, /, n: polygamma(x, n), x=lambda g, x, n: g * polygamma(x, n + 1),
    order="n x", alias="special_polygamma", takes="buif")
igamma = op(lambda x, y, /: igamma(x, y), x=lambda g: no_derivative("igamma"),
    y=lambda g, x, y: g * exp((x - 1) * log(y) - y - lgamma(x)), alias="special_gammainc", numbers="", takes="f")
igammac = op(lambda x, y, /: igammac(x, y), x=lambda g: no_derivative("igammac"),
    y=lambda g, x, y: -g * exp((x - 1) * log(y) - y - lgamma(x)), alias="special_gammaincc", numbers="", takes="f")
special_zeta = floating(lambda x, y, /: zeta(x, y), x=lambda g: no_derivative("special.zeta"),
    y=lambda g, x, y: -g * x * special_zeta(x + 1, y),
    doc="Hurwitz's zeta function: the sum of (k + other)^-input over k = 0, 1, 2, ...", numbers="x y", takes="buif")

# -- logarithms and errors

logit = floating(lambda x, /, eps=None: logit(x, eps), x=lambda g, x, eps: logit_gradient(g, x, eps),
    alias="special_logit", takes="buif")
erfinv = floating(lambda x, /: erfinv(x), x=lambda g, x: g * exp(erfinv(x) ** 2) * 0.886226925452758,
    alias="special_erfinv", takes="buif")
special_erfcx = floating(lambda x, /: erfcx(x), x=lambda g, x, out: g * (2 * x * out - 1.1283791670955126),
    doc="exp(input^2) erfc(input): a scaled erfc that does not underflow.", takes="buif")
special_entr = floating(lambda x, /: entr(x), x=lambda g, x: -g * (1 + log(x)),
    doc="-input log(input): the entropy of one probability; 0 at 0 and -inf for negative numbers.",
    takes="buif")
special_xlog1py = floating(lambda x, y, /: xlog1py(x, y),
    x=lambda g, x, y: g * where((x == 0) & (y <= -1), 0, log1p(y)), y=lambda g, x, y: g * x / (y + 1),
    doc="input * log(1 + other), and 0 where `input` is 0.",
    numbers="x y", node="SpecialXlog1PyBackward0", takes="buif")
special_ndtr = floating(lambda x, /: ndtr(x), x=lambda g, x: g * exp(-0.5 * x * x) * 0.3989422804014327,
    doc="The probability that a standard normal number is at most `input`.", takes="buif")
special_log_ndtr = floating(lambda x, /: log_ndtr(x),
    x=lambda g, x: g * 0.7978845608028654 / special_erfcx(x * -0.7071067811865476),
    doc="log(ndtr(input)), exact also where ndtr is tiny.", takes="buif")
special_ndtri = floating(lambda x, /: ndtri(x), x=lambda g, out: g * exp(0.5 * out * out) * 2.5066282746310002,
    doc="The inverse of ndtr: the quantile of the standard normal distribution.", takes="buif")
sinc = floating(lambda x, /: sinc(x), x=lambda g, x: g * where(x == 0, 0, (cos(x * 3.141592653589793) - sinc(x)) / x),
    alias="special_sinc", fused=False)

# -- Bessel functions, of the first kind (j, i) and the second (y, k); names that end in e are scaled

i0 = floating(lambda x, /: i0(x), x=lambda g, x: g * special_i1(x),
    doc="The modified Bessel function of the first kind of order 0. Needs SciPy.",
    alias="special_i0 special_modified_bessel_i0", takes="buif")
special_i0e = floating(lambda x, /: i0e(x), x=lambda g, x, out: g * (special_i1e(x) - sgn(x) * out),
    doc="i0(input) exp(-|input|): it does not overflow.", node="SpecialI0EBackward0", takes="buif")
special_i1 = floating(lambda x, /: i1(x), x=lambda g, x, out: g * (i0(x) - by_x(out, x)),
    doc="The modified Bessel function of the first kind of order 1.", alias="special_modified_bessel_i1", takes="buif")
special_i1e = floating(lambda x, /: i1e(x), x=lambda g, x, out: g * (special_i0e(x) - sgn(x) * out - by_x(out, x)),
    doc="i1(input) exp(-|input|): it does not overflow.", node="SpecialI1EBackward0", takes="buif")
special_bessel_j0 = floating(lambda x, /: bessel_j0(x), x=lambda g, x: -g * special_bessel_j1(x),
    doc="The Bessel function of the first kind of order 0.", takes="buif")
special_bessel_j1 = floating(lambda x, /: bessel_j1(x), x=lambda g, x, out: g * (special_bessel_j0(x) - by_x(out, x)),
    doc="The Bessel function of the first kind of order 1.", takes="buif")
special_bessel_y0 = floating(lambda x, /: bessel_y0(x), x=lambda g, x: -g * special_bessel_y1(x),
    doc="The Bessel function of the second kind of order 0.", takes="buif")
special_bessel_y1 = floating(lambda x, /: bessel_y1(x), x=lambda g, x, out: g * (special_bessel_y0(x) - out / x),
    doc="The Bessel function of the second kind of order 1.", takes="buif")
special_modified_bessel_k0 = floating(lambda x, /: modified_bessel_k0(x),
    x=lambda g, x: -g * special_modified_bessel_k1(x),
    doc="The modified Bessel function of the second kind of order 0.", takes="buif")
special_modified_bessel_k1 = floating(lambda x, /: modified_bessel_k1(x),
    x=lambda g, x, out: -g * (special_modified_bessel_k0(x) + out / x),
    doc="The modified Bessel function of the second kind of order 1.", takes="buif")
special_scaled_modified_bessel_k0 = floating(lambda x, /: scaled_modified_bessel_k0(x),
    doc="modified_bessel_k0(input) exp(input): it does not underflow.", takes="buif")
special_scaled_modified_bessel_k1 = floating(lambda x, /: scaled_modified_bessel_k1(x),
    doc="modified_bessel_k1(input) exp(input): it does not underflow.", takes="buif")
special_spherical_bessel_j0 = floating(lambda x, /: spherical_bessel_j0(x), doc="sin(input) / input, and 1 at 0.",
    takes="buif")
special_airy_ai = floating(lambda x, /: airy_ai(x),
    doc="Airy's function Ai: f'' = x f, and f(x) goes to 0 for large x.", takes="buif")
# fmt: on

# -- orthogonal polynomials of degree n, at x; n is rounded toward 0, negative degrees give 0


def polynomial(forward, doc):
    """An op for a family of polynomials; without derivatives, as in torch."""
    return floating(forward, names={"y": "n"}, numbers="x y", doc=doc + "; 0 for negative degrees.")


# fmt: off
special_chebyshev_polynomial_t = polynomial(lambda x, y, /: chebyshev_polynomial_t(x, y),
    "Chebyshev's polynomial of the first kind of degree n: cos(n t) at cos(t)")
special_chebyshev_polynomial_u = polynomial(lambda x, y, /: chebyshev_polynomial_u(x, y),
    "Chebyshev's polynomial of the second kind of degree n: sin((n + 1) t) / sin(t) at cos(t)")
special_chebyshev_polynomial_v = polynomial(lambda x, y, /: chebyshev_polynomial_v(x, y),
    "Chebyshev's polynomial of the third kind of degree n: cos((n + 1/2) t) / cos(t / 2) at cos(t)")
special_chebyshev_polynomial_w = polynomial(lambda x, y, /: chebyshev_polynomial_w(x, y),
    "Chebyshev's polynomial of the fourth kind of degree n: sin((n + 1/2) t) / sin(t / 2) at cos(t)")
special_shifted_chebyshev_polynomial_t = polynomial(lambda x, y, /: chebyshev_polynomial_t(2 * x - 1, y),
    "Chebyshev's polynomial of the first kind of degree n, at 2 input - 1")
special_shifted_chebyshev_polynomial_u = polynomial(lambda x, y, /: chebyshev_polynomial_u(2 * x - 1, y),
    "Chebyshev's polynomial of the second kind of degree n, at 2 input - 1")
special_shifted_chebyshev_polynomial_v = polynomial(lambda x, y, /: chebyshev_polynomial_v(2 * x - 1, y),
    "Chebyshev's polynomial of the third kind of degree n, at 2 input - 1")
special_shifted_chebyshev_polynomial_w = polynomial(lambda x, y, /: chebyshev_polynomial_w(2 * x - 1, y),
    "Chebyshev's polynomial of the fourth kind of degree n, at 2 input - 1")
special_hermite_polynomial_h = polynomial(lambda x, y, /: hermite_polynomial_h(x, y),
    "Hermite's polynomial of degree n, in the physicists' form: 1, 2 x, 4 x^2 - 2, ...")
special_hermite_polynomial_he = polynomial(lambda x, y, /: hermite_polynomial_he(x, y),
    "Hermite's polynomial of degree n, in the probabilists' form: 1, x, x^2 - 1, ...")
special_laguerre_polynomial_l = polynomial(lambda x, y, /: laguerre_polynomial_l(x, y),
    "Laguerre's polynomial of degree n: 1, 1 - x, (x^2 - 4 x + 2) / 2, ...")
special_legendre_polynomial_p = polynomial(lambda x, y, /: legendre_polynomial_p(x, y),
    "Legendre's polynomial of degree n: 1, x, (3 x^2 - 1) / 2, ...")
# fmt: on


@shared
def by_x(y, x):
    """y / x, and 1/2 at x = 0, for I1(x) and J1(x)."""
    return where(x == 0, 0.5, y / where(x == 0, 1, x))


@shared
def logit_gradient(g, x, eps):
    """g / (x (1 - x)) inside the bounds. Outside: 0 if `eps` clamps x, else nan."""
    low, otherwise = (0, float("nan")) if eps is None or eps < 0 else (eps, 0.0)
    return where((x >= low) & (x <= 1 - low), g / (x * (1 - x)), otherwise)


@shared
def no_derivative(name):
    raise NotImplementedError(
        f"the derivative for 'self' of '{name}' is not implemented; hint: detach() the first argument"
    )


build(globals())
