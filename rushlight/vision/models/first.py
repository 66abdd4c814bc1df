"""Functions that networks share: building a model, and initial values of layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight import nn
from rushlight.core.tensor import Tensor


class Classifier(nn.Module):
    """A network of `features`, average pooling and a `classifier`."""

    features: nn.Module
    avgpool: nn.Module
    classifier: nn.Module

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def constant(layer: Any, weight: float | None, bias: float) -> None:
    """Fill the layer's weight (unless `weight` is None) and its bias (if any) with these numbers."""
    if weight is not None and layer.weight is not None:
        nn.init.constant_(layer.weight, weight)
    if layer.bias is not None:
        nn.init.constant_(layer.bias, bias)


def narrow(m: nn.Linear) -> None:
    """Normal weights with standard deviation 0.01."""
    nn.init.normal_(m.weight, 0, 0.01)


def start(m: nn.Module, linear: Callable[[nn.Linear], None] = narrow) -> None:
    """Initialize a layer: convolutions Kaiming normal with fan_out, norms 1, biases 0. `linear` initializes the weights
    of linear layers."""
    if isinstance(m, nn.Conv2d):
        nn.init.kaiming_normal_(m.weight, mode="fan_out")
    elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
        constant(m, 1, 0)
    elif isinstance(m, nn.Linear):
        linear(m)
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        constant(m, None, 0)
