"""MNASNet: mobile blocks found by search, its variant B1 (Tan et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import nn
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.vision.models.first import start
from rushlight.vision.models.mobilenetv2 import make_divisible
from rushlight.vision.models.weights import imagenet, model

__all__ = [
    "MNASNet", "MNASNet0_5_Weights", "MNASNet0_75_Weights", "MNASNet1_0_Weights", "MNASNet1_3_Weights", "mnasnet0_5",
    "mnasnet0_75", "mnasnet1_0", "mnasnet1_3",
]  # fmt: skip

MOMENTUM = 1 - 0.9997
WIDTHS = (32, 16, 24, 40, 80, 96, 192, 320)
# for each stack: kernel, stride of the first block, expansion factor, number of blocks
STACKS = ((3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1))


def conv(
    channels: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1, relu: bool = True
) -> list[nn.Module]:
    """A convolution that keeps the size at stride 1, a norm and, if `relu`, ReLU."""
    layers = [
        nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out, momentum=MOMENTUM),
    ]
    return [*layers, nn.ReLU(inplace=True)] if relu else layers


class Block(nn.Module):
    """1x1 expansion, depthwise convolution, 1x1 projection; plus x if the shapes are equal."""

    def __init__(self, channels: int, out: int, kernel: int, stride: int, expand: int):
        super().__init__()
        wide = channels * expand
        self.apply_residual = channels == out and stride == 1
        self.layers = nn.Sequential(
            *conv(channels, wide), *conv(wide, wide, kernel, stride, wide), *conv(wide, out, relu=False)
        )

    def forward(self, input: Tensor) -> Tensor:
        return self.layers(input) + input if self.apply_residual else self.layers(input)


class MNASNet(nn.Module):
    """(N, 3, H, W) to (N, classes). `alpha` multiplies the numbers of channels."""

    _version = 2  # alpha scales the first layers, too

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2):
        super().__init__()
        if alpha <= 0.0:
            raise value_error(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha, self.num_classes = alpha, num_classes
        first, second, *rest = [make_divisible(width * alpha, 8) for width in WIDTHS]
        self.layers = nn.Sequential(
            *conv(3, first, 3, 2),
            *conv(first, first, 3, 1, first),
            *conv(first, second, relu=False),
            *stacks(second, rest),
            *conv(rest[-1], 1280),
        )
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes))
        for m in self.modules():
            start(m, even)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x).mean((2, 3)))


def stacks(channels: int, widths: Sequence[int]) -> list[nn.Module]:
    """The stacks of blocks; `widths`: their numbers of channels."""
    found: list[nn.Module] = []
    for out, (kernel, stride, expand, blocks) in zip(widths, STACKS):
        found.append(
            nn.Sequential(
                Block(channels, out, kernel, stride, expand),
                *[Block(out, out, kernel, 1, expand) for _ in range(blocks - 1)],
            )
        )
        channels = out
    return found


def even(m: nn.Linear) -> None:
    """Kaiming uniform weights with fan_out."""
    nn.init.kaiming_uniform_(m.weight, mode="fan_out", nonlinearity="sigmoid")


MNASNet0_5_Weights = imagenet("MNASNet0_5", "mnasnet0.5_top1_67.823-3ffadce67e")
MNASNet0_75_Weights = imagenet("MNASNet0_75", "mnasnet0_75-7090bc5f", resize_size=232)
MNASNet1_0_Weights = imagenet("MNASNet1_0", "mnasnet1.0_top1_73.512-f206786ef8")
MNASNet1_3_Weights = imagenet("MNASNet1_3", "mnasnet1_3-a4c69d6f", resize_size=232)
mnasnet0_5 = model(MNASNet0_5_Weights, MNASNet, 0.5)
mnasnet0_75 = model(MNASNet0_75_Weights, MNASNet, 0.75)
mnasnet1_0 = model(MNASNet1_0_Weights, MNASNet, 1.0)
mnasnet1_3 = model(MNASNet1_3_Weights, MNASNet, 1.3)
