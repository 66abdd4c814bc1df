"""GoogLeNet: parallel convolutions of several sizes (Szegedy et al. 2014)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight import nn
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.ops.shape.view_functions import cat
from rushlight.vision.models.inception import BasicConv2d, asked, renormalized, start
from rushlight.vision.models.weights import imagenet, model

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "GoogLeNet_Weights", "googlenet"]

# channels: input; 1x1; 3x3 before and after; second 3x3 before and after; pooled branch
BLOCKS = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}


class GoogLeNetOutputs(NamedTuple):
    """The outputs in training: logits, and logits of two auxiliary classifiers."""

    logits: Tensor
    aux_logits2: Tensor | None
    aux_logits1: Tensor | None


class Inception(nn.Module):
    """Four branches, concatenated along the channels: 1x1; 3x3; 3x3 (5x5 in the paper); max pooling."""

    def __init__(
        self, in_channels: int, ch1x1: int, ch3x3red: int, ch3x3: int, ch5x5red: int, ch5x5: int, pool_proj: int,
        conv_block: Callable[..., nn.Module] | None = None,
    ):  # fmt: skip
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1 = conv(in_channels, ch1x1, kernel_size=1)
        self.branch2 = nn.Sequential(
            conv(in_channels, ch3x3red, kernel_size=1), conv(ch3x3red, ch3x3, kernel_size=3, padding=1)
        )
        self.branch3 = nn.Sequential(
            conv(in_channels, ch5x5red, kernel_size=1), conv(ch5x5red, ch5x5, kernel_size=3, padding=1)
        )
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True),
            conv(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """An auxiliary classifier: logits from an intermediate layer, used in training."""

    def __init__(
        self, in_channels: int, num_classes: int, conv_block: Callable[..., nn.Module] | None = None,
        dropout: float = 0.7,
    ):  # fmt: skip
        super().__init__()
        self.conv = (conv_block or BasicConv2d)(in_channels, 128, kernel_size=1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(F.adaptive_avg_pool2d(x, (4, 4))).flatten(1)
        return self.fc2(self.dropout(F.relu(self.fc1(x), inplace=True)))


class GoogLeNet(nn.Module):
    """(N, 3, H, W) to (N, classes); while training, with `aux_logits`, GoogLeNetOutputs."""

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        init_weights: bool | None = None, blocks: Any = None, dropout: float = 0.2, dropout_aux: float = 0.7,
    ):  # fmt: skip
        super().__init__()
        conv, block, aux = blocks or (BasicConv2d, Inception, InceptionAux)
        drawn = asked(init_weights, "GoogleNet")
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        for name, widths in BLOCKS.items():
            setattr(self, f"inception{name}", block(*widths))
            if name in ("3b", "4e"):  # children() are in the order of the forward pass
                setattr(self, f"maxpool{name[0]}", nn.MaxPool2d(3 if name == "3b" else 2, stride=2, ceil_mode=True))
        self.aux1 = aux(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = aux(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        if drawn:
            start(self, 0.01)

    def forward(self, x: Tensor) -> Any:
        x = renormalized(x) if self.transform_input else x
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        x = self.maxpool3(self.inception3b(self.inception3a(x)))
        x = self.inception4a(x)
        aux1 = self.aux1(x) if self.aux1 is not None and self.training else None
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        aux2 = self.aux2(x) if self.aux2 is not None and self.training else None
        x = self.inception5b(self.inception5a(self.maxpool4(self.inception4e(x))))
        x = self.fc(self.dropout(self.avgpool(x).flatten(1)))
        return GoogLeNetOutputs(x, aux2, aux1) if self.training and self.aux_logits else x


GoogLeNet_Weights = imagenet("GoogLeNet", "googlenet-1378be20")
googlenet = model(
    GoogLeNet_Weights,
    GoogLeNet,
    heads=("aux1", "aux2"),
    trained={"transform_input": True, "init_weights": False, "aux_logits": False},
)
