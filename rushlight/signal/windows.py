"""Window functions, as in torch.signal.windows: M weights, the first and last alike, or one period if `sym` is false.

All take `dtype` (float32 or float64; None: the default) and `requires_grad`. ValueError for a negative M and for other
dtypes. Below, k = 0 ... M - 1 and N is M - 1, or M if `sym` is false. A window of one weight is 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import index
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.device import strided
from rushlight.base.errors import type_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import made
from rushlight.ops.signal.window_functions import BLACKMAN, HAMMING, HANN, NUTTALL, bessel, cosines, sampled, triangle

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def window(
    name: str, weights: Callable[[int], np.ndarray], M: int, dtype: Any, layout: Any, device: Any, requires_grad: bool
) -> Tensor:
    M, kind = index(M), dtypes.or_default(dtype)
    if M < 0:
        raise value_error(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, strided):
        raise value_error(f"{name} is implemented for strided tensors only, got: {layout}")
    if kind not in (dtypes.float32, dtypes.float64):
        raise value_error(f"{name} expects float32 or float64 dtypes, got: {kind}", "convert what comes out")
    return made(weights(M), kind, requires_grad, device)


def last(M: int, sym: bool) -> int:
    """N: the last k, or where the next period begins."""
    return M if not sym and M > 1 else M - 1


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """1 - |2 k / N - 1|, a triangle.

    >>> rushlight.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return window("bartlett", partial(sampled, triangle, symmetric=sym), M, dtype, layout, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """a_0 - a_1 cos(2 pi k / N) + a_2 cos(4 pi k / N) - ... ValueError for no weights, TypeError if `a` is not a
    sequence.

    >>> rushlight.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    if not isinstance(a, Iterable):
        raise type_error("Coefficients must be a list/tuple", a=a)
    a = tuple(a)
    if not a:
        raise value_error("Coefficients cannot be empty")
    return window(
        "general_cosine",
        partial(sampled, partial(cosines, a=a), symmetric=sym),
        M,
        dtype,
        layout,
        device,
        requires_grad,
    )


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi k / N).

    >>> rushlight.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return general_cosine(
        M, a=(alpha, 1 - alpha), sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.54 - 0.46 cos(2 pi k / N).

    >>> rushlight.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_cosine(M, a=HAMMING, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """(1 - cos(2 pi k / N)) / 2.

    >>> rushlight.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return general_cosine(M, a=HANN, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - cos(2 pi k / N) / 2 + 0.08 cos(4 pi k / N).

    >>> rushlight.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return general_cosine(
        M, a=BLACKMAN, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.3635819 - 0.4891775 cos(2 pi k / N) + 0.1365995 cos(4 pi k / N) - 0.0106411 cos(6 pi k / N).

    >>> rushlight.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    return general_cosine(M, a=NUTTALL, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """sin(pi (k + 1/2) / (N + 1)): half a wave, without its zeros.

    >>> rushlight.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return window(
        "cosine",
        lambda M: np.sin(np.pi * (np.arange(M) + 0.5) / (last(M, sym) + 1)),
        M,
        dtype,
        layout,
        device,
        requires_grad,
    )


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-(k - N / 2)^2 / (2 std^2)). ValueError unless `std` is positive.

    >>> rushlight.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise value_error(f"Standard deviation must be positive, got: {std} instead.")
    return window(
        "gaussian",
        lambda M: np.exp(-0.5 * ((np.arange(M) - last(M, sym) / 2) / std) ** 2),
        M,
        dtype,
        layout,
        device,
        requires_grad,
    )


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|k - center| / tau), the center at N / 2 by default.

    ValueError unless `tau` is positive, and for a `center` of a symmetric window.

    >>> rushlight.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise value_error(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise value_error("Center must be None for symmetric windows", "give sym=False")
    middle = last(M, sym) / 2 if center is None else center
    return window(
        "exponential", lambda M: np.exp(-abs(np.arange(M) - middle) / tau), M, dtype, layout, device, requires_grad
    )


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2 k / N - 1)^2)) / I0(beta), with Bessel's I0. ValueError for a negative beta.

    >>> rushlight.signal.windows.kaiser(3, beta=2.)
    tensor([0.4387, 1.0000, 0.4387])
    """
    if beta < 0:
        raise value_error(f"beta must be non-negative, got: {beta} instead.")
    return window(
        "kaiser", partial(sampled, partial(bessel, beta=beta), symmetric=sym), M, dtype, layout, device, requires_grad
    )
