"""Discrete Fourier transforms, as in torch.fft: `rushlight.fft.fft(x)` and so on, with derivatives of any order."""

from __future__ import annotations

from rushlight.base.missing_names import tell as _tell
from rushlight.ops.composites import members
from rushlight.ops.signal import fft as transforms

__all__ = sorted(members("fft"))
globals().update(members("fft"))

_tell(__name__)
