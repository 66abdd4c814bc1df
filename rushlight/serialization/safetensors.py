"""safetensors files, as in `safetensors.torch`: named tensors, and no code.

>>> from rushlight.serialization import load_file, save_file
>>> save_file({"weight": rushlight.ones(2, dtype=rushlight.bfloat16)}, "/tmp/a.safetensors")
>>> load_file("/tmp/a.safetensors")
{'weight': tensor([1., 1.], dtype=torch.bfloat16)}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.dtypes import of
from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.serialization.atomic_write import replacing

from .archive import Damaged

SUFFIX = ".safetensors"
# dtype -> name in the format, in the order in which the package writes tensors
TYPES = {
    dtypes.uint64: "U64",
    dtypes.int64: "I64",
    dtypes.float64: "F64",
    dtypes.complex64: "C64",
    dtypes.float32: "F32",
    dtypes.uint32: "U32",
    dtypes.int32: "I32",
    dtypes.bfloat16: "BF16",
    dtypes.float16: "F16",
    dtypes.uint16: "U16",
    dtypes.int16: "I16",
    dtypes.int8: "I8",
    dtypes.uint8: "U8",
    dtypes.bool_: "BOOL",
}
Path = str | os.PathLike


def library() -> Any:
    """The package safetensors. ImportError with a hint if it is missing."""
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError("safetensors files need the package safetensors: pip install safetensors") from error
    return safetensors


def load_file(filename: Path, device: Any = "cpu") -> dict[str, Tensor]:
    """{name: tensor} of a safetensors file, each tensor in its own memory.

    Supports all dtypes that safetensors and rushlight share, also bfloat16. FileNotFoundError for a missing file,
    RuntimeError for a file that is damaged or of another format.

    >>> import os, tempfile
    >>> from rushlight.serialization import load_file, save_file
    >>> path = os.path.join(tempfile.mkdtemp(), "w.safetensors")
    >>> save_file({"w": rushlight.ones(2)}, path)
    >>> load_file(path)
    {'w': tensor([1., 1.])}
    """
    with opened(filename) as file:
        return {name: from_array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118  (no mapping)


def load(data: bytes) -> dict[str, Tensor]:
    """{name: tensor} of the bytes of a safetensors file."""
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=SUFFIX) as file:  # the package reads bfloat16 from files only
        file.write(data)
        file.flush()
        return load_file(file.name)


def metadata(filename: Path) -> dict[str, str]:
    """The metadata of a safetensors file: {name: text}."""
    with opened(filename) as file:
        return file.metadata() or {}


@contextmanager
def opened(filename: Path) -> Iterator[Any]:
    """Yields the package's reader of a file whose header names each tensor once."""
    package, path = library(), os.fspath(filename)
    with _clear(package, path), package.safe_open(path, framework="np") as file:
        check_names(path)
        yield file


def check_names(path: str) -> None:
    """Damaged for a header that names a tensor twice: some readers take the first, some the last."""

    def once(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise Damaged(f"{path} is damaged: its header has {twice!r} twice")

    with open(path, "rb") as file:
        header = file.read(int.from_bytes(file.read(8), "little"))
    try:
        json.loads(header, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path} is damaged: its header is no JSON ({error})") from error


def save_file(tensors: Mapping[str, Tensor], filename: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write {name: tensor}, and `metadata` {name: text}; the file is replaced atomically.

    ValueError if a tensor is not contiguous, or `tensors` is not a dict of tensors. RuntimeError for tensors that share
    memory and for complex128, which the format does not support.

    >>> import os, tempfile
    >>> from rushlight.serialization import load_file, save_file
    >>> path = os.path.join(tempfile.mkdtemp(), "w.safetensors")
    >>> save_file({"w": rushlight.ones(2)}, path, {"author": "nobody"})
    >>> load_file(path)["w"]
    tensor([1., 1.])
    """
    library()
    arrays = checked(tensors)
    names = in_order(arrays)
    with replacing(filename) as file:
        # the package would write a temporary file of its own, which a killed program leaves
        file.write(header(arrays, names, metadata))
        for name in names:
            file.write(arrays[name].reshape(-1).view(np.uint8).data)


def in_order(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """The names, in the package's order: by dtype, largest elements first, then by name."""
    for name, array in arrays.items():
        if of(array.dtype) not in TYPES:
            raise runtime_error(f"the tensor {name!r} is {of(array.dtype)}, which the format lacks")
    ranks = {dtype: rank for rank, dtype in enumerate(TYPES)}
    return sorted(arrays, key=lambda name: (ranks[of(arrays[name].dtype)], name.encode()))


def header(arrays: Mapping[str, np.ndarray], names: Sequence[str], metadata: Mapping[str, str] | None) -> bytes:
    """The bytes before the tensors: the length of a JSON text, and the text, padded to 8 bytes."""
    texts: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    end = 0
    for name in names:
        array = arrays[name]
        texts[name] = {
            "dtype": TYPES[of(array.dtype)],
            "shape": array.shape,
            "data_offsets": (end, end := end + array.nbytes),
        }
    text = json.dumps(texts, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file."""
    package, arrays = library(), checked(tensors)
    with _clear(package, "the file"):
        return package.numpy.save(arrays, None if metadata is None else dict(metadata))


def checked(tensors: Any) -> dict[str, Any]:
    """{name: array} of {name: tensor}, checked; with the error messages of safetensors."""
    if not isinstance(tensors, Mapping):
        raise value_error(
            f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}",
            "save model.state_dict(), or use a name that ends in .pt for other objects",
        )
    memories: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or not isinstance(name, str):
            raise value_error(
                f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}",
                "a safetensors file contains a flat dict of tensors; use a .pt file for other objects",
            )
        if not tensor._array.flags.c_contiguous:
            raise value_error(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed.",
                "save tensor.contiguous()",
            )
        if tensor._array.size:
            memories.setdefault(owner(tensor._array), []).append(name)
    shared = [set(names) for names in memories.values() if len(names) > 1]
    if shared:
        raise runtime_error(
            "Some tensors share memory, this will lead to duplicate memory on disk and potential differences "
            f"when loading them again: {shared}.",
            "save one of them only, or a .clone() of the others, or use a .pt file",
        )
    return {name: tensor._array for name, tensor in tensors.items()}


def owner(array: Any) -> int:
    """The id of the memory block that an array is part of."""
    while getattr(array, "base", None) is not None and hasattr(array.base, "__array_interface__"):
        array = array.base
    return array.__array_interface__["data"][0]


@contextmanager
def _clear(package: Any, name: str) -> Iterator[None]:
    """Inside, errors of the package become RuntimeErrors with the file's name."""
    try:
        yield
    except package.SafetensorError as error:
        text = str(error)
        if "deserializ" in text or "header" in text.lower() or "offset" in text.lower():
            raise Damaged(
                f"{name} is damaged, or not a safetensors file: {text}. Copy or download it again, or save it again"
            ) from error
        raise runtime_error(f"{name}: {text}") from error
