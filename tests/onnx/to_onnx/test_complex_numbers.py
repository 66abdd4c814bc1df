"""Complex numbers inside a model: pairs of real values, and Fourier transforms."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import fft
from rushlight.onnx.export import OnnxExporterError, export
from tests.onnx.onnx_case import check

WINDOW = rushlight.hann_window(16)


def frames(x):
    return rushlight.stft(x, 16, 4, window=WINDOW, return_complex=True)


FUNCTIONS = {  # of x (n, 64)
    "spectrogram": lambda x: frames(x).abs(),
    "power": lambda x: rushlight.view_as_real(frames(x)).pow(2).sum(-1),
    "there and back": lambda x: rushlight.istft(frames(x) * 2, 16, 4, window=WINDOW),
    "angle": lambda x: fft.rfft(x)[:, 1:-1].angle(),
    "filter": lambda x: fft.irfft(fft.rfft(x) * rushlight.linspace(1, 0, 33), 64),
    "odd": lambda x: fft.irfft(fft.rfft(x[:, :33]), 33),
    "two dimensions": lambda x: fft.fft2(x[:, :60].view(x.shape[0], 6, 10)).imag,
    "orthonormal": lambda x: fft.ifft(fft.fft(x, norm="ortho"), norm="ortho").real,
    "hermitian": lambda x: fft.hfft(fft.ihfft(x), 64),
    "shift": lambda x: fft.fftshift(fft.fft(x), 1).abs(),
    "polar": lambda x: rushlight.polar(x.abs(), x).conj().imag,
    "quotient": lambda x: rushlight.view_as_real(rushlight.complex(x, x + 1) / rushlight.complex(x, 2 - x)),
    "matrix product": lambda x: (fft.fft(x) @ fft.fft(x).mT).abs(),
    "convolution": lambda x: fft.ifft(fft.fft(x) * fft.fft(x).conj() ** 2).real,
    "join": lambda x: rushlight.cat([fft.rfft(x), rushlight.view_as_complex(x.view(-1, 32, 2))], 1).real,
    "exponential": lambda x: rushlight.exp(rushlight.complex(x, x * 2)).sum(1).imag,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree(name):
    rushlight.manual_seed(0)
    check(FUNCTIONS[name], [(rushlight.randn(n, 64),) for n in (2, 1, 3)], dynamic_shapes=({0: "n"},))


def test_spectrograms_of_any_length():
    examples = [(rushlight.randn(n, t),) for n, t in ((2, 64), (1, 50), (3, 99))]
    check(FUNCTIONS["spectrogram"], examples, dynamic_shapes=({0: "batch", 1: "time"},))


def test_older_form_of_the_transform():
    check(FUNCTIONS["filter"], [(rushlight.randn(2, 64),)], opset_version=18)


def test_complex_inputs_and_outputs_are_refused():
    with pytest.raises(OnnxExporterError, match="the output output is complex: return view_as_real of it"):
        export(fft.fft, (rushlight.ones(4),))
    with pytest.raises(OnnxExporterError, match="an input is complex"):
        export(lambda x: x.real, (rushlight.ones(4, dtype=rushlight.complex64),))
    with pytest.raises(OnnxExporterError, match="no such operator of complex numbers"):
        export(lambda x: rushlight.complex(x, x).tanh().real, (rushlight.ones(4),))
