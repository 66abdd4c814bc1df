"""Discrete Fourier transforms, as in torch.fft: `rushlight.fft.fft(x)` and its like, with derivatives of any order."""
from __future__ import annotations

from rushlight.absent import tell as _tell
from rushlight.ops import transforms as transforms
from rushlight.ops.build import members

__all__ = sorted(members("fft"))
globals().update(members("fft"))

_tell(__name__)
