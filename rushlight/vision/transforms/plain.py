"""Deterministic transforms of images, and simple random ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.base.dtypes import dtype
from rushlight.base.errors import type_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.random import default_generator
from rushlight.vision.images import InterpolationMode, size_of
from rushlight.vision.transforms import functional
from rushlight.vision.transforms.base import Compose, Sometimes, Transform, chance, drawn
from rushlight.vision.transforms.functional import pair


class ToTensor(Transform):
    """out[c, h, w] = image[h, w, c] / 255 for a Pillow image or an array of bytes, as float32; other dtypes are not
    scaled.

    >>> import numpy as np
    >>> rushlight.vision.transforms.ToTensor()(np.full((1, 2, 3), 255, np.uint8))[0]
    tensor([[1., 1.]])
    """

    def forward(self, img: Any) -> Tensor:
        return functional.to_tensor(img)


class PILToTensor(Transform):
    """A Pillow image as a tensor (C, H, W) of its own dtype and values.

    >>> image = rushlight.vision.transforms.ToPILImage()(rushlight.zeros(3, 2, 4, dtype=rushlight.uint8))
    >>> rushlight.vision.transforms.PILToTensor()(image).shape
    torch.Size([3, 2, 4])
    """

    def forward(self, img: Any) -> Tensor:
        return functional.pil_to_tensor(img)


class ToPILImage(Transform):
    """A tensor (C, H, W), or an array (H, W, C), as a Pillow image.

    >>> rushlight.vision.transforms.ToPILImage()(rushlight.zeros(3, 2, 4)).size  # (width, height)
    (4, 2)
    """

    def __init__(self, mode: str | None = None):
        self.mode = mode

    def forward(self, img: Any) -> Any:
        return functional.to_pil_image(img, self.mode)

    def __repr__(self) -> str:
        return "ToPILImage()" if self.mode is None else f"ToPILImage(mode={self.mode})"


class ConvertImageDtype(Transform):
    """out = image most' / most, most the brightest value of its dtype: 255 of a byte is 1.0 of a float.

    >>> image = rushlight.tensor([0, 255], dtype=rushlight.uint8).reshape(1, 1, 2)
    >>> rushlight.vision.transforms.ConvertImageDtype(rushlight.float32)(image)
    tensor([[[0., 1.]]])
    """

    def __init__(self, dtype: dtype):
        self.dtype = dtype

    def forward(self, img: Tensor) -> Tensor:
        return functional.convert_image_dtype(img, self.dtype)


class Normalize(Transform):
    """(x - mean) / std, channel by channel, of a floating-point tensor (..., C, H, W).

    >>> rushlight.vision.transforms.Normalize((0.5,), (0.25,))(rushlight.ones(1, 1, 2))
    tensor([[[2., 2.]]])
    """

    shows = ("mean", "std")

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, img: Tensor) -> Tensor:
        return functional.normalize(img, self.mean, self.std, self.inplace)


class Lambda(Transform):
    """out = lambd(image).

    >>> rushlight.vision.transforms.Lambda(lambda image: 1 - image)(rushlight.zeros(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    def __init__(self, lambd: Callable[[Any], Any]):
        if not callable(lambd):
            raise type_error(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def forward(self, img: Any) -> Any:
        return self.lambd(img)


class Resize(Transform):
    """The image with (height, width) pixels; one number is the length of the shorter side.

    >>> rushlight.vision.transforms.Resize(4)(rushlight.zeros(3, 8, 16)).shape
    torch.Size([3, 4, 8])
    """

    shows = ("size", "interpolation", "max_size", "antialias")

    def __init__(
        self, size: int | Sequence[int], interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        max_size: int | None = None, antialias: bool | None = True,
    ):  # fmt: skip
        self.size, self.interpolation = size, InterpolationMode(interpolation)
        self.max_size, self.antialias = max_size, antialias

    def forward(self, img: Any) -> Any:
        return functional.resize(img, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """out[..., i, j] = image[..., top + i, left + j]: the centre of the image, (height, width) or a square.

    >>> rushlight.vision.transforms.CenterCrop(2)(rushlight.arange(16).reshape(1, 4, 4))
    tensor([[[ 5,  6],
             [ 9, 10]]])
    """

    shows = ("size",)

    def __init__(self, size: int | Sequence[int]):
        self.size = pair(size)

    def forward(self, img: Any) -> Any:
        return functional.center_crop(img, self.size)


class Pad(Transform):
    """The image with more pixels at each side. `padding`: one number, (left and right, top and bottom), or (left, top,
    right, bottom).

    >>> rushlight.vision.transforms.Pad((1, 0))(rushlight.tensor([[[1, 2]]]))
    tensor([[[0, 1, 2, 0]]])
    """

    shows = ("padding", "fill", "padding_mode")

    def __init__(self, padding: int | Sequence[int], fill: float = 0, padding_mode: str = "constant"):
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        return functional.pad(img, self.padding, self.fill, self.padding_mode)


class Grayscale(Transform):
    """out = 0.2989 red + 0.587 green + 0.114 blue: the brightness of each pixel, in 1 or 3 channels.

    >>> rushlight.vision.transforms.Grayscale()(rushlight.ones(3, 4, 4)).shape
    torch.Size([1, 4, 4])
    """

    shows = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1):
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        return functional.rgb_to_grayscale(img, self.num_output_channels)


class RandomCrop(Transform):
    """out[..., i, j] = image[..., top + i, left + j] at a random position, (height, width) or a square.

    `padding` widens the image first. ValueError if the image is smaller, unless `pad_if_needed`.

    >>> rushlight.vision.transforms.RandomCrop(2)(rushlight.zeros(3, 8, 8)).shape
    torch.Size([3, 2, 2])
    """

    def __init__(
        self, size: int | Sequence[int], padding: int | Sequence[int] | None = None, pad_if_needed: bool = False,
        fill: float = 0, padding_mode: str = "constant",
    ):  # fmt: skip
        self.size, self.padding, self.pad_if_needed = pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Top, left, height and width of a random part."""
        (h, w), (th, tw) = size_of(img), output_size
        if h < th or w < tw:
            raise value_error(
                f"Required crop size {(th, tw)} is larger than input image size {(h, w)}",
                "pass a padding, or pad_if_needed=True",
            )
        if (h, w) == (th, tw):
            return 0, 0, h, w
        top, left = (int(default_generator.randint(0, n, (1,))[0]) for n in (h - th + 1, w - tw + 1))
        return top, left, th, tw

    def forward(self, img: Any) -> Any:
        how: dict[str, Any] = {"fill": self.fill, "padding_mode": self.padding_mode}
        if self.padding is not None:
            img = functional.pad(img, self.padding, **how)
        h, w = size_of(img)
        if self.pad_if_needed and w < self.size[1]:
            img = functional.pad(img, [self.size[1] - w, 0], **how)
        if self.pad_if_needed and h < self.size[0]:
            img = functional.pad(img, [0, self.size[0] - h], **how)
        return functional.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"RandomCrop(size={self.size}, padding={self.padding})"


class RandomHorizontalFlip(Sometimes):
    """out[..., i] = image[..., W - 1 - i], with probability p: left and right exchanged.

    >>> rushlight.vision.transforms.RandomHorizontalFlip(p=1.0)(rushlight.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """

    change = staticmethod(functional.hflip)


class RandomVerticalFlip(RandomHorizontalFlip):
    """out[..., i, :] = image[..., H - 1 - i, :], with probability p: top and bottom exchanged.

    >>> rushlight.vision.transforms.RandomVerticalFlip(p=1.0)(rushlight.tensor([[[1], [2]]]))
    tensor([[[2],
             [1]]])
    """

    change = staticmethod(functional.vflip)


class RandomGrayscale(Transform):
    """Grey with probability p, with as many channels as before.

    >>> rushlight.vision.transforms.RandomGrayscale(p=1.0)(rushlight.ones(3, 4, 4)).shape
    torch.Size([3, 4, 4])
    """

    shows = ("p",)

    def __init__(self, p: float = 0.1):
        self.p = p

    def forward(self, img: Any) -> Any:
        channels = functional.get_image_num_channels(img)
        return functional.rgb_to_grayscale(img, channels) if chance() < self.p else img


class RandomRotation(Transform):
    """out(A p) = image(p), where A is a rotation by a random angle: in (min, max) degrees, or a number for (-n, n).

    >>> rushlight.vision.transforms.RandomRotation((90, 90))(rushlight.tensor([[[1, 2], [3, 4]]]))
    tensor([[[2, 4],
             [1, 3]]])
    """

    shows = ("degrees", "interpolation", "expand", "fill")

    def __init__(
        self, degrees: float | Sequence[float], interpolation: InterpolationMode = InterpolationMode.NEAREST,
        expand: bool = False, center: Sequence[float] | None = None, fill: float = 0,
    ):  # fmt: skip
        if isinstance(degrees, (int, float)):
            if degrees < 0:
                raise value_error("If degrees is a single number, it must be positive.")
            degrees = (-degrees, degrees)
        self.degrees = [float(d) for d in degrees]
        self.interpolation, self.expand = InterpolationMode(interpolation), expand
        self.center, self.fill = center, fill

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """A random angle."""
        return drawn(*degrees)

    def forward(self, img: Any) -> Any:
        angle = self.get_params(self.degrees)
        return functional.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)


class RandomApply(Transform):
    """All of the transforms with probability p, otherwise none of them.

    >>> t = rushlight.vision.transforms
    >>> t.RandomApply([t.RandomHorizontalFlip(p=1.0)], p=1.0)(rushlight.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """

    def __init__(self, transforms: Sequence[Callable], p: float = 0.5):
        self.transforms, self.p = transforms, p

    def forward(self, img: Any) -> Any:
        return img if self.p < chance() else Compose(self.transforms)(img)

    def __repr__(self) -> str:
        return "\n".join([f"RandomApply(\n    p={self.p}", *(f"    {t}" for t in self.transforms), ")"])


class RandomChoice(Transform):
    """One of the transforms, with equal probabilities or with `p`; drawn by Python's `random`.

    >>> t = rushlight.vision.transforms
    >>> t.RandomChoice([t.RandomHorizontalFlip(1.0), t.RandomVerticalFlip(1.0)], p=[1, 0])(rushlight.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """

    def __init__(self, transforms: Sequence[Callable], p: Sequence[float] | None = None):
        self.transforms, self.p = transforms, p

    def forward(self, img: Any) -> Any:
        return random.choices(self.transforms, weights=self.p)[0](img)

    def __repr__(self) -> str:
        return "\n".join(["RandomChoice(", *(f"    {t}" for t in self.transforms), f")(p={self.p})"])


__all__ = [
    "CenterCrop", "ConvertImageDtype", "Grayscale", "Lambda", "Normalize", "PILToTensor", "Pad", "RandomApply",
    "RandomChoice", "RandomCrop", "RandomGrayscale", "RandomHorizontalFlip", "RandomRotation", "RandomVerticalFlip",
    "Resize", "ToPILImage", "ToTensor",
]  # fmt: skip
