"""Inception v3: parallel branches of small and of long convolutions (Szegedy et al. 2015)."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight import nn
from rushlight.base.errors import warn
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.ops.shape.view_functions import cat
from rushlight.vision.models.first import constant
from rushlight.vision.models.weights import imagenet, model

__all__ = ["Inception3", "InceptionOutputs", "Inception_V3_Weights", "inception_v3"]

# (mean, std) of each colour in torchvision; the number that is both mean and std for the original weights
OURS, THEIRS = ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225)), 0.5


class InceptionOutputs(NamedTuple):
    """The outputs in training: logits, and logits of the auxiliary classifier."""

    logits: Tensor
    aux_logits: Tensor | None


class BasicConv2d(nn.Module):
    """A convolution, norm and ReLU."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs: Any):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)), inplace=True)


class Branches(nn.Module):
    """Parallel branches; the outputs are concatenated along the channels."""

    def layers(self, **convs: tuple) -> None:
        """Add convolutions. `convs`: {name: (channels in, channels out, kernel[, stride])}. Without a stride they keep
        the size."""
        for name, (channels, out, kernel, *stride) in convs.items():
            around = 0 if stride else tuple(n // 2 for n in kernel) if isinstance(kernel, tuple) else kernel // 2
            setattr(
                self,
                name,
                BasicConv2d(channels, out, kernel_size=kernel, stride=stride[0] if stride else 1, padding=around),
            )

    def through(self, x: Tensor, branch: str, count: int) -> Tensor:
        """x through the convolutions `branch`_1, `branch`_2, ..."""
        for i in range(count):
            x = getattr(self, f"{branch}_{i + 1}")(x)
        return x

    def _forward(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return cat(self._forward(x), 1)


def pooled(x: Tensor) -> Tensor:
    return F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)


class InceptionA(Branches):
    """Branches: 1x1; 5x5; two 3x3; average pooling."""

    def __init__(self, in_channels: int, pool_features: int):
        super().__init__()
        self.layers(
            branch1x1=(in_channels, 64, 1),
            branch5x5_1=(in_channels, 48, 1),
            branch5x5_2=(48, 64, 5),
            branch3x3dbl_1=(in_channels, 64, 1),
            branch3x3dbl_2=(64, 96, 3),
            branch3x3dbl_3=(96, 96, 3),
            branch_pool=(in_channels, pool_features, 1),
        )

    def _forward(self, x: Tensor) -> list[Tensor]:
        return [
            self.branch1x1(x),
            self.through(x, "branch5x5", 2),
            self.through(x, "branch3x3dbl", 3),
            self.branch_pool(pooled(x)),
        ]


class InceptionB(Branches):
    """Branches that halve the size: 3x3; two 3x3; max pooling."""

    def __init__(self, in_channels: int):
        super().__init__()
        self.layers(
            branch3x3=(in_channels, 384, 3, 2),
            branch3x3dbl_1=(in_channels, 64, 1),
            branch3x3dbl_2=(64, 96, 3),
            branch3x3dbl_3=(96, 96, 3, 2),
        )

    def _forward(self, x: Tensor) -> list[Tensor]:
        return [self.branch3x3(x), self.through(x, "branch3x3dbl", 3), F.max_pool2d(x, kernel_size=3, stride=2)]


class InceptionC(Branches):
    """Branches: 1x1; 7x7 as 1x7 and 7x1; two such 7x7; average pooling."""

    def __init__(self, in_channels: int, channels_7x7: int):
        super().__init__()
        c, row, column = channels_7x7, (1, 7), (7, 1)
        self.layers(
            branch1x1=(in_channels, 192, 1),
            branch7x7_1=(in_channels, c, 1),
            branch7x7_2=(c, c, row),
            branch7x7_3=(c, 192, column),
            branch7x7dbl_1=(in_channels, c, 1),
            branch7x7dbl_2=(c, c, column),
            branch7x7dbl_3=(c, c, row),
            branch7x7dbl_4=(c, c, column),
            branch7x7dbl_5=(c, 192, row),
            branch_pool=(in_channels, 192, 1),
        )

    def _forward(self, x: Tensor) -> list[Tensor]:
        return [
            self.branch1x1(x),
            self.through(x, "branch7x7", 3),
            self.through(x, "branch7x7dbl", 5),
            self.branch_pool(pooled(x)),
        ]


class InceptionD(Branches):
    """Branches that halve the size: 3x3; 7x7 and 3x3; max pooling."""

    def __init__(self, in_channels: int):
        super().__init__()
        self.layers(
            branch3x3_1=(in_channels, 192, 1),
            branch3x3_2=(192, 320, 3, 2),
            branch7x7x3_1=(in_channels, 192, 1),
            branch7x7x3_2=(192, 192, (1, 7)),
            branch7x7x3_3=(192, 192, (7, 1)),
            branch7x7x3_4=(192, 192, 3, 2),
        )

    def _forward(self, x: Tensor) -> list[Tensor]:
        return [
            self.through(x, "branch3x3", 2),
            self.through(x, "branch7x7x3", 4),
            F.max_pool2d(x, kernel_size=3, stride=2),
        ]


class InceptionE(Branches):
    """Branches: 1x1; 1x3 and 3x1; 3x3 followed by these two; average pooling."""

    def __init__(self, in_channels: int):
        super().__init__()
        row, column = (1, 3), (3, 1)
        self.layers(
            branch1x1=(in_channels, 320, 1),
            branch3x3_1=(in_channels, 384, 1),
            branch3x3_2a=(384, 384, row),
            branch3x3_2b=(384, 384, column),
            branch3x3dbl_1=(in_channels, 448, 1),
            branch3x3dbl_2=(448, 384, 3),
            branch3x3dbl_3a=(384, 384, row),
            branch3x3dbl_3b=(384, 384, column),
            branch_pool=(in_channels, 192, 1),
        )

    def _forward(self, x: Tensor) -> list[Tensor]:
        one, two = self.branch3x3_1(x), self.through(x, "branch3x3dbl", 2)
        return [
            self.branch1x1(x),
            self.branch3x3_2a(one),
            self.branch3x3_2b(one),
            self.branch3x3dbl_3a(two),
            self.branch3x3dbl_3b(two),
            self.branch_pool(pooled(x)),
        ]


class InceptionAux(nn.Module):
    """An auxiliary classifier: logits from an intermediate layer, used in training."""

    def __init__(self, in_channels: int, num_classes: int):
        super().__init__()
        self.conv0 = BasicConv2d(in_channels, 128, kernel_size=1)
        self.conv1 = BasicConv2d(128, 768, kernel_size=5)
        self.fc = nn.Linear(768, num_classes)
        self.conv1.stddev, self.fc.stddev = 0.01, 0.001

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(self.conv0(F.avg_pool2d(x, kernel_size=5, stride=3)))
        return self.fc(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


def start(net: nn.Module, width: float) -> None:
    """Initialize: truncated normal weights with the layer's `stddev`, or else `width`; norms 1."""
    for m in net.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            nn.init.trunc_normal_(m.weight, mean=0.0, std=float(getattr(m, "stddev", width)), a=-2, b=2)
        elif isinstance(m, nn.BatchNorm2d):
            constant(m, 1, 0)


def asked(init_weights: bool | None, name: str) -> bool:
    """Whether to draw initial values; None means True, with torchvision's warning."""
    if init_weights is None:
        warn(
            f"The default weight initialization of {name} will be changed in future releases of torchvision. If you "
            "wish to keep the old behavior (which leads to long initialization times due to scipy/scipy#11299), "
            "please set init_weights=True.",
            FutureWarning,
        )
    return init_weights is not False


def renormalized(x: Tensor) -> Tensor:
    """Change torchvision's normalization of colours to the one of the original weights."""
    return cat(
        [x[:, i : i + 1] * (width / THEIRS) + (mean - THEIRS) / THEIRS for i, (mean, width) in enumerate(OURS)], 1
    )


class Inception3(nn.Module):
    """(N, 3, H, W), at least 75 pixels each way, to (N, classes); while training, with `aux_logits`,
    InceptionOutputs."""

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        inception_blocks: Any = None, init_weights: bool | None = None, dropout: float = 0.5,
    ):  # fmt: skip
        super().__init__()
        conv, a, b, c, d, e, aux = inception_blocks or (
            BasicConv2d, InceptionA, InceptionB, InceptionC, InceptionD, InceptionE, InceptionAux,
        )  # fmt: skip
        drawn = asked(init_weights, "inception_v3")
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = conv(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        for name, channels, features in (("b", 192, 32), ("c", 256, 64), ("d", 288, 64)):
            setattr(self, f"Mixed_5{name}", a(channels, pool_features=features))
        self.Mixed_6a = b(288)
        for name, inner in (("b", 128), ("c", 160), ("d", 160), ("e", 192)):
            setattr(self, f"Mixed_6{name}", c(768, channels_7x7=inner))
        self.AuxLogits = aux(768, num_classes) if aux_logits else None
        self.Mixed_7a, self.Mixed_7b, self.Mixed_7c = d(768), e(1280), e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)
        if drawn:
            start(self, 0.1)

    def forward(self, x: Tensor) -> Any:
        x = renormalized(x) if self.transform_input else x
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        for name in ("5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e"):
            x = getattr(self, f"Mixed_{name}")(x)
        aux = self.AuxLogits(x) if self.AuxLogits is not None and self.training else None
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
        x = self.fc(self.dropout(self.avgpool(x)).flatten(1))
        return InceptionOutputs(x, aux) if self.training and self.aux_logits else x


Inception_V3_Weights = imagenet("Inception_V3", "inception_v3_google-0cc3c7bd", crop_size=299, resize_size=342)
inception_v3 = model(
    Inception_V3_Weights, Inception3, heads=("AuxLogits",), trained={"transform_input": True, "init_weights": False}
)
