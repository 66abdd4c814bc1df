"""Samples of Fourier transforms and window functions."""

from __future__ import annotations

from tests.table.samples.by_hand import Data, Sample, positions, x

BACK_AND_FORTH = [{"norm": "ortho"}, {"norm": "forward"}, {"norm": "backward"}]
ONE = [
    Sample(x(5)),
    Sample(x(2, 4)),
    Sample(x(2, 4), 3),
    Sample(x(2, 3), n=6),
    Sample(x(4, 2), dim=0),
    Sample(x(3, 2), 2, 0, "ortho"),
    *[Sample(x(4), **how) for how in BACK_AND_FORTH],
    Sample(x(1, 2)),
]
PLANE = [
    Sample(x(3, 4)),
    Sample(x(2, 3, 2)),
    Sample(x(3, 4), (2, 5)),
    Sample(x(3, 4), s=(4, -1)),
    Sample(x(2, 3, 2), dim=(0, 1)),
    Sample(x(3, 4), norm="ortho"),
]
SEVERAL = [
    Sample(x(5)),
    Sample(x(2, 3, 2)),
    Sample(x(2, 3, 4), (2, 5)),
    Sample(x(2, 3, 4), dim=(2, 0)),
    Sample(x(2, 3), (4, 3), (1, 0), "ortho"),
    Sample(x(2, 3), norm="forward"),
]
SHIFTS = [Sample(x(5)), Sample(x(2, 3, 4)), Sample(x(2, 5), 1), Sample(x(2, 5), (0, 1)), Sample(positions([1, 2, 3]))]
FREQUENCIES = [Sample(n, d) for n in (0, 1, 4, 5) for d in (1.0, 0.25)] + [Sample(4, dtype=None)]
WINDOWS = [Sample(n, periodic) for n in (0, 1, 2, 5, 8) for periodic in (True, False)]
SIGNAL, WINDOW = x(2, 12), Data(4, low=0.5, dtype="float64")
HALF = Data(2, 3, 4, dtype="complex128")
ALL = Data(2, 4, 4, dtype="complex128")

HAND = {
    **{f"fft_{name}": ONE for name in ("fft", "ifft", "rfft", "ihfft")},
    **{f"fft_{name}": ONE[:-1] for name in ("irfft", "hfft")},
    **{f"fft_{name}2": PLANE for name in ("fft", "ifft", "rfft", "ihfft", "irfft", "hfft")},
    **{f"fft_{name}n": SEVERAL for name in ("fft", "ifft", "rfft", "ihfft", "irfft", "hfft")},
    "fft_fftshift": SHIFTS,
    "fft_ifftshift": SHIFTS,
    "fft_fftfreq": FREQUENCIES,
    "fft_rfftfreq": FREQUENCIES,
    "c2c": [
        Sample(x(2, 3), (1,), True, 0),
        Sample(x(2, 3), (0, 1), False, 0.5),
        Sample(Data(2, 3, dtype="complex128"), (1,), False, 1),
    ],
    "r2c": [
        Sample(x(2, 4), 1, True, 0),
        Sample(x(2, 5), 1, False, 0.5),
        Sample(x(1), 0, True, 1),
        Sample(x(2, 3), 0, True, 1),
    ],
    "c2r": [Sample(Data(2, 3, dtype="complex128"), 1, n, forward, 0.5) for n in (4, 5) for forward in (True, False)],
    "stft": [
        Sample(SIGNAL, 4, window=WINDOW, return_complex=True),
        Sample(SIGNAL, 4, 3, 3, x(3), return_complex=True),
        Sample(SIGNAL, 5, window=x(5), center=False, return_complex=False),
        Sample(x(9), 4, window=WINDOW, pad_mode="constant", return_complex=True),
        Sample(SIGNAL, 4, window=WINDOW, normalized=True, onesided=False, return_complex=True),
        Sample(SIGNAL, 6, window=x(6), pad_mode="replicate", return_complex=True),
        Sample(SIGNAL, 6, window=x(6), pad_mode="circular", return_complex=True),
        Sample(SIGNAL, 6, 2, 2, x(2), center=False, align_to_window=True, return_complex=True),
        Sample(Data(12, dtype="complex128"), 4, window=WINDOW),
    ],
    "istft": [
        Sample(HALF, 4, window=WINDOW),
        Sample(HALF, 4, 2, 3, Data(3, dtype="float64"), length=7),
        Sample(HALF, 4, window=WINDOW, center=False),
        Sample(HALF, 4, window=WINDOW, normalized=True, length=4),
        Sample(ALL, 4, window=WINDOW, onesided=False),
        Sample(ALL, 4, window=WINDOW, onesided=False, return_complex=True),
    ],
    **{f"{name}_window": WINDOWS for name in ("hann", "blackman", "bartlett")},
    "hamming_window": [*WINDOWS, Sample(5, True, 0.6, 0.3)],
    "kaiser_window": [*WINDOWS, Sample(5, True, 3.0)],
}
