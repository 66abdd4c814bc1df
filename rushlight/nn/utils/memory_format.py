"""Where a convolution's weights lie in memory: here in the order of their indices, always."""
from __future__ import annotations

from typing import Any, TypeVar

M = TypeVar("M")


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """The module itself: its weights stay as they lie."""
    return module


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """The module itself: its weights stay as they lie."""
    return module
