"""Convolutions, and the padding that pools share with them."""

from __future__ import annotations

from collections.abc import Sequence

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .shape import cut_or_padded
from .table import Ints, operator

Pairs = list[tuple[int, int]]
AUTO_PAD = "NOTSET"


def pairs_of(pads: Ints | None, count: int) -> Pairs:
    """(before, after) of each dimension from ONNX's list of all befores and all afters."""
    pads = pads or [0] * 2 * count
    return list(zip(pads[:count], pads[count:]))


def padding(
    sizes: Sequence[int], kernel: Sequence[int], strides: Ints, dilations: Ints, pads: Ints | None, auto_pad: str
) -> Pairs:
    """(before, after) of each dimension; SAME_UPPER and SAME_LOWER give ceil(size / stride) outputs."""
    if not auto_pad.startswith("SAME"):
        return pairs_of(None if auto_pad == "VALID" else pads, len(kernel))
    out = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations):
        total = max((-(-size // stride) - 1) * stride + dilation * (k - 1) + 1 - size, 0)
        small = total // 2
        out.append((small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small))
    return out


@operator("Conv")
def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    group: int = 1,
    auto_pad: str = AUTO_PAD,
    kernel_shape: Ints | None = None,
) -> Tensor:
    """A convolution of x [N, C, *sizes] with weight [M, C / group, *kernel]."""
    count = weight.ndim - 2
    strides, dilations = strides or [1] * count, dilations or [1] * count
    pairs = padding(x.shape[2:], weight.shape[2:], strides, dilations, pads, auto_pad)
    function = (F.conv1d, F.conv2d, F.conv3d)[count - 1]
    if all(before == after for before, after in pairs):
        return function(x, weight, bias, strides, [before for before, _ in pairs], dilations, group)
    return function(cut_or_padded(x, [(0, 0), (0, 0), *pairs]), weight, bias, strides, 0, dilations, group)


@operator("ConvTranspose")
def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    group: int = 1,
    auto_pad: str = AUTO_PAD,
    kernel_shape: Ints | None = None,
) -> Tensor:
    """The gradient of a convolution: x [N, C, *sizes] with weight [C, M / group, *kernel]."""
    count = weight.ndim - 2
    strides, dilations, extra = strides or [1] * count, dilations or [1] * count, output_padding or [0] * count
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[count - 1]
    y = function(x, weight, None, strides, 0, 0, group, dilations)
    pairs = pairs_of(pads, count)
    if output_shape or auto_pad.startswith("SAME"):
        wanted = output_shape or [size * stride for size, stride in zip(x.shape[2:], strides)]
        cut = [max(have + e - want, 0) for have, e, want in zip(y.shape[2:], extra, wanted[-count:])]
        pairs = [(c // 2, c - c // 2) if auto_pad != "SAME_LOWER" else (c - c // 2, c // 2) for c in cut]
        extra = [e + max(want - have - e, 0) for have, e, want in zip(y.shape[2:], extra, wanted[-count:])]
    y = cut_or_padded(y, [(0, 0), (0, 0), *((-before, e - after) for (before, after), e in zip(pairs, extra))])
    return y if bias is None else y + bias.reshape(1, -1, *[1] * count)


@operator("CausalConvWithState")
def causal_conv_with_state(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, past: Tensor | None = None, *, activation: str = "none"
) -> tuple[Tensor, Tensor]:
    """(a convolution of each channel with the steps before it, the last steps for the next call)."""
    steps = weight.shape[-1] - 1
    before = x.new_zeros(x.shape[0], x.shape[1], steps) if past is None else past
    longer = torch.cat([before, x], 2)
    y = F.conv1d(longer, weight, bias, groups=x.shape[1])
    return (y if activation == "none" else F.silu(y)), longer.narrow(2, longer.shape[2] - steps, steps)


@operator("DeformConv")
def deform_conv(
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    strides: Ints | None = None,
    pads: Ints | None = None,
    dilations: Ints | None = None,
    group: int = 1,
    offset_group: int = 1,
    kernel_shape: Ints | None = None,
) -> Tensor:
    """A convolution in two dimensions whose window's points are moved by `offset` [N, groups * kh * kw * 2, h, w]."""
    (sh, sw), (dh, dw), (top, left, *_) = strides or [1, 1], dilations or [1, 1], pads or [0, 0, 0, 0]
    n, c, height, width = x.shape
    m, _, kh, kw = weight.shape
    h, w = offset.shape[2:]
    moved = offset.reshape(n, offset_group, kh, kw, 2, h, w)
    rows = torch.arange(h).reshape(-1, 1) * sh - top
    columns = torch.arange(w) * sw - left
    ys = rows + torch.arange(kh).reshape(-1, 1, 1, 1) * dh + moved[:, :, :, :, 0]
    xs = columns + torch.arange(kw).reshape(-1, 1, 1) * dw + moved[:, :, :, :, 1]
    grid = torch.stack([(2 * xs + 1) / width - 1, (2 * ys + 1) / height - 1], -1)
    grid = grid.reshape(n * offset_group, kh * kw * h, w, 2)
    image = x.reshape(n * offset_group, c // offset_group, height, width)
    points = F.grid_sample(image, grid, "bilinear", "zeros", False).reshape(n, offset_group, -1, kh * kw, h, w)
    if mask is not None:
        points = points * mask.reshape(n, offset_group, 1, kh * kw, h, w)
    points = points.reshape(n, group, c // group * kh * kw, h * w)
    y = torch.matmul(weight.reshape(group, m // group, -1), points).reshape(n, m, h, w)
    return y if bias is None else y + bias.reshape(1, -1, 1, 1)


@operator("Col2Im")
def col2im(
    x: Tensor,
    sizes: Ints,
    block: Ints,
    *,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Tensor:
    """The sum of blocks [N, C * prod(block), L] at their places in an image of any number of dimensions."""
    count = len(sizes)
    strides, dilations, pairs = strides or [1] * count, dilations or [1] * count, pairs_of(pads, count)
    total = 1
    for k in block:
        total *= k
    eye = torch.eye(total, dtype=x.dtype).reshape(total, 1, *block)
    c = x.shape[1] // total
    counts = [
        (size + before + after - d * (k - 1) - 1) // s + 1
        for size, (before, after), k, s, d in zip(sizes, pairs, block, strides, dilations)
    ]
    columns = x.reshape(x.shape[0] * c, total, *counts)
    flat = [n for pair in zip(*pairs) for n in pair]
    y = conv_transpose(columns, eye, strides=strides, dilations=dilations, output_shape=None, pads=flat)
    missing = [(0, size - have) for size, have in zip(sizes, y.shape[2:])]
    return cut_or_padded(y, [(0, 0), (0, 0), *missing]).reshape(x.shape[0], c, *sizes)
