"""Functions that change colours or blur: of Pillow images (by Pillow), tensors (..., C, H, W) and arrays (H, W, C)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.errors import type_error, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.nn import functional as F
from rushlight.ops.math.elementwise import where
from rushlight.ops.shape.view_functions import stack
from rushlight.vision.images import is_pillow, on_planes
from rushlight.vision.transforms.basics import (
    as_floats,
    brightest,
    convert_image_dtype,
    pil_to_tensor,
    rgb_to_grayscale,
    to_pil_image,
)


def bound(img: Tensor) -> float:
    """The brightest value."""
    return 1.0 if img.is_floating_point() else float(brightest(img.dtype))


def blend(img: Tensor, other: Any, ratio: float) -> Tensor:
    """ratio img + (1 - ratio) other, clamped to the dtype's range of colours."""
    return (ratio * img + (1.0 - ratio) * other).clamp(0, bound(img)).to(img.dtype)


def enhanced(img: Any, kind: str, factor: float) -> Any:
    """Pillow's own function to change brightness, contrast or colour by a factor."""
    from PIL import ImageEnhance

    return getattr(ImageEnhance, kind)(img).enhance(factor)


def check_factor(name: str, factor: float) -> None:
    if factor < 0:
        raise value_error(f"{name} ({factor}) is not non-negative.")


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """min(factor image, most): colours times the factor. Factor 0 gives black, 1 the image itself.

    >>> rushlight.vision.transforms.functional.adjust_brightness(rushlight.ones(3, 1, 1), 0.5).flatten()
    tensor([0.5000, 0.5000, 0.5000])
    """
    check_factor("brightness_factor", brightness_factor)
    if is_pillow(img):
        return enhanced(img, "Brightness", brightness_factor)
    return on_planes(lambda x: blend(x, x.new_zeros(x.shape), brightness_factor), img)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """grey + factor (image - grey), where grey is the mean. Factor 0 gives a grey image, 1 the image itself.

    >>> rushlight.vision.transforms.functional.adjust_contrast(rushlight.tensor([[[0., 1.]]]).repeat(3, 1, 1), 0.0)[0]
    tensor([[0.5000, 0.5000]])
    """
    check_factor("contrast_factor", contrast_factor)
    if is_pillow(img):
        return enhanced(img, "Contrast", contrast_factor)

    def change(x: Tensor) -> Tensor:
        grey = rgb_to_grayscale(x) if x.shape[-3] == 3 else x
        grey = grey if grey.is_floating_point() else grey.float()
        return blend(x, grey.mean(dim=(-3, -2, -1), keepdim=True), contrast_factor)

    return on_planes(change, img)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """grey + factor (image - grey), where grey is the grey of each pixel. Factor 0 removes colours, 1 changes nothing.

    >>> red = rushlight.tensor([1., 0., 0.]).reshape(3, 1, 1)
    >>> rushlight.vision.transforms.functional.adjust_saturation(red, 0.0).flatten()
    tensor([0.2989, 0.2989, 0.2989])
    """
    check_factor("saturation_factor", saturation_factor)
    if is_pillow(img):
        return enhanced(img, "Color", saturation_factor)
    return on_planes(lambda x: x if x.shape[-3] == 1 else blend(x, rgb_to_grayscale(x), saturation_factor), img)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Rotate the hue by a fraction of a turn, -0.5 to 0.5.

    >>> red = rushlight.tensor([1., 0., 0.]).reshape(3, 1, 1)
    >>> rushlight.vision.transforms.functional.adjust_hue(red, 1 / 3).flatten()  # green
    tensor([0., 1., 0.])
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise value_error(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    if is_pillow(img):
        return pillow_hue(img, hue_factor)

    def change(x: Tensor) -> Tensor:
        if x.shape[-3] == 1:
            return x
        h, s, v = to_hsv(convert_image_dtype(x))
        return convert_image_dtype(from_hsv((h + hue_factor) % 1.0, s, v), x.dtype)

    return on_planes(change, img)


def pillow_hue(img: Any, hue_factor: float) -> Any:
    from PIL import Image

    if img.mode in ("L", "1", "I", "F"):
        return img
    h, s, v = img.convert("HSV").split()
    # wraps around
    turned = np.array(h, np.uint8) + np.array(hue_factor * 255).astype(np.int32).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), s, v)).convert(img.mode)


