"""Deformable convolution: samples at pixels plus learned offsets (Dai et al. 2017; with masks Zhu et al. 2018)."""

from __future__ import annotations

import math
from typing import Any

from rushlight import nn
from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import empty
from rushlight.creation.ranges import arange
from rushlight.nn.functional.size_arguments import each


def deform_conv2d(
    input: Tensor, offset: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(N, C, H, W) to (N, out, H', W'): a convolution that samples the image at offsets from the kernel's pixels.

    `weight`: (out, C / groups, kh, kw). `offset`: (N, 2 G kh kw, H', W'), the offset (down, right) of each pixel of the
    kernel, for G groups of channels. Values between pixels are interpolated, values outside of the image are 0. `mask`:
    (N, G kh kw, H', W'), factors. RuntimeError if the shapes do not fit.

    >>> x, weight = rushlight.ones(1, 2, 5, 5), rushlight.ones(3, 2, 3, 3)
    >>> rushlight.vision.ops.deform_conv2d(x, rushlight.zeros(1, 18, 3, 3), weight)[0, 0, 0]
    tensor([18., 18., 18.])
    """
    stride, padding, dilation = each(stride, 2), each(padding, 2), each(dilation, 2)
    n, channels, *image = input.shape
    out, per, *kernel = weight.shape
    taps, size = math.prod(kernel), list(offset.shape[2:])
    groups = offset.shape[1] // (2 * taps)
    check(
        input,
        offset,
        weight,
        mask,
        [(image[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in (0, 1)],
    )
    moved = offset.reshape(n, groups, *kernel, 2, *size)
    starts = [
        (arange(k) * dilation[d])[:, None] + arange(size[d]) * stride[d] - padding[d] for d, k in enumerate(kernel)
    ]
    down = moved[:, :, :, :, 0] + starts[0][:, None, :, None]  # (N, G, kh, kw, H', W')
    right = moved[:, :, :, :, 1] + starts[1][:, None, :]
    points = interpolated(
        input.reshape(n * groups, channels // groups, *image),
        down.reshape(n * groups, -1),
        right.reshape(n * groups, -1),
    )
    if mask is not None:
        points = points * mask.reshape(n * groups, 1, -1)
    columns = points.reshape(n, channels // per, per * taps, math.prod(size))
    found = (weight.reshape(channels // per, -1, per * taps) @ columns).reshape(n, out, *size)
    return found if bias is None else found + bias[:, None, None]


def check(input: Tensor, offset: Tensor, weight: Tensor, mask: Tensor | None, size: list[int]) -> None:
    """RuntimeError unless the shapes fit together."""
    (n, channels, *_), (out, per, kh, kw) = input.shape, weight.shape
    groups = offset.shape[1] // (2 * kh * kw)
    shapes = {"input": tuple(input.shape), "weight": tuple(weight.shape), "offset": tuple(offset.shape)}
    if groups == 0:
        raise runtime_error(
            "the shape of the offset tensor at dimension 1 is not valid. It should be a multiple of 2 * "
            f"weight.size[2] * weight.size[3].\nGot offset.shape[1]={offset.shape[1]}, while 2 * weight.size[2] * "
            f"weight.size[3]={2 * kh * kw}",
            "two numbers for each place in the kernel",
            **shapes,
        )
    if channels % per or channels % groups or out % (channels // per):
        raise runtime_error(
            "deform_conv2d: the groups do not divide the channels",
            "weight is (out, channels / groups, kh, kw)",
            **shapes,
        )
    wanted = (n, 2 * groups * kh * kw, *size)
    if tuple(offset.shape) != wanted or mask is not None and tuple(mask.shape) != (n, groups * kh * kw, *size):
        raise runtime_error(
            f"deform_conv2d: the offset must have the shape {wanted}, and a mask half of its channels",
            "offsets and masks have the size of the output",
            **shapes,
        )


def interpolated(planes: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Bilinear interpolation of (B, C, H, W) at points (B, P): (B, C, P); zeros outside."""
    b, channels, h, w = planes.shape
    pixels, top, left = planes.flatten(2), down.detach().floor(), right.detach().floor()
    found: Any = 0
    for y, x in ((0, 0), (0, 1), (1, 0), (1, 1)):
        row, column = top + y, left + x
        inside = (row >= 0) & (row < h) & (column >= 0) & (column < w)
        share = (down - top if y else top + 1 - down) * (right - left if x else left + 1 - right) * inside
        at = (row.clamp(0, h - 1) * w + column.clamp(0, w - 1)).long()
        found = found + pixels.gather(2, at[:, None].expand(b, channels, at.shape[1])) * share[:, None]
    return found


class DeformConv2d(nn.Module):
    """`deform_conv2d` with a weight and a bias: `module(input, offset, mask)`.

    J. Dai et al., *Deformable convolutional networks*, 2017; with a mask X. Zhu et al., *Deformable ConvNets v2*, 2019.

    >>> layer = rushlight.vision.ops.DeformConv2d(1, 2, kernel_size=3)
    >>> x, offset = rushlight.ones(1, 1, 5, 5), rushlight.zeros(1, 2 * 3 * 3, 3, 3)
    >>> rushlight.allclose(layer(x, offset), rushlight.nn.functional.conv2d(x, layer.weight, layer.bias))
    True
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True,
    ):  # fmt: skip
        super().__init__()
        for name, count in {"in_channels": in_channels, "out_channels": out_channels}.items():
            if count % groups:
                raise value_error(f"{name} must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = each(kernel_size, 2), each(stride, 2)
        self.padding, self.dilation = each(padding, 2), each(dilation, 2)
        self.weight = nn.Parameter(empty(out_channels, in_channels // groups, *self.kernel_size))
        self.register_parameter("bias", nn.Parameter(empty(out_channels)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight, then the bias, as nn.Conv2d does."""
        nn.Conv2d.reset_parameters(self)  # type: ignore[arg-type]

    def forward(self, input: Tensor, offset: Tensor, mask: Tensor | None = None) -> Tensor:
        return deform_conv2d(input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        usual = {"padding": (0, 0), "dilation": (1, 1), "groups": 1}
        parts += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([*parts, *(["bias=False"] if self.bias is None else [])])
