"""torch.ao, as far as libraries ask it: nothing is quantized."""

from __future__ import annotations

from types import SimpleNamespace

from rushlight.base.submodules import importable
from rushlight.nn.module import Module


class ObserverBase(Module):
    """torch's base of modules that watch numbers for quantization; there are none."""


class FakeQuantizeBase(Module):
    """torch's base of modules that round as quantization would; there are none."""


quantization = SimpleNamespace(FakeQuantizeBase=FakeQuantizeBase, ObserverBase=ObserverBase)

importable(__name__, "quantization")

__all__ = ["FakeQuantizeBase", "ObserverBase", "quantization"]
