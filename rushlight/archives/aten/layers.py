"""Convolutions, pooling, resizing, embeddings, dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as torch
from rushlight.archives.budget import new_tensor
from rushlight.core.tensor import Tensor

from .table import operator

F = torch.nn.functional
CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)
TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
INTERPOLATIONS, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")  # ATen's numbers


@operator("_convolution", "convolution")
def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *flags: bool,
) -> Tensor:  # fmt: skip
    k = weight.ndim - 3
    if transposed:
        return TRANSPOSED[k](x, weight, bias, stride, padding, output_padding, groups, dilation)
    return CONVOLUTIONS[k](x, weight, bias, stride, padding, dilation, groups)


@operator("_convolution_mode")
def convolution_mode(
    x: Tensor, weight: Tensor, bias: Any, stride: Any, padding: str, dilation: Any, groups: int
) -> Tensor:
    return CONVOLUTIONS[weight.ndim - 3](x, weight, bias, stride, padding, dilation, groups)


for _k in (1, 2, 3):
    operator(f"conv{_k}d")(CONVOLUTIONS[_k - 1])
    operator(f"conv_transpose{_k}d")(TRANSPOSED[_k - 1])


class MaxPool:
    """Maxima of windows; with `indices`, their places too."""

    def __init__(self, dims: int, indices: bool):
        self.function, self.indices = getattr(F, f"max_pool{dims}d"), indices

    def __call__(
        self, x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        return self.function(x, kernel, stride or None, padding, dilation, ceil_mode, self.indices)


class AvgPool:
    """Means of windows."""

    def __init__(self, dims: int):
        self.dims, self.function = dims, getattr(F, f"avg_pool{dims}d")

    def __call__(
        self, x: Tensor, kernel: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Tensor:  # fmt: skip
        more = () if self.dims == 1 else (divisor_override,)
        return self.function(x, kernel, stride or None, padding, ceil_mode, count_include_pad, *more)


class AdaptivePool:
    """Means or maxima of as many windows as are given; maxima come with their places."""

    def __init__(self, dims: int, kind: str):
        self.function, self.more = getattr(F, f"adaptive_{kind}_pool{dims}d"), (True,) * (kind == "max")

    def __call__(self, x: Tensor, size: Any) -> Any:
        new_tensor((*x.shape[:2], *(size if isinstance(size, (list, tuple)) else [size])))
        return self.function(x, size, *self.more)


for _k in (1, 2, 3):
    operator(f"max_pool{_k}d")(MaxPool(_k, False))
    operator(f"max_pool{_k}d_with_indices")(MaxPool(_k, True))
    operator(f"avg_pool{_k}d")(AvgPool(_k))
    operator(f"adaptive_avg_pool{_k}d", f"_adaptive_avg_pool{_k}d")(AdaptivePool(_k, "avg"))
    operator(f"adaptive_max_pool{_k}d")(AdaptivePool(_k, "max"))


@operator("pad")
def pad(x: Tensor, widths: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    new_tensor([*x.shape, 1 + sum(map(abs, widths))] if widths else x.shape)
    return F.pad(x, list(widths), mode, value)


operator("constant_pad_nd")(lambda x, widths, value=0: pad(x, widths, "constant", value))
for _k in (1, 2, 3):
    operator(f"reflection_pad{_k}d")(lambda x, widths: pad(x, widths, "reflect"))
    operator(f"replication_pad{_k}d")(lambda x, widths: pad(x, widths, "replicate"))


class Resize:
    """Resizing in a mode. ATen's arguments: a size or scales, `align_corners` for modes that interpolate between
    elements, then the scales."""

    def __init__(self, mode: str):
        self.mode, self.aligns = mode, mode not in ("nearest", "nearest-exact")

    def __call__(self, x: Tensor, size: Any, *rest: Any) -> Tensor:
        align, more = (rest[0], rest[1:]) if self.aligns else (None, rest)
        each = more[0] if more and isinstance(more[0], (list, tuple)) else more
        scales = [s for s in each if s is not None]
        wanted = [int(n * s) for n, s in zip(x.shape[2:], scales)] if size is None else size
        new_tensor((*x.shape[:2], *wanted))
        by = scales if len(scales) == x.ndim - 2 else None
        if size is None:
            return F.interpolate(x, None, by, self.mode, align)
        return F.interpolate(x, list(size), None, self.mode, align)


RESIZINGS = {
    "linear1d": "linear", "bilinear2d": "bilinear", "trilinear3d": "trilinear", "bicubic2d": "bicubic",
    "nearest1d": "nearest", "nearest2d": "nearest", "nearest3d": "nearest",
}  # fmt: skip
for _suffix, _mode in RESIZINGS.items():
    operator(f"upsample_{_suffix}")(Resize(_mode))
for _k in (1, 2, 3):
    operator(f"_upsample_nearest_exact{_k}d")(Resize("nearest-exact"))


@operator("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool) -> Tensor:
    return F.grid_sample(x, grid, INTERPOLATIONS[interpolation], PADDINGS[padding], align_corners)


operator("affine_grid_generator")(lambda theta, size, align_corners: F.affine_grid(theta, size, align_corners))
operator("im2col")(lambda x, kernel, dilation, padding, stride: F.unfold(x, kernel, dilation, padding, stride))
operator("col2im")(
    lambda x, size, kernel, dilation, padding, stride: F.fold(x, size, kernel, dilation, padding, stride)
)
operator("bilinear")(lambda x, y, weight, bias=None: F.bilinear(x, y, weight, bias))


@operator("embedding")
def embedding(weight: Tensor, ids: Tensor, padding_idx: int = -1, scale: bool = False, sparse: bool = False) -> Tensor:
    """Rows of a table. The padding index, -1 for none, has no gradient."""
    return F.embedding(ids, weight, padding_idx if padding_idx >= 0 else None)


@operator("embedding_bag")
def embedding_bag(
    weight: Tensor, ids: Tensor, offsets: Tensor, scale: bool = False, mode: int = 0, sparse: bool = False,
    weights: Tensor | None = None, include_last: bool = False, padding_idx: int | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    name = ("sum", "mean", "max")[mode]
    out = F.embedding_bag(
        ids, weight, offsets, mode=name, per_sample_weights=weights, include_last_offset=include_last,
        padding_idx=padding_idx,
    )  # fmt: skip
    empty = torch.zeros(0, dtype=torch.int64)
    return out, empty, empty, empty


for _name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
    _kind = {"feature_dropout": "dropout2d"}.get(_name, _name)
    operator(_name)(lambda x, p, train, _kind=_kind: getattr(F, _kind)(x, p, train) if train and p else x)
operator("native_dropout")(lambda x, p, train: (F.dropout(x, p, bool(train)), torch.ones_like(x, dtype=torch.bool)))


@operator("glu")
def glu(x: Tensor, dim: int = -1) -> Tensor:
    return F.glu(x, dim)
