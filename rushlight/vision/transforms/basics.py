"""Conversions between Pillow images, tensors and arrays; crops, sizes and grey images of all three."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base import dtypes
from rushlight.base.errors import runtime_error, type_error, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import as_tensor
from rushlight.nn import functional as F
from rushlight.vision.images import (
    RESAMPLING,
    InterpolationMode,
    is_pillow,
    on_pixels,
    on_planes,
    pillow,
    planes,
    size_of,
)

# -- from one kind of image to another -------------------------------------------------------------


def pil_to_tensor(pic: Any) -> Tensor:
    """A Pillow image as a tensor (C, H, W) of its own dtype and values.

    >>> image = rushlight.vision.transforms.functional.to_pil_image(rushlight.zeros(3, 2, 4))
    >>> rushlight.vision.transforms.functional.pil_to_tensor(image).shape
    torch.Size([3, 2, 4])
    """
    if not is_pillow(pic):
        raise type_error(f"pic should be PIL Image. Got {type(pic)}")
    kinds = {"I": np.int32, "I;16": np.uint16, "F": np.float32}
    array = np.array(pic, kinds.get(pic.mode, np.uint8))
    if pic.mode == "1":
        array = array * np.uint8(255)
    return from_array(np.ascontiguousarray(array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)))


def to_tensor(pic: Any) -> Tensor:
    """A Pillow image, or an array (H, W) or (H, W, C), as a tensor (C, H, W); bytes become floats from 0 to 1.

    >>> import numpy as np
    >>> rushlight.vision.transforms.functional.to_tensor(np.full((1, 2, 3), 255, np.uint8))[0]
    tensor([[1., 1.]])
    """
    if is_pillow(pic):
        found = pil_to_tensor(pic)
    elif isinstance(pic, ndarray):
        if pic.ndim not in (2, 3):
            raise value_error(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        found = from_array(np.array(planes(pic), order="C"))
    else:
        raise type_error(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    if found._array.dtype != np.uint8:
        return found
    kind = dtypes.get_default_dtype().numpy
    return from_array(found._array.astype(kind) / kind.type(255))


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A tensor (C, H, W) or (H, W), or an array (H, W, C) or (H, W), as a Pillow image. ImportError without Pillow.

    >>> rushlight.vision.transforms.functional.to_pil_image(rushlight.zeros(3, 2,
    ...     4)).size  # (width, height)
    (4, 2)
    """
    module = pillow()
    if module is None:
        raise ImportError("to_pil_image needs Pillow: pip install pillow")
    if not isinstance(pic, (Tensor, ndarray)):
        raise type_error(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    array = pic._array if isinstance(pic, Tensor) else pic
    if array.ndim not in (2, 3):
        raise value_error(f"pic should be 2/3 dimensional. Got {array.ndim} dimensions.")
    if isinstance(pic, Tensor):
        if array.dtype.kind == "f" and mode != "F":
            array = (array * 255).astype(np.uint8)
        array = np.moveaxis(array, 0, -1) if array.ndim == 3 else array
    array = array[..., 0] if array.ndim == 3 and array.shape[-1] == 1 else array
    found = module.fromarray(np.ascontiguousarray(array))
    return found if mode is None or found.mode == mode else found.convert(mode)


def convert_image_dtype(image: Tensor, dtype: dtypes.dtype = dtypes.float32) -> Tensor:
    """A tensor in another dtype, scaled so that the brightest value stays the brightest: 255 in bytes, 1 in floats.

    RuntimeError for a cast to integers that have more digits than the floats.

    >>> rushlight.vision.transforms.functional.convert_image_dtype(rushlight.tensor([[[0, 255]]],
    ...     dtype=rushlight.uint8))
    tensor([[[0., 1.]]])
    """
    own = image.dtype
    if own is dtype:
        return image
    if own.is_floating_point and dtype.is_floating_point:
        return image.to(dtype)
    if own.is_floating_point:
        if (own is dtypes.float32 and dtype in (dtypes.int32, dtypes.int64)) or (
            own is dtypes.float64 and dtype is dtypes.int64
        ):
            raise runtime_error(f"The cast from {own} to {dtype} cannot be performed safely.")
        return (image * (brightest(dtype) + 1.0 - 1e-3)).to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype) / brightest(own)
    more, less = brightest(own), brightest(dtype)
    if more > less:
        return (image // int((more + 1) // (less + 1))).to(dtype)
    return image.to(dtype) * int((less + 1) // (more + 1))


def brightest(dtype: dtypes.dtype) -> int:
    return 1 if dtype is dtypes.bool_ else int(np.iinfo(dtype.numpy).max)


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """(x - mean) / std, channel by channel: a floating-point tensor (..., C, H, W). ValueError for a std of 0.

    >>> rushlight.vision.transforms.functional.normalize(rushlight.ones(1, 1, 2), [0.5], [0.25])
    tensor([[[2., 2.]]])
    """
    if not isinstance(tensor, Tensor):
        raise type_error(f"img should be Tensor Image. Got {type(tensor)}", "apply ToTensor() first")
    if not tensor.is_floating_point():
        raise type_error(f"Input tensor should be a float tensor. Got {tensor.dtype}.", "apply ToTensor() first")
    if tensor._array.ndim < 3:
        raise value_error(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tuple(tensor.shape)}"
        )
    kind = tensor._array.dtype
    m, s = (np.asarray(v, kind).reshape(-1, 1, 1) for v in (as_array(mean), as_array(std)))
    if (s == 0).any():
        raise value_error(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    if inplace:
        return tensor.sub_(from_array(m)).div_(from_array(s))
    made = (tensor - from_array(m)) / from_array(s)
    if made._array.shape != tensor._array.shape:
        raise runtime_error(
            f"output with shape {list(tensor.shape)} doesn't match the broadcast shape {list(made.shape)}",
            "pass one mean and one std for each channel of the image",
        )
    return made


def as_array(values: Any) -> ndarray:
    return values._array if isinstance(values, Tensor) else np.asarray(values, np.float64)


# -- positions of pixels ---------------------------------------------------------------------------


def hflip(img: Any) -> Any:
    """out[..., i] = image[..., W - 1 - i]: left and right exchanged.

    >>> rushlight.vision.transforms.functional.hflip(rushlight.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """
    return on_pixels(lambda a: a[..., ::-1].copy(), img)


def vflip(img: Any) -> Any:
    """out[..., i, :] = image[..., H - 1 - i, :]: top and bottom exchanged.

    >>> rushlight.vision.transforms.functional.vflip(rushlight.tensor([[[1], [2]]]))
    tensor([[[2],
             [1]]])
    """
    return on_pixels(lambda a: a[..., ::-1, :].copy(), img)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """out[..., i, j] = image[..., top + i, left + j], 0 outside the image.

    >>> rushlight.vision.transforms.functional.crop(rushlight.arange(9).reshape(1, 3, 3), 1, 0, 2, 2)
    tensor([[[3, 4],
             [6, 7]]])
    """
    h, w = size_of(img)
    before = max(-top, 0), max(-left, 0)
    after = max(top + height - h, 0), max(left + width - w, 0)

    def cut(a: ndarray) -> ndarray:
        part = a[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
        if not any(before + after):
            return part.copy()
        around = [(0, 0)] * (a.ndim - 2) + list(zip(before, after))
        return np.pad(part, around)

    return on_pixels(cut, img)


def center_crop(img: Any, output_size: int | Sequence[int]) -> Any:
    """The centre of the image, (height, width) or a square. A smaller image is first padded with 0.

    >>> rushlight.vision.transforms.functional.center_crop(rushlight.arange(16).reshape(1, 4, 4), 2)
    tensor([[[ 5,  6],
             [ 9, 10]]])
    """
    th, tw = pair(output_size)
    h, w = size_of(img)
    if tw > w or th > h:
        missing_w, missing_h = max(tw - w, 0), max(th - h, 0)
        img = pad(img, [missing_w // 2, missing_h // 2, (missing_w + 1) // 2, (missing_h + 1) // 2])
        h, w = size_of(img)
    return crop(img, int(round((h - th) / 2.0)), int(round((w - tw) / 2.0)), th, tw)


def pad(img: Any, padding: int | Sequence[int], fill: float = 0, padding_mode: str = "constant") -> Any:
    """The image with more pixels at each side. `padding`: one number, (left and right, top and bottom), or (left, top,
    right, bottom).

    `padding_mode`: 'constant' (`fill`), 'edge', 'reflect' or 'symmetric'.

    >>> rushlight.vision.transforms.functional.pad(rushlight.tensor([[[1, 2]]]), (1, 0))
    tensor([[[0, 1, 2, 0]]])
    """
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise value_error("Padding mode should be either constant, edge, reflect or symmetric", given=padding_mode)
    sides = [padding] if isinstance(padding, int) else list(padding)
    if len(sides) not in (1, 2, 4):
        raise value_error(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(sides)} element tuple")
    left, top, right, bottom = sides * (4 // len(sides))
    more: dict[str, Any] = {"constant_values": fill} if padding_mode == "constant" else {}

    def widen(a: ndarray) -> ndarray:
        a = a[..., max(-top, 0) : a.shape[-2] - max(-bottom, 0), max(-left, 0) : a.shape[-1] - max(-right, 0)]
        around = [(0, 0)] * (a.ndim - 2) + [(max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))]
        return np.pad(a, around, padding_mode, **more)  # type: ignore[call-overload]

    return on_pixels(widen, img)


def resize(
    img: Any, size: int | Sequence[int], interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    max_size: int | None = None, antialias: bool | None = True,
) -> Any:  # fmt: skip
    """The image with (height, width) pixels; one number is the length of the shorter side.

    Pillow images are resized by Pillow; tensors and arrays are interpolated ('nearest', 'bilinear', 'bicubic'). The
    result for bytes may differ from torchvision's by 1, since torchvision interpolates in integers.

    >>> rushlight.vision.transforms.functional.resize(rushlight.zeros(3, 8, 16), 4).shape
    torch.Size([3, 4, 8])
    """
    mode = InterpolationMode(interpolation)
    height, width = target_size(size_of(img), size, max_size)
    if is_pillow(img):
        return img.resize((width, height), RESAMPLING[mode])
    if isinstance(img, ndarray):
        return on_planes(lambda x: resize(x, (height, width), mode, None, antialias), img)
    if size_of(img) == (height, width):
        return img
    smooth = mode in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC)
    how: dict[str, Any] = {"align_corners": False, "antialias": bool(antialias)} if smooth else {}
    return as_floats(img, lambda x: F.interpolate(x, size=[height, width], mode=mode.value, **how), smooth)


def as_floats(img: Tensor, function: Any, rounds: bool) -> Tensor:
    """Apply a function of floats (N, C, H, W) to a tensor of any dtype and number of dimensions. Integers are rounded
    if `rounds`."""
    shape, own = img._array.shape, img.dtype
    x = img.reshape(-1, *shape[-3:]) if len(shape) >= 3 else img.reshape(1, 1, *shape)
    found = function(x if own.is_floating_point else x.float())
    if not own.is_floating_point:
        array = np.rint(found._array) if rounds else found._array
        array = np.clip(array, 0, 255) if own is dtypes.uint8 else array
        found = from_array(array.astype(own.numpy))
    return found.reshape(*shape[:-2], *found.shape[-2:])


def target_size(now: tuple[int, int], size: int | Sequence[int], max_size: int | None) -> tuple[int, int]:
    """(height, width) to resize to."""
    if not isinstance(size, int) and len(size) == 2:
        if max_size is not None:
            raise value_error("max_size should only be passed if size is an int or a sequence of length 1")
        return int(size[0]), int(size[1])
    short = size if isinstance(size, int) else int(size[0])
    h, w = now
    low, high = min(h, w), max(h, w)
    long = int(short * high / low)
    if max_size is not None:
        if max_size <= short:
            raise value_error(
                f"max_size = {max_size} must be strictly greater than the requested size for the smaller edge "
                f"size = {size}"
            )
        if long > max_size:
            short, long = int(max_size * short / long), max_size
    return (long, short) if w <= h else (short, long)


# -- colours ---------------------------------------------------------------------------------------


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """The brightness of each pixel, 0.2989 R + 0.587 G + 0.114 B, in 1 or 3 channels.

    >>> rushlight.vision.transforms.functional.rgb_to_grayscale(rushlight.tensor([1., 0., 0.]).reshape(3, 1, 1))
    tensor([[[0.2989]]])
    """
    if num_output_channels not in (1, 3):
        raise value_error("num_output_channels should be either 1 or 3")
    if is_pillow(img):
        grey = img.convert("L")
        return grey if num_output_channels == 1 else grey.convert("RGB")
    if isinstance(img, ndarray):
        found = rgb_to_grayscale(as_tensor(planes(img)), num_output_channels)
        return np.moveaxis(found._array, 0, -1)
    if img._array.ndim < 3 or img._array.shape[-3] not in (1, 3):
        raise type_error(f"Input image tensor permitted channel values are [1, 3], but found {tuple(img.shape)}")
    a = img._array
    if a.shape[-3] == 3:
        bright = 0.2989 * a[..., 0, :, :] + 0.587 * a[..., 1, :, :] + 0.114 * a[..., 2, :, :]
        a = bright.astype(a.dtype)[..., None, :, :]
    return from_array(np.repeat(a, num_output_channels, -3))


to_grayscale = rgb_to_grayscale


def pair(size: int | Sequence[int]) -> tuple[int, int]:
    """(height, width) from a number, or from a sequence of one or two.

    >>> rushlight.vision.transforms.functional.pair(3), rushlight.vision.transforms.functional.pair((3, 4))
    ((3, 3), (3, 4))
    """
    if isinstance(size, int):
        return size, size
    if len(size) not in (1, 2):
        raise value_error("Please provide only two dimensions (h, w) for size.", given=tuple(size))
    return int(size[0]), int(size[-1])
