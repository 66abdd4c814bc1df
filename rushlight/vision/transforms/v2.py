"""torchvision.transforms.v2: the transforms and the new names of v2, for one image at a time."""

# ruff: noqa: F403 - the names stand in __all__ of each part
from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import as_tensor
from rushlight.vision.images import is_pillow, planes
from rushlight.vision.transforms import functional
from rushlight.vision.transforms.autoaugment import *
from rushlight.vision.transforms.base import Compose as First
from rushlight.vision.transforms.base import Transform
from rushlight.vision.transforms.plain import *
from rushlight.vision.transforms.random import *


class Compose(First):
    """out = last(...(first(*inputs))): with several inputs, each transform gets all results of the one before.

    >>> t = rushlight.vision.transforms.v2
    >>> t.Compose([t.RandomHorizontalFlip(1.0), t.Normalize([0.5], [0.5])])(rushlight.tensor([[[0., 1.]]]))
    tensor([[[ 1., -1.]]])
    """

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) == 1:
            return super().__call__(inputs[0])
        for transform in self.transforms:
            inputs = transform(*inputs)
        return inputs


class ToImage(Transform):
    """A Pillow image, or an array (H, W, C), as a tensor (C, H, W) of its own dtype and values.

    >>> import numpy as np
    >>> rushlight.vision.transforms.v2.ToImage()(np.zeros((2, 4, 3), np.uint8)).shape
    torch.Size([3, 2, 4])
    """

    def forward(self, img: Any) -> Tensor:
        if is_pillow(img):
            return functional.pil_to_tensor(img)
        if isinstance(img, np.ndarray):
            return from_array(np.ascontiguousarray(planes(img)))
        return as_tensor(img)


class ToDtype(Transform):
    """A tensor in another dtype; with `scale` the brightest value stays the brightest.

    >>> t = rushlight.vision.transforms.v2.ToDtype(rushlight.float32, scale=True)
    >>> t(rushlight.tensor([0, 255], dtype=rushlight.uint8).reshape(1, 1, 2))
    tensor([[[0., 1.]]])
    """

    def __init__(self, dtype: dtypes.dtype, scale: bool = False):
        self.dtype, self.scale = dtype, scale

    def forward(self, img: Any) -> Any:
        if not isinstance(img, Tensor):
            return img
        return functional.convert_image_dtype(img, self.dtype) if self.scale else img.to(self.dtype)

    def __repr__(self) -> str:
        return f"ToDtype(scale={self.scale})"


class ToPureTensor(Transform):
    """The tensor itself.

    >>> rushlight.vision.transforms.v2.ToPureTensor()(rushlight.tensor([1, 2]))
    tensor([1, 2])
    """

    def forward(self, img: Any) -> Any:
        return img


class Identity(ToPureTensor):
    """out = image.

    >>> rushlight.vision.transforms.v2.Identity()(rushlight.tensor([1, 2]))
    tensor([1, 2])
    """


class ConvertImageDtype(ToDtype):  # type: ignore[no-redef]
    """A tensor in another dtype; the brightest value stays the brightest.

    >>> rushlight.vision.transforms.v2.ConvertImageDtype()(rushlight.tensor([[[0, 255]]], dtype=rushlight.uint8))
    tensor([[[0., 1.]]])
    """

    def __init__(self, dtype: dtypes.dtype = dtypes.float32):
        super().__init__(dtype, scale=True)
