"""Fourier transforms by SciPy's pocketfft, which runs 2 to 6 times as fast as NumPy's; without SciPy by NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import conj, ndarray

from rushlight.base.dependencies import scipy_part

# SciPy's name for the normalization: True if the unnormalized transform is divided by n^power, False if SciPy's default
# already divides by n.
NORM = {True: {0: "backward", 0.5: "ortho", 1: "forward"}, False: {0: "forward", 0.5: "ortho", 1: "backward"}}


def fft_of(x: ndarray) -> Any:
    """SciPy's module, imported on first use, or NumPy's. TypeError for half types, whose transforms would be too
    inexact.
    """
    if x.dtype.kind == "V" or x.dtype.itemsize == 2:
        name = "Half" if x.dtype.kind == "f" else "BFloat16"
        raise TypeError(f"Unsupported dtype {name}; hint: convert to single precision: x.float()")
    try:
        return scipy_part("fft", "Fourier transforms need")
    except ImportError:
        return np.fft


def c2c(x: ndarray, dims: tuple[int, ...], forward: bool, power: float) -> ndarray:
    """sum over j of x_j exp(-+ 2 pi i jk / n) / n^power along each of `dims`; a real x takes half the time."""
    fft = fft_of(x)
    return (fft.fftn if forward else fft.ifftn)(x, None, dims, NORM[forward][power])


def r2c(x: ndarray, dim: int, forward: bool, power: float) -> ndarray:
    """The first n // 2 + 1 of `c2c`'s numbers for a real x; the others are their conjugates."""
    y = fft_of(x).rfft(x, None, dim, NORM[True][power])
    return y if forward else conj(y)


def c2r(x: ndarray, dim: int, n: int, forward: bool, power: float) -> ndarray:
    """The n real numbers that `c2c` gives for n // 2 + 1 complex numbers and the conjugates that complete them."""
    fft = fft_of(x)
    return (fft.hfft if forward else fft.irfft)(x, n, dim, NORM[forward][power])
