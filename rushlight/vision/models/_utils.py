"""Modules derived from a model: its first layers, with outputs of some of the layers."""

from __future__ import annotations

from collections import OrderedDict

from rushlight import nn
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.vision.models.mobilenetv2 import make_divisible as _make_divisible

__all__ = ["IntermediateLayerGetter", "_make_divisible"]


class IntermediateLayerGetter(nn.ModuleDict):
    """The model's children up to the last requested one, in order: x to {new name: the child's output}.

    `return_layers`: {name of a child: new name}. ValueError for a name that no child has."""

    _version = 2

    def __init__(self, model: nn.Module, return_layers: dict[str, str]):
        children = dict(model.named_children())
        if not set(return_layers) <= set(children):
            raise value_error("return_layers are not present in model")
        last = max(list(children).index(str(name)) for name in return_layers)
        super().__init__(OrderedDict(list(children.items())[: last + 1]))
        self.return_layers = return_layers

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        found = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                found[self.return_layers[name]] = x
        return found
