"""Resize and Upsample: each axis is resized by itself, by indices or by a matrix of weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .table import Floats, Ints, operator


def coordinates(size: int, count: int, scale: float, mode: str, region: tuple[float, float]) -> np.ndarray:
    """The place in the original axis of each of `count` elements. `region`: begin and end of a crop, as shares."""
    i = np.arange(count, dtype=np.float64)
    match mode:
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if count > 1 else np.zeros(count)
        case "half_pixel_symmetric":
            centre = size / 2 * (1 - count / (scale * size))
            return centre + (i + 0.5) / scale - 0.5
        case "align_corners":
            return i * (size - 1) / (scale * size - 1) if count > 1 else np.zeros(count)
        case "asymmetric":
            return i / scale
        case "tf_half_pixel_for_nn":
            return (i + 0.5) / scale
        case "tf_crop_and_resize":
            start, end = region
            if count == 1:
                return np.array([0.5 * (start + end) * (size - 1)])
            return start * (size - 1) + i * (end - start) * (size - 1) / (count - 1)
    raise NotImplementedError(f"coordinate_transformation_mode={mode!r} is not supported")


def nearest(at: np.ndarray, mode: str) -> np.ndarray:
    """The index of each place."""
    match mode:
        case "round_prefer_floor":
            return np.ceil(at - 0.5)
        case "round_prefer_ceil":
            return np.floor(at + 0.5)
        case "floor":
            return np.floor(at)
    return np.ceil(at)


def triangle(x: np.ndarray) -> np.ndarray:
    """The weight of an element at distance x, for linear interpolation."""
    return np.clip(1 - np.abs(x), 0, None)


def cubic(x: np.ndarray, a: float) -> np.ndarray:
    """The weight of an element at distance x, for cubic interpolation."""
    x = np.abs(x)
    inner = (a + 2) * x**3 - (a + 3) * x**2 + 1
    outer = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0))


def weights(at: np.ndarray, size: int, scale: float, mode: str, a: float, exclude_outside: int) -> np.ndarray:
    """The matrix [places, size] of interpolation. scale < 1: the weights reach further (antialias)."""
    reach = math.ceil((2 if mode == "cubic" else 1) / scale) + 1
    near = np.floor(at)[:, None] + np.arange(-reach, reach + 1)
    distance = (near - at[:, None]) * scale
    found = cubic(distance, a) if mode == "cubic" else triangle(distance)
    if exclude_outside:
        found = np.where((near < 0) | (near >= size), 0, found)
    found = found / found.sum(1, keepdims=True)
    out = np.zeros((len(at), size))
    rows = np.repeat(np.arange(len(at)), near.shape[1])
    np.add.at(out, (rows, np.clip(near, 0, size - 1).astype(np.int64).reshape(-1)), found.reshape(-1))
    return out


def along(x: Tensor, matrix: np.ndarray, axis: int) -> Tensor:
    """The product of a matrix with each row along an axis."""
    return torch.matmul(x.movedim(axis, -1), torch.as_tensor(matrix.T.copy()).to(x.dtype)).movedim(-1, axis)


def target(x: Tensor, axes: Ints, scales: Floats | None, sizes: Ints | None, policy: str) -> tuple[Ints, Floats]:
    """(sizes, scales) along the axes."""
    have = [x.shape[axis] for axis in axes]
    if not sizes:
        return [math.floor(size * scale) for size, scale in zip(have, scales or [])], scales or []
    if policy == "stretch":
        return sizes, [want / size for want, size in zip(sizes, have)]
    scale = (min if policy == "not_larger" else max)(want / size for want, size in zip(sizes, have))
    return [math.floor(scale * size + 0.5) for size in have], [scale] * len(axes)


@operator("Resize", since=11)
def resize(
    x: Tensor,
    roi: Floats | None = None,
    scales: Floats | None = None,
    sizes: Ints | None = None,
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    antialias: int = 0,
    axes: Ints | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Tensor:
    """x with other sizes, by scales or by sizes."""
    axes = [axis % x.ndim for axis in axes] if axes is not None else list(range(x.ndim))
    wanted, scales = target(x, axes, scales, sizes, keep_aspect_ratio_policy)
    if is_interpolation(x, wanted, scales, mode, coordinate_transformation_mode, (axes, antialias, exclude_outside)):
        return F.interpolate(x, wanted[2:], mode="bilinear", align_corners=coordinate_transformation_mode[0] == "a")
    outside = []
    for i, (axis, want, scale) in enumerate(zip(axes, wanted, scales)):
        size = x.shape[axis]
        crop = coordinate_transformation_mode == "tf_crop_and_resize"
        region = (roi[i], roi[i + len(axes)]) if crop and roi else (0.0, 1.0)
        if size == want and scale == 1 and region == (0.0, 1.0):
            continue
        at = coordinates(size, want, scale, coordinate_transformation_mode, region)
        if crop:
            outside.append((axis, (at < 0) | (at > size - 1)))
        if mode == "nearest":
            index = np.clip(nearest(at, nearest_mode), 0, size - 1).astype(np.int64)
            x = x.index_select(axis, torch.as_tensor(index))
        else:
            reach = min(scale, 1.0) if antialias else 1.0
            matrix = weights(at, size, reach, mode, cubic_coeff_a, exclude_outside)
            x = along(x, matrix, axis)
    for axis, out in outside:
        mask = torch.as_tensor(out.reshape([-1 if i == axis else 1 for i in range(x.ndim)]))
        x = torch.where(mask, torch.full_like(x, extrapolation_value), x)
    return x


def is_interpolation(
    x: Tensor, wanted: Ints, scales: Floats, mode: str, transformation: str, others: tuple[Any, ...]
) -> bool:
    """Whether F.interpolate computes this: two last axes, linear, without other settings."""
    axes, antialias, exclude_outside = others
    plain = mode == "linear" and not antialias and not exclude_outside and x.ndim == 4 and len(axes) == 4
    exact = all(want == size * scale for want, size, scale in zip(wanted, x.shape, scales))
    return (
        plain
        and exact
        and tuple(wanted[:2]) == tuple(x.shape[:2])
        and transformation in ("half_pixel", "align_corners")
    )


@operator("Resize", until=10)
def old_resize(x: Tensor, scales: Floats, *, mode: str = "nearest") -> Tensor:
    """x scaled, with coordinates divided by the scale."""
    return upsample(x, scales, mode=mode)


@operator("Upsample", since=9)
def upsample(x: Tensor, scales: Floats, *, mode: str = "nearest") -> Tensor:
    """x scaled, with coordinates divided by the scale."""
    kind = "linear" if mode.endswith("linear") else mode
    settings: Any = {"mode": kind, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return resize(x, None, scales, **settings)


@operator("Upsample", until=8)
def old_upsample(
    x: Tensor, *, scales: Floats | None = None, height_scale: float = 1, width_scale: float = 1, mode: str = "nearest"
) -> Tensor:
    """x scaled, with coordinates divided by the scale."""
    return upsample(x, scales or [1.0, 1.0, height_scale, width_scale], mode=mode)
