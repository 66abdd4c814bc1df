"""Transforms of images, as torchvision's: on Pillow images, tensors (..., H, W) and arrays (H, W) or (H, W, C).

Random numbers come from rushlight's default generator, in torchvision's order: the same seed gives the same crops."""

# ruff: noqa: F403 - the names stand in __all__ of each part
from __future__ import annotations

from importlib import import_module
from typing import Any

from rushlight.base.missing_names import give_up as _give_up
from rushlight.vision.images import InterpolationMode as InterpolationMode
from rushlight.vision.transforms import functional as functional
from rushlight.vision.transforms.autoaugment import *
from rushlight.vision.transforms.base import *
from rushlight.vision.transforms.plain import *
from rushlight.vision.transforms.random import *


def __getattr__(name: str) -> Any:
    if name in ("transforms", "v2"):
        return import_module(f"rushlight.vision.transforms.{name}")
    return _give_up(__name__, name)
