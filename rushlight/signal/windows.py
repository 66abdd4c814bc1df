"""Window functions, as in torch.signal.windows: M weights, symmetric, or one period if `sym` is false.

All functions take `dtype` (float32 or float64; None: the default) and `requires_grad`. ValueError for a negative M and
for other dtypes. Below, k = 0 ... M - 1 and N is M - 1, or M if `sym` is false. A window of one weight is 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from operator import index
from typing import Any, Protocol

import numpy as np
from numpy import ndarray

from rushlight.base import dtypes
from rushlight.base.device import strided
from rushlight.base.errors import type_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import made
from rushlight.ops.signal.window_functions import BLACKMAN, HAMMING, HANN, NUTTALL, bessel, cosines, triangle

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


class Window(Protocol):
    """The signature of the windows; `settings` belong to the formula."""

    def __call__(
        self, M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
        requires_grad: bool = False, **settings: Any,
    ) -> Tensor: ...  # fmt: skip


def window(formula: Callable[..., ndarray]) -> Window:
    """The window of formula(k, N, **settings), where k is an array (M,)."""

    @wraps(formula, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def call(
        M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
        requires_grad: bool = False, **settings: Any,
    ) -> Tensor:  # fmt: skip
        name, M, kind = formula.__name__, index(M), dtypes.or_default(dtype)
        if M < 0:
            raise value_error(f"{name} requires non-negative window length, got M={M}")
        if layout not in (None, strided):
            raise value_error(f"{name} is implemented for strided tensors only, got: {layout}")
        if kind not in (dtypes.float32, dtypes.float64):
            raise value_error(f"{name} expects float32 or float64 dtypes, got: {kind}", "convert the result")
        if sym and settings.get("center") is not None:
            raise value_error("Center must be None for symmetric windows", "give sym=False")
        N = M if not sym and M > 1 else M - 1  # the last k, or the start of the next period
        return made(formula(np.arange(M), N, **settings), kind, requires_grad, device)

    own = signature(call, follow_wrapped=False)
    first, *options, _ = own.parameters.values()
    settings = list(signature(formula).parameters.values())[2:]
    call.__signature__ = own.replace(parameters=[first, *settings, *options])  # type: ignore[attr-defined]
    return call


def sampled(formula: Callable[[ndarray], ndarray], k: ndarray, N: int) -> ndarray:
    """The formula at t = k / N; 1 for a single weight."""
    return formula(k / N) if N else np.ones(len(k))


@window
def bartlett(k: ndarray, N: int) -> ndarray:
    """1 - |2 k / N - 1|, a triangle.

    >>> rushlight.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return sampled(triangle, k, N)


@window
def general_cosine(k: ndarray, N: int, *, a: Iterable) -> ndarray:
    """a_0 - a_1 cos(2 pi k / N) + a_2 cos(4 pi k / N) - ... ValueError for no weights, TypeError if `a` is not a
    sequence.

    >>> rushlight.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    if not isinstance(a, Iterable):
        raise type_error("Coefficients must be a list/tuple", a=a)
    weights = tuple(a)
    if not weights:
        raise value_error("Coefficients cannot be empty")
    return sampled(lambda t: cosines(t, weights), k, N)


@window
def general_hamming(k: ndarray, N: int, *, alpha: float = 0.54) -> ndarray:
    """alpha - (1 - alpha) cos(2 pi k / N).

    >>> rushlight.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return sampled(lambda t: cosines(t, (alpha, 1 - alpha)), k, N)


@window
def hamming(k: ndarray, N: int) -> ndarray:
    """0.54 - 0.46 cos(2 pi k / N).

    >>> rushlight.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return sampled(lambda t: cosines(t, HAMMING), k, N)


@window
def hann(k: ndarray, N: int) -> ndarray:
    """(1 - cos(2 pi k / N)) / 2.

    >>> rushlight.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return sampled(lambda t: cosines(t, HANN), k, N)


@window
def blackman(k: ndarray, N: int) -> ndarray:
    """0.42 - cos(2 pi k / N) / 2 + 0.08 cos(4 pi k / N).

    >>> rushlight.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return sampled(lambda t: cosines(t, BLACKMAN), k, N)


@window
def nuttall(k: ndarray, N: int) -> ndarray:
    """0.3635819 - 0.4891775 cos(2 pi k / N) + 0.1365995 cos(4 pi k / N) - 0.0106411 cos(6 pi k / N).

    >>> rushlight.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    return sampled(lambda t: cosines(t, NUTTALL), k, N)


@window
def cosine(k: ndarray, N: int) -> ndarray:
    """sin(pi (k + 1/2) / (N + 1)): half a wave, without its zeros.

    >>> rushlight.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return np.sin(np.pi * (k + 0.5) / (N + 1))


@window
def gaussian(k: ndarray, N: int, *, std: float = 1.0) -> ndarray:
    """exp(-(k - N / 2)^2 / (2 std^2)). ValueError unless `std` is positive.

    >>> rushlight.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise value_error(f"Standard deviation must be positive, got: {std} instead.")
    return np.exp(-0.5 * ((k - N / 2) / std) ** 2)


@window
def exponential(k: ndarray, N: int, *, center: float | None = None, tau: float = 1.0) -> ndarray:
    """exp(-|k - center| / tau), the center at N / 2 by default.

    ValueError unless `tau` is positive, and for a `center` of a symmetric window.

    >>> rushlight.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise value_error(f"Tau must be positive, got: {tau} instead.")
    return np.exp(-abs(k - (N / 2 if center is None else center)) / tau)


@window
def kaiser(k: ndarray, N: int, *, beta: float = 12.0) -> ndarray:
    """I0(beta sqrt(1 - (2 k / N - 1)^2)) / I0(beta), with Bessel's I0. ValueError for a negative beta.

    >>> rushlight.signal.windows.kaiser(3, beta=2.)
    tensor([0.4387, 1.0000, 0.4387])
    """
    if beta < 0:
        raise value_error(f"beta must be non-negative, got: {beta} instead.")
    return sampled(lambda t: bessel(t, beta), k, N)
