"""Sampling of images at given places: GridSample, AffineGrid, RoiAlign, MaxRoiPool."""

from __future__ import annotations

import math

import numpy as np

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .table import Fixed, Ints, operator


@operator("GridSample")
def grid_sample(
    x: Tensor, grid: Tensor, *, mode: str = "linear", padding_mode: str = "zeros", align_corners: int = 0
) -> Tensor:
    """The elements of x at the places of the grid, whose coordinates are in [-1, 1]."""
    kind = "bilinear" if "linear" in mode else "bicubic" if "cubic" in mode else mode
    return F.grid_sample(x, grid.to(x.dtype), kind, padding_mode, bool(align_corners))


@operator("AffineGrid")
def affine_grid(theta: Tensor, size: Ints, *, align_corners: int = 0) -> Tensor:
    """The grid of an affine map, for GridSample."""
    return F.affine_grid(theta, size, bool(align_corners))


@operator("RoiAlign", since=16)
def roi_align(
    x: Tensor,
    rois: Fixed,
    batch: Ints,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    coordinate_transformation_mode: str = "half_pixel",
) -> Tensor:
    """Each region (x0, y0, x1, y1) of an image as an image: the mean or the largest of the points in each bin."""
    shift = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    out, (height, width) = [], x.shape[2:]
    for image, (x0, y0, x1, y1) in zip(batch, (rois.detach().numpy() * spatial_scale - shift).tolist()):
        ys = bin_points(y0, y1, output_height, sampling_ratio, not shift)
        xs = bin_points(x0, x1, output_width, sampling_ratio, not shift)
        rows, columns = interpolation(ys, height), interpolation(xs, width)
        shape = (x.shape[1], output_height, len(ys) // output_height, output_width, len(xs) // output_width)
        if mode == "avg":
            points = torch.matmul(torch.matmul(tensor(rows, x), x[image]), tensor(columns.T, x)).reshape(shape)
            out.append(points.mean((2, 4)))
        else:
            out.append(largest_weighted(x[image], rows, columns).reshape(shape).amax((2, 4)))
    return torch.stack(out) if out else x.new_zeros(0, x.shape[1], output_height, output_width)


@operator("RoiAlign", until=15)
def old_roi_align(
    x: Tensor,
    rois: Fixed,
    batch: Ints,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    """RoiAlign without the shift by half a pixel."""
    sizes = {"output_height": output_height, "output_width": output_width, "sampling_ratio": sampling_ratio}
    kind = "output_half_pixel"
    return roi_align(
        x, rois, batch, mode=mode, spatial_scale=spatial_scale, coordinate_transformation_mode=kind, **sizes
    )


def tensor(array: np.ndarray, like: Tensor) -> Tensor:
    return torch.as_tensor(np.ascontiguousarray(array)).to(like.dtype)


def bin_points(low: float, high: float, bins: int, ratio: int, at_least_one: bool) -> np.ndarray:
    """The places of the points in all bins between low and high, in order."""
    length = max(high - low, 1.0) if at_least_one else high - low
    each = ratio if ratio > 0 else max(math.ceil(length / bins), 1)
    return low + (np.arange(bins * each) + 0.5) * length / (bins * each)


def interpolation(at: np.ndarray, size: int) -> np.ndarray:
    """The matrix [places, size] of linear interpolation; places beyond -1 and size have no weights."""
    inside = (at >= -1) & (at <= size)
    at = np.clip(at, 0, size - 1)
    low = np.minimum(np.floor(at), size - 1).astype(np.int64)
    out = np.zeros((len(at), size))
    rows = np.arange(len(at))
    np.add.at(out, (rows, low), 1 - (at - low))
    np.add.at(out, (rows, np.minimum(low + 1, size - 1)), at - low)
    return out * inside[:, None]


def largest_weighted(image: Tensor, rows: np.ndarray, columns: np.ndarray) -> Tensor:
    """For each point the largest of its four weighted neighbours, which ONNX's mode max takes."""
    both = tensor(rows[:, None, :, None] * columns[None, :, None, :], image)
    return (image[:, None, None] * both).amax((-2, -1))


@operator("MaxRoiPool")
def max_roi_pool(x: Tensor, rois: Fixed, *, pooled_shape: Ints, spatial_scale: float = 1.0) -> Tensor:
    """The largest element of each bin of a region (image, x0, y0, x1, y1), with whole pixels."""
    high, wide = pooled_shape
    out = []
    for image, *box in rois.detach().tolist():
        x0, y0, x1, y1 = (math.floor(v * spatial_scale + 0.5) for v in box)
        rows, columns = pool_bins(y0, y1, high, x.shape[2]), pool_bins(x0, x1, wide, x.shape[3])
        bins = [[bin_largest(x[int(image)], r, c) for c in columns] for r in rows]
        out.append(torch.stack([torch.stack(row, -1) for row in bins], 1))
    return torch.stack(out)


def pool_bins(low: int, high: int, bins: int, size: int) -> list[tuple[int, int]]:
    """(first, last + 1) of each bin, within the image."""
    length = max(high - low + 1, 1) / bins
    ends = [(math.floor(i * length) + low, math.ceil((i + 1) * length) + low) for i in range(bins)]
    return [(min(max(a, 0), size), min(max(b, 0), size)) for a, b in ends]


def bin_largest(image: Tensor, rows: tuple[int, int], columns: tuple[int, int]) -> Tensor:
    """The largest element of each channel in a bin; 0 of an empty bin."""
    part = image[:, rows[0] : rows[1], columns[0] : columns[1]]
    return part.amax((1, 2)) if part.numel() else image.new_zeros(image.shape[0])
