"""EfficientNets: depth, width and image size are scaled together (Tan and Le 2019, 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from rushlight import nn
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.vision.models.first import Classifier, start
from rushlight.vision.models.mobilenetv2 import make_divisible
from rushlight.vision.models.weights import Trained, imagenet, model, weights
from rushlight.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation, StochasticDepth

__all__ = [
    "EfficientNet", "EfficientNet_B0_Weights", "EfficientNet_B1_Weights", "EfficientNet_B2_Weights",
    "EfficientNet_B3_Weights", "EfficientNet_B4_Weights", "EfficientNet_B5_Weights", "EfficientNet_B6_Weights",
    "EfficientNet_B7_Weights", "EfficientNet_V2_L_Weights", "EfficientNet_V2_M_Weights", "EfficientNet_V2_S_Weights",
    "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4", "efficientnet_b5",
    "efficientnet_b6", "efficientnet_b7", "efficientnet_v2_l", "efficientnet_v2_m", "efficientnet_v2_s",
]  # fmt: skip

Norm = Callable[..., nn.Module]


class Stage(NamedTuple):
    """A stage: class of the blocks, expansion factor, kernel, stride of the first block, channels in and out, number of
    blocks."""

    block: type[Block]
    expand: int
    kernel: int
    stride: int
    channels: int
    out: int
    layers: int


class Block(nn.Module):
    """x + layers(x), or layers(x) if the shapes differ. In training, stochastic depth skips `layers` at random."""

    def __init__(self, cnf: Stage, stochastic_depth_prob: float, norm_layer: Norm):
        super().__init__()
        self.use_res_connect = cnf.stride == 1 and cnf.channels == cnf.out
        wide = make_divisible(cnf.channels * cnf.expand, 8)
        self.block = nn.Sequential(
            *self.layers(cnf, wide, partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU))
        )
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out

    def layers(self, cnf: Stage, wide: int, conv: Callable[..., nn.Module]) -> list[nn.Module]:
        """The layers, with `wide` channels inside; `conv` makes the convolutions."""
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        found = self.block(input)
        return self.stochastic_depth(found) + input if self.use_res_connect else found


class MBConv(Block):
    """1x1 expansion, depthwise convolution, squeeze and excitation, 1x1 projection."""

    def layers(self, cnf: Stage, wide: int, conv: Callable[..., nn.Module]) -> list[nn.Module]:
        return [
            *([conv(cnf.channels, wide, 1)] if wide != cnf.channels else []),
            conv(wide, wide, cnf.kernel, cnf.stride, groups=wide),
            SqueezeExcitation(wide, max(1, cnf.channels // 4), activation=partial(nn.SiLU, inplace=True)),
            conv(wide, cnf.out, 1, activation_layer=None),
        ]


class FusedMBConv(Block):
    """MBConv with one full convolution in place of expansion and depthwise convolution: faster for few channels."""

    def layers(self, cnf: Stage, wide: int, conv: Callable[..., nn.Module]) -> list[nn.Module]:
        if wide == cnf.channels:
            return [conv(cnf.channels, cnf.out, cnf.kernel, cnf.stride)]
        return [conv(cnf.channels, wide, cnf.kernel, cnf.stride), conv(wide, cnf.out, 1, activation_layer=None)]


class EfficientNet(Classifier):
    """(N, 3, H, W) to (N, classes). The probability to skip a block rises to `stochastic_depth_prob` at the end."""

    def __init__(
        self, inverted_residual_setting: Sequence[Stage], dropout: float, stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000, norm_layer: Norm | None = None, last_channel: int | None = None,
    ):  # fmt: skip
        super().__init__()
        if not inverted_residual_setting:
            raise value_error("The inverted_residual_setting should not be empty")
        norm, stages = norm_layer or nn.BatchNorm2d, inverted_residual_setting
        total, done = sum(stage.layers for stage in stages), 0
        silu: dict[str, Any] = {"norm_layer": norm, "activation_layer": nn.SiLU}
        layers: list[nn.Module] = [Conv2dNormActivation(3, stages[0].channels, 3, 2, **silu)]
        for stage in stages:
            blocks: list[nn.Module] = []
            for i in range(stage.layers):
                this = stage._replace(channels=stage.out, stride=1) if i else stage
                blocks.append(this.block(this, stochastic_depth_prob * float(done) / total, norm))
                done += 1
            layers.append(nn.Sequential(*blocks))
        last = stages[-1].out
        wide = 4 * last if last_channel is None else last_channel
        layers.append(Conv2dNormActivation(last, wide, 1, **silu))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(wide, num_classes))
        for m in self.modules():
            start(m, even)


def even(m: nn.Linear) -> None:
    """Uniform weights between -1 / sqrt(outputs) and 1 / sqrt(outputs)."""
    bound = 1.0 / math.sqrt(m.out_features)
    nn.init.uniform_(m.weight, -bound, bound)


FIRST = (
    Stage(MBConv, 1, 3, 1, 32, 16, 1),
    Stage(MBConv, 6, 3, 2, 16, 24, 2),
    Stage(MBConv, 6, 5, 2, 24, 40, 2),
    Stage(MBConv, 6, 3, 2, 40, 80, 3),
    Stage(MBConv, 6, 5, 1, 80, 112, 3),
    Stage(MBConv, 6, 5, 2, 112, 192, 4),
    Stage(MBConv, 6, 3, 1, 192, 320, 1),
)
SMALL = (
    Stage(FusedMBConv, 1, 3, 1, 24, 24, 2),
    Stage(FusedMBConv, 4, 3, 2, 24, 48, 4),
    Stage(FusedMBConv, 4, 3, 2, 48, 64, 4),
    Stage(MBConv, 4, 3, 2, 64, 128, 6),
    Stage(MBConv, 6, 3, 1, 128, 160, 9),
    Stage(MBConv, 6, 3, 2, 160, 256, 15),
)
MEDIUM = (
    Stage(FusedMBConv, 1, 3, 1, 24, 24, 3),
    Stage(FusedMBConv, 4, 3, 2, 24, 48, 5),
    Stage(FusedMBConv, 4, 3, 2, 48, 80, 5),
    Stage(MBConv, 4, 3, 2, 80, 160, 7),
    Stage(MBConv, 6, 3, 1, 160, 176, 14),
    Stage(MBConv, 6, 3, 2, 176, 304, 18),
    Stage(MBConv, 6, 3, 1, 304, 512, 5),
)
LARGE = (
    Stage(FusedMBConv, 1, 3, 1, 32, 32, 4),
    Stage(FusedMBConv, 4, 3, 2, 32, 64, 7),
    Stage(FusedMBConv, 4, 3, 2, 64, 96, 7),
    Stage(MBConv, 4, 3, 2, 96, 192, 10),
    Stage(MBConv, 6, 3, 1, 192, 224, 19),
    Stage(MBConv, 6, 3, 2, 224, 384, 25),
    Stage(MBConv, 6, 3, 1, 384, 640, 7),
)


def scaled_b0(width: float, depth: float, dropout: float, **kwargs: Any) -> EfficientNet:
    """EfficientNet-B0 with `width` times the channels and `depth` times the layers."""
    stages = [
        stage._replace(
            channels=make_divisible(stage.channels * width, 8),
            out=make_divisible(stage.out * width, 8),
            layers=math.ceil(stage.layers * depth),
        )
        for stage in FIRST
    ]
    return EfficientNet(stages, dropout, **kwargs)


def second(stages: Sequence[Stage], dropout: float, **kwargs: Any) -> EfficientNet:
    return EfficientNet(stages, dropout, last_channel=1280, **kwargs)


def bicubic(name: str, file: str, crop: int, resize: int) -> Any:
    return imagenet(name, file, crop_size=crop, resize_size=resize, interpolation="bicubic")


EfficientNet_B0_Weights = bicubic("EfficientNet_B0", "efficientnet_b0_rwightman-7f5810bc", 224, 256)
EfficientNet_B1_Weights = weights(
    "EfficientNet_B1",
    {
        "IMAGENET1K_V1": Trained("efficientnet_b1_rwightman-bac287d4.pth", 240, 256, "bicubic"),
        "IMAGENET1K_V2": Trained("efficientnet_b1-c27df63c.pth", 240, 255),
    },
    "IMAGENET1K_V2",
)
EfficientNet_B2_Weights = bicubic("EfficientNet_B2", "efficientnet_b2_rwightman-c35c1473", 288, 288)
EfficientNet_B3_Weights = bicubic("EfficientNet_B3", "efficientnet_b3_rwightman-b3899882", 300, 320)
EfficientNet_B4_Weights = bicubic("EfficientNet_B4", "efficientnet_b4_rwightman-23ab8bcd", 380, 384)
EfficientNet_B5_Weights = bicubic("EfficientNet_B5", "efficientnet_b5_lukemelas-1a07897c", 456, 456)
EfficientNet_B6_Weights = bicubic("EfficientNet_B6", "efficientnet_b6_lukemelas-24a108a5", 528, 528)
EfficientNet_B7_Weights = bicubic("EfficientNet_B7", "efficientnet_b7_lukemelas-c5b4e57e", 600, 600)
EfficientNet_V2_S_Weights = imagenet("EfficientNet_V2_S", "efficientnet_v2_s-dd5fe13b", crop_size=384, resize_size=384)
EfficientNet_V2_M_Weights = imagenet("EfficientNet_V2_M", "efficientnet_v2_m-dc08266a", crop_size=480, resize_size=480)
EfficientNet_V2_L_Weights = imagenet(
    "EfficientNet_V2_L",
    "efficientnet_v2_l-59c71312",
    crop_size=480,
    resize_size=480,
    interpolation="bicubic",
    mean=(0.5,) * 3,
    std=(0.5,) * 3,
)

slow, exact = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01), partial(nn.BatchNorm2d, eps=0.001)
efficientnet_b0 = model(EfficientNet_B0_Weights, scaled_b0, 1.0, 1.0, 0.2)
efficientnet_b1 = model(EfficientNet_B1_Weights, scaled_b0, 1.0, 1.1, 0.2)
efficientnet_b2 = model(EfficientNet_B2_Weights, scaled_b0, 1.1, 1.2, 0.3)
efficientnet_b3 = model(EfficientNet_B3_Weights, scaled_b0, 1.2, 1.4, 0.3)
efficientnet_b4 = model(EfficientNet_B4_Weights, scaled_b0, 1.4, 1.8, 0.4)
efficientnet_b5 = model(EfficientNet_B5_Weights, scaled_b0, 1.6, 2.2, 0.4, norm_layer=slow)
efficientnet_b6 = model(EfficientNet_B6_Weights, scaled_b0, 1.8, 2.6, 0.5, norm_layer=slow)
efficientnet_b7 = model(EfficientNet_B7_Weights, scaled_b0, 2.0, 3.1, 0.5, norm_layer=slow)
efficientnet_v2_s = model(EfficientNet_V2_S_Weights, second, SMALL, 0.2, norm_layer=exact)
efficientnet_v2_m = model(EfficientNet_V2_M_Weights, second, MEDIUM, 0.3, norm_layer=exact)
efficientnet_v2_l = model(EfficientNet_V2_L_Weights, second, LARGE, 0.4, norm_layer=exact)
