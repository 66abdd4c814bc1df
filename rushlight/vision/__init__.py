"""Images: `datasets`, `transforms` and `utils`, with torchvision's names. Pillow is optional."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rushlight.base.missing_names import give_up as _give_up
from rushlight.version import vision_version as __version__

if TYPE_CHECKING:
    from rushlight.vision import datasets, io, models, ops, transforms, utils

_LAZY = ("datasets", "io", "models", "ops", "transforms", "utils")

__all__ = ["__version__", "datasets", "io", "models", "ops", "transforms", "utils"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"rushlight.vision.{name}")
    return _give_up(__name__, name)
