"""Modules that move elements about: flattening, windows, pixels to channels, resizing; and distances."""
from __future__ import annotations

from typing import Any

from rushlight.nn import functional as F
from rushlight.nn.settings import Settled
from rushlight.ops.shape import flatten
from rushlight.tensor import Tensor


class Flatten(Settled):
    """The dimensions from `start_dim` to `end_dim` as one.

    >>> rushlight.nn.Flatten()(rushlight.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__(start_dim=start_dim, end_dim=end_dim)

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_dim, self.end_dim)


class Unflatten(Settled):
    """One dimension as several, of `unflattened_size`. TypeError for a size that is none.

    >>> rushlight.nn.Unflatten(1, (3, 4))(rushlight.ones(2, 12)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Any):
        if not isinstance(dim, int):
            raise TypeError(f"unflattened_size should be tuple of ints, but found type of dim {type(dim).__name__}")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(f"unflattened_size should be a tuple of ints, but found type {type(unflattened_size).__name__}")
        for i, n in enumerate(unflattened_size):
            if not isinstance(n, int):
                raise TypeError(f"unflattened_size must be tuple of ints, but found element of type {type(n).__name__} "
                                f"at pos {i}")
        super().__init__(dim=dim, unflattened_size=unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, tuple(self.unflattened_size))


class Fold(Settled):
    """Columns added up where `Unfold` takes them from: (N, C kh kw, L) -> (N, C, *output_size)."""

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding,
                         stride=stride)

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(Settled):
    """Windows as columns: (N, C, H, W) -> (N, C kh kw, L)."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class PixelShuffle(Settled):
    """(*, C r r, H, W) -> (*, C, H r, W r): channels become pixels."""

    def __init__(self, upscale_factor: int):
        super().__init__(upscale_factor=upscale_factor)

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Settled):
    """(*, C, H r, W r) -> (*, C r r, H, W): pixels become channels."""

    def __init__(self, downscale_factor: int):
        super().__init__(downscale_factor=downscale_factor)

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Settled):
    """(N, C, *): channels dealt out from `groups` heaps in turn."""

    def __init__(self, groups: int):
        super().__init__(groups=groups)

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)


class Upsample(Settled):
    """The spatial dimensions resized; settings as `nn.functional.interpolate`."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: bool | None = None, recompute_scale_factor: bool | None = None):
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(float(f) for f in scale_factor)
        elif scale_factor is not None:
            scale_factor = float(scale_factor)
        super().__init__(name=type(self).__name__, size=size, scale_factor=scale_factor, mode=mode,
                         align_corners=align_corners, recompute_scale_factor=recompute_scale_factor)

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             self.recompute_scale_factor)

    def extra_repr(self) -> str:
        how = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{how}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """The nearest pixel."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear, with aligned corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, "bilinear", True)


class CosineSimilarity(Settled):
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along `dim`."""

    _shown = ()

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__(dim=dim, eps=eps)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Settled):
    """|x1 - x2 + eps|_p along the last dimension."""

    _shown = ()

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__(norm=p, eps=eps, keepdim=keepdim)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
