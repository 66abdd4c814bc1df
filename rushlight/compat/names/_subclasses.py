"""torch._subclasses, as far as libraries ask it: no tensor is fake."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rushlight.base.submodules import importable


class FakeTensor:
    """torch's class of tensors without numbers; there are none."""


def is_fake(x: Any) -> bool:
    """False."""
    return False


fake_tensor = SimpleNamespace(FakeTensor=FakeTensor, is_fake=is_fake)

importable(__name__, "fake_tensor")

__all__ = ["FakeTensor", "fake_tensor", "is_fake"]
