"""Images: `datasets` of them and `transforms`, with torchvision's names. Pillow is used where it is installed."""
from __future__ import annotations

from importlib import import_module
from typing import Any

_LAZY = ("datasets", "transforms")

__all__ = ["datasets", "transforms"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"rushlight.vision.{name}")
    raise AttributeError(f"module 'rushlight.vision' has no attribute '{name}'")
