# Written by `make stubs` from the op table and the functions of the package: do not edit.
# ruff: noqa
# mypy: disable-error-code="misc, override"
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import dict as _dict
from builtins import float as _float
from builtins import int as _int
from builtins import list as _list
from builtins import object as _object
from builtins import set as _set
from builtins import slice as _slice
from builtins import str as _str
from builtins import tuple as _tuple
from builtins import type as _type
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal as _Literal, NamedTuple as _NamedTuple, TypeAlias as _TypeAlias, overload as _overload

import numpy as _np

from rushlight.core.tensor import Tensor as _Tensor
from rushlight.base.dtypes import dtype as _dtype
_Number: _TypeAlias = _bool | _int | _float | _complex
_Operand: _TypeAlias = _Tensor | _Number | _np.ndarray

def airy_ai(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = airy_ai(input). Airy's function Ai: f'' = x f, and f(x) goes to 0 for large x."""
def bessel_j0(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = bessel_j0(input). The Bessel function of the first kind of order 0."""
def bessel_j1(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = bessel_j1(input). The Bessel function of the first kind of order 1."""
def bessel_y0(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = bessel_y0(input). The Bessel function of the second kind of order 0."""
def bessel_y1(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = bessel_y1(input). The Bessel function of the second kind of order 1."""
def chebyshev_polynomial_t(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = chebyshev_polynomial_t(input, n). Chebyshev's polynomial of the first kind of degree n: cos(n t) at cos(t); 0 for negative degrees."""
def chebyshev_polynomial_u(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = chebyshev_polynomial_u(input, n). Chebyshev's polynomial of the second kind of degree n: sin((n + 1) t) / sin(t) at cos(t); 0 for negative degrees."""
def chebyshev_polynomial_v(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = chebyshev_polynomial_v(input, n). Chebyshev's polynomial of the third kind of degree n: cos((n + 1/2) t) / cos(t / 2) at cos(t); 0 for negative degrees."""
def chebyshev_polynomial_w(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = chebyshev_polynomial_w(input, n). Chebyshev's polynomial of the fourth kind of degree n: sin((n + 1/2) t) / sin(t / 2) at cos(t); 0 for negative degrees."""
def digamma(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = digamma(input). The derivative of lgamma. Needs SciPy."""
def entr(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = entr(input). -input log(input): the entropy of one probability; 0 at 0 and -inf for negative numbers."""
def erf(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erf(input). The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to `input`. Needs SciPy."""
def erfc(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erfc(input). 1 - erf(input), exact also where the result is tiny. Needs SciPy."""
def erfcx(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erfcx(input). exp(input^2) erfc(input): a scaled erfc that does not underflow."""
def erfinv(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = erfinv(input). The inverse of erf; inf and -inf at 1 and -1, nan outside. Needs SciPy."""
def exp2(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = exp2(input). 2 to the power of the number."""
def expit(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = 1 / (1 + exp(-input)). The logistic function, from 0 to 1."""
def expm1(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = exp(input) - 1. exp(input) - 1, exact also near 0."""
def gammainc(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = igamma(input, other)"""
def gammaincc(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = igammac(input, other)"""
def gammaln(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = lgamma(input). The logarithm of the absolute value of the gamma function. Needs SciPy."""
def hermite_polynomial_h(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = hermite_polynomial_h(input, n). Hermite's polynomial of degree n, in the physicists' form: 1, 2 x, 4 x^2 - 2, ...; 0 for negative degrees."""
def hermite_polynomial_he(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = hermite_polynomial_he(input, n). Hermite's polynomial of degree n, in the probabilists' form: 1, x, x^2 - 1, ...; 0 for negative degrees."""
def i0(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = i0(input). The modified Bessel function of the first kind of order 0. Needs SciPy."""
def i0e(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = i0e(input). i0(input) exp(-|input|): it does not overflow."""
def i1(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = i1(input). The modified Bessel function of the first kind of order 1."""
def i1e(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = i1e(input). i1(input) exp(-|input|): it does not overflow."""
def laguerre_polynomial_l(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = laguerre_polynomial_l(input, n). Laguerre's polynomial of degree n: 1, 1 - x, (x^2 - 4 x + 2) / 2, ...; 0 for negative degrees."""
def legendre_polynomial_p(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = legendre_polynomial_p(input, n). Legendre's polynomial of degree n: 1, x, (3 x^2 - 1) / 2, ...; 0 for negative degrees."""
def log1p(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log(1 + input). log(1 + input), exact also near 0."""
def log_ndtr(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = log_ndtr(input). log(ndtr(input)), exact also where ndtr is tiny."""
def log_softmax(input: _Tensor, dim: _int, *, dtype: Any = ...) -> _Tensor: ...
def logit(input: _Tensor, eps: Any = ..., *, out: _Tensor | None = ...) -> _Tensor: """out = logit(input, eps)"""
def logsumexp(input: _Tensor, dim: Any, keepdim: _bool = ..., *, out: _Tensor | None = ...) -> _Tensor: ...
def modified_bessel_i0(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = i0(input). The modified Bessel function of the first kind of order 0. Needs SciPy."""
def modified_bessel_i1(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = i1(input). The modified Bessel function of the first kind of order 1."""
def modified_bessel_k0(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = modified_bessel_k0(input). The modified Bessel function of the second kind of order 0."""
def modified_bessel_k1(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = modified_bessel_k1(input). The modified Bessel function of the second kind of order 1."""
def multigammaln(input: _Tensor, p: _int, *, out: _Tensor | None = ...) -> _Tensor: ...
def ndtr(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = ndtr(input). The probability that a standard normal number is at most `input`."""
def ndtri(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = ndtri(input). The inverse of ndtr: the quantile of the standard normal distribution."""
def polygamma(n: _int, input: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = polygamma(n, input). The n-th derivative of digamma. Needs SciPy."""
def psi(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = digamma(input). The derivative of lgamma. Needs SciPy."""
def round(input: _Tensor, *, decimals: _int = ..., out: _Tensor | None = ...) -> _Tensor: ...
def scaled_modified_bessel_k0(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = scaled_modified_bessel_k0(input). modified_bessel_k0(input) exp(input): it does not underflow."""
def scaled_modified_bessel_k1(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = scaled_modified_bessel_k1(input). modified_bessel_k1(input) exp(input): it does not underflow."""
def shifted_chebyshev_polynomial_t(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = chebyshev_polynomial_t(2 * input - 1, n). Chebyshev's polynomial of the first kind of degree n, at 2 input - 1; 0 for negative degrees."""
def shifted_chebyshev_polynomial_u(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = chebyshev_polynomial_u(2 * input - 1, n). Chebyshev's polynomial of the second kind of degree n, at 2 input - 1; 0 for negative degrees."""
def shifted_chebyshev_polynomial_v(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = chebyshev_polynomial_v(2 * input - 1, n). Chebyshev's polynomial of the third kind of degree n, at 2 input - 1; 0 for negative degrees."""
def shifted_chebyshev_polynomial_w(input: _Tensor, n: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = chebyshev_polynomial_w(2 * input - 1, n). Chebyshev's polynomial of the fourth kind of degree n, at 2 input - 1; 0 for negative degrees."""
def sinc(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = sinc(input). sin(pi input) / (pi input), and 1 at 0."""
def softmax(input: _Tensor, dim: _int, *, dtype: Any = ...) -> _Tensor: ...
def spherical_bessel_j0(input: _Tensor, *, out: _Tensor | None = ...) -> _Tensor: """out = spherical_bessel_j0(input). sin(input) / input, and 1 at 0."""
def xlog1py(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = xlog1py(input, other). input * log(1 + other), and 0 where `input` is 0."""
def xlogy(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = input * log(other). input * log(other), and 0 where `input` is 0."""
def zeta(input: _Tensor, other: _Operand, *, out: _Tensor | None = ...) -> _Tensor: """out = zeta(input, other). Hurwitz's zeta function: the sum of (k + other)^-input over k = 0, 1, 2, ..."""
