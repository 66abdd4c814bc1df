"""Geometric transforms: affine maps, perspective, and parts of an image resized."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, radians, sin, tan
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import not_implemented_error, type_error, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.nn import functional as F
from rushlight.vision.images import RESAMPLING, InterpolationMode, is_pillow, on_pixels, size_of
from rushlight.vision.transforms.basics import as_floats, center_crop, crop, hflip, pair, resize, vflip


def resized_crop(
    img: Any, top: int, left: int, height: int, width: int, size: int | Sequence[int],
    interpolation: InterpolationMode = InterpolationMode.BILINEAR, antialias: bool | None = True,
) -> Any:  # fmt: skip
    """The part from row `top` and column `left` on, resized.

    >>> rushlight.vision.transforms.functional.resized_crop(rushlight.zeros(3, 8, 8), 0, 0, 4, 4, size=2).shape
    torch.Size([3, 2, 2])
    """
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def inverse_map(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """Six numbers (a, b, c, d, e, f): the point (x, y) comes from (a x + b y + c, d x + e y + f).

    The inverse of T C R S H C^-1: shear, scale and turn about the centre C, then move."""
    turn, sx, sy = radians(angle), radians(shear[0]), radians(shear[1])
    (cx, cy), (tx, ty) = center, translate
    a, b = cos(turn - sy) / cos(sy), -cos(turn - sy) * tan(sx) / cos(sy) - sin(turn)
    c, d = sin(turn - sy) / cos(sy), -sin(turn - sy) * tan(sx) / cos(sy) + cos(turn)
    m = [v / scale for v in (d, -b, 0.0, -c, a, 0.0)]
    m[2] = m[0] * (-cx - tx) + m[1] * (-cy - ty) + cx
    m[5] = m[3] * (-cx - tx) + m[4] * (-cy - ty) + cy
    return m


def affine(
    img: Any, angle: float, translate: Sequence[int], scale: float, shear: float | Sequence[float],
    interpolation: InterpolationMode = InterpolationMode.NEAREST, fill: Any = None,
    center: Sequence[float] | None = None,
) -> Any:  # fmt: skip
    """Rotated clockwise by `angle` degrees, moved by `translate` pixels, scaled and sheared. The fixed point is
    `center`, by default the centre of the image.

    >>> rushlight.vision.transforms.functional.affine(rushlight.tensor([[[1, 2], [3, 4]]]), 90, [0, 0], 1.0, [0.0, 0.0])
    tensor([[[3, 1],
             [4, 2]]])
    """
    if scale <= 0.0:
        raise value_error("Argument scale should be positive")
    shears = [float(shear), 0.0] if isinstance(shear, (int, float)) else [float(s) for s in shear]
    shears += [0.0] * (2 - len(shears))
    mode, (h, w) = InterpolationMode(interpolation), size_of(img)
    if is_pillow(img):  # pixels are counted from their corners
        middle = [w * 0.5, h * 0.5] if center is None else list(center)
        m = inverse_map(middle, angle, list(translate), scale, shears)
        return img.transform((w, h), 0, m, RESAMPLING[mode], fillcolor=colour_of(img, fill))
    middle = [0.0, 0.0] if center is None else [c - s * 0.5 for c, s in zip(center, (w, h))]
    m = inverse_map(middle, angle, [float(t) for t in translate], scale, shears)
    return sampled(img, placed(h, w, m), mode, fill)


def rotate(
    img: Any, angle: float, interpolation: InterpolationMode = InterpolationMode.NEAREST, expand: bool = False,
    center: Sequence[float] | None = None, fill: Any = None,
) -> Any:  # fmt: skip
    """Rotated counter-clockwise by `angle` degrees around `center` (x, y), by default the centre. `fill`: the colour of
    new pixels.

    `expand` enlarges the image so that the corners fit; for Pillow images only.

    >>> rushlight.vision.transforms.functional.rotate(rushlight.tensor([[[1, 2], [3, 4]]]), 90)
    tensor([[[2, 4],
             [1, 3]]])
    """
    if is_pillow(img):
        mode = RESAMPLING[InterpolationMode(interpolation)]
        return img.rotate(angle, mode, expand, center, fillcolor=colour_of(img, fill))
    if expand:
        raise not_implemented_error("rotate: expand=True is done for PIL images only: use to_pil_image first")
    return affine(img, -angle, [0, 0], 1.0, 0.0, interpolation, fill, center)


def perspective(
    img: Any, startpoints: Sequence[Sequence[int]], endpoints: Sequence[Sequence[int]],
    interpolation: InterpolationMode = InterpolationMode.BILINEAR, fill: Any = None,
) -> Any:  # fmt: skip
    """The image with four corners, (x, y) each, moved from `startpoints` to `endpoints`.

    >>> corners = [[0, 0], [1, 0], [1, 1], [0, 1]]
    >>> rushlight.vision.transforms.functional.perspective(rushlight.tensor([[[1., 2.], [3., 4.]]]), corners, corners)
    tensor([[[1., 2.],
             [3., 4.]]])
    """
    mode, (h, w) = InterpolationMode(interpolation), size_of(img)
    c = perspective_map(startpoints, endpoints)
    if is_pillow(img):
        return img.transform((w, h), 2, c, RESAMPLING[mode], fillcolor=colour_of(img, fill))
    x, y = np.arange(w, dtype=np.float64)[None, :] + 0.5, np.arange(h, dtype=np.float64)[:, None] + 0.5
    below = c[6] * x + c[7] * y + 1.0
    points = np.stack(
        (
            (c[0] * x + c[1] * y + c[2]) / (below * 0.5 * w) - 1.0,
            (c[3] * x + c[4] * y + c[5]) / (below * 0.5 * h) - 1.0,
        ),
        -1,
    )
    return sampled(img, points.astype(np.float32), mode, fill)


def perspective_map(startpoints: Sequence[Sequence[int]], endpoints: Sequence[Sequence[int]]) -> list[float]:
    """Eight numbers: (x, y) comes from ((a x + b y + c) / (g x + h y + 1), (d x + e y + f) / (g x + h y + 1))."""
    rows, right = [], []
    for (u, v), (x, y) in zip(startpoints, endpoints):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    solved = np.linalg.lstsq(np.array(rows, np.float64), np.array(right, np.float64), rcond=None)[0]
    return [float(v) for v in solved.astype(np.float32)]


def colour_of(img: Any, fill: Any) -> Any:
    """The fill colour of a Pillow image: one number for each channel."""
    if fill is None:
        return 0
    bands = len(img.getbands())
    values = [fill] * bands if isinstance(fill, (int, float)) else list(fill) * (bands // len(fill))
    values = values if img.mode == "F" else [int(v) for v in values]
    return tuple(values) if bands > 1 else values[0]


def placed(h: int, w: int, m: Sequence[float]) -> ndarray:
    """The source (x, y) of each pixel, (H, W, 2), from -1 to 1. `m`: an affine map of pixels counted from the centre.

    In float32 and in torchvision's order of operations, so that points halfway between two pixels round the same way.
    """
    scaled = np.array(m, np.float32).reshape(2, 3).T / np.array([0.5 * w, 0.5 * h], np.float32)
    pixels = np.ones((h, w, 3), np.float32)
    pixels[..., 0] = np.arange(w, dtype=np.float32) + np.float32(0.5 - w * 0.5)
    pixels[..., 1] = (np.arange(h, dtype=np.float32) + np.float32(0.5 - h * 0.5))[:, None]
    return (pixels.reshape(-1, 3) @ scaled).reshape(h, w, 2)


def sampled(img: Any, grid: ndarray, mode: InterpolationMode, fill: Any) -> Any:
    """The image sampled at the points (x, y), (H, W, 2), from -1 to 1. `fill`: the colour outside of the image."""
    if isinstance(img, ndarray):

        def of_planes(a: ndarray) -> ndarray:
            return sampled(from_array(a if a.ndim == 3 else a[None]), grid, mode, fill)._array.reshape(a.shape)

        return on_pixels(of_planes, img)

    def sample(x: Tensor) -> Tensor:
        points = from_array(np.broadcast_to(grid, (x.shape[0], *grid.shape)).astype(x._array.dtype))
        found = F.grid_sample(x, points, mode.value, "zeros", align_corners=False)
        if fill is None:
            return found
        inside = F.grid_sample(
            from_array(np.ones_like(x._array)), points, mode.value, "zeros", align_corners=False
        )._array
        colour = np.asarray(fill, np.float32).reshape(-1, 1, 1)
        array = (
            found._array * inside + (1 - inside) * colour
            if mode is InterpolationMode.BILINEAR  # the edge fades
            else np.where(inside < 0.5, colour, found._array)
        )
        return from_array(array.astype(found._array.dtype))

    return as_floats(img, sample, True)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Tensor:
    """The image (..., C, H, W) with the value v in the part of h x w pixels from row i and column j on.

    >>> rushlight.vision.transforms.functional.erase(rushlight.ones(1, 2, 2), 0, 0, 1, 2, 0.0)
    tensor([[[0., 0.],
             [1., 1.]]])
    """
    if not isinstance(img, Tensor):
        raise type_error(f"img should be Tensor. Got {type(img)}", "apply ToTensor() first")
    out = img if inplace else img.clone()
    out[..., i : i + h, j : j + w] = v
    return out


def five_crop(img: Any, size: int | Sequence[int]) -> tuple[Any, Any, Any, Any, Any]:
    """The four corners and the centre: (top left, top right, bottom left, bottom right, centre).

    >>> [crop.item() for crop in rushlight.vision.transforms.functional.five_crop(rushlight.arange(9).reshape(1, 3, 3), 1)]
    [0, 2, 6, 8, 4]
    """  # noqa: E501
    (th, tw), (h, w) = pair(size), size_of(img)
    if tw > w or th > h:
        raise value_error(f"Requested crop size {(th, tw)} is bigger than input size {(h, w)}")
    return (
        crop(img, 0, 0, th, tw),
        crop(img, 0, w - tw, th, tw),
        crop(img, h - th, 0, th, tw),
        crop(img, h - th, w - tw, th, tw),
        center_crop(img, (th, tw)),
    )


def ten_crop(img: Any, size: int | Sequence[int], vertical_flip: bool = False) -> tuple[Any, ...]:
    """`five_crop` of the image, and of the image flipped left-right, or top-bottom with `vertical_flip`.

    >>> len(rushlight.vision.transforms.functional.ten_crop(rushlight.arange(9).reshape(1, 3, 3), 1))
    10
    """
    return five_crop(img, size) + five_crop(vflip(img) if vertical_flip else hflip(img), size)


__all__ = ["affine", "erase", "five_crop", "perspective", "resized_crop", "rotate", "ten_crop"]
