"""Random transforms. Their random numbers are drawn in torchvision's order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import empty, tensor
from rushlight.random import default_generator
from rushlight.vision.images import InterpolationMode, size_of
from rushlight.vision.transforms import colors, warps
from rushlight.vision.transforms.base import Sometimes, Transform, chance, drawn
from rushlight.vision.transforms.basics import pair


def below(n: int, low: int = 0) -> int:
    """A whole number from `low` to n - 1."""
    return int(default_generator.randint(low, n, (1,))[0])


def shape_of(scale: Sequence[float], ratio: Sequence[float], area: int) -> tuple[float, float]:
    """A random area, and a random ratio of width to height with uniform logarithm."""
    low, high = (float(v) for v in tensor([float(r) for r in ratio]).log().tolist())
    wanted = area * drawn(*scale)
    return wanted, float(empty(1).uniform_(low, high).exp().item())


class RandomResizedCrop(Transform):
    """A part of random position, size and shape, resized. `scale`: range of its area as a fraction of the image;
    `ratio`: range of width to height.

    >>> rushlight.vision.transforms.RandomResizedCrop(4)(rushlight.zeros(3, 10, 12)).shape
    torch.Size([3, 4, 4])
    """

    def __init__(
        self, size: int | Sequence[int], scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0), interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ):  # fmt: skip
        self.size, self.scale, self.ratio = pair(size), scale, ratio
        self.interpolation, self.antialias = InterpolationMode(interpolation), antialias

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Top, left, height and width of a random part. After ten parts that do not fit: the centre of the image."""
        height, width = size_of(img)
        for _ in range(10):
            area, shape = shape_of(scale, ratio, height * width)
            w, h = int(round(math.sqrt(area * shape))), int(round(math.sqrt(area / shape)))
            if 0 < w <= width and 0 < h <= height:
                return below(height - h + 1), below(width - w + 1), h, w
        w, h = width, height
        if width / height < min(ratio):
            h = int(round(width / min(ratio)))
        elif width / height > max(ratio):
            w = int(round(height * max(ratio)))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img: Any) -> Any:
        part = self.get_params(img, self.scale, self.ratio)
        return warps.resized_crop(img, *part, self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        scale, ratio = (tuple(round(v, 4) for v in pair) for pair in (self.scale, self.ratio))
        return (
            f"RandomResizedCrop(size={self.size}, scale={scale}, ratio={ratio}, "
            f"interpolation={self.interpolation.value}, antialias={self.antialias})"
        )


class ColorJitter(Transform):
    """Random changes of brightness, contrast, saturation and hue, in random order.

    A number v means factors from max(0, 1 - v) to 1 + v, for hue from -v to v; or give (minimum, maximum).

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.vision.transforms.ColorJitter(brightness=(0.5, 0.5))(rushlight.ones(3, 1, 2))[0]
    tensor([[0.5000, 0.5000]])
    """

    shows = ("brightness", "contrast", "saturation", "hue")

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0):
        self.brightness, self.contrast = factors("brightness", brightness), factors("contrast", contrast)
        self.saturation = factors("saturation", saturation)
        self.hue = factors("hue", hue, 0.0, (-0.5, 0.5))

    @staticmethod
    def get_params(brightness: Any, contrast: Any, saturation: Any, hue: Any) -> tuple[Any, ...]:
        """The order of the four changes, and their factors; None for a change without effect."""
        order = default_generator.randperm(4)
        return (order, *(None if r is None else drawn(*r) for r in (brightness, contrast, saturation, hue)))

    def forward(self, img: Any) -> Any:
        order, *chosen = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (colors.adjust_brightness, colors.adjust_contrast, colors.adjust_saturation, colors.adjust_hue)
        for i in (int(i) for i in order):
            if chosen[i] is not None:
                img = changes[i](img, chosen[i])
        return img


