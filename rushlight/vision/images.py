"""Image types: a Pillow image, a tensor (..., H, W), or an array (H, W) or (H, W, C)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from types import ModuleType
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import type_error
from rushlight.core.tensor import Tensor, from_array


class InterpolationMode(Enum):
    """The interpolation between pixels: one of these names, or Pillow's number (`Image.BICUBIC`).

    >>> mode = rushlight.vision.transforms.InterpolationMode.NEAREST
    >>> rushlight.vision.transforms.Resize(4, mode)(rushlight.tensor([[[0, 1], [2, 3]]]))[0, 0]
    tensor([0, 0, 1, 1])
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"

    @classmethod
    def _missing_(cls, value: object) -> InterpolationMode | None:
        by_number = {number: mode for mode, number in RESAMPLING.items() if mode is not cls.NEAREST_EXACT}
        return by_number.get(value) if isinstance(value, int) else None


# Pillow's numbers
RESAMPLING = {
    InterpolationMode.NEAREST: 0, InterpolationMode.NEAREST_EXACT: 0, InterpolationMode.LANCZOS: 1,
    InterpolationMode.BILINEAR: 2, InterpolationMode.BICUBIC: 3, InterpolationMode.BOX: 4, InterpolationMode.HAMMING: 5,
}  # fmt: skip


def pillow() -> ModuleType | None:
    """PIL.Image, or None without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return None
    return Image


def is_pillow(image: Any) -> bool:
    """Whether the image is a Pillow image. Does not import Pillow."""
    return type(image).__module__.partition(".")[0] == "PIL" and hasattr(image, "getbands")


def check_image(image: Any) -> None:
    """TypeError unless `image` is an image."""
    if not (is_pillow(image) or isinstance(image, (Tensor, ndarray))):
        raise type_error(
            f"Unexpected type {type(image)}: an image is a PIL image, a tensor (..., H, W) or an array (H, W) or "
            "(H, W, C)"
        )


def size_of(image: Any) -> tuple[int, int]:
    """Height and width."""
    check_image(image)
    if is_pillow(image):
        return image.height, image.width
    if isinstance(image, Tensor):
        h, w = image._array.shape[-2:]
        return h, w
    h, w = image.shape[:2]
    return h, w


def planes(array: ndarray) -> ndarray:
    """An array (H, W, C) or (H, W) as (C, H, W), a view."""
    return np.moveaxis(array, -1, 0) if array.ndim == 3 else array[None]


def on_planes(function: Callable[[Tensor], Tensor], img: Any) -> Any:
    """Apply a function of tensors (..., C, H, W) to a tensor, or to an array (H, W, C) or (H, W)."""
    if isinstance(img, Tensor):
        return function(img)
    if not isinstance(img, ndarray):
        raise type_error(f"img should be PIL Image, Tensor or ndarray. Got {type(img)}")
    found = function(from_array(planes(img)))._array
    return np.ascontiguousarray(np.moveaxis(found, 0, -1) if img.ndim == 3 else found[0])


def on_pixels(function: Callable[[ndarray], ndarray], image: Any) -> Any:
    """Apply a function of arrays (..., H, W) to the pixels of an image."""
    check_image(image)
    if isinstance(image, Tensor):
        return from_array(function(image._array))
    array = np.asarray(image)
    found = function(np.moveaxis(array, -1, 0) if array.ndim == 3 else array)
    found = np.ascontiguousarray(np.moveaxis(found, 0, -1) if array.ndim == 3 else found)
    if isinstance(image, ndarray):
        return found
    module = pillow()
    assert module is not None
    made = module.fromarray(found) if image.mode != "P" else module.fromarray(found, "P")
    if image.mode == "P":
        made.putpalette(image.getpalette())
    return made if made.mode == image.mode else made.convert(image.mode)
