"""Images side by side, and images in files: torchvision.utils."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import explain, type_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.vision.drawing import draw_bounding_boxes, draw_segmentation_masks
from rushlight.vision.images import pillow

__all__ = ["draw_bounding_boxes", "draw_segmentation_masks", "make_grid", "save_image"]


def make_grid(
    tensor: Tensor | Sequence[Tensor], nrow: int = 8, padding: int = 2, normalize: bool = False,
    value_range: tuple[float, float] | None = None, scale_each: bool = False, pad_value: float = 0.0,
) -> Tensor:  # fmt: skip
    """Images (B, C, H, W), or a list of (C, H, W), as one image (C, ...) with `nrow` images in a row.

    A single channel becomes three. `normalize`: scale from `value_range`, or from the minimum and maximum (of each
    image with `scale_each`), to 0..1. A single image (C, H, W) or (H, W) is returned without a frame. TypeError unless
    tensors are given.

    >>> rushlight.vision.utils.make_grid(rushlight.rand(12, 3, 10, 10), nrow=5).shape
    torch.Size([3, 38, 62])
    """
    images = with_colors(as_batch(tensor))
    if normalize:
        images = images.copy()
        for part in images if scale_each else [images]:
            stretch(part, value_range)
    if len(images) == 1:
        return from_array(images[0])
    n, channels, height, width = images.shape
    columns = min(nrow, n)
    rows, high, wide = -(-n // columns), height + padding, width + padding
    grid = np.full((channels, rows * high + padding, columns * wide + padding), pad_value, images.dtype)
    for i, image in enumerate(images):
        top, left = i // columns * high + padding, i % columns * wide + padding
        grid[:, top : top + height, left : left + width] = image
    return from_array(grid)


def as_batch(tensor: Any) -> ndarray:
    """(B, C, H, W), or fewer dimensions."""
    tensors = [tensor] if isinstance(tensor, Tensor) else tensor
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise type_error(f"tensor or list of tensors expected, got {type(tensor)}")
    return tensor._array if isinstance(tensor, Tensor) else np.stack([t._array for t in tensors])


def with_colors(images: ndarray) -> ndarray:
    """(B, C, H, W) from one image or a batch. A single channel becomes three."""
    if images.ndim == 2:
        images = images[None]
    if images.ndim == 3:
        images = images[None]
    return images.repeat(3, 1) if images.shape[1] == 1 else images


def stretch(images: ndarray, value_range: tuple[float, float] | None) -> None:
    """Scale from `value_range`, or from the minimum and maximum, to 0..1, in place."""
    low, high = value_range if value_range is not None else (float(images.min()), float(images.max()))
    np.clip(images, low, high, out=images)
    images -= low
    images /= max(high - low, 1e-5)


def save_image(
    tensor: Tensor | Sequence[Tensor], fp: str | os.PathLike | IO[bytes], format: str | None = None, **kwargs: Any
) -> None:
    """Write an image with values in 0..1, or `make_grid(tensor, **kwargs)` of several, to a file.

    `format`: by default from the file's name. ImportError without Pillow.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "noise.png")
    >>> rushlight.vision.utils.save_image(rushlight.rand(3, 8, 8), path)
    >>> rushlight.vision.io.read_image(path).shape
    torch.Size([3, 8, 8])
    """
    module = pillow()
    if module is None:
        raise ImportError(explain("save_image writes files with Pillow, which is not installed", "pip install pillow"))
    grid = make_grid(tensor, **kwargs)._array
    pixels = np.clip(grid * 255 + 0.5, 0, 255).transpose(1, 2, 0).astype(np.uint8)
    module.fromarray(pixels).save(fp, format=format)
