"""Images in files as tensors (C, H, W) uint8, read and written by Pillow: torchvision.io."""

from __future__ import annotations

import io
import os
from enum import Enum
from types import ModuleType
from typing import Any

import numpy as np

from rushlight.base.errors import explain, runtime_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.vision.images import pillow
from rushlight.vision.transforms.basics import pil_to_tensor, to_pil_image

__all__ = [
    "ImageReadMode", "decode_image", "decode_jpeg", "decode_png", "encode_jpeg", "encode_png", "read_file",
    "read_image", "write_file", "write_jpeg", "write_png",
]  # fmt: skip


class ImageReadMode(Enum):
    """The channels of an image that is read.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "black.png")
    >>> rushlight.vision.io.write_png(rushlight.zeros(3, 2, 2, dtype=rushlight.uint8), path)
    >>> rushlight.vision.io.read_image(path, rushlight.vision.io.ImageReadMode.GRAY).shape
    torch.Size([1, 2, 2])
    """

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


MODES = {
    ImageReadMode.GRAY: "L", ImageReadMode.GRAY_ALPHA: "LA", ImageReadMode.RGB: "RGB", ImageReadMode.RGB_ALPHA: "RGBA",
}  # fmt: skip


def pillow_or_error() -> ModuleType:
    found = pillow()
    if found is None:
        raise ImportError(
            explain("images are read and written with Pillow, which is not installed", "pip install pillow")
        )
    return found


def read_file(path: str | os.PathLike) -> Tensor:
    """A file's bytes, (N,) uint8.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "bytes")
    >>> rushlight.vision.io.write_file(path, rushlight.tensor([1, 2, 3], dtype=rushlight.uint8))
    >>> rushlight.vision.io.read_file(path)
    tensor([1, 2, 3], dtype=torch.uint8)
    """
    return from_array(np.fromfile(path, np.uint8))


def write_file(filename: str | os.PathLike, data: Tensor) -> None:
    """Write these bytes, (N,) uint8, to a file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "bytes")
    >>> rushlight.vision.io.write_file(path, rushlight.tensor([1, 2, 3], dtype=rushlight.uint8))
    >>> os.path.getsize(path)
    3
    """
    data._array.astype(np.uint8).tofile(filename)


def read_image(
    path: str | os.PathLike, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False
) -> Tensor:
    """The image in a file, (C, H, W) uint8, converted to the channels of `mode`.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "black.png")
    >>> rushlight.vision.io.write_png(rushlight.zeros(3, 2, 4, dtype=rushlight.uint8), path)
    >>> rushlight.vision.io.read_image(path).shape
    torch.Size([3, 2, 4])
    """
    return decode_image(os.fspath(path), mode, apply_exif_orientation)


def decode_image(input: Any, mode: Any = ImageReadMode.UNCHANGED, apply_exif_orientation: bool = False) -> Tensor:
    """The image in a file as (C, H, W) uint8. `input`: the file's path, or its bytes (N,) uint8.

    >>> data = rushlight.vision.io.encode_png(rushlight.zeros(3, 2, 4, dtype=rushlight.uint8))
    >>> rushlight.vision.io.decode_image(data).shape
    torch.Size([3, 2, 4])
    """
    mode = ImageReadMode[mode.upper()] if isinstance(mode, str) else mode
    with pillow_or_error().open(io.BytesIO(input._array.tobytes()) if isinstance(input, Tensor) else input) as image:
        if apply_exif_orientation:
            from PIL import ImageOps

            image = ImageOps.exif_transpose(image)
        wanted = MODES.get(mode, "RGB" if image.mode in ("P", "CMYK", "YCbCr") else image.mode)
        return pil_to_tensor(image if image.mode == wanted else image.convert(wanted))


decode_jpeg = decode_png = decode_image


def encoded(image: Tensor, **how: Any) -> Tensor:
    if not isinstance(image, Tensor) or image._array.dtype != np.uint8 or image._array.ndim != 3:
        raise runtime_error("Input tensor dtype should be uint8 and its shape (C, H, W)")
    pillow_or_error()
    file = io.BytesIO()
    to_pil_image(image).save(file, **how)
    return from_array(np.frombuffer(file.getvalue(), np.uint8).copy())


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """The bytes of a PNG file of an image (C, H, W) uint8.

    >>> data = rushlight.vision.io.encode_png(rushlight.zeros(3, 2, 4, dtype=rushlight.uint8))
    >>> bytes(data[1:4].tolist())
    b'PNG'
    """
    return encoded(input, format="PNG", compress_level=compression_level)


def encode_jpeg(input: Tensor, quality: int = 75) -> Tensor:
    """The bytes of a JPEG file of an image (C, H, W) uint8.

    >>> data = rushlight.vision.io.encode_jpeg(rushlight.zeros(3, 2, 4, dtype=rushlight.uint8))
    >>> data[:2].tolist()  # a JPEG file begins so
    [255, 216]
    """
    return encoded(input, format="JPEG", quality=quality)


def write_png(input: Tensor, filename: str | os.PathLike, compression_level: int = 6) -> None:
    """A PNG file of an image (C, H, W) uint8.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "black.png")
    >>> rushlight.vision.io.write_png(rushlight.zeros(3, 2, 4, dtype=rushlight.uint8), path)
    >>> rushlight.vision.io.read_image(path).max()
    tensor(0, dtype=torch.uint8)
    """
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Tensor, filename: str | os.PathLike, quality: int = 75) -> None:
    """A JPEG file of an image (C, H, W) uint8.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "black.jpg")
    >>> rushlight.vision.io.write_jpeg(rushlight.zeros(3, 2, 4, dtype=rushlight.uint8), path)
    >>> rushlight.vision.io.read_image(path).max()
    tensor(0, dtype=torch.uint8)
    """
    write_file(filename, encode_jpeg(input, quality))
