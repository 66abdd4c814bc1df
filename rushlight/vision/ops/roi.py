"""Regions of interest: parts of images, given by boxes, resampled to one size (He et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from rushlight import nn
from rushlight.base.errors import assertion_error
from rushlight.core.tensor import Tensor, from_array, numbers
from rushlight.ops.shape.view_functions import cat


def roi_align(
    input: Tensor, boxes: Tensor | Sequence[Tensor], output_size: int | tuple[int, int], spatial_scale: float = 1.0,
    sampling_ratio: int = -1, aligned: bool = False,
) -> Tensor:  # fmt: skip
    """(N, C, H, W) and K boxes to (K, C, *output_size): in each cell the mean of points between pixels.

    `boxes`: (K, 5), the image's number first, or a list with (L, 4) for each image. `sampling_ratio`: number of sample
    points per side of a cell; if not positive, one per pixel. `aligned`: coordinates refer to the centres of pixels.
    Boxes have no gradient.

    >>> x = rushlight.arange(16.).reshape(1, 1, 4, 4)
    >>> rushlight.vision.ops.roi_align(x, rushlight.tensor([[0., 0., 0., 2., 2.]]), output_size=1, aligned=True)
    tensor([[[[2.5000]]]])
    """
    height, width = (output_size, output_size) if isinstance(output_size, int) else output_size
    image, corners = placed(boxes)
    corners = corners.astype(input._array.dtype) * input._array.dtype.type(spatial_scale) - (0.5 if aligned else 0.0)
    size = corners[:, 2:] - corners[:, :2] if aligned else np.maximum(corners[:, 2:] - corners[:, :2], 1)
    _, channels, h, w = input.shape
    # (K, height, H)
    down = from_array(shares(corners[:, 1], size[:, 1], height, h, sampling_ratio))
    # (K, width, W)
    across = from_array(shares(corners[:, 0], size[:, 0], width, w, sampling_ratio))
    order, found = np.argsort(image, kind="stable"), []
    for i in np.unique(image):
        of = from_array(np.flatnonzero(image == i))
        rows = down[of].flatten(0, 1) @ input[int(i)].transpose(0, 1).flatten(1)  # (k height, C W)
        # (k, C, height, W)
        rows = rows.unflatten(1, (channels, w)).unflatten(0, (-1, height)).transpose(1, 2)
        found.append(rows @ across[of].mT[:, None])
    return cat(found, 0)[from_array(np.argsort(order))] if found else input.new_zeros((0, channels, height, width))


def placed(boxes: Tensor | Sequence[Tensor]) -> tuple[ndarray, ndarray]:
    """The image of each box, and its corners (K, 4)."""
    if not isinstance(boxes, Tensor):
        if any(b.ndim != 2 or b.shape[1] != 4 for b in boxes):
            raise assertion_error("The shape of the tensor in the boxes list is not correct as List[Tensor[L, 4]]")
        return np.repeat(np.arange(len(boxes)), [len(b) for b in boxes]), np.concatenate([numbers(b) for b in boxes])
    if boxes.ndim != 2 or boxes.shape[1] != 5:
        raise assertion_error("The boxes tensor shape is not correct as Tensor[K, 5]")
    array = numbers(boxes)
    return array[:, 0].astype(np.int64), array[:, 1:]


def shares(start: ndarray, size: ndarray, cells: int, n: int, ratio: int) -> ndarray:
    """(K, cells, n): the weight of each of n pixels in each cell, in one dimension. `start`, `size`: the K boxes."""
    step = size / start.dtype.type(cells)
    points = np.full(len(start), ratio) if ratio > 0 else np.ceil(step).astype(int)  # per cell
    k, cell, point = np.ogrid[: len(start), :cells, : max(points.max(initial=0), 1)]
    each = (step / np.maximum(points, 1).astype(start.dtype))[:, None, None]
    at = start[:, None, None] + cell.astype(start.dtype) * step[:, None, None] + (point + start.dtype.type(0.5)) * each
    used = (point < points[:, None, None]) & (at >= -1) & (at <= n)
    low = np.clip(at, 0, n - 1).astype(np.int64)
    part = np.where(low < n - 1, np.maximum(at, 0) - low, 0)
    share = used / np.maximum(points, 1).astype(start.dtype)[:, None, None]
    found = np.zeros((len(start), cells, n), start.dtype)
    np.add.at(found, (k, cell, low), (1 - part) * share)
    np.add.at(found, (k, cell, np.minimum(low + 1, n - 1)), part * share)
    return found


class RoIAlign(nn.Module):
    """out = roi_align(input, boxes, ...) with its settings.

    >>> align = rushlight.vision.ops.RoIAlign(2, spatial_scale=1.0, sampling_ratio=1)
    >>> align(rushlight.ones(1, 3, 8, 8), rushlight.tensor([[0., 1., 1., 5., 5.]])).shape
    torch.Size([1, 3, 2, 2])
    """

    def __init__(
        self, output_size: int | tuple[int, int], spatial_scale: float, sampling_ratio: int, aligned: bool = False
    ):
        super().__init__()
        self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned = (
            output_size, spatial_scale, sampling_ratio, aligned,
        )  # fmt: skip

    def forward(self, input: Tensor, rois: Tensor | Sequence[Tensor]) -> Tensor:
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
            f"sampling_ratio={self.sampling_ratio}, aligned={self.aligned}"
        )
