"""Activations whose entry's formula is not the best way to compute them."""

from __future__ import annotations

import numpy as np
from numpy import ndarray

from rushlight.kernels.elementwise import clamp_both, erf, tanh, where
from rushlight.kernels.gelu import gelu32, gelu_slope32

ROOT_HALF, ROOT_TWO_OVER_PI, BELL = 0.7071067811865476, 0.7978845608028654, 0.3989422804014327


def gelu(x: ndarray) -> ndarray:
    """x times the probability that a normal number is below x."""
    if x.dtype.itemsize < 8:
        return gelu32(x)
    r = erf(x * ROOT_HALF)
    r += 1
    r *= x
    r *= 0.5
    return r.astype(x.dtype, copy=False)


def gelu_slope(x: ndarray) -> ndarray:
    """The derivative of gelu."""
    if x.dtype.itemsize < 8:
        return gelu_slope32(x)
    r = erf(x * ROOT_HALF)
    r += 1
    r *= 0.5
    bell = np.exp(-0.5 * x * x)
    bell *= x
    bell *= BELL
    r += bell
    return r


def gelu_tanh(x: ndarray) -> ndarray:
    """gelu with its error function approximated by a tanh."""
    r = x * x
    r *= 0.044715
    r += 1
    r *= x
    r = tanh(np.multiply(r, ROOT_TWO_OVER_PI, out=np.asarray(r)))
    r += 1
    r *= 0.5  # rounded before the product with x, since 2 x may overflow
    r *= x
    return r.astype(x.dtype, copy=False)


def log_sigmoid(x: ndarray) -> ndarray:
    """-log(1 + exp(-x)), computed so that exp never overflows."""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def mish(x: ndarray) -> ndarray:
    """x tanh(softplus(x)), computed so that exp never overflows."""
    return x * np.tanh(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


hardtanh = clamp_both


def hardsigmoid(x: ndarray) -> ndarray:
    return clamp_both(x + 3, 0, 6) / 6


def hardswish(x: ndarray) -> ndarray:
    return x * clamp_both(x + 3, 0, 6) / 6


def softshrink(x: ndarray, lambd: float = 0.5) -> ndarray:
    """x - x.clip(-lambd, lambd): 51,200 numbers in 0.04 ms; `where` takes 0.16 ms."""
    if x.dtype.kind == "f" and lambd >= 0:
        return x - x.clip(-lambd, lambd)
    return where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x - x))


def prelu_core(x: ndarray, y: ndarray) -> ndarray:
    """x above 0, else y x. For slopes y between 0 and 1 that is the larger of both, in a third of the time."""
    r = x * y
    if x.size > 8 * y.size and x.dtype.kind == "f" and y.min() > 0 and y.max() <= 1:
        return np.maximum(x, r)
    return where(x > 0, x, r)
