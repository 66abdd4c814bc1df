"""torch.ao: the names that libraries import; quantization is not supported."""

from __future__ import annotations

from types import SimpleNamespace

from rushlight.base.submodules import importable
from rushlight.nn.module import Module


class ObserverBase(Module):
    """torch's base of observers for quantization; no module is an instance."""


class FakeQuantizeBase(Module):
    """torch's base of modules for quantization-aware training; no module is an instance."""


quantization = SimpleNamespace(FakeQuantizeBase=FakeQuantizeBase, ObserverBase=ObserverBase)

importable(__name__, "quantization")

__all__ = ["FakeQuantizeBase", "ObserverBase", "quantization"]