def factors(
    name: str, value: Any, middle: float = 1.0, bounds: tuple[float, float] = (0.0, math.inf)
) -> tuple[float, float] | None:
    """(min, max) of a setting; None if it does not change the image."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise value_error(f"If {name} is a single number, it must be non negative.")
        low, high = middle - value, middle + value
        low = max(low, 0.0) if middle else low
    else:
        low, high = (float(v) for v in value)
    if not bounds[0] <= low <= high <= bounds[1]:
        raise value_error(f"{name} values should be between {bounds}, but got {[low, high]}.")
    return None if low == high == middle else (float(low), float(high))


class GaussianBlur(Transform):
    """out = sum of w_k image_k, w ~ exp(-k^2 / (2 sigma^2)): blurred by a kernel of `kernel_size` and a random sigma.

    >>> rushlight.vision.transforms.GaussianBlur(3, sigma=1.0)(rushlight.eye(3)[None])[0]
    tensor([[0.5046, 0.3715, 0.3005],
            [0.3715, 0.3544, 0.3715],
            [0.3005, 0.3715, 0.5046]])
    """

    shows = ("kernel_size", "sigma")

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)):
        self.kernel_size = pair(kernel_size)
        self.sigma = (float(sigma),) * 2 if isinstance(sigma, (int, float)) else tuple(float(s) for s in sigma)
        if any(k <= 0 or k % 2 == 0 for k in self.kernel_size):
            raise value_error("Kernel size value should be an odd and positive number.")
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise value_error(f"sigma values should be positive and of the form (min, max). Got {self.sigma}")

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        return drawn(sigma_min, sigma_max)

    def forward(self, img: Any) -> Any:
        sigma = self.get_params(*self.sigma)
        return colors.gaussian_blur(img, self.kernel_size, [sigma, sigma])


class RandomAffine(Transform):
    """out(A p) = image(p), where A is a random affine map: rotation, translation, scaling and shear.

    `degrees` and `shear`: (min, max), or a number n for (-n, n); `translate`: (x, y) as fractions of the size; `scale`:
    (min, max).

    >>> rushlight.vision.transforms.RandomAffine(degrees=(90, 90))(rushlight.tensor([[[1, 2], [3, 4]]]))
    tensor([[[3, 1],
             [4, 2]]])
    """

    def __init__(
        self, degrees: Any, translate: Sequence[float] | None = None, scale: Sequence[float] | None = None,
        shear: Any = None, interpolation: InterpolationMode = InterpolationMode.NEAREST, fill: Any = 0,
        center: Sequence[int] | None = None,
    ):  # fmt: skip
        self.degrees = either_way("degrees", degrees)
        self.translate, self.scale = translate, scale
        self.shear = None if shear is None else either_way("shear", shear)
        self.interpolation, self.fill, self.center = InterpolationMode(interpolation), fill, center
        if translate is not None and not all(0.0 <= t <= 1.0 for t in translate):
            raise value_error("translation values should be between 0 and 1")
        if scale is not None and not all(s > 0 for s in scale):
            raise value_error("scale values should be positive")

    @staticmethod
    def get_params(
        degrees: Sequence[float], translate: Sequence[float] | None, scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None, img_size: Sequence[int],
    ) -> tuple[Any, ...]:  # fmt: skip
        """An angle, (x, y) to move by, a scale and two shears, for an image of (width, height)."""
        angle = drawn(degrees[0], degrees[1])
        moved = (
            (0, 0)
            if translate is None
            else tuple(int(round(drawn(-float(t * n), float(t * n)))) for t, n in zip(translate, img_size))
        )
        scale = 1.0 if scale_ranges is None else drawn(scale_ranges[0], scale_ranges[1])
        x = 0.0 if shears is None else drawn(shears[0], shears[1])
        y = drawn(shears[2], shears[3]) if shears is not None and len(shears) == 4 else 0.0
        return angle, moved, scale, (x, y)

    def forward(self, img: Any) -> Any:
        height, width = size_of(img)
        angle, moved, scale, shear = self.get_params(
            self.degrees, self.translate, self.scale, self.shear, [width, height]
        )
        return warps.affine(img, angle, moved, scale, shear, self.interpolation, self.fill, self.center)

    def __repr__(self) -> str:
        nearest = self.interpolation is InterpolationMode.NEAREST
        settings = {
            "degrees": self.degrees,
            "translate": self.translate,
            "scale": self.scale,
            "shear": self.shear,
            "interpolation": None if nearest else self.interpolation.value,
            "fill": self.fill if self.fill != 0 else None,
            "center": self.center,
        }
        return f"RandomAffine({', '.join(f'{k}={v}' for k, v in settings.items() if v is not None)})"


def either_way(name: str, value: Any) -> list[float]:
    """[-v, v] for a number v; otherwise the given numbers."""
    if isinstance(value, (int, float)):
        if value < 0:
            raise value_error(f"If {name} is a single number, it must be positive.")
        return [-float(value), float(value)]
    return [float(v) for v in value]


class RandomPerspective(Transform):
    """A random perspective, with probability p: each corner moves inwards by up to `distortion_scale` / 2.

    >>> rushlight.vision.transforms.RandomPerspective(p=1.0)(rushlight.zeros(3, 8, 8)).shape
    torch.Size([3, 8, 8])
    """

    shows = ("p",)

    def __init__(
        self, distortion_scale: float = 0.5, p: float = 0.5,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR, fill: Any = 0,
    ):  # fmt: skip
        self.distortion_scale, self.p = distortion_scale, p
        self.interpolation, self.fill = InterpolationMode(interpolation), fill

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """The corners, and where they move to."""
        x, y = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))
        ends = []
        for right, bottom in ((0, 0), (1, 0), (1, 1), (0, 1)):
            ends.append(
                [
                    below(width, width - x - 1) if right else below(x + 1),
                    below(height, height - y - 1) if bottom else below(y + 1),
                ]
            )
        return [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], ends

    def forward(self, img: Any) -> Any:
        if chance() >= self.p:
            return img
        height, width = size_of(img)
        starts, ends = self.get_params(width, height, self.distortion_scale)
        return warps.perspective(img, starts, ends, self.interpolation, self.fill)


class RandomErasing(Transform):
    """A random rectangle of a tensor (..., C, H, W) becomes `value`, with probability p; noise for 'random'.

    `scale`: range of the area as a fraction of the image; `ratio`: range of height to width. Z. Zhong et al., *Random
    erasing data augmentation*, 2020.

    >>> rushlight.vision.transforms.RandomErasing(p=1.0)(rushlight.ones(1, 8, 8)).min()
    tensor(0.)
    """

    def __init__(
        self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0, inplace: bool = False,
    ):  # fmt: skip
        if isinstance(value, str) and value != "random":
            raise value_error("If value is str, it should be 'random'")
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    @staticmethod
    def get_params(
        img: Tensor, scale: Sequence[float], ratio: Sequence[float], value: Sequence[float] | None = None
    ) -> tuple[int, int, int, int, Any]:
        """Top, left, height, width and colours of a rectangle. After ten rectangles that do not fit: the image
        itself."""
        c, height, width = img.shape[-3:]
        for _ in range(10):
            area, shape = shape_of(scale, ratio, height * width)
            h, w = int(round(math.sqrt(area * shape))), int(round(math.sqrt(area / shape)))
            if h < height and w < width:
                v = empty([c, h, w]).normal_() if value is None else tensor([float(x) for x in value])[:, None, None]
                return below(height - h + 1), below(width - w + 1), h, w, v
        return 0, 0, height, width, img

    def forward(self, img: Tensor) -> Tensor:
        if chance() >= self.p:
            return img
        value = self.value
        colours = None if value == "random" else [value] if isinstance(value, (int, float)) else list(value)
        if colours is not None and len(colours) not in (1, img.shape[-3]):
            raise value_error(
                f"If value is a sequence, it should have either a single value or {img.shape[-3]} (number of "
                "input channels)"
            )
        return warps.erase(img, *self.get_params(img, self.scale, self.ratio, colours), self.inplace)

    def __repr__(self) -> str:
        return (
            f"RandomErasing(p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value}, "
            f"inplace={self.inplace})"
        )


class FiveCrop(Transform):
    """The four corners and the centre: five images of `size`.

    >>> [crop.item() for crop in rushlight.vision.transforms.FiveCrop(1)(rushlight.arange(9).reshape(1, 3, 3))]
    [0, 2, 6, 8, 4]
    """

    shows: Sequence[str] = ("size",)

    def __init__(self, size: int | Sequence[int]):
        self.size = pair(size)

    def forward(self, img: Any) -> tuple[Any, ...]:
        return warps.five_crop(img, self.size)


class TenCrop(FiveCrop):
    """`FiveCrop` of the image and of the flipped image: ten images of `size`.

    >>> [crop.item() for crop in rushlight.vision.transforms.TenCrop(1)(rushlight.arange(9).reshape(1, 3, 3))]
    [0, 2, 6, 8, 4, 2, 0, 8, 6, 4]
    """

    shows = ("size", "vertical_flip")

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False):
        super().__init__(size)
        self.vertical_flip = vertical_flip

    def forward(self, img: Any) -> tuple[Any, ...]:
        return warps.ten_crop(img, self.size, self.vertical_flip)


class RandomInvert(Sometimes):
    """out = most - image, with probability p: the negative.

    >>> rushlight.vision.transforms.RandomInvert(p=1.0)(rushlight.tensor([[[0, 255]]], dtype=rushlight.uint8))
    tensor([[[255,   0]]], dtype=torch.uint8)
    """

    change = staticmethod(colors.invert)


class RandomAutocontrast(Sometimes):
    """out = (x - least) / (most - least) of each channel, with probability p: from black to the brightest.

    >>> rushlight.vision.transforms.RandomAutocontrast(p=1.0)(rushlight.tensor([[[0.25, 0.5, 0.75]]]))
    tensor([[[0.0000, 0.5000, 1.0000]]])
    """

    change = staticmethod(colors.autocontrast)


class RandomEqualize(Sometimes):
    """Equalizes the histogram of each channel, with probability p.

    >>> image = rushlight.tensor([[[10, 20]]], dtype=rushlight.uint8).repeat(1, 1, 300)
    >>> rushlight.vision.transforms.RandomEqualize(p=1.0)(image)[0, 0, :2]
    tensor([  0, 255], dtype=torch.uint8)
    """

    change = staticmethod(colors.equalize)


class RandomPosterize(Sometimes):
    """Only the first `bits` of each byte, with probability p.

    >>> rushlight.vision.transforms.RandomPosterize(1, p=1.0)(rushlight.tensor([[[100, 200]]], dtype=rushlight.uint8))
    tensor([[[  0, 128]]], dtype=torch.uint8)
    """

    change, shows, setting = staticmethod(colors.posterize), ("bits", "p"), "bits"

    def __init__(self, bits: int, p: float = 0.5):
        super().__init__(p)
        self.bits = bits


class RandomSolarize(Sometimes):
    """out = max - x where x >= threshold, else x, with probability p: inverts bright pixels.

    >>> rushlight.vision.transforms.RandomSolarize(128, p=1.0)(rushlight.tensor([[[100, 200]]], dtype=rushlight.uint8))
    tensor([[[100,  55]]], dtype=torch.uint8)
    """

    change, shows, setting = staticmethod(colors.solarize), ("threshold", "p"), "threshold"

    def __init__(self, threshold: float, p: float = 0.5):
        super().__init__(p)
        self.threshold = threshold


class RandomAdjustSharpness(Sometimes):
    """out = blurred + factor (image - blurred), with probability p: sharper, or blurred if the factor is below 1.

    >>> sharpen = rushlight.vision.transforms.RandomAdjustSharpness(2.0, p=1.0)
    >>> sharpen(rushlight.full((1, 3, 3), 0.5)).mean()
    tensor(0.5000)
    """

    change, shows, setting = staticmethod(colors.adjust_sharpness), ("sharpness_factor", "p"), "sharpness_factor"

    def __init__(self, sharpness_factor: float, p: float = 0.5):
        super().__init__(p)
        self.sharpness_factor = sharpness_factor


__all__ = [
    "ColorJitter", "FiveCrop", "GaussianBlur", "RandomAdjustSharpness", "RandomAffine", "RandomAutocontrast",
    "RandomEqualize", "RandomErasing", "RandomInvert", "RandomPerspective", "RandomPosterize", "RandomResizedCrop",
    "RandomSolarize", "TenCrop",
]  # fmt: skip
