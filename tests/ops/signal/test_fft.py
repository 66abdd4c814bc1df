"""Fourier transforms and windows: definition, round trips, dtypes, errors; short-time transforms of signals."""

from __future__ import annotations

import doctest
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight import fft
from rushlight.ops.composites import FUNCTIONS
from rushlight.signal import windows
from tests.support.op_calls import agree

NAMES = sorted(name for name in FUNCTIONS if name.startswith("fft_"))
NORMS = st.sampled_from([None, "backward", "ortho", "forward"])
random = np.random.default_rng(0)


def real(*shape):
    return rushlight.from_numpy(random.standard_normal(shape))


def complex_(*shape):
    return rushlight.from_numpy(random.standard_normal(shape) + 1j * random.standard_normal(shape))


def close(a, b):
    return bool(rushlight.allclose(a, b, 1e-9, 1e-11))


def test_members_are_torchs(oracle):
    theirs = oracle(lambda torch: [name for name in torch.fft.__all__ if callable(getattr(torch.fft, name))])
    assert set(theirs) - {"Tensor"} <= set(dir(fft))


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_true(name):
    test = doctest.DocTestParser().get_doctest(FUNCTIONS[name].__doc__, {"rushlight": rushlight}, name, None, 0)
    out = io.StringIO()
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test, out=out.write).failed == 0, out.getvalue()


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_the_definition(n):
    x, k = complex_(3, n), np.arange(n)
    matrix = np.exp(-2j * np.pi * np.outer(k, k) / n)
    agree(fft.fft(x), x._array @ matrix)
    agree(fft.ifft(x), x._array @ matrix.conj() / n)
    agree(fft.rfft(x.real), (x._array.real @ matrix)[:, : n // 2 + 1])
    agree(fft.ihfft(x.real), (x._array.real @ matrix.conj() / n)[:, : n // 2 + 1])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), NORMS)
def test_there_and_back(shape, norm):
    x, y = complex_(*shape), real(*shape)
    assert close(fft.ifftn(fft.fftn(x, norm=norm), norm=norm), x)
    assert close(fft.irfftn(fft.rfftn(y, norm=norm), s=shape, norm=norm), y)
    assert close(fft.hfftn(fft.ihfftn(y, norm=norm), s=shape, norm=norm), y)
    assert close(fft.ifft(fft.fft(x, dim=0, norm=norm), dim=0, norm=norm), x)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9))
def test_ortho_keeps_lengths_and_gradients(n):
    """|F x|^2 = |x|^2, so its gradient is 2 x."""
    x = complex_(n).requires_grad_()
    fft.fft(x, norm="ortho").abs().square().sum().backward()
    assert close(x.grad, 2 * x.detach())
    y = real(n).requires_grad_()
    half = fft.rfft(y, norm="ortho")
    twice = rushlight.tensor([1.0 if k in (0, n / 2) else 2.0 for k in range(n // 2 + 1)])
    (half.abs().square() * twice).sum().backward()
    assert close(y.grad, 2 * y.detach())


def test_single_precision_stays():
    x = rushlight.ones(4)
    assert fft.fft(x).dtype is rushlight.complex64
    assert fft.irfft(fft.rfft(x)).dtype is rushlight.float32
    assert fft.fft(rushlight.tensor([1, 2])).dtype is rushlight.complex64
    assert fft.fft(rushlight.tensor([True])).dtype is rushlight.complex64
    for half in (rushlight.float16, rushlight.bfloat16):
        with pytest.raises(RuntimeError, match="Unsupported dtype"):
            fft.fft(x.to(half))


X = rushlight.ones(3, 4)
REFUSED = {
    "Invalid number of data points \\(0\\) specified": lambda: fft.fft(X, 0),
    "Invalid number of data points \\(-1\\) specified": lambda: fft.rfft(X, -1),
    'Invalid normalization mode: "half"': lambda: fft.fft(X, norm="half"),
    "rfft expects a real input tensor, but got ComplexFloat": lambda: fft.rfft(X * 1j),
    "FFT dims must be unique": lambda: fft.fftn(X, dim=(0, -2)),
    "When given, dim and shape arguments must have the same length": lambda: fft.fftn(X, (2, 2), (1,)),
    "Got shape with 3 values but input tensor only has 2 dimensions": lambda: fft.fftn(X, (2, 2, 2)),
    "rfftn must transform at least one axis": lambda: fft.rfftn(X, dim=()),
    "fft expects a complex output tensor, but got Float": lambda: fft.fft(X, out=rushlight.empty(3, 4)),
    "irfft expects a floating point output tensor": lambda: fft.irfft(X, out=rushlight.empty(3, 6) * 1j),
    "fftfreq requires a floating point or complex dtype": lambda: fft.fftfreq(4, dtype=rushlight.int64),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_torch_refuses_is_refused(message):
    with pytest.raises(RuntimeError, match=message):
        REFUSED[message]()


def test_dimensions_that_are_not_there():
    with pytest.raises(IndexError, match="Dimension out of range"):
        fft.fft(X, dim=2)
    with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dimensions"):
        fft.fft(rushlight.tensor(1.0))
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        fft.fft([1.0, 2.0])


# -- short-time transforms


def test_a_tone_stands_in_its_bin():
    t = rushlight.arange(256) / 256
    spectrum = rushlight.stft(
        rushlight.sin(2 * rushlight.pi * 32 * t), 64, window=rushlight.hann_window(64), return_complex=True
    )
    assert spectrum.shape == (33, 17)
    assert spectrum.abs()[:, 3:-3].argmax(0).unique().tolist() == [8]  # 32 periods in 256: 8 in 64


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([4, 6, 9]), st.sampled_from([1, 2]), st.booleans(), st.booleans())
def test_istft_undoes_stft(n_fft, hop, normalized, is_complex):
    x = complex_(2, 30) if is_complex else real(2, 30)
    how = {
        "n_fft": n_fft,
        "hop_length": hop,
        "window": windows.hamming(n_fft, dtype=rushlight.float64),
        "normalized": normalized,
    }
    spectrum = rushlight.stft(x, **how, return_complex=True)
    back = rushlight.istft(spectrum, **how, length=30, return_complex=is_complex)
    assert close(back, x)
    assert close(spectrum, x.stft(**how, return_complex=True))


def test_stft_says_that_a_window_is_missing_and_points_at_the_call():
    with pytest.warns(UserWarning, match="A window was not provided") as caught:
        rushlight.stft(rushlight.ones(8), 4, return_complex=True)
    assert caught[0].filename == __file__


SIGNAL, WINDOW = rushlight.ones(12), rushlight.ones(4)
SPECTRUM = rushlight.ones(3, 5) * (1 + 0j)
STFT_REFUSED = {
    "stft requires the return_complex parameter": lambda: rushlight.stft(SIGNAL, 4, window=WINDOW),
    "expected a 1D or 2D tensor": lambda: rushlight.stft(
        rushlight.ones(1, 1, 9), 4, window=WINDOW, return_complex=True
    ),
    "expected 0 < n_fft <= 12, but got n_fft=20": lambda: rushlight.stft(
        SIGNAL, 20, window=WINDOW, center=False, return_complex=True
    ),
    "expected hop_length > 0": lambda: rushlight.stft(SIGNAL, 4, 0, window=WINDOW, return_complex=True),
    "expected 0 < win_length <= n_fft": lambda: rushlight.stft(SIGNAL, 4, 1, 5, WINDOW, return_complex=True),
    "expected a 1D window tensor of size equal to win_length=3": lambda: rushlight.stft(
        SIGNAL, 4, 1, 3, WINDOW, return_complex=True
    ),
    "Cannot have onesided output if window or input is complex": lambda: rushlight.stft(
        SIGNAL * 1j, 4, window=WINDOW, onesided=True
    ),
    "Padding size should be less than the corresponding input dimension": lambda: rushlight.stft(
        rushlight.ones(2), 4, window=WINDOW, return_complex=True
    ),
    "istft requires a complex-valued input tensor": lambda: rushlight.istft(rushlight.ones(3, 5), 4, window=WINDOW),
    "expected the frequency dimension": lambda: rushlight.istft(SPECTRUM, 8, window=rushlight.ones(8)),
    "window overlap add min": lambda: rushlight.istft(SPECTRUM, 4, window=rushlight.zeros(4)),
    "expected 0 < hop_length <= win_length": lambda: rushlight.istft(SPECTRUM, 4, 5, window=WINDOW),
}


@pytest.mark.parametrize("message", STFT_REFUSED)
def test_stft_refuses_what_torch_refuses(message):
    with pytest.raises(RuntimeError, match=message):
        STFT_REFUSED[message]()


# -- windows


@pytest.mark.parametrize("name", windows.__all__)
def test_windows_are_torchs(oracle, name):
    more = {"general_cosine": {"a": [0.1, 0.2, 0.3]}, "exponential": {"tau": 2.0}}.get(name, {})
    cases = [(m, sym) for m in (0, 1, 2, 3, 7, 8) for sym in (True, False)]
    theirs = oracle(
        lambda torch: [getattr(torch.signal.windows, name)(m, sym=sym, dtype=torch.float64, **more) for m, sym in cases]
    )
    for (m, sym), expected in zip(cases, theirs):
        agree(getattr(windows, name)(m, sym=sym, dtype=rushlight.float64, **more), expected)
    assert getattr(windows, name)(3, **more).dtype is rushlight.float32
    assert getattr(windows, name)(3, requires_grad=True, **more).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: windows.hann(-1), ValueError, "requires non-negative window length, got M=-1"),
        (
            lambda: windows.hann(5, dtype=rushlight.int64),
            ValueError,
            "expects float32 or float64 dtypes, got: torch.int64",
        ),
        (lambda: windows.kaiser(5, beta=-1), ValueError, "beta must be non-negative, got: -1"),
        (lambda: windows.gaussian(5, std=0), ValueError, "Standard deviation must be positive, got: 0"),
        (lambda: windows.exponential(5, tau=-1), ValueError, "Tau must be positive, got: -1"),
        (lambda: windows.exponential(5, center=2), ValueError, "Center must be None for symmetric windows"),
        (lambda: windows.general_cosine(5, a=[]), ValueError, "Coefficients cannot be empty"),
        (lambda: windows.general_cosine(5, a=3), TypeError, "Coefficients must be a list/tuple"),
        (lambda: rushlight.hann_window(-1), RuntimeError, "requires non-negative window_length, got window_length=-1"),
        (lambda: rushlight.hann_window(4, dtype=rushlight.int64), RuntimeError, "expects floating point dtypes"),
    ],
)
def test_windows_refuse_what_torch_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_frequencies_of_nothing():
    assert fft.rfftfreq(0).isnan().all()
    assert fft.fftfreq(0).shape == (0,)
