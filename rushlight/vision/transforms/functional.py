"""The transforms as functions: torchvision's names and results, on Pillow images, tensors and arrays."""

# ruff: noqa: F403, F405 - the names stand in __all__ of each part
from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.vision.images import InterpolationMode, is_pillow, size_of
from rushlight.vision.transforms.basics import (
    center_crop,
    convert_image_dtype,
    crop,
    hflip,
    normalize,
    pad,
    pair,
    pil_to_tensor,
    resize,
    rgb_to_grayscale,
    to_grayscale,
    to_pil_image,
    to_tensor,
    vflip,
)
from rushlight.vision.transforms.colors import *
from rushlight.vision.transforms.warps import *

__all__ = [
    "InterpolationMode", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
    "adjust_sharpness", "affine", "autocontrast", "center_crop", "convert_image_dtype", "crop", "equalize", "erase",
    "five_crop", "gaussian_blur", "get_dimensions", "get_image_num_channels", "get_image_size", "hflip", "invert",
    "normalize", "pad", "pair", "perspective", "pil_to_tensor", "posterize", "resize", "resized_crop",
    "rgb_to_grayscale", "rotate", "solarize", "ten_crop", "to_grayscale", "to_pil_image", "to_tensor", "vflip",
]  # fmt: skip


def get_image_num_channels(img: Any) -> int:
    """The number of channels of an image: C of a tensor (..., C, H, W).

    >>> rushlight.vision.transforms.functional.get_image_num_channels(rushlight.zeros(3, 2, 4))
    3
    """
    if is_pillow(img):
        return len(img.getbands())
    if isinstance(img, Tensor):
        return int(img._array.shape[-3]) if img._array.ndim > 2 else 1
    return int(img.shape[2]) if img.ndim == 3 else 1


def get_image_size(img: Any) -> list[int]:
    """[width, height].

    >>> rushlight.vision.transforms.functional.get_image_size(rushlight.zeros(3, 2, 4))
    [4, 2]
    """
    return list(size_of(img))[::-1]


def get_dimensions(img: Any) -> list[int]:
    """[channels, height, width].

    >>> rushlight.vision.transforms.functional.get_dimensions(rushlight.zeros(3, 2, 4))
    [3, 2, 4]
    """
    return [get_image_num_channels(img), *size_of(img)]