def to_hsv(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, saturation and value, 0 to 1, of (..., 3, H, W)."""
    r, g, b = x.unbind(-3)
    high, low = x.amax(-3), x.amin(-3)
    spread, grey = high - low, high == low
    one = high.new_ones(high.shape)
    s = spread / where(grey, one, high)
    apart = where(grey, one, spread)
    rc, gc, bc = (high - r) / apart, (high - g) / apart, (high - b) / apart
    red, green = high == r, (high == g) & (high != r)
    h = red * (bc - gc) + green * (2.0 + rc - bc) + (~red & ~green) * (4.0 + gc - rc)
    return (h / 6.0 + 1.0) % 1.0, s, high


def from_hsv(h: Tensor, s: Tensor, v: Tensor) -> Tensor:
    """(..., 3, H, W) of hue, saturation and value."""
    i = (h * 6.0).floor()
    f = h * 6.0 - i
    p, q, t = ((v * (1.0 - part)).clamp(0.0, 1.0) for part in (s, s * f, s * (1.0 - f)))
    sector = i.int() % 6
    chosen = [(v, t, p), (q, v, p), (p, v, t), (p, q, v), (t, p, v), (v, p, q)]
    found = []
    for channel in range(3):
        value = chosen[5][channel]
        for k in range(5):
            value = where(sector == k, chosen[k][channel], value)
        found.append(value)
    return stack(found, -3)


def adjust_gamma(img: Any, gamma: float, gain: float = 1) -> Any:
    """gain c^gamma, of colours c from 0 to 1.

    >>> rushlight.vision.transforms.functional.adjust_gamma(rushlight.full((3, 1, 1), 0.5), gamma=2).flatten()
    tensor([0.2500, 0.2500, 0.2500])
    """
    check_factor("gamma", gamma)
    if is_pillow(img):
        table = [int((255 + 1 - 1e-3) * gain * pow(c / 255.0, gamma)) for c in range(256)] * len(img.getbands())
        mode = img.mode
        return img.convert("RGB").point(table[:256] * 3).convert(mode) if mode not in ("L", "RGB") else img.point(table)
    return on_planes(lambda x: convert_image_dtype((gain * convert_image_dtype(x) ** gamma).clamp(0, 1), x.dtype), img)


def adjust_sharpness(img: Any, sharpness_factor: float) -> Any:
    """blurred + factor (image - blurred). Factor 0 gives a blurred image, 1 the image itself, 2 one twice as sharp.

    >>> rushlight.vision.transforms.functional.adjust_sharpness(rushlight.full((1, 3, 3), 0.5), 2.0).mean()
    tensor(0.5000)
    """
    check_factor("sharpness_factor", sharpness_factor)
    if is_pillow(img):
        return enhanced(img, "Sharpness", sharpness_factor)
    kernel = np.ones((3, 3), np.float32)
    kernel[1, 1] = 5

    def change(x: Tensor) -> Tensor:
        if x.shape[-1] <= 2 or x.shape[-2] <= 2:
            return x
        blurred = x.clone()
        blurred[..., 1:-1, 1:-1] = as_floats(x, lambda y: filtered(y, kernel / kernel.sum()), True)
        return blend(x, blurred, sharpness_factor)

    return on_planes(change, img)


def filtered(x: Tensor, kernel: ndarray) -> Tensor:
    """Each channel of (N, C, H, W) convolved with the kernel, without padding."""
    channels = x.shape[1]
    weight = from_array(np.broadcast_to(kernel.astype(x._array.dtype), (channels, 1, *kernel.shape)).copy())
    return F.conv2d(x, weight, groups=channels)


def gaussian_blur(img: Any, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None) -> Any:
    """Each pixel becomes the mean of its neighbours, weighted by exp(-d^2 / 2 sigma^2); kernel (width, height), odd
    sizes.

    `sigma` is 0.15 kernel_size + 0.35 if not given.

    >>> rushlight.vision.transforms.functional.gaussian_blur(rushlight.eye(3)[None], 3, sigma=1.0)[0]
    tensor([[0.5046, 0.3715, 0.3005],
            [0.3715, 0.3544, 0.3715],
            [0.3005, 0.3715, 0.5046]])
    """
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if any(k % 2 == 0 or k < 0 for k in sizes):
        raise value_error(f"kernel_size should have odd and positive integers. Got {kernel_size}")
    if sigma is None:
        sigma = [k * 0.15 + 0.35 for k in sizes]
    sigmas = [float(sigma)] * 2 if isinstance(sigma, (int, float)) else [float(s) for s in sigma]
    sigmas *= 2 // len(sigmas)
    if any(s <= 0 for s in sigmas):
        raise value_error(f"sigma should have positive values. Got {sigmas}")
    if is_pillow(img):
        return to_pil_image(gaussian_blur(pil_to_tensor(img), sizes, sigmas), img.mode)
    x, y = (bell(k, s) for k, s in zip(sizes, sigmas))
    around = [sizes[0] // 2, sizes[0] // 2, sizes[1] // 2, sizes[1] // 2]
    return on_planes(
        lambda t: as_floats(t, lambda a: filtered(F.pad(a, around, mode="reflect"), np.outer(y, x)), True), img
    )


def bell(size: int, sigma: float) -> ndarray:
    """Weights exp(-x^2 / 2 sigma^2) around the middle, of sum 1."""
    half = (size - 1) * 0.5
    weights = np.exp(-0.5 * (np.linspace(-half, half, size, dtype=np.float32) / np.float32(sigma)) ** 2)
    return weights / weights.sum()


def invert(img: Any) -> Any:
    """most - image: the negative.

    >>> rushlight.vision.transforms.functional.invert(rushlight.tensor([[[0, 255]]], dtype=rushlight.uint8))
    tensor([[[255,   0]]], dtype=torch.uint8)
    """
    if is_pillow(img):
        from PIL import ImageOps

        return ImageOps.invert(img)
    return on_planes(lambda x: bound(x) - x if x.is_floating_point() else int(bound(x)) - x, img)


def posterize(img: Any, bits: int) -> Any:
    """image & mask: only the first `bits` of each byte.

    >>> rushlight.vision.transforms.functional.posterize(rushlight.tensor([[[100, 200]]],
    ...     dtype=rushlight.uint8), bits=1)
    tensor([[[  0, 128]]], dtype=torch.uint8)
    """
    if is_pillow(img):
        from PIL import ImageOps

        return ImageOps.posterize(img, bits)
    return on_planes(lambda x: from_array(x._array & np.uint8(256 - 2 ** (8 - bits))), img)


def solarize(img: Any, threshold: float) -> Any:
    """max - x where x >= threshold, else x.

    >>> rushlight.vision.transforms.functional.solarize(rushlight.tensor([[[100, 200]]], dtype=rushlight.uint8), 128)
    tensor([[[100,  55]]], dtype=torch.uint8)
    """
    if is_pillow(img):
        from PIL import ImageOps

        return ImageOps.solarize(img, threshold)  # type: ignore[arg-type]
    if isinstance(img, Tensor) and threshold > bound(img):
        raise type_error("Threshold should be less than bound of img.", given=(threshold, bound(img)))
    return on_planes(lambda x: where(x >= threshold, invert(x), x), img)


def autocontrast(img: Any) -> Any:
    """(x - least) / (most - least) of each channel: stretched from black to the brightest.

    >>> rushlight.vision.transforms.functional.autocontrast(rushlight.tensor([[[0.25, 0.5, 0.75]]]))
    tensor([[[0.0000, 0.5000, 1.0000]]])
    """
    if is_pillow(img):
        from PIL import ImageOps

        return ImageOps.autocontrast(img)

    def change(x: Tensor) -> Tensor:
        a = x._array if x.is_floating_point() else x._array.astype(np.float32)
        low, high = a.min((-2, -1), keepdims=True), a.max((-2, -1), keepdims=True)
        flat = low == high
        scale = bound(x) / np.where(flat, 1, high - low)
        found = (a - np.where(flat, 0, low)) * np.where(flat, 1, scale)
        return from_array(np.clip(found, 0, bound(x)).astype(x._array.dtype))

    return on_planes(change, img)


def equalize(img: Any) -> Any:
    """Equalize the histogram of each channel of bytes.

    >>> image = rushlight.tensor([[[10, 20]]], dtype=rushlight.uint8).repeat(1, 1, 300)
    >>> rushlight.vision.transforms.functional.equalize(image)[0, 0, :2]
    tensor([  0, 255], dtype=torch.uint8)
    """
    if is_pillow(img):
        from PIL import ImageOps

        return ImageOps.equalize(img)

    def change(x: Tensor) -> Tensor:
        if x._array.dtype != np.uint8:
            raise type_error(f"Only torch.uint8 image tensors are supported, but found {x.dtype}")
        planes = x._array.reshape(-1, *x._array.shape[-2:])
        return from_array(np.stack([evened(plane) for plane in planes]).reshape(x._array.shape))

    return on_planes(change, img)


def evened(plane: ndarray) -> ndarray:
    """Equalize one channel by the cumulative sum of its histogram."""
    counts = np.bincount(plane.ravel(), minlength=256)
    step = counts[counts > 0][:-1].sum() // 255
    if step == 0:
        return plane
    table = (np.cumsum(counts) + step // 2) // step
    return np.clip(np.concatenate(([0], table[:-1])), 0, 255)[plane].astype(np.uint8)


__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation", "adjust_sharpness",
    "autocontrast", "equalize", "gaussian_blur", "invert", "posterize", "solarize",
]  # fmt: skip
