"""torchvision.transforms.v2: the transforms, and the names that are new there, for one image at a time."""
# ruff: noqa: F403 - the names stand in __all__ of each part
from __future__ import annotations

from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.creation import as_tensor
from rushlight.tensor import Tensor, from_array
from rushlight.vision.images import is_pillow, planes
from rushlight.vision.transforms import functional
from rushlight.vision.transforms.autoaugment import *
from rushlight.vision.transforms.base import Compose as First
from rushlight.vision.transforms.base import Transform
from rushlight.vision.transforms.plain import *
from rushlight.vision.transforms.random import *


class Compose(First):
    """Transforms one after the other; of several inputs, each gives all it returns to the next."""

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) == 1:
            return super().__call__(inputs[0])
        for transform in self.transforms:
            inputs = transform(*inputs)
        return inputs


class ToImage(Transform):
    """A Pillow image, or an array (H, W, C), as a tensor (C, H, W) of its own numbers."""

    def forward(self, img: Any) -> Tensor:
        if is_pillow(img):
            return functional.pil_to_tensor(img)
        if isinstance(img, np.ndarray):
            return from_array(np.ascontiguousarray(planes(img)))
        return as_tensor(img)


class ToDtype(Transform):
    """A tensor in another dtype; with `scale` the brightest value stays the brightest."""

    def __init__(self, dtype: dtypes.dtype, scale: bool = False):
        self.dtype, self.scale = dtype, scale

    def forward(self, img: Any) -> Any:
        if not isinstance(img, Tensor):
            return img
        return functional.convert_image_dtype(img, self.dtype) if self.scale else img.to(self.dtype)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"ToDtype(scale={self.scale})"


class ToPureTensor(Transform):
    """The tensor itself."""

    def forward(self, img: Any) -> Any:
        return img


class Identity(ToPureTensor):
    """The image itself."""


class ConvertImageDtype(ToDtype):  # type: ignore[no-redef]
    """A tensor in another dtype; the brightest value stays the brightest."""

    def __init__(self, dtype: dtypes.dtype = dtypes.float32):
        super().__init__(dtype, scale=True)


