"""SqueezeNet: AlexNet's accuracy with a fiftieth of its weights (Iandola et al. 2016)."""

from __future__ import annotations

from rushlight import nn
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.ops.shape.view_functions import cat
from rushlight.vision.models.first import constant
from rushlight.vision.models.weights import imagenet, model

__all__ = ["SqueezeNet", "SqueezeNet1_0_Weights", "SqueezeNet1_1_Weights", "squeezenet1_0", "squeezenet1_1"]


class Fire(nn.Module):
    """A 1x1 convolution to few channels, then parallel 1x1 and 3x3 convolutions to many."""

    def __init__(self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int):
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, kernel_size=1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, kernel_size=1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        return cat([self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))], 1)


def pool() -> nn.MaxPool2d:
    return nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True)


def fires(*settings: tuple[int, int, int]) -> list[nn.Module]:
    return [Fire(into, squeeze, expand, expand) for into, squeeze, expand in settings]


class SqueezeNet(nn.Module):
    """(N, 3, H, W) to (N, classes), in version "1_0" or "1_1", which is 2.4 times as fast."""

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5):
        super().__init__()
        self.num_classes = num_classes
        if version not in ("1_0", "1_1"):
            raise value_error(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.features = nn.Sequential(*(first_version() if version == "1_0" else second_version()))
        final = nn.Conv2d(512, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), final, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                if m is final:
                    nn.init.normal_(m.weight, mean=0.0, std=0.01)
                else:
                    nn.init.kaiming_uniform_(m.weight)
                constant(m, None, 0)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x)).flatten(1)


def first_version() -> list[nn.Module]:
    return [
        nn.Conv2d(3, 96, kernel_size=7, stride=2),
        nn.ReLU(inplace=True),
        pool(),
        *fires((96, 16, 64), (128, 16, 64), (128, 32, 128)),
        pool(),
        *fires((256, 32, 128), (256, 48, 192), (384, 48, 192), (384, 64, 256)),
        pool(),
        *fires((512, 64, 256)),
    ]


def second_version() -> list[nn.Module]:
    return [
        nn.Conv2d(3, 64, kernel_size=3, stride=2),
        nn.ReLU(inplace=True),
        pool(),
        *fires((64, 16, 64), (128, 16, 64)),
        pool(),
        *fires((128, 32, 128), (256, 32, 128)),
        pool(),
        *fires((256, 48, 192), (384, 48, 192), (384, 64, 256), (512, 64, 256)),
    ]


SqueezeNet1_0_Weights = imagenet("SqueezeNet1_0", "squeezenet1_0-b66bff10")
SqueezeNet1_1_Weights = imagenet("SqueezeNet1_1", "squeezenet1_1-b8a52dc0")
squeezenet1_0 = model(SqueezeNet1_0_Weights, SqueezeNet, "1_0")
squeezenet1_1 = model(SqueezeNet1_1_Weights, SqueezeNet, "1_1")
