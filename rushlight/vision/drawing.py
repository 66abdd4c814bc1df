"""Boxes and masks drawn into images (3, H, W) uint8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import explain, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.vision.images import pillow
from rushlight.vision.transforms.basics import to_pil_image

__all__ = ["draw_bounding_boxes", "draw_segmentation_masks"]


def palette(n: int) -> list[tuple[int, int, int]]:
    """Distinct colours: multiples of three large numbers."""
    return [(i * 33554431 % 255, i * 32767 % 255, i * 2097151 % 255) for i in range(n)]


def colours_of(colors: Any, n: int) -> list[tuple[int, ...]]:
    """n colours. `colors`: one colour for all, a list of colours, or None for the palette."""
    from PIL import ImageColor

    given = palette(n) if colors is None else list(colors) if isinstance(colors, list) else [colors] * n
    if len(given) < n:
        raise value_error(
            f"Number of colors must be equal or larger than the number of objects, but got {len(given)} < {n}."
        )
    return [ImageColor.getrgb(c) if isinstance(c, str) else tuple(c) for c in given]


def draw_bounding_boxes(
    image: Tensor, boxes: Tensor, labels: Sequence[str | None] | None = None, colors: Any = None, fill: bool = False,
    width: int = 1, font: str | None = None, font_size: int | None = None,
) -> Tensor:  # fmt: skip
    """The image with boxes (N, 4), from (x1, y1) to (x2, y2), `width` pixels thick, and their labels.

    >>> image = rushlight.zeros(3, 4, 4, dtype=rushlight.uint8)
    >>> rushlight.vision.utils.draw_bounding_boxes(image, rushlight.tensor([[0, 0, 3, 3]]), colors="white")[0]
    tensor([[255, 255, 255, 255],
            [255,   0,   0, 255],
            [255,   0,   0, 255],
            [255, 255, 255, 255]], dtype=torch.uint8)
    """
    if pillow() is None:
        raise ImportError(explain("boxes are drawn with Pillow, which is not installed", "pip install pillow"))
    if not isinstance(image, Tensor) or image._array.ndim != 3:
        raise value_error("Pass individual images (C, H, W), not batches")
    if (boxes._array[:, 0] > boxes._array[:, 2]).any() or (boxes._array[:, 1] > boxes._array[:, 3]).any():
        raise value_error("Boxes need to be in (xmin, ymin, xmax, ymax) format. Use torchvision.ops.box_convert")
    if not len(boxes._array):
        return image
    from PIL import ImageDraw, ImageFont

    floats = image.is_floating_point()
    picture = to_pil_image(image if image.shape[0] == 3 else image.expand(3, *image.shape[1:]))
    draw = ImageDraw.Draw(picture, "RGBA" if fill else "RGB")
    face: Any = ImageFont.load_default(size=font_size) if font is None else ImageFont.truetype(font, font_size or 10)
    for i, (box, colour) in enumerate(
        zip(boxes._array.astype(np.int64).tolist(), colours_of(colors, len(boxes._array)))
    ):
        draw.rectangle(box, width=width, outline=colour, fill=(*colour, 100) if fill else None)
        label = None if labels is None else labels[i]
        if label is not None:
            draw.text((box[0] + width + 1, box[1] + width + 1), label, fill=colour, font=face)
    found = np.ascontiguousarray(np.asarray(picture).transpose(2, 0, 1))
    return from_array(found.astype(image._array.dtype) / 255 if floats else found)


def draw_segmentation_masks(image: Tensor, masks: Tensor, alpha: float = 0.8, colors: Any = None) -> Tensor:
    """The image blended with the masks (N, H, W) bool in colours, with the weight `alpha`; black where masks overlap.

    >>> image, mask = rushlight.zeros(3, 1, 2, dtype=rushlight.uint8), rushlight.tensor([[True, False]])
    >>> rushlight.vision.utils.draw_segmentation_masks(image, mask, alpha=1.0, colors="white")[0]
    tensor([[255,   0]], dtype=torch.uint8)
    """
    planes: ndarray = masks._array[None] if masks._array.ndim == 2 else masks._array
    if planes.dtype != bool:
        raise value_error(f"The masks must be of dtype bool. Got {masks.dtype}")
    floats, coloured = image.is_floating_point(), image._array.copy()
    for plane, colour in zip(planes, colours_of(colors, len(planes))):
        values = np.array(colour, np.float32)[:, None]
        coloured[:, plane] = values / 255 if floats else values
    coloured[:, planes.sum(0) > 1] = 0  # black where masks overlap
    return from_array((image._array * (1 - alpha) + coloured * alpha).astype(image._array.dtype))
