"""Tensors in NumPy's .npz files, for programs that have neither rushlight nor torch."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Mapping

import numpy as np

from rushlight.base.errors import first_line, type_error, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.serialization.atomic_write import replacing

from .archive import Damaged, check_records, unpack

MAX_HEADER_BYTES = 2**16  # the longest header of an .npy file that is read
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def save_npz(tensors: Mapping[str, Tensor], filename: str | os.PathLike, compressed: bool = False) -> None:
    """Write {name: tensor} so that `numpy.load(filename)[name]` is the array; gradients are left out.

    The file is replaced atomically. TypeError for bfloat16, which NumPy lacks.

    >>> from rushlight.serialization import load_npz, save_npz
    >>> save_npz({"x": rushlight.arange(3)}, "/tmp/a.npz")
    >>> load_npz("/tmp/a.npz")
    {'x': tensor([0, 1, 2])}
    """
    for name, tensor in tensors.items():
        if tensor._array.dtype.kind == "V":
            raise type_error(
                f"save_npz: NumPy has no {tensor.dtype}",
                "save tensor.float(), or use a .pt or .safetensors file",
                tensor=name,
            )
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with replacing(filename) as file, zipfile.ZipFile(file, "w", method) as archive:
        for name, tensor in tensors.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as record:
                np.lib.format.write_array(record, tensor._array, allow_pickle=False)


def load_npz(filename: str | os.PathLike) -> dict[str, Tensor]:
    """{name: tensor} of a .npz file. RuntimeError for a file that is damaged or holds Python objects.

    >>> import os, tempfile
    >>> from rushlight.serialization import load_npz, save_npz
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npz")
    >>> save_npz({"x": rushlight.arange(3)}, path)
    >>> load_npz(path)
    {'x': tensor([0, 1, 2])}
    """

    def damaged(what: str) -> Damaged:
        return Damaged(f"{shown} is damaged, or not a .npz file of arrays: {what}")

    shown = filename if hasattr(filename, "read") else os.fspath(filename)
    try:
        with zipfile.ZipFile(filename) as archive:
            end = archive.fp.seek(0, os.SEEK_END)  # type: ignore[union-attr]
            check_records(archive, end, damaged)
            arrays = {}
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                if name in arrays:
                    raise damaged(f"it has the array {name!r} twice")
                arrays[name] = from_array(parsed(unpack(archive, info)))
            return arrays
    except (FileNotFoundError, PermissionError, IsADirectoryError, Damaged):
        raise
    except Exception as error:  # NumPy's parser of headers raises errors of many classes
        raise damaged(first_line(error)) from error


def parsed(record: np.ndarray) -> np.ndarray:
    """The array of an .npy file, in the memory of its bytes: (n,) uint8. ValueError for other content."""
    header = io.BytesIO(record[:MAX_HEADER_BYTES].tobytes())
    version = np.lib.format.read_magic(header)
    if version not in HEADERS:
        raise value_error(f"an array in version {version} of the format")
    shape, fortran, dtype = HEADERS[version](header)
    content = record[header.tell() :]
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content):
        raise value_error(f"an array of shape {shape} and {dtype} in {len(content)} bytes")
    array = np.ndarray(shape, dtype, content, order="F" if fortran else "C")
    return np.require(array, dtype.newbyteorder("="), ["C", "A", "W"])
