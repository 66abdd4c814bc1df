"""First values of layers."""
from __future__ import annotations

from typing import Any

from rushlight import nn


def constant(layer: Any, weight: float | None, bias: float) -> None:
    """The layer's weight, unless None is said, and its bias, where there is one, filled with a number."""
    if weight is not None and layer.weight is not None:
        nn.init.constant_(layer.weight, weight)
    if layer.bias is not None:
        nn.init.constant_(layer.bias, bias)
