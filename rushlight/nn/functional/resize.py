"""Resizing images, one dimension after the other, by copies or weighted means of elements; pixels to channels and
back."""

from __future__ import annotations

import math
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from rushlight.base.dtypes import float32
from rushlight.base.errors import not_implemented_error, overflowed, runtime_error, type_error, value_error, warn
from rushlight.core.arguments import check_dtypes
from rushlight.core.tensor import Tensor
from rushlight.kernels.layout import suggests_last
from rushlight.kernels.resize import FILTERS, nearest
from rushlight.nn.functional.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, in_format_of
from rushlight.ops.composites import composite
from rushlight.ops.nn.pool import avg_pool_grad
from rushlight.ops.nn.resize import blend
from rushlight.ops.shape.views import clone, permute, reshape, to, transpose
from rushlight.ops.tensor.node_names import called

MODES = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3, "lanczos": 2}
MAX_ELEMENTS = 2**58  # of one image: no address space has more


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """out[i] = input at (i + 0.5) / scale - 0.5, in each spatial dimension of (N, C, *size), with interpolation by
    `mode`.

    `size`: the size of the output; or `scale_factor`: output size / input size; one number, or one for each dimension.
    `mode`: 'nearest', 'nearest-exact', 'area' for 1 to 3 dimensions, 'linear', 'bilinear', 'bicubic', 'trilinear';
    'lanczos' with `antialias`. `align_corners`: keep the centres of the corner elements in place, not the corners:
    out[i] = input at i (in - 1) / (out - 1). `antialias`: average when shrinking. 'nearest' takes element floor(i /
    scale).

    >>> from rushlight.nn import functional as F
    >>> F.interpolate(rushlight.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    >>> F.interpolate(rushlight.tensor([[[1., 2.]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.2500, 1.7500, 2.0000]]])
    """
    n = input._array.ndim - 2
    check_mode(input, n, mode, align_corners, antialias)
    out, factors = target_size(input, n, size, scale_factor, recompute_scale_factor)
    # half precision is computed in float32 and rounded once
    if mode in MODES and input._array.dtype.itemsize == 2 and input.dtype.is_floating_point:
        wide = interpolate(
            to(input, float32), size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
        )
        return to(wide, input.dtype)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1](input, out)
    if factors is not None and not antialias:
        factors = [factor_used(*sizes, mode) for sizes in zip(input._array.shape[2:], out, factors)]
    made = input
    if mode == "nearest" and (times := repeats(input, out, factors)):
        # each element fills a window
        made = avg_pool_grad(input, out, times, times, (0,) * n, False, True, 1)
        return called(made, f"UpsampleNearest{n}DBackward0")
    for i in reversed(range(n)):  # the last dimension first, so that the enlarged arrays come late
        scale = None if factors is None else 1 / factors[i]
        made = resized(made, i + 2, out[i], scale, mode, bool(align_corners), antialias)
    return called(clone(input) if made is input else made, node_name(mode, n, bool(antialias)))


@lru_cache(maxsize=64)
def node_name(mode: str, n: int, antialias: bool) -> str:
    """`nearest-exact` in two dimensions: UpsampleNearestExact2DBackward0."""
    kind = "".join(part.capitalize() for part in mode.split("-"))
    return f"Upsample{kind}{n}D{'Aa' * antialias}Backward0"


def factor_used(size: int, out: int, factor: float, mode: str) -> float:
    """The factor for the computation of positions. torch computes it from the sizes, not from the given factor (such as
    1.3 for 2 elements), if the output has the input's number of elements or, in mode 'nearest', twice this number."""
    whole = {"nearest": (size, 2 * size), "nearest-exact": (), "bicubic": ()}.get(mode, (size,))
    return out / size if out in whole else factor


