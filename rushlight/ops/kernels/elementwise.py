"""Element-by-element kernels: NumPy's ufuncs under torch's names, and ours where NumPy has none."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import (  # noqa: F401
    add,
    ceil,
    copysign,
    cos,
    cosh,
    deg2rad,
    divide,
    exp,
    exp2,
    expm1,
    floor,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    log,
    log1p,
    log2,
    log10,
    logaddexp2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    ndarray,
    nextafter,
    rad2deg,
    reciprocal,
    sin,
    sinh,
    sqrt,
    subtract,
    tan,
    tanh,
    trunc,
    where,
    zeros_like,
)

real, imag = np.real, np.imag
abs, neg, pos = np.absolute, np.negative, np.positive
asin, acos, atan, atan2 = np.arcsin, np.arccos, np.arctan, np.arctan2
asinh, acosh, atanh = np.arcsinh, np.arccosh, np.arctanh
mul, sub, div = multiply, subtract, divide
eq, ne, lt, le, gt, ge = np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal
bitwise_and, bitwise_or, bitwise_xor, bitwise_not = np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert
bitwise_left_shift, bitwise_right_shift = np.left_shift, np.right_shift


def rounded_quotient(ufunc: np.ufunc) -> Callable:
    """A division of which NumPy makes 0 where integers are divided by 0, and torch an error."""
    def kernel(x: ndarray, y: ndarray) -> ndarray:
        if y.dtype.kind in "iu" and not y.all():
            raise ValueError("ZeroDivisionError: an integer is divided by 0")
        return ufunc(x, y)
    return kernel


def refusing(kinds: str, function: Callable, words: str = "") -> Callable:
    """The function for arrays, or numbers, of other kinds than these, for which NumPy has an answer and torch an error,
    in `words`.
    """
    def kernel(x: ndarray, *others: Any) -> ndarray:
        dtype = np.asarray(x).dtype
        if dtype.kind in kinds:
            raise NotImplementedError(words) if words else TypeError(f"not supported for {dtype}")
        return function(x, *others)
    return kernel


floor_divide, remainder, fmod = rounded_quotient(np.floor_divide), rounded_quotient(np.remainder), rounded_quotient(np.fmod)
fmax = refusing("c", np.fmax, "fmax not implemented for complex tensors.")
fmin = refusing("c", np.fmin, "fmin not implemented for complex tensors.")
hypot = refusing("iub", np.hypot)
signbit = refusing("c", np.signbit, "signbit is not implemented for complex tensors.")
clamp_min = refusing("c", np.maximum, "clamp is not supported for complex types; cure: clamp x.real and x.imag")
clamp_max = refusing("c", np.minimum, "clamp is not supported for complex types; cure: clamp x.real and x.imag")


def pow(x: ndarray, y: ndarray) -> ndarray:
    """x^y; by products for the exponents people write (np.power takes 20 times as long as a product)."""
    if x.dtype.kind == "b":
        return x | ~y
    if y.ndim == 0 and x.dtype.kind in "fcV":
        n = y.item()
        if n == 2:
            return x * x
        if n == 1:
            return x.copy()
        if n == 3:
            return x * x * x
        if n == 0.5:
            return np.sqrt(x)
        if n == -1:
            return np.reciprocal(x)
        if n == -0.5:
            return np.reciprocal(np.sqrt(x))
    if x.dtype.kind in "iu" and y.dtype.kind == "i" and (y < 0).any():
        if y.ndim == 0 and not y.flags.writeable:  # a Python number, not a tensor
            raise ValueError("Integers to negative integer powers are not allowed: convert them first, x.float()")
        safe = np.power(x, np.maximum(y, 0))      # 1 / x^|y| in whole numbers: 0 but for x = 1 and -1
        inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
        return np.where(y < 0, inverse, safe).astype(x.dtype)
    return np.power(x, y)


def square(x: ndarray) -> ndarray:
    return np.square(x) if x.dtype.kind != "b" else x.astype(np.int64)


def round(x: ndarray) -> ndarray:
    """The nearest whole number, of two the even one; integers stay what they are."""
    return np.rint(x) if x.dtype.kind in "fV" else x.copy()


def sign(x: ndarray) -> ndarray:
    """-1, 0 or 1; 0 for nan."""
    if x.dtype.kind == "c":
        raise NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
                                  "torch.sgn instead.")
    return (x > 0).astype(x.dtype) - (x < 0) if x.dtype.kind != "b" else x.copy()


def sgn(x: ndarray) -> ndarray:
    return np.sign(x) if x.dtype.kind == "c" else sign(x)


def heaviside(x: ndarray, y: ndarray) -> ndarray:
    """1 for positive x, 0 for negative and nan, y for 0."""
    if x.dtype.kind == "c":
        raise NotImplementedError("heaviside is not yet implemented for complex tensors.")
    return np.where(x == 0, y, (x > 0).astype(x.dtype))


def logaddexp(x: ndarray, y: ndarray) -> ndarray:
    """log(exp(x) + exp(y)); of complex numbers shifted by the one with the larger real part."""
    if x.dtype.kind in "iub":
        raise TypeError("not supported for whole numbers; cure: convert them: x.float()")
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    m = np.where(x.real >= y.real, x, y)
    return m + np.log(np.exp(x - m) + np.exp(y - m))


def rsqrt(x: ndarray) -> ndarray:
    return np.reciprocal(np.sqrt(x))


def sigmoid(x: ndarray) -> ndarray:
    """1 / (1 + exp(-x)); where exp overflows the quotient is 0, as it should be."""
    with np.errstate(over="ignore"):
        return np.reciprocal(1 + np.exp(-x))


ZEROS = {np.dtype(t): np.zeros((), t) for t in (np.float32, np.float64)}


def relu(x: ndarray) -> ndarray:
    return np.maximum(x, ZEROS.get(x.dtype, 0))   # to make an array of the number 0 takes as long as 1,000 elements


def frac(x: ndarray) -> ndarray:
    if x.dtype.kind in "iub":
        raise TypeError("not supported for whole numbers")
    return x - np.trunc(x)


def angle(x: ndarray) -> ndarray:
    """The argument of a complex number; 0 or pi for a real one, nan for nan."""
    if x.dtype.kind == "c":
        return np.angle(x)
    return np.where(np.isnan(x), x, np.where(x < 0, x.dtype.type(np.pi), x.dtype.type(0)))


def addcmul(x: ndarray, y: ndarray, z: ndarray, value: Any = 1) -> ndarray:
    if x.dtype.kind == "b":
        raise TypeError("not supported for bool")
    return x + y * z * x.dtype.type(value)


def conj(x: ndarray) -> ndarray:
    return np.conj(x) if x.dtype.kind == "c" else x.copy()


def is_complex(x: ndarray) -> bool:
    return x.dtype.kind == "c"


def lerp(x: ndarray, y: ndarray, weight: Any) -> ndarray:
    """x + w (y - x), from the nearer end for exactness at both."""
    if x.dtype.kind in "iub":
        raise TypeError("not supported for whole numbers; cure: convert them: x.float()")
    return np.where(np.abs(weight) < 0.5, x + weight * (y - x), y - (y - x) * (1 - weight))


def nan_to_num(x: ndarray, nan: float | None = 0.0, posinf: float | None = None,
               neginf: float | None = None) -> ndarray:
    return np.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf)


def softplus(x: ndarray, beta: float = 1.0, threshold: float = 20.0) -> ndarray:
    """log(1 + exp(beta x)) / beta; beyond the threshold simply x."""
    bx = x * beta
    return np.where(bx > threshold, x, np.log1p(np.exp(np.minimum(bx, threshold))) / beta)


def xlogy(x: ndarray, y: ndarray) -> ndarray:
    """x log y, and 0 where x is 0."""
    return np.where(np.isnan(y), y, np.where(x == 0, x.dtype.type(0), x * np.log(np.where(x == 0, 1, y))))


def scipy_function(name: str) -> Callable:
    """SciPy's special function of that name."""
    try:
        from scipy import special
    except ImportError as error:
        raise ImportError(f"{name} needs SciPy: pip install scipy") from error
    return getattr(special, name)


def of_reals(function: Callable) -> Callable:
    """The function for real numbers: what comes out has the first array's dtype, half types go by single precision."""
    def kernel(x: ndarray, *others: ndarray) -> ndarray:
        if x.dtype.kind == "c":
            raise TypeError("not supported for complex numbers")
        if x.dtype.kind == "V" or x.dtype.itemsize == 2:
            return kernel(x.astype(np.float32), *[y.astype(np.float32) for y in others]).astype(x.dtype)
        return np.asarray(function(x, *others)).astype(x.dtype, copy=False)
    return kernel


def from_scipy(name: str) -> Callable:
    """SciPy's special function of that name, imported when first called."""
    return of_reals(lambda *arrays: scipy_function(name)(*arrays))


erf, erfc = from_scipy("erf"), from_scipy("erfc")
