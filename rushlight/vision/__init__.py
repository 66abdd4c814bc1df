"""Images: `datasets`, `transforms` and `utils`, with torchvision's names. Pillow is optional."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rushlight.version import vision_version as __version__

_LAZY = ("datasets", "io", "models", "ops", "transforms", "utils")

__all__ = ["__version__", "datasets", "io", "models", "ops", "transforms", "utils"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"rushlight.vision.{name}")
    raise AttributeError(f"module 'rushlight.vision' has no attribute '{name}'")
