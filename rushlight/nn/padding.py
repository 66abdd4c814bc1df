"""Padding as modules: one number, or (before, after) of the last dimension, then of the one before, ..."""
from __future__ import annotations

from typing import Any

from rushlight.nn import functional as F
from rushlight.nn.functional.sizes import each
from rushlight.nn.module import Module
from rushlight.tensor import Tensor


class _PadNd(Module):
    """Padding of the last n dimensions, in one mode."""

    n, mode = 1, "constant"

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = each(padding, 2 * self.n, "padding")

    def forward(self, input: Tensor) -> Tensor:
        if self.mode == "circular" and input.array.ndim not in (self.n + 1, self.n + 2):
            raise ValueError(f"expected {self.n + 1}D or {self.n + 2}D input (got {input.array.ndim}D input)")
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    """Padding with a number."""

    def __init__(self, padding: Any, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    """Padding with 0."""

    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad1d(_ConstantPadNd):
    """The last dimension padded with a number."""


class ConstantPad2d(_ConstantPadNd):
    """The last 2 dimensions padded with a number."""

    n = 2


class ConstantPad3d(_ConstantPadNd):
    """The last 3 dimensions padded with a number."""

    n = 3


class ZeroPad1d(_ZeroPadNd):
    """The last dimension padded with 0."""


class ZeroPad2d(_ZeroPadNd):
    """The last 2 dimensions padded with 0.

    >>> rushlight.nn.ZeroPad2d(1)(rushlight.ones(1, 2, 2)).shape
    torch.Size([1, 4, 4])
    """

    n = 2


class ZeroPad3d(_ZeroPadNd):
    """The last 3 dimensions padded with 0."""

    n = 3


class ReflectionPad1d(_PadNd):
    """The last dimension mirrored at its first and last element."""

    mode = "reflect"


class ReflectionPad2d(_PadNd):
    """The last 2 dimensions mirrored at their first and last elements."""

    n, mode = 2, "reflect"


class ReflectionPad3d(_PadNd):
    """The last 3 dimensions mirrored at their first and last elements."""

    n, mode = 3, "reflect"


class ReplicationPad1d(_PadNd):
    """The last dimension's first and last element repeated."""

    mode = "replicate"


class ReplicationPad2d(_PadNd):
    """The last 2 dimensions' first and last elements repeated."""

    n, mode = 2, "replicate"


class ReplicationPad3d(_PadNd):
    """The last 3 dimensions' first and last elements repeated."""

    n, mode = 3, "replicate"


class CircularPad1d(_PadNd):
    """The last dimension continued from its other end."""

    mode = "circular"


class CircularPad2d(_PadNd):
    """The last 2 dimensions continued from their other ends."""

    n, mode = 2, "circular"


class CircularPad3d(_PadNd):
    """The last 3 dimensions continued from their other ends."""

    n, mode = 3, "circular"
