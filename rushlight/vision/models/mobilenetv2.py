"""MobileNetV2: narrow residuals around wide depthwise convolutions (Sandler et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight import nn
from rushlight.core.tensor import Tensor
from rushlight.vision.models.first import start
from rushlight.vision.models.weights import imagenet, model
from rushlight.vision.ops.misc import Conv2dNormActivation

__all__ = ["MobileNetV2", "MobileNet_V2_Weights", "mobilenet_v2"]

Norm = Callable[..., nn.Module]
# for each stage: expansion factor, channels, number of blocks, stride of the first block
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """The multiple of the divisor nearest to v, but not below 0.9 v."""
    near = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return near + divisor if near < 0.9 * v else near


class InvertedResidual(nn.Module):
    """1x1 expansion, depthwise 3x3 convolution, 1x1 projection; plus x if the shapes are equal."""

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int, norm_layer: Norm | None = None):
        super().__init__()
        norm, wide = norm_layer or nn.BatchNorm2d, int(round(inp * expand_ratio))
        self.stride, self.out_channels, self._is_cn = stride, oup, stride > 1
        self.use_res_connect = stride == 1 and inp == oup
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, wide, 1, norm_layer=norm, activation_layer=nn.ReLU6))
        layers += [
            Conv2dNormActivation(wide, wide, 3, stride, groups=wide, norm_layer=norm, activation_layer=nn.ReLU6),
            nn.Conv2d(wide, oup, 1, 1, 0, bias=False),
            norm(oup),
        ]
        self.conv = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """(N, 3, H, W) to (N, classes). Channels are multiplied by `width_mult` and rounded to multiples of
    `round_nearest`."""

    def __init__(
        self, num_classes: int = 1000, width_mult: float = 1.0,
        inverted_residual_setting: Sequence[Sequence[int]] | None = None, round_nearest: int = 8,
        block: Callable[..., nn.Module] | None = None, norm_layer: Norm | None = None, dropout: float = 0.2,
    ):  # fmt: skip
        super().__init__()
        block, norm = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        width = make_divisible(32 * width_mult, round_nearest)
        self.last_channel = make_divisible(1280 * max(1.0, width_mult), round_nearest)
        layers: list[nn.Module] = [Conv2dNormActivation(3, width, 3, 2, norm_layer=norm, activation_layer=nn.ReLU6)]
        for ratio, channels, blocks, stride in inverted_residual_setting or STAGES:
            out = make_divisible(channels * width_mult, round_nearest)
            for i in range(blocks):
                layers.append(block(width, out, stride if i == 0 else 1, expand_ratio=ratio, norm_layer=norm))
                width = out
        layers.append(Conv2dNormActivation(width, self.last_channel, 1, norm_layer=norm, activation_layer=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes))
        for m in self.modules():
            start(m)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(x.flatten(1))


MobileNet_V2_Weights = imagenet("MobileNet_V2", "mobilenet_v2-b0353104", "mobilenet_v2-7ebf99e0")
mobilenet_v2 = model(MobileNet_V2_Weights, MobileNetV2)
