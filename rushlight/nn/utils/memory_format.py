"""Memory formats of convolution weights. Here weights are always contiguous."""

from __future__ import annotations

from typing import Any, TypeVar

M = TypeVar("M")


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Returns the module unchanged: convolutions give the same result for any memory format of the weights.

    >>> conv = rushlight.nn.Conv2d(1, 2, 3)
    >>> rushlight.nn.utils.convert_conv2d_weight_memory_format(conv, rushlight.channels_last) is conv
    True
    """
    return module


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Returns the module unchanged: convolutions give the same result for any memory format of the weights.

    >>> conv = rushlight.nn.Conv3d(1, 2, 3)
    >>> rushlight.nn.utils.convert_conv3d_weight_memory_format(conv, rushlight.channels_last_3d) is conv
    True
    """
    return module
