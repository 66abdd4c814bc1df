"""The transforms under the name of torchvision's module."""

# ruff: noqa: F403 - the names stand in __all__ of each part
from rushlight.vision.transforms import functional as functional
from rushlight.vision.transforms.autoaugment import *
from rushlight.vision.transforms.base import *
from rushlight.vision.transforms.plain import *
from rushlight.vision.transforms.random import *
