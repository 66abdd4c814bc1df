"""The short-time Fourier transform and its inverse, composed of windows along a signal, transforms, and their
derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import describe, not_implemented_error, runtime_error, warn, warn_once
from rushlight.core.arguments import all_true
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.core.views import unregistered
from rushlight.ops.composites import composite
from rushlight.ops.index.along_dim import index_select
from rushlight.ops.math.complex import view_as_real
from rushlight.ops.shape import views as s
from rushlight.ops.shape.pad import constant_pad
from rushlight.ops.signal import dft as f

# torch's padding modes as NumPy calls them.
MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def expected(what: str, op: str, input: Tensor, **facts: Any) -> RuntimeError:
    return runtime_error(f"{op}: expected {what}", input=describe(input), **facts)


def weights(op: str, input: Tensor, window: Tensor | None, n_fft: int, win_length: int) -> Tensor | None:
    """The window, padded on both sides to n_fft elements; None for weights that are all 1."""
    if not 0 < win_length <= n_fft:
        raise expected(f"0 < win_length <= n_fft, but got win_length={win_length}", op, input, n_fft=n_fft)
    if window is not None and window._array.shape != (win_length,):
        raise expected(
            f"a 1D window tensor of size equal to win_length={win_length}, but got window with size "
            f"{list(window._array.shape)}: Invalid window shape",
            op,
            input,
        )
    if window is None:
        if op == "istft":
            warn_once(
                "A window was not provided. A rectangular window will be applied.Please provide the same window used "
                "by stft to make the inversion lossless."
            )
        else:
            warn_once(
                "A window was not provided. A rectangular window will be applied,which is known to cause spectral "
                "leakage. Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce "
                "spectral leakage.To suppress this warning and use a rectangular window, explicitly set "
                "`window=torch.ones(n_fft)`."
            )
        if win_length == n_fft:
            return None
        window = created(from_array(np.ones(win_length, input._array.real.dtype)))
    if window.dtype.category < dtypes.FLOATING:
        window = s.to(window, input.dtype.to_real())
    before = (n_fft - win_length) // 2
    return constant_pad(window, ((before, n_fft - win_length - before),), 0)


def extended(signal: Tensor, n: int, mode: str) -> Tensor:
    """The signal (B, L) with n more elements on both sides, by the rule of nn.functional.pad."""
    length = signal._array.shape[1]
    if mode == "constant":
        return constant_pad(signal, ((0, 0), (n, n)), 0)
    if mode not in MODES:
        raise not_implemented_error(f"Unrecognised padding mode {mode}", f"one of constant, {', '.join(MODES)}")
    if length == 0 or n > length - (mode == "reflect") and mode != "replicate":
        raise runtime_error(
            f"stft: Padding size should be less than the corresponding input dimension, but got: padding ({n}, "
            f"{n}) at dimension 2 of input {[1, *signal._array.shape]}",
            "take a longer signal, a smaller n_fft, or center=False",
        )
    places = np.pad(np.arange(length), n, mode=MODES[mode])  # type: ignore[call-overload]
    return index_select(signal, 1, created(from_array(places)))


@composite()
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """X[k, t] = sum_j window_j x_(j + t hop_length) exp(-2 pi i jk / n_fft): the spectrum from frame to frame.

    x (L) or (B, L), real or complex -> (n_fft / 2 + 1, T), or (B, ..., T); all n_fft frequencies if not `onesided` (the
    default for real signals, impossible for complex ones). Frames start every `hop_length` (n_fft / 4) elements; with
    `center` they are centred there, and the signal is padded by n_fft / 2 on both sides with `pad_mode`: reflect,
    replicate, circular or constant (0). `win_length`: the window's length, if shorter than n_fft. `normalized`: divide
    by sqrt(n_fft). `return_complex`: complex numbers, or pairs of real ones; needed for real signals. RuntimeError for
    shapes, lengths and settings that do not fit.

    >>> x = rushlight.tensor([1., 0., -1., 0., 1., 0., -1., 0.])
    >>> rushlight.stft(x, 4, window=rushlight.ones(4), center=False, return_complex=True).abs()[:, 0]
    tensor([0., 2., 0.])
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    check_stft(input, return_complex, is_complex, onesided, center, align_to_window)
    if return_complex is False:
        warn_once(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
            "tensors for all inputs, and return_complex=False will raise an error. Note: you can still call "
            "torch.view_as_real on the complex output to recover the old return format."
        )
    signal = s.reshape(input, (1, -1)) if input._array.ndim == 1 else input
    if center:
        signal = extended(signal, n_fft // 2, pad_mode)
    length = signal._array.shape[1]
    if not 0 < n_fft <= length:
        raise expected(f"0 < n_fft <= {length}, but got n_fft={n_fft}", "stft", input)
    if hop_length <= 0:
        raise expected(f"hop_length > 0, but got hop_length={hop_length}", "stft", input)
    weight = weights("stft", input, window, n_fft, win_length)
    if align_to_window:  # the frames need only contain the window
        edge = (n_fft - win_length) // 2
        signal = constant_pad(signal, ((0, 0), (edge, edge)), 0)
    frames = s.unfold_dim(signal, 1, n_fft, hop_length)  # (B, T, n_fft)
    frames = frames if weight is None else frames * weight
    power = 0.5 if normalized else 0
    half = not is_complex if onesided is None else onesided
    made = s.transpose(f.r2c(frames, 2, True, power) if half else f.c2c(frames, (2,), True, power), 1, 2)
    made = unregistered(s.squeeze(made, (0,)) if input._array.ndim == 1 else made)
    return made if return_complex or (return_complex is None and is_complex) else view_as_real(made)


def check_stft(input: Tensor, return_complex: Any, is_complex: bool, onesided: Any, center: bool, align: Any) -> None:
    if return_complex is None and not is_complex:
        raise runtime_error(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release.",
            "return_complex=True",
            input=describe(input),
        )
    if input.dtype.category < dtypes.FLOATING:
        raise expected("a tensor of floating point or complex values", "stft", input)
    if not 1 <= input._array.ndim <= 2:
        raise expected("a 1D or 2D tensor", "stft", input)
    if onesided and is_complex:
        raise runtime_error("Cannot have onesided output if window or input is complex", "onesided=False")
    if center and align is not None:
        raise runtime_error("stft align_to_window should only be set when center = false")


@composite(looks=True)
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
    length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal with this `stft` (with the same settings), or the nearest signal: the sum of overlapping frames.

    X (n_fft / 2 + 1, T) or (B, ..., T), or with all n_fft frequencies -> (L) or (B, L); each element is divided by the
    sum of the squared windows over it. `length` truncates the signal, or pads it with zeros. The result is real unless
    `return_complex`. RuntimeError for shapes and settings that do not fit, and if the windows leave an element
    uncovered.

    >>> x, w = rushlight.tensor([1., 2., 3., 4., 5., 6., 7., 8.]), rushlight.hann_window(4)
    >>> rushlight.istft(rushlight.stft(x, 4, window=w, return_complex=True), 4, window=w)
    tensor([1., 2., 3., 4., 5., 6., 7., 8.])
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    half = check_istft(input, n_fft, hop_length, win_length, window, onesided, return_complex)
    spectra = input if input._array.ndim == 3 else s.unsqueeze(input, 0)
    spectra = s.transpose(spectra, 1, 2)  # (B, T, frequencies)
    weight = weights("istft", input, window, n_fft, win_length)
    power = 0.5 if normalized else 1
    if return_complex:
        frames = f.c2c(spectra, (2,), False, power)
    else:
        frames = f.c2r(spectra if half else s.narrow(spectra, 2, 0, n_fft // 2 + 1), 2, n_fft, False, power)
    batch, count, _ = frames._array.shape
    total = n_fft + hop_length * (count - 1)
    if weight is None:
        weight = created(from_array(np.ones(n_fft, frames._array.real.dtype)))
    signal = s.add_windows(frames * weight, (batch, total), 1, n_fft, hop_length)
    squares = s.expand(s.reshape(weight * weight, (1, 1, -1)), (1, count, n_fft))
    covered = s.add_windows(squares, (1, total), 1, n_fft, hop_length)
    made = middle(signal, covered, n_fft // 2 if center else 0, length, input)
    return unregistered(s.squeeze(made, (0,)) if input._array.ndim == 2 else made)


def middle(signal: Tensor, covered: Tensor, start: int, length: int | None, input: Tensor) -> Tensor:
    """The requested part of the signal (B, total), divided by the sum of the overlapping squared windows (1, total)."""
    total = signal._array.shape[1]
    stop = start + length if length is not None else total - start
    n = max(min(stop, total) - start, 0)
    signal, covered = s.narrow(signal, 1, start, n), s.narrow(covered, 1, start, n)
    if not n or not all_true(abs(covered) > 1e-11):
        raise runtime_error(
            "istft: window overlap add min: 1: the windows leave elements uncovered",
            "a smaller hop_length, or a window without zeros at its ends",
            input=describe(input),
        )
    signal = signal / covered
    if stop > total:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the "
            "tail. Please check your center and hop_length settings."
        )
        signal = constant_pad(signal, ((0, 0), (0, stop - total)), 0)
    return signal


def check_istft(
    input: Tensor, n_fft: int, hop_length: int, win_length: int, window: Tensor | None, onesided: Any,
    return_complex: bool,
) -> bool:  # fmt: skip
    """Whether the input holds half of the frequencies."""
    if not input.dtype.is_complex:
        raise runtime_error(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.",
            "torch.view_as_complex(x)",
            input=describe(input),
        )
    if not input._array.size:
        raise runtime_error("istft: input tensor cannot be empty.", input=describe(input))
    if not 2 <= input._array.ndim <= 3:
        raise expected("a tensor with 2 or 3 dimensions", "istft", input)
    found = input._array.shape[-2]
    half = found != n_fft if onesided is None else bool(onesided)
    if found != (n_fft // 2 + 1 if half else n_fft):
        raise expected(
            "the frequency dimension (3rd to the last) of the input tensor to match n_fft"
            + (f" / 2 + 1 when onesided=True, but got {found}" if half else f" when onesided=False, but got {found}"),
            "istft",
            input,
            n_fft=n_fft,
        )
    if not 0 < hop_length <= win_length:
        raise expected(
            f"0 < hop_length <= win_length, but got hop_length={hop_length}", "istft", input, win_length=win_length
        )
    if return_complex and half:
        raise runtime_error("Cannot have onesided output if window or input is complex", "onesided=False")
    if not return_complex and window is not None and window.dtype.is_complex:
        raise runtime_error("Complex windows are incompatible with return_complex=False", "return_complex=True")
    return half
