"""MobileNetV3: blocks found by search, with squeeze and excitation and hard swish (Howard et al. 2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from rushlight import nn
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.vision.models.first import Classifier, start
from rushlight.vision.models.mobilenetv2 import make_divisible
from rushlight.vision.models.weights import imagenet, model
from rushlight.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation

__all__ = [
    "MobileNetV3", "MobileNet_V3_Large_Weights", "MobileNet_V3_Small_Weights", "mobilenet_v3_large",
    "mobilenet_v3_small",
]  # fmt: skip

Norm = Callable[..., nn.Module]


class Stage(NamedTuple):
    """A block: channels in, kernel, channels inside and out, whether it has squeeze and excitation, whether its
    activation is hard swish, stride, dilation."""

    channels: int
    kernel: int
    wide: int
    out: int
    squeezes: bool
    swish: bool
    stride: int
    dilation: int = 1


class InvertedResidual(nn.Module):
    """1x1 expansion, depthwise convolution, squeeze and excitation, 1x1 projection; plus x if the shapes are equal."""

    def __init__(self, cnf: Stage, norm_layer: Norm):
        super().__init__()
        if cnf.stride not in (1, 2):
            raise value_error("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.channels == cnf.out
        conv: Callable[..., nn.Module] = partial(
            Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.Hardswish if cnf.swish else nn.ReLU
        )
        layers = [conv(cnf.channels, cnf.wide, 1)] if cnf.wide != cnf.channels else []
        layers.append(
            conv(
                cnf.wide,
                cnf.wide,
                cnf.kernel,
                1 if cnf.dilation > 1 else cnf.stride,
                dilation=cnf.dilation,
                groups=cnf.wide,
            )
        )
        if cnf.squeezes:
            layers.append(
                SqueezeExcitation(cnf.wide, make_divisible(cnf.wide // 4, 8), scale_activation=nn.Hardsigmoid)
            )
        self.block = nn.Sequential(*layers, conv(cnf.wide, cnf.out, 1, activation_layer=None))
        self.out_channels, self._is_cn = cnf.out, cnf.stride > 1

    def forward(self, input: Tensor) -> Tensor:
        found = self.block(input)
        return found + input if self.use_res_connect else found


class MobileNetV3(Classifier):
    """(N, 3, H, W) to (N, classes); `last_channel` features before the last layer."""

    def __init__(
        self, inverted_residual_setting: Sequence[Stage], last_channel: int, num_classes: int = 1000,
        block: Callable[..., nn.Module] | None = None, norm_layer: Norm | None = None, dropout: float = 0.2,
    ):  # fmt: skip
        super().__init__()
        if not inverted_residual_setting:
            raise value_error("The inverted_residual_setting should not be empty")
        block, norm = block or InvertedResidual, norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        swish: dict[str, Any] = {"norm_layer": norm, "activation_layer": nn.Hardswish}
        last = inverted_residual_setting[-1].out
        self.features = nn.Sequential(
            Conv2dNormActivation(3, inverted_residual_setting[0].channels, 3, 2, **swish),
            *[block(stage, norm) for stage in inverted_residual_setting],
            Conv2dNormActivation(last, 6 * last, 1, **swish),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * last, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )
        for m in self.modules():
            start(m)


RE, HS, PLAIN, SE = False, True, False, True
LARGE = (
    Stage(16, 3, 16, 16, PLAIN, RE, 1),
    Stage(16, 3, 64, 24, PLAIN, RE, 2),
    Stage(24, 3, 72, 24, PLAIN, RE, 1),
    Stage(24, 5, 72, 40, SE, RE, 2),
    Stage(40, 5, 120, 40, SE, RE, 1),
    Stage(40, 5, 120, 40, SE, RE, 1),
    Stage(40, 3, 240, 80, PLAIN, HS, 2),
    Stage(80, 3, 200, 80, PLAIN, HS, 1),
    Stage(80, 3, 184, 80, PLAIN, HS, 1),
    Stage(80, 3, 184, 80, PLAIN, HS, 1),
    Stage(80, 3, 480, 112, SE, HS, 1),
    Stage(112, 3, 672, 112, SE, HS, 1),
    Stage(112, 5, 672, 160, SE, HS, 2),
    Stage(160, 5, 960, 160, SE, HS, 1),
    Stage(160, 5, 960, 160, SE, HS, 1),
)
SMALL = (
    Stage(16, 3, 16, 16, SE, RE, 2),
    Stage(16, 3, 72, 24, PLAIN, RE, 2),
    Stage(24, 3, 88, 24, PLAIN, RE, 1),
    Stage(24, 5, 96, 40, SE, HS, 2),
    Stage(40, 5, 240, 40, SE, HS, 1),
    Stage(40, 5, 240, 40, SE, HS, 1),
    Stage(40, 5, 120, 48, SE, HS, 1),
    Stage(48, 5, 144, 48, SE, HS, 1),
    Stage(48, 5, 288, 96, SE, HS, 2),
    Stage(96, 5, 576, 96, SE, HS, 1),
    Stage(96, 5, 576, 96, SE, HS, 1),
)


def scaled(
    stages: Sequence[Stage], last_channel: int, width_mult: float = 1.0, reduced_tail: bool = False,
    dilated: bool = False, **kwargs: Any,
) -> MobileNetV3:  # fmt: skip
    """A network with `width_mult` times the channels. `reduced_tail`: the last three blocks have half the channels.
    `dilated`: the last stage is dilated instead of strided."""
    tail, parts = len(stages) - 3, []
    for i, s in enumerate(stages):
        first, rest = (2 if reduced_tail and i > tail else 1), (2 if reduced_tail and i >= tail else 1)
        widths = [make_divisible(n * width_mult, 8) for n in (s.channels // first, s.wide // first, s.out // rest)]
        parts.append(
            s._replace(channels=widths[0], wide=widths[1], out=widths[2], dilation=2 if dilated and i >= tail else 1)
        )
    return MobileNetV3(parts, make_divisible(last_channel // (2 if reduced_tail else 1) * width_mult, 8), **kwargs)


MobileNet_V3_Large_Weights = imagenet(
    "MobileNet_V3_Large", "mobilenet_v3_large-8738ca79", "mobilenet_v3_large-5c1a4163"
)
MobileNet_V3_Small_Weights = imagenet("MobileNet_V3_Small", "mobilenet_v3_small-047dcff4")
mobilenet_v3_large = model(MobileNet_V3_Large_Weights, scaled, LARGE, 1280)
mobilenet_v3_small = model(MobileNet_V3_Small_Weights, scaled, SMALL, 1024)
