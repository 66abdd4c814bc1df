"""Tensors in NumPy's .npz files, for programs that have neither rushlight nor torch."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping

import numpy as np

from rushlight.base.errors import explain
from rushlight.core.tensor import Tensor, from_array
from rushlight.serialization.atomic_write import replacing

from .archive import UNREADABLE, Damaged


def save_npz(
    tensors: Mapping[str, Tensor], filename: str | os.PathLike, compressed: bool = False
) -> None:
    """Write {name: tensor} so that `numpy.load(filename)[name]` is the array; gradients are left
    out.

    The file is replaced atomically. TypeError for bfloat16, which NumPy lacks.

    >>> from rushlight.serialization import load_npz, save_npz
    >>> save_npz({"x": rushlight.arange(3)}, "/tmp/a.npz")
    >>> load_npz("/tmp/a.npz")
    {'x': tensor([0, 1, 2])}
    """
    for name, tensor in tensors.items():
        if tensor._array.dtype.kind == "V":
            raise TypeError(
                explain(
                    f"save_npz: NumPy has no {tensor.dtype}",
                    "save tensor.float(), or use a .pt or .safetensors file",
                    tensor=name,
                )
            )
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with replacing(filename) as file, zipfile.ZipFile(file, "w", method) as archive:
        for name, tensor in tensors.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as record:
                np.lib.format.write_array(record, tensor._array, allow_pickle=False)


def load_npz(filename: str | os.PathLike) -> dict[str, Tensor]:
    """{name: tensor} of a .npz file. RuntimeError for a file that is damaged or holds Python
    objects.

    >>> import os, tempfile
    >>> from rushlight.serialization import load_npz, save_npz
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npz")
    >>> save_npz({"x": rushlight.arange(3)}, path)
    >>> load_npz(path)
    {'x': tensor([0, 1, 2])}
    """
    try:
        with np.load(filename, allow_pickle=False) as arrays:
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                raise ValueError("the file contains a single array, not named arrays")
            return {
                name: from_array(np.ascontiguousarray(array) if array.ndim else array)
                for name, array in arrays.items()
            }
    except FileNotFoundError:
        raise
    except (*UNREADABLE, MemoryError) as error:
        raise Damaged(
            f"{os.fspath(filename)} is damaged, or not a .npz file of arrays: {error}"
        ) from error
