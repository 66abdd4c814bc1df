"""Densely connected networks (Huang et al. 2016): each layer reads the outputs of all earlier layers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight import nn
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.ops.shape.view_functions import cat
from rushlight.utils.checkpoint import checkpoint
from rushlight.vision.models.first import constant
from rushlight.vision.models.weights import imagenet, model

__all__ = [
    "DenseNet", "DenseNet121_Weights", "DenseNet161_Weights", "DenseNet169_Weights", "DenseNet201_Weights",
    "densenet121", "densenet161", "densenet169", "densenet201",
]  # fmt: skip


class _DenseLayer(nn.Module):
    """(norm, relu, 1x1), (norm, relu, 3x3): `growth_rate` new features from all features so far."""

    def __init__(
        self, num_input_features: int, growth_rate: int, bn_size: int, drop_rate: float, memory_efficient: bool = False
    ):
        super().__init__()
        wide = bn_size * growth_rate
        self.norm1, self.relu1 = nn.BatchNorm2d(num_input_features), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, wide, kernel_size=1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(wide), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(wide, growth_rate, kernel_size=3, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def bn_function(self, inputs: Sequence[Tensor]) -> Tensor:
        return self.conv1(self.relu1(self.norm1(cat(list(inputs), 1))))

    def forward(self, input: Tensor | Sequence[Tensor]) -> Tensor:
        before = [input] if isinstance(input, Tensor) else input
        if self.memory_efficient and any(x.requires_grad for x in before):
            narrow = checkpoint(lambda *xs: self.bn_function(xs), *before, use_reentrant=False)
        else:
            narrow = self.bn_function(before)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return F.dropout(new, p=self.drop_rate, training=self.training) if self.drop_rate > 0 else new


class _DenseBlock(nn.ModuleDict):
    def __init__(
        self, num_layers: int, num_input_features: int, bn_size: int, growth_rate: int, drop_rate: float,
        memory_efficient: bool = False,
    ):  # fmt: skip
        super().__init__()
        for i in range(num_layers):
            self.add_module(
                f"denselayer{i + 1}",
                _DenseLayer(num_input_features + i * growth_rate, growth_rate, bn_size, drop_rate, memory_efficient),
            )

    def forward(self, init_features: Tensor) -> Tensor:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return cat(features, 1)


class _Transition(nn.Sequential):
    """Reduces the number of channels, and halves height and width."""

    def __init__(self, num_input_features: int, num_output_features: int):
        super().__init__()
        self.norm, self.relu = nn.BatchNorm2d(num_input_features), nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, kernel_size=1, stride=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """(N, 3, H, W) to (N, classes), through blocks of `block_config` layers that add `growth_rate` features each."""

    def __init__(
        self, growth_rate: int = 32, block_config: Sequence[int] = (6, 12, 24, 16), num_init_features: int = 64,
        bn_size: int = 4, drop_rate: float = 0, num_classes: int = 1000, memory_efficient: bool = False,
    ):  # fmt: skip
        super().__init__()
        self.features = nn.Sequential()
        add = self.features.add_module
        add("conv0", nn.Conv2d(3, num_init_features, kernel_size=7, stride=2, padding=3, bias=False))
        add("norm0", nn.BatchNorm2d(num_init_features))
        add("relu0", nn.ReLU(inplace=True))
        add("pool0", nn.MaxPool2d(kernel_size=3, stride=2, padding=1))
        width = num_init_features
        for i, layers in enumerate(block_config, 1):
            add(f"denseblock{i}", _DenseBlock(layers, width, bn_size, growth_rate, drop_rate, memory_efficient))
            width += layers * growth_rate
            if i < len(block_config):
                add(f"transition{i}", _Transition(width, width // 2))
                width //= 2
        add("norm5", nn.BatchNorm2d(width))
        self.classifier = nn.Linear(width, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight)
            elif isinstance(m, nn.BatchNorm2d):
                constant(m, 1, 0)
            elif isinstance(m, nn.Linear):
                constant(m, None, 0)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.features(x), inplace=True)
        return self.classifier(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Old weight files have norm.1 where the module has norm1."""
        named = {
            re.sub(r"(denselayer\d+\.(?:norm|relu|conv))\.([12])\.", r"\1\2.", k): v for k, v in state_dict.items()
        }
        return super().load_state_dict(named, *args, **kwargs)


DenseNet121_Weights = imagenet("DenseNet121", "densenet121-a639ec97")
DenseNet161_Weights = imagenet("DenseNet161", "densenet161-8d451a50")
DenseNet169_Weights = imagenet("DenseNet169", "densenet169-b2777c0a")
DenseNet201_Weights = imagenet("DenseNet201", "densenet201-c1103571")
densenet121 = model(DenseNet121_Weights, DenseNet, 32, (6, 12, 24, 16), 64)
densenet161 = model(DenseNet161_Weights, DenseNet, 48, (6, 12, 36, 24), 96)
densenet169 = model(DenseNet169_Weights, DenseNet, 32, (6, 12, 32, 32), 64)
densenet201 = model(DenseNet201_Weights, DenseNet, 32, (6, 12, 48, 32), 64)
