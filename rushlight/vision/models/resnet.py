"""Residual networks (He et al. 2015), aggregated (Xie et al. 2016) and wide ones (Zagoruyko and Komodakis 2016)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight import nn
from rushlight.base.errors import not_implemented_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.vision.models.first import constant
from rushlight.vision.models.weights import imagenet, model

__all__ = [
    "ResNet", "ResNet101_Weights", "ResNet152_Weights", "ResNet18_Weights", "ResNet34_Weights", "ResNet50_Weights",
    "ResNeXt101_32X8D_Weights", "ResNeXt101_64X4D_Weights", "ResNeXt50_32X4D_Weights", "Wide_ResNet101_2_Weights",
    "Wide_ResNet50_2_Weights", "resnet101", "resnet152", "resnet18", "resnet34", "resnet50", "resnext101_32x8d",
    "resnext101_64x4d", "resnext50_32x4d", "wide_resnet101_2", "wide_resnet50_2",
]  # fmt: skip


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_planes, out_planes, 3, stride, dilation, dilation, groups, bias=False)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """relu(x + f(x)): f is two convolutions of 3x3, each with batch norm."""

    expansion: int = 1

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None, groups: int = 1,
        base_width: int = 64, dilation: int = 1, norm_layer: Callable[..., nn.Module] | None = None,
    ):  # fmt: skip
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        if groups != 1 or base_width != 64:
            raise value_error("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise not_implemented_error("Dilation > 1 not supported in BasicBlock")
        self.conv1, self.bn1 = conv3x3(inplanes, planes, stride), norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = conv3x3(planes, planes), norm(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """relu(x + f(x)): f narrows by 1x1, convolves by 3x3 (with the stride), and widens by 1x1."""

    expansion: int = 4

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None, groups: int = 1,
        base_width: int = 64, dilation: int = 1, norm_layer: Callable[..., nn.Module] | None = None,
    ):  # fmt: skip
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1, self.bn1 = conv1x1(inplanes, width), norm(width)
        self.conv2, self.bn2 = conv3x3(width, width, stride, groups, dilation), norm(width)
        self.conv3, self.bn3 = conv1x1(width, planes * self.expansion), norm(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """A stem, four stages of `layers` blocks each, the mean over the picture, a linear layer: (N, 3, H, W) to (N,
    classes).

    `replace_stride_with_dilation`: for each of the last three stages, whether it keeps the picture's size."""

    def __init__(
        self, block: type[BasicBlock | Bottleneck], layers: Sequence[int], num_classes: int = 1000,
        zero_init_residual: bool = False, groups: int = 1, width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None, norm_layer: Callable[..., nn.Module] | None = None,
    ):  # fmt: skip
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes, self.dilation, self.groups, self.base_width = 64, 1, groups, width_per_group
        dilate = [False] * 3 if replace_stride_with_dilation is None else list(replace_stride_with_dilation)
        if len(dilate) != 3:
            raise value_error(
                f"replace_stride_with_dilation should be None or a 3-element tuple, got {replace_stride_with_dilation}"
            )
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1, self.relu = self._norm_layer(self.inplanes), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._start(zero_init_residual)

    def _start(self, zero_residual: bool) -> None:
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                constant(m, 1, 0)
        for m in self.modules() if zero_residual else ():
            if isinstance(m, (BasicBlock, Bottleneck)):
                last: Any = m.bn3 if isinstance(m, Bottleneck) else m.bn2
                nn.init.constant_(last.weight, 0)

    def _make_layer(
        self, block: type[BasicBlock | Bottleneck], planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        before, norm, width = self.dilation, self._norm_layer, planes * block.expansion
        if dilate:
            self.dilation, stride = self.dilation * stride, 1
        shortcut = (
            nn.Sequential(conv1x1(self.inplanes, width, stride), norm(width))
            if stride != 1 or self.inplanes != width
            else None
        )
        stage = [block(self.inplanes, planes, stride, shortcut, self.groups, self.base_width, before, norm)]
        self.inplanes = width
        stage += [
            block(
                width, planes, groups=self.groups, base_width=self.base_width, dilation=self.dilation, norm_layer=norm
            )
            for _ in range(1, blocks)
        ]
        return nn.Sequential(*stage)

    def _forward_impl(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        return self._forward_impl(x)


ResNet18_Weights = imagenet("ResNet18", "resnet18-f37072fd")
ResNet34_Weights = imagenet("ResNet34", "resnet34-b627a593")
ResNet50_Weights = imagenet("ResNet50", "resnet50-0676ba61", "resnet50-11ad3fa6")
ResNet101_Weights = imagenet("ResNet101", "resnet101-63fe2227", "resnet101-cd907fc2")
ResNet152_Weights = imagenet("ResNet152", "resnet152-394f9c45", "resnet152-f82ba261")
ResNeXt50_32X4D_Weights = imagenet("ResNeXt50_32X4D", "resnext50_32x4d-7cdf4587", "resnext50_32x4d-1a0047aa")
ResNeXt101_32X8D_Weights = imagenet("ResNeXt101_32X8D", "resnext101_32x8d-8ba56ff5", "resnext101_32x8d-110c445d")
ResNeXt101_64X4D_Weights = imagenet("ResNeXt101_64X4D", "resnext101_64x4d-173b62eb", resize_size=232)
Wide_ResNet50_2_Weights = imagenet("Wide_ResNet50_2", "wide_resnet50_2-95faca4d", "wide_resnet50_2-9ba9bcbe")
Wide_ResNet101_2_Weights = imagenet("Wide_ResNet101_2", "wide_resnet101_2-32ee1156", "wide_resnet101_2-d733dc28")

resnet18 = model(ResNet18_Weights, ResNet, BasicBlock, [2, 2, 2, 2])
resnet34 = model(ResNet34_Weights, ResNet, BasicBlock, [3, 4, 6, 3])
resnet50 = model(ResNet50_Weights, ResNet, Bottleneck, [3, 4, 6, 3])
resnet101 = model(ResNet101_Weights, ResNet, Bottleneck, [3, 4, 23, 3])
resnet152 = model(ResNet152_Weights, ResNet, Bottleneck, [3, 8, 36, 3])
resnext50_32x4d = model(ResNeXt50_32X4D_Weights, ResNet, Bottleneck, [3, 4, 6, 3], groups=32, width_per_group=4)
resnext101_32x8d = model(ResNeXt101_32X8D_Weights, ResNet, Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=8)
resnext101_64x4d = model(ResNeXt101_64X4D_Weights, ResNet, Bottleneck, [3, 4, 23, 3], groups=64, width_per_group=4)
wide_resnet50_2 = model(Wide_ResNet50_2_Weights, ResNet, Bottleneck, [3, 4, 6, 3], width_per_group=128)
wide_resnet101_2 = model(Wide_ResNet101_2_Weights, ResNet, Bottleneck, [3, 4, 23, 3], width_per_group=128)
