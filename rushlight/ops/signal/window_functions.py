"""Window functions, which fade a piece of a signal in and out. Each is a formula of t, from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import index
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base import dtypes
from rushlight.base.errors import overflow, runtime_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import made
from rushlight.ops.composites import composite


def cosines(t: ndarray, a: Iterable[float]) -> ndarray:
    """a_0 - a_1 cos(2 pi t) + a_2 cos(4 pi t) - ..."""
    return sum(((-1) ** i * weight * np.cos(2 * np.pi * i * t) for i, weight in enumerate(a)), np.zeros_like(t))


def triangle(t: ndarray) -> ndarray:
    return 1 - abs(2 * t - 1)


def bessel(t: ndarray, beta: float) -> ndarray:
    """I0(beta sqrt(1 - (2 t - 1)^2)) / I0(beta)"""
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta)


HANN, HAMMING, BLACKMAN = (0.5, 0.5), (0.54, 0.46), (0.42, 0.5, 0.08)
NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


def sampled(formula: Callable[[ndarray], ndarray], n: int, symmetric: bool) -> ndarray:
    """The formula at n equally spaced points from t = 0 on. `symmetric`: the last point is t = 1; otherwise t = 1 would
    be the point after it. A single point has the value 1."""
    if n == 1:
        return np.ones(1)
    return formula(np.arange(n) / max(n - 1 if symmetric else n, 1))


def window(
    name: str, formula: Callable, n: int, periodic: bool, dtype: Any, requires_grad: bool, device: Any
) -> Tensor:
    """One of the package's windows, periodic by default."""
    n, kind = index(n), dtypes.or_default(dtype)
    if not kind.is_floating_point:
        raise runtime_error(f"{name} expects floating point dtypes, got: {kind}")
    if n < 0:
        raise runtime_error(f"{name} requires non-negative window_length, got window_length={n}")
    if n >= 1 << 63:  # NumPy's arange is empty here
        raise overflow(name)
    return made(sampled(formula, n, not periodic), kind, requires_grad, device)


def of_formula(name: str, formula: Callable, text: str, shown: str) -> Callable[..., Tensor]:
    """The function `name` of a formula without settings; `text` and `shown` are for its docstring."""

    def call(
        window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False,
    ) -> Tensor:  # fmt: skip
        return window(name, formula, window_length, periodic, dtype, requires_grad, device)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""{text}

    >>> rushlight.{name}(4)[1:]
    tensor([{shown}])
    """
    return composite(tensor=False)(call)


hann_window = of_formula(
    "hann_window",
    lambda t: cosines(t, HANN),
    "(1 - cos(2 pi k / N)) / 2, k = 0 ... window_length - 1; N is window_length, or 1 less if not `periodic`.",
    "0.5000, 1.0000, 0.5000",
)
blackman_window = of_formula(
    "blackman_window",
    lambda t: cosines(t, BLACKMAN),
    "0.42 - cos(2 pi k / N) / 2 + 0.08 cos(4 pi k / N); N is window_length, or 1 less if not `periodic`.",
    "0.3400, 1.0000, 0.3400",
)
bartlett_window = of_formula(
    "bartlett_window",
    triangle,
    "1 - |2 k / N - 1|, a triangle; N is window_length, or 1 less if not `periodic`.",
    "0.5000, 1.0000, 0.5000",
)


@composite(tensor=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - beta cos(2 pi k / N), k = 0 ... window_length - 1; N is window_length, or 1 less if not `periodic`.

    >>> rushlight.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return window(
        "hamming_window", lambda t: cosines(t, (alpha, beta)), window_length, periodic, dtype, requires_grad, device
    )


@composite(tensor=False)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """I0(beta sqrt(1 - (2 k / N - 1)^2)) / I0(beta), with Bessel's I0; N is window_length, or 1 less if not `periodic`.

    >>> rushlight.kaiser_window(4, beta=2.)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """
    return window("kaiser_window", lambda t: bessel(t, beta), window_length, periodic, dtype, requires_grad, device)
