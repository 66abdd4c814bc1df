"""Very deep convolutional networks (Simonyan and Zisserman 2014)."""

from __future__ import annotations

from typing import Any

from rushlight import nn
from rushlight.vision.models.first import Classifier, start
from rushlight.vision.models.weights import Trained, imagenet, model, weights

__all__ = [
    "VGG", "VGG11_BN_Weights", "VGG11_Weights", "VGG13_BN_Weights", "VGG13_Weights", "VGG16_BN_Weights",
    "VGG16_Weights", "VGG19_BN_Weights", "VGG19_Weights", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn",
    "vgg19", "vgg19_bn",
]  # fmt: skip


class VGG(Classifier):
    """Convolutions of 3x3 with pools between them, then three linear layers: (N, 3, H, W) to (N, classes)."""

    def __init__(self, features: nn.Module, num_classes: int = 1000, init_weights: bool = True, dropout: float = 0.5):
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )
        for m in self.modules() if init_weights else ():
            start(m)


def make_layers(cfg: list[str | int], batch_norm: bool = False) -> nn.Sequential:
    """A convolution for each number of channels, a pool for each 'M'."""
    layers: list[nn.Module] = []
    channels = 3
    for width in cfg:
        if isinstance(width, str):
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        layers.append(nn.Conv2d(channels, width, kernel_size=3, padding=1))
        layers += [nn.BatchNorm2d(width)] if batch_norm else []
        layers.append(nn.ReLU(inplace=True))
        channels = width
    return nn.Sequential(*layers)


def stages(*depths: int) -> list[str | int]:
    """The channels of five stages with these numbers of convolutions, and a pool after each stage."""
    steps: list[str | int] = []
    for width, depth in zip((64, 128, 256, 512, 512), depths):
        steps += [*[width] * depth, "M"]
    return steps


cfgs = {"A": stages(1, 1, 2, 2, 2), "B": stages(2, 2, 2, 2, 2), "D": stages(2, 2, 3, 3, 3), "E": stages(2, 2, 4, 4, 4)}


def plain(cfg: str, batch_norm: bool, **kwargs: Any) -> VGG:
    return VGG(make_layers(cfgs[cfg], batch_norm), **kwargs)


VGG11_Weights = imagenet("VGG11", "vgg11-8a719046")
VGG11_BN_Weights = imagenet("VGG11_BN", "vgg11_bn-6002323d")
VGG13_Weights = imagenet("VGG13", "vgg13-19584684")
VGG13_BN_Weights = imagenet("VGG13_BN", "vgg13_bn-abd245e5")
VGG16_Weights = weights(
    "VGG16",
    {
        "IMAGENET1K_V1": Trained("vgg16-397923af.pth"),
        "IMAGENET1K_FEATURES": Trained(
            "vgg16_features-amdegroot-88682ab5.pth", mean=(0.48235, 0.45882, 0.40784), std=(1 / 255, 1 / 255, 1 / 255)
        ),
    },
)
VGG16_BN_Weights = imagenet("VGG16_BN", "vgg16_bn-6c64b313")
VGG19_Weights = imagenet("VGG19", "vgg19-dcbb9e9d")
VGG19_BN_Weights = imagenet("VGG19_BN", "vgg19_bn-c79401a0")

WITHOUT_INIT = {"init_weights": False}  # with trained weights nothing is drawn, as in torchvision

vgg11 = model(VGG11_Weights, plain, "A", False, trained=WITHOUT_INIT)
vgg11_bn = model(VGG11_BN_Weights, plain, "A", True, trained=WITHOUT_INIT)
vgg13 = model(VGG13_Weights, plain, "B", False, trained=WITHOUT_INIT)
vgg13_bn = model(VGG13_BN_Weights, plain, "B", True, trained=WITHOUT_INIT)
vgg16 = model(VGG16_Weights, plain, "D", False, trained=WITHOUT_INIT)
vgg16_bn = model(VGG16_BN_Weights, plain, "D", True, trained=WITHOUT_INIT)
vgg19 = model(VGG19_Weights, plain, "E", False, trained=WITHOUT_INIT)
vgg19_bn = model(VGG19_BN_Weights, plain, "E", True, trained=WITHOUT_INIT)
