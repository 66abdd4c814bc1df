"""IDX files, the format MNIST is published in: a magic number, the sizes, then the values, big-endian."""

from __future__ import annotations

import gzip
import io
import math
import os
import zlib
from typing import BinaryIO

import numpy as np

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import from_numpy

# third byte of the magic number -> dtype
DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MAX_DIMENSIONS = 64  # the limit of a NumPy array
# limit of unpacked bytes: MAX_UNPACKED_BYTES + MAX_UNPACKED_RATIO times the file's size
MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO = 2**27, 100
CHUNK_BYTES = 2**20


def read_idx(file: str | os.PathLike[str] | BinaryIO) -> Tensor:
    """Read an IDX file, plain or gzip-compressed, as a tensor of the shape and dtype that it states.

    Shapes: any; MNIST's images are `(N, 28, 28)`, its labels `(N,)`. Dtypes: uint8, int8, int16, int32, float32,
    float64. Raises `ValueError` for a file that is not an IDX file, is truncated, or is longer than its header states;
    `OSError` if it cannot be read. The message begins with the path or `file.name`. Format: Y. LeCun, C. Cortes, C.
    Burges, *The MNIST database of handwritten digits*.

    >>> import io, rushlight as torch
    >>> raw = bytes([0, 0, 8, 2,  0, 0, 0, 1,  0, 0, 0, 3,  7, 8,
    ...     9])  # uint8, two dimensions: 1 and 3
    >>> torch.utils.data.read_idx(io.BytesIO(raw))
    tensor([[7, 8, 9]], dtype=torch.uint8)
    """
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as stream:
            return read_idx(stream)
    name = str(getattr(file, "name", "IDX data"))
    return from_numpy(parse(unpacked(file.read(), name), name))


def unpacked(raw: bytes, name: str) -> bytes | bytearray:
    """The content of a file that may be compressed."""
    if raw[:2] != b"\x1f\x8b":
        return raw
    content = bytearray()  # not a bytes object: the array takes its memory
    limit = MAX_UNPACKED_BYTES + MAX_UNPACKED_RATIO * len(raw)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            while part := file.read(CHUNK_BYTES):
                content += part
                if len(content) > limit:
                    raise ValueError(f"{name}: its {len(raw)} bytes would unpack to over {limit}")
        return content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise value_error(f"{name}: the compressed file is truncated or damaged ({error}); get it again") from None


def parse(raw: bytes | bytearray, name: str) -> np.ndarray:
    """The array of an IDX file, in the machine's byte order; `name` opens error messages."""
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in DTYPES:
        raise value_error(
            f"{name}: not an IDX file: it starts with {raw[:4].hex(' ') or 'nothing'}, not with 00 00, a type "
            f"({', '.join(f'{t:02x}' for t in DTYPES)}) and the number of dimensions"
        )
    dtype, start = np.dtype(DTYPES[raw[2]]), 4 + 4 * raw[3]
    if len(raw) < start:
        raise value_error(f"{name}: the file is truncated: it ends within its {raw[3]} sizes; get it again")
    shape = tuple(int.from_bytes(raw[i : i + 4], "big") for i in range(4, start, 4))
    stated, there = math.prod(shape) * dtype.itemsize, len(raw) - start
    if there != stated:
        fault = "the file is truncated" if there < stated else "there is more than it states"
        raise value_error(
            f"{name}: {fault}: shape {shape} takes {stated} bytes, {there} follow the header; get it again"
        )
    if len(shape) > MAX_DIMENSIONS:
        raise value_error(f"{name}: {len(shape)} dimensions are more than {MAX_DIMENSIONS}")
    array = np.frombuffer(bytearray(raw) if isinstance(raw, bytes) else raw, dtype, offset=start)
    return array.reshape(shape).astype(dtype.newbyteorder("="), copy=False)