def repeats(x: Tensor, out: tuple[int, ...], factors: list[float] | None) -> tuple[int, ...] | None:
    """The number of repetitions of an element in each dimension, if these are whole numbers; else None."""
    size = x._array.shape[2:]
    if len(size) == 3 and isinstance(x._array, np.ndarray) and suggests_last(x._array):
        return None  # avg_pool_grad of volumes returns C order, not channels_last
    times = tuple([o // s for s, o in zip(size, out)])
    if x._array.dtype.kind not in "fV" or max(times) < 2 or any([s * r != o for s, r, o in zip(size, times, out)]):
        return None
    scales = [s / o for s, o in zip(size, out)] if factors is None else [1 / f for f in factors]
    return times if all(map(repeated, size, out, scales)) else None


@lru_cache(maxsize=64)
def repeated(size: int, out: int, scale: float) -> bool:
    """Whether 'nearest' repeats all elements the same number of times. Computing this takes half of the time of small
    images."""
    return bool((nearest(size, out, scale)[0] == np.arange(out) // (out // size)).all())


def check_mode(input: Tensor, n: int, mode: str, align_corners: bool | None, antialias: bool) -> None:
    """ValueError or NotImplementedError unless the mode exists for n spatial dimensions."""
    if mode in ("nearest", "nearest-exact"):
        check_dtypes(f"interpolate, mode '{mode}',", "uf", input)
    if mode in ("nearest", "nearest-exact", "area"):
        if align_corners is not None:
            raise value_error(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    elif mode in MODES and not input.dtype.is_floating_point and not (input._array.dtype == np.uint8 and n == 2):
        raise not_implemented_error(
            f'"compute_indices_weights_{mode.removeprefix("bi").removeprefix("tri")}" not '
            f"implemented for '{input.dtype.scalar_type}'",
            "convert with .float()",
        )
    elif mode not in MODES:
        raise not_implemented_error(
            f"no interpolation mode {mode!r}",
            "nearest | nearest-exact | area | linear | bilinear | bicubic | trilinear | lanczos",
        )
    if not 1 <= n <= 3 or MODES.get(mode, n) != n:
        raise not_implemented_error(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {n + 2}D) for the modes: nearest | "
            f"linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})",
            shape=tuple(input.shape),
        )
    if antialias and mode not in FILTERS:
        raise value_error(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and (align_corners or not antialias):
        raise value_error(
            "Lanczos mode does not support align_corners=True"
            if align_corners
            else "Lanczos mode requires antialias=True",
            "interpolate(.., mode='lanczos', antialias=True)",
        )


def target_size(
    input: Tensor, n: int, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], list[float] | None]:
    """The new spatial size, and the factors to compute positions with; None: use the sizes."""
    if (size is None) == (scale_factor is None):
        raise value_error(
            "either size or scale_factor should be defined"
            if size is None
            else "only one of size or scale_factor should be defined"
        )
    given = size if scale_factor is None else scale_factor
    values = list(given) if isinstance(given, (tuple, list)) else [given] * n
    if len(values) != n:
        raise value_error(
            "Input and output must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(input._array.shape[2:])} and "
            f"{'output size' if scale_factor is None else 'scale_factor'} of {given}."
        )
    if scale_factor is None:
        if recompute:
            raise value_error("recompute_scale_factor is not meaningful with an explicit size.")
        out, factors = whole_numbers(values), None
    else:
        out = tuple([math.floor(float(s) * f) for s, f in zip(input._array.shape[2:], values)])
        factors = None if recompute else [float(f) for f in values]
    if input._array.shape[1] == 0:
        raise runtime_error(
            f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(input.shape)}",
            "the input needs a channel dimension",
        )
    if min(out) < 1 or 0 in input._array.shape[2:]:
        raise runtime_error(
            f"Input and output sizes should be greater than 0, but got input {list(input._array.shape[2:])} and "
            f"output {list(out)}"
        )
    if math.prod(out) >= MAX_ELEMENTS:
        raise overflowed((*input._array.shape[:2], *out))
    return out, factors


def whole_numbers(values: list) -> tuple[int, ...]:
    """The numbers of a size. TypeError for a fraction, which may be a mistaken `scale_factor`."""
    try:
        return tuple([index(v) for v in values])
    except TypeError:
        raise type_error(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got "
            f"size with types {[type(v) for v in values]}",
            "round the sizes, or pass scale_factor",
        ) from None


def resized(x: Tensor, dim: int, out: int, scale: float | None, mode: str, align: bool, antialias: bool) -> Tensor:
    """Resize one dimension; `scale` = input elements per output element."""
    size = x._array.shape[dim]
    if scale is None or align:
        scale = (size - 1) / (out - 1) if align and out > 1 else 0.0 if align else size / out
    if antialias:
        return blend(x, dim, ("antialias", size, out, scale, mode))
    if mode.startswith("nearest"):
        half = 0.5 if mode == "nearest-exact" else 0.0
        return x if size == out and scale == 1 else blend(x, dim, ("nearest", size, out, scale, half))
    return blend(x, dim, ("bicubic" if mode == "bicubic" else "linear", size, out, scale, align))


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """out = interpolate(input, size, scale_factor, mode, align_corners), by its old name, with a warning.

    >>> rushlight.nn.functional.upsample(rushlight.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """out[i] = input[i // scale_factor] in each spatial dimension: `interpolate` in mode 'nearest', by its old name.

    >>> rushlight.nn.functional.upsample_nearest(rushlight.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """out = interpolate(input, size, scale_factor, "bilinear", align_corners=True), by its old name.

    >>> rushlight.nn.functional.upsample_bilinear(rushlight.tensor([[[[1., 3.]]]]), size=(1, 3))
    tensor([[[[1., 2., 3.]]]])
    """
    warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, "bilinear", True)


# -- pixels to channels and back -------------------------------------------------------------------


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """out[c, h r + i, w r + j] = x[c r r + i r + j, h, w]: (*, C r r, H, W) -> (*, C, H r, W r), channels become
    pixels.

    RuntimeError if the channels are not a multiple of r^2. W. Shi et al., *Real-time single image and video
    super-resolution using an efficient sub-pixel convolutional neural network*, 2016.

    >>> rushlight.nn.functional.pixel_shuffle(rushlight.arange(4.).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    r = upscale_factor
    *lead, c, h, w = shape_of(input, "pixel_shuffle")
    if r <= 0:
        raise runtime_error(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if c % (r * r):
        raise runtime_error(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    x = reshape(input, (*lead, c // (r * r), r, r, h, w))
    n = len(lead)
    x = permute(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    made = reshape(clone(x) if r == 1 else x, (*lead, c // (r * r), h * r, w * r))
    return called(in_format_of(input, made), "PixelShuffleBackward0")


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """out[c r r + i r + j, h, w] = x[c, h r + i, w r + j]: (*, C, H r, W r) -> (*, C r r, H, W), pixels become
    channels.

    RuntimeError if H or W is not a multiple of r.

    >>> rushlight.nn.functional.pixel_unshuffle(rushlight.tensor([[[0., 1.], [2., 3.]]]), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    r = downscale_factor
    *lead, c, h, w = shape_of(input, "pixel_unshuffle")
    if r <= 0:
        raise runtime_error(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    if h % r or w % r:
        raise runtime_error(
            "pixel_unshuffle expects height and width to be divisible by downscale_factor, but "
            f"input.size(-2)={h}, input.size(-1)={w} and downscale_factor={r}"
        )
    x = reshape(input, (*lead, c, h // r, r, w // r, r))
    n = len(lead)
    x = permute(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return in_format_of(input, reshape(clone(x) if r == 1 else x, (*lead, c * r * r, h // r, w // r)))


def shape_of(input: Tensor, name: str) -> tuple[int, ...]:
    if input._array.ndim < 3:
        raise runtime_error(
            f"{name} expects input to have at least 3 dimensions, but got input with {input._array.ndim} dimension(s)"
        )
    return input._array.shape


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """out[:, j groups + i] = x[:, i (C / groups) + j]: channels of (N, C, *) dealt out from `groups` heaps in turn.

    RuntimeError if C is not a multiple of `groups`. X. Zhang et al., *ShuffleNet*, 2018.

    >>> rushlight.nn.functional.channel_shuffle(rushlight.arange(6).reshape(1, 6, 1), groups=2).flatten()
    tensor([0, 3, 1, 4, 2, 5])
    """
    if input._array.ndim < 3:
        raise runtime_error(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}"
        )
    if groups <= 0:
        raise runtime_error(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    n, c, *rest = input._array.shape
    if c % groups:
        raise runtime_error(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    x = transpose(reshape(input, (n, groups, c // groups, *rest)), 1, 2)
    x = clone(x) if groups in (1, c) else x  # a copy even if no channel moves
    return in_format_of(input, reshape(x, (n, c, *rest)))


@composite(tensor=False)
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """out[:, j groups + i] = x[:, i (C / groups) + j]: `channel_shuffle`, by another of torch's names.

    >>> from rushlight.nn import functional as F
    >>> F.native_channel_shuffle(rushlight.arange(6.).reshape(1, 6, 1), groups=2).flatten()
    tensor([0., 3., 1., 4., 2., 5.])
    """
    return channel_shuffle(input, groups)
