"""ShuffleNetV2: half of the channels skip a block, the other half is convolved; both are shuffled (Ma et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight import nn
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.ops.shape.view_functions import cat
from rushlight.vision.models.weights import imagenet, model

__all__ = [
    "ShuffleNetV2", "ShuffleNet_V2_X0_5_Weights", "ShuffleNet_V2_X1_0_Weights", "ShuffleNet_V2_X1_5_Weights",
    "ShuffleNet_V2_X2_0_Weights", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
]  # fmt: skip


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """(N, groups x C, H, W), reordered: the first channel of each group, then the second channel of each, ..."""
    return x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)


def pointwise(channels: int, out: int) -> list[nn.Module]:
    """A 1x1 convolution, norm and ReLU."""
    return [nn.Conv2d(channels, out, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]


def depthwise(channels: int, stride: int) -> list[nn.Module]:
    """A depthwise 3x3 convolution, and norm."""
    return [nn.Conv2d(channels, channels, 3, stride, 1, bias=False, groups=channels), nn.BatchNorm2d(channels)]


class InvertedResidual(nn.Module):
    """Two branches, each with half the channels. At stride 1 the first branch is the identity, at stride 2 a
    convolution, too."""

    def __init__(self, inp: int, oup: int, stride: int):
        super().__init__()
        half = oup // 2
        if not 1 <= stride <= 3:
            raise value_error("illegal stride value")
        if stride == 1 and inp != 2 * half:
            raise value_error(
                f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values. If stride == 1 then inp "
                "should be equal to oup // 2 << 1."
            )
        self.stride = stride
        self.branch1 = nn.Sequential(*([*depthwise(inp, stride), *pointwise(inp, half)] if stride > 1 else []))
        self.branch2 = nn.Sequential(
            *pointwise(inp if stride > 1 else half, half), *depthwise(half, stride), *pointwise(half, half)
        )

    def forward(self, x: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=1) if self.stride == 1 else (self.branch1(x), x)
        return channel_shuffle(cat([first, self.branch2(second)], 1), 2)


class ShuffleNetV2(nn.Module):
    """(N, 3, H, W) to (N, classes): three stages with these numbers of blocks and channels."""

    def __init__(
        self, stages_repeats: Sequence[int], stages_out_channels: Sequence[int], num_classes: int = 1000,
        inverted_residual: Callable[..., nn.Module] = InvertedResidual,
    ):  # fmt: skip
        super().__init__()
        if len(stages_repeats) != 3:
            raise value_error("expected stages_repeats as list of 3 positive ints")
        if len(stages_out_channels) != 5:
            raise value_error("expected stages_out_channels as list of 5 positive ints")
        channels, *widths, last = stages_out_channels
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True)
        )
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for name, blocks, width in zip(("stage2", "stage3", "stage4"), stages_repeats, widths):
            setattr(
                self,
                name,
                nn.Sequential(
                    inverted_residual(channels, width, 2),
                    *[inverted_residual(width, width, 1) for _ in range(blocks - 1)],
                ),
            )
            channels = width
        self.conv5 = nn.Sequential(*pointwise(channels, last))
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
        return self.fc(self.conv5(x).mean((2, 3)))


ShuffleNet_V2_X0_5_Weights = imagenet("ShuffleNet_V2_X0_5", "shufflenetv2_x0.5-f707e7126e")
ShuffleNet_V2_X1_0_Weights = imagenet("ShuffleNet_V2_X1_0", "shufflenetv2_x1-5666bf0f80")
ShuffleNet_V2_X1_5_Weights = imagenet("ShuffleNet_V2_X1_5", "shufflenetv2_x1_5-3c479a10", resize_size=232)
ShuffleNet_V2_X2_0_Weights = imagenet("ShuffleNet_V2_X2_0", "shufflenetv2_x2_0-8be3c8ee", resize_size=232)
BLOCKS = [4, 8, 4]
shufflenet_v2_x0_5 = model(ShuffleNet_V2_X0_5_Weights, ShuffleNetV2, BLOCKS, [24, 48, 96, 192, 1024])
shufflenet_v2_x1_0 = model(ShuffleNet_V2_X1_0_Weights, ShuffleNetV2, BLOCKS, [24, 116, 232, 464, 1024])
shufflenet_v2_x1_5 = model(ShuffleNet_V2_X1_5_Weights, ShuffleNetV2, BLOCKS, [24, 176, 352, 704, 1024])
shufflenet_v2_x2_0 = model(ShuffleNet_V2_X2_0_Weights, ShuffleNetV2, BLOCKS, [24, 244, 488, 976, 2048])
