"""Fourier transforms and windows. Complex numbers are pairs in the last dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import rushlight as torch
from rushlight import Tensor
from rushlight.onnx.tensors import numpy_type

from .table import Fixed, Scalar, operator


def complex_of(x: Tensor) -> Tensor:
    """[..., 2] as complex, [..., 1] as real numbers."""
    return torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x.squeeze(-1)


@operator("DFT", since=20)
def dft(
    x: Tensor, length: Scalar | None = None, axis: Scalar | None = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    """The discrete Fourier transform along an axis, of `length` elements."""
    place = -2 if axis is None else axis
    place = place % x.ndim
    if inverse and onesided:
        return torch.fft.irfft(complex_of(x), length, place).unsqueeze(-1)
    if onesided:
        return torch.view_as_real(torch.fft.rfft(complex_of(x), length, place))
    return torch.view_as_real((torch.fft.ifft if inverse else torch.fft.fft)(complex_of(x), length, place))


@operator("DFT", until=19)
def old_dft(x: Tensor, length: Scalar | None = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Tensor:
    """The discrete Fourier transform along an axis, of `length` elements."""
    return dft(x, length, axis, inverse=inverse, onesided=onesided)


@operator("STFT")
def stft(
    x: Tensor, step: Scalar, window: Fixed | None = None, length: Scalar | None = None, *, onesided: int = 1
) -> Tensor:
    """The Fourier transforms [N, frames, bins, 2] of windows of the signal [N, T, 1]."""
    signal = complex_of(x)
    size = length or (window.shape[0] if window is not None else signal.shape[1])
    frames = signal.unfold(1, int(size), int(step))
    frames = frames if window is None else frames * window
    transform = torch.fft.rfft if onesided and not frames.is_complex() else torch.fft.fft
    return torch.view_as_real(transform(frames, dim=-1))


def cosine_window(size: int, terms: list[float], periodic: int, output_datatype: int) -> Tensor:
    """The sum of terms[k] * cos(2 pi k n / N), with alternating signs."""
    n = np.arange(int(size)) * (2 * math.pi / (size if periodic else size - 1))
    window = sum((-1) ** k * a * np.cos(k * n) for k, a in enumerate(terms))
    return torch.as_tensor(np.asarray(window).astype(numpy_type(output_datatype)))


@operator("HannWindow")
def hann_window(size: Scalar, *, periodic: int = 1, output_datatype: int = 1) -> Tensor:
    """0.5 - 0.5 cos(2 pi n / N)."""
    return cosine_window(size, [0.5, 0.5], periodic, output_datatype)


@operator("HammingWindow")
def hamming_window(size: Scalar, *, periodic: int = 1, output_datatype: int = 1) -> Tensor:
    """25/46 - 21/46 cos(2 pi n / N)."""
    return cosine_window(size, [25 / 46, 21 / 46], periodic, output_datatype)


@operator("BlackmanWindow")
def blackman_window(size: Scalar, *, periodic: int = 1, output_datatype: int = 1) -> Tensor:
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    return cosine_window(size, [0.42, 0.5, 0.08], periodic, output_datatype)


@operator("MelWeightMatrix")
def mel_weight_matrix(
    bins: Scalar, length: Scalar, rate: Scalar, low: Scalar, high: Scalar, *, output_datatype: int = 1
) -> Any:
    """The matrix [length // 2 + 1, bins] of triangles on the mel scale."""
    count, i = length // 2 + 1, np.arange(length // 2 + 1)
    first, last = (2595 * math.log10(1 + f / 700) for f in (low, high))
    mels = np.arange(bins + 2) * (last - first) / (bins + 2) + first
    edges = np.floor((length + 1) * 700 * (10 ** (mels / 2595) - 1) / rate)
    out = np.zeros((count, bins))
    for b, (left, centre, right) in enumerate(zip(edges, edges[1:], edges[2:])):
        rise = (i - left) / max(centre - left, 1) if centre > left else np.ones(count)
        fall = (right - i) / max(right - centre, 1) if right > centre else np.ones(count)
        inside = (i >= left) & (i < max(right, centre + 1))
        out[:, b] = np.where(inside, np.where(i < centre, rise, np.where(right > centre, fall, rise)), 0)
    return torch.as_tensor(out.astype(numpy_type(output_datatype)))
