"""Modules that rearrange elements (flatten, windows, pixel shuffle, resize), and distances."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import type_error
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.layer_settings import Layer
from rushlight.ops.shape.views import flatten


class Flatten(Layer, shows="start_dim end_dim"):
    """out[n, (i, j)] = x[n, i, j]: the dimensions from `start_dim` to `end_dim` become one.

    >>> rushlight.nn.Flatten()(rushlight.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__(start_dim=start_dim, end_dim=end_dim)

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_dim, self.end_dim)


class Unflatten(Layer, shows="dim unflattened_size"):
    """out[n, i, j] = x[n, (i, j)]: the dimension `dim` becomes several, with the sizes `unflattened_size`. TypeError
    for an invalid size.

    >>> rushlight.nn.Unflatten(1, (3, 4))(rushlight.ones(2, 12)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Any):
        if not isinstance(dim, int):
            raise type_error(f"unflattened_size should be tuple of ints, but found type of dim {type(dim).__name__}")
        if not isinstance(unflattened_size, (tuple, list)):
            raise type_error(
                f"unflattened_size should be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for i, n in enumerate(unflattened_size):
            if not isinstance(n, int):
                raise type_error(
                    f"unflattened_size must be tuple of ints, but found element of type {type(n).__name__} at pos {i}"
                )
        super().__init__(dim=dim, unflattened_size=unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, tuple(self.unflattened_size))


class Fold(Layer, function=F.fold):
    """out[n, c, h, w] = sum of the elements that `Unfold` takes from [n, c, h, w]: (N, C kh kw, L) -> (N, C,
    *output_size).

    >>> rushlight.nn.Fold(output_size=3, kernel_size=2)(rushlight.ones(1, 4, 4))  # how many windows meet at each place
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """


class Unfold(Layer, function=F.unfold):
    """out[n, (c, i, j), (p, q)] = x[n, c, p s - pad + i d, q s - pad + j d]: (N, C, H, W) -> (N, C kh kw, L).

    >>> rushlight.nn.Unfold(kernel_size=2)(rushlight.arange(9.).reshape(1, 1, 3, 3))  # a column for each of 4 windows
    tensor([[[0., 1., 3., 4.],
             [1., 2., 4., 5.],
             [3., 4., 6., 7.],
             [4., 5., 7., 8.]]])
    """


class PixelShuffle(Layer, function=F.pixel_shuffle):
    """out[c, h r + i, w r + j] = x[c r r + i r + j, h, w]: (*, C r r, H, W) -> (*, C, H r, W r), channels become
    pixels.

    >>> rushlight.nn.PixelShuffle(2)(rushlight.arange(4.).reshape(4, 1, 1))
    tensor([[[0., 1.],
             [2., 3.]]])
    """


class PixelUnshuffle(Layer, function=F.pixel_unshuffle):
    """out[c r r + i r + j, h, w] = x[c, h r + i, w r + j]: (*, C, H r, W r) -> (*, C r r, H, W), pixels become
    channels.

    >>> rushlight.nn.PixelUnshuffle(2)(rushlight.ones(1, 3, 8, 8)).shape
    torch.Size([1, 12, 4, 4])
    """


class ChannelShuffle(Layer, function=F.channel_shuffle):
    """out[:, j groups + i] = x[:, i (C / groups) + j]: channels of (N, C, *), one from each of `groups` groups in turn.

    >>> rushlight.nn.ChannelShuffle(2)(rushlight.arange(6).reshape(1, 6, 1)).flatten()
    tensor([0, 3, 1, 4, 2, 5])
    """


class Upsample(Layer, function=F.interpolate, settings="size scale_factor mode align_corners recompute_scale_factor"):
    """out[i] = input at (i + 0.5) / scale - 0.5, in each spatial dimension; settings as `nn.functional.interpolate`.

    >>> rushlight.nn.Upsample(scale_factor=2)(rushlight.tensor([[[1., 2.]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):  # fmt: skip
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(float(f) for f in scale_factor)
        elif scale_factor is not None:
            scale_factor = float(scale_factor)
        super().__init__(
            name=type(self).__name__, size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners,
            recompute_scale_factor=recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        how = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{how}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """out[i, j] = input[floor(i / scale), floor(j / scale)], of (N, C, H, W).

    >>> rushlight.nn.UpsamplingNearest2d(scale_factor=2)(rushlight.tensor([[[[1., 2.]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """out[i] = input at i (in - 1) / (out - 1), bilinear between pixels: the corner pixels stay corner pixels.

    >>> rushlight.nn.UpsamplingBilinear2d(size=(1, 3))(rushlight.tensor([[[[1., 3.]]]]))
    tensor([[[[1., 2., 3.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, "bilinear", True)


class CosineSimilarity(Layer, function=F.cosine_similarity, shows=""):
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`.

    >>> rushlight.nn.CosineSimilarity(dim=0)(rushlight.tensor([1., 0.]), rushlight.tensor([1., 1.]))
    tensor(0.7071)
    """


class PairwiseDistance(Layer):
    """|x1 - x2 + eps|_p along the last dimension.

    >>> rushlight.nn.PairwiseDistance()(rushlight.tensor([[0., 0.]]), rushlight.tensor([[3., 4.]]))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__(norm=p, eps=eps, keepdim=keepdim)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
