"""`save` and `load`: .pt files that torch can also read and write.

A file is a zip archive of `data.pkl`, a pickle with torch's names, and one record for each block of memory that tensors
share. By default (`weights_only=True`) loading a file runs no code from the file.

>>> import io
>>> file = io.BytesIO()
>>> save({"weight": rushlight.ones(2), "epoch": 3}, file)
>>> _ = file.seek(0)
>>> load(file)
{'weight': tensor([1., 1.]), 'epoch': 3}
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from rushlight.base.errors import explain, not_implemented_error, runtime_error, type_error, value_error
from rushlight.base.missing_names import tell as _tell
from rushlight.base.public_function import MORE
from rushlight.ops.tensor.storage_classes import TypedStorage
from rushlight.serialization.allowed_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from rushlight.serialization.atomic_write import replacing
from rushlight.serialization.name_map import StorageType

from . import legacy
from .archive import Damaged, Reader, Writer
from .legacy import LegacyReader
from .npz import load_npz, save_npz
from .pickler import Pickler
from .rebuild import layout as _get_layout  # the layout as written in pickles of sparse tensors
from .rebuild import storage_on
from .safetensors import SUFFIX, load_file, save_file
from .unpickler import AnyUnpickler, WeightsUnpickler


def normalize_storage_type(storage_type: type) -> type:
    """torch's storage class of that name."""
    return MORE.get(storage_type.__name__, storage_type)  # type: ignore[return-value]


__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "load_file", "load_npz", "safe_globals",
    "save", "save_file", "save_npz",
]  # fmt: skip

DEFAULT_PROTOCOL = 2  # the pickle protocol of torch.save
File = str | os.PathLike | IO[bytes]
FILE_LIKE = File  # torch's name
# torch's name of the type of map_location
MAP_LOCATION = Callable[[Any, str], Any] | str | dict[str, str] | None  # also a torch.device


def save(
    obj: Any, f: File, pickle_module: Any = pickle, pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:  # fmt: skip
    """Write tensors, containers of tensors, and other picklable objects to a path or an open binary file.

    Tensors that share memory share memory after loading. torch.load reads the file, too, with weights_only=True if it
    holds only tensors, containers, numbers and text. The file is written under another name and then renamed, so `f`
    never holds half a file. A path that ends in .safetensors gets that format, for a flat dict of tensors
    (`save_file`). RuntimeError if the folder is missing, or if tensors share memory with different dtypes. The pickle
    protocol is always 2, which every reader supports.

    >>> import io
    >>> file = io.BytesIO()  # or a path
    >>> rushlight.save(rushlight.arange(3), file)
    >>> _ = file.seek(0)
    >>> rushlight.load(file)
    tensor([0, 1, 2])
    """
    if pickle_module is not pickle:
        raise not_implemented_error("save supports only Python's pickle: omit pickle_module")
    if isinstance(f, (str, os.PathLike)) and os.fspath(f).endswith(SUFFIX):
        return save_file(obj, f)
    pickler = pickled(obj, not _use_new_zipfile_serialization)
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as file:
            write(pickler, file, Path(os.path.realpath(f)).stem)
    elif hasattr(f, "write"):
        write(pickler, f, "archive")
        if hasattr(f, "flush"):  # flush, since an open file can also be read by its name
            f.flush()
    else:
        raise type_error(f"save(): f must be a path or a binary file open for writing, not {type(f).__name__}")


def pickled(obj: Any, legacy: bool = False) -> Pickler:
    """Pickle `obj` twice: the first run finds the used parts of each memory block."""
    first = Pickler()
    first.dump(obj)
    second = Pickler(first, legacy)
    second.dump(obj)
    return second


def write(pickler: Pickler, file: IO[bytes], folder: str) -> None:
    """Write the records under torch's names, or in torch's format before 1.6."""
    if pickler.view:
        return legacy.write(pickler, file)
    with Writer(file, folder) as archive:
        archive.write("data.pkl", pickler.content.getbuffer())
        for record, content in ((".format_version", b"1"), (".storage_alignment", b"64"), ("byteorder", b"little")):
            archive.write(record, content)
        for memory in pickler.memories.values():
            archive.write(f"data/{memory.key}", memory.bytes.data)
        archive.write("version", b"3\n")


def load(
    f: File, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = True,
    mmap: bool | None = None,
) -> Any:  # fmt: skip
    """Load a file written by `save` or torch.save, or a safetensors file, from a path or an open seekable binary file.

    All tensors load to the CPU; tensors that shared memory share it again. With weights_only=True, or None, the file
    may hold tensors, containers, numbers and text; pickle.UnpicklingError names anything else. With False the file may
    run any code: only for files that you trust. `mmap=True` maps the file instead of reading it: unused parts are not
    read, and writes do not change the file. RuntimeError for a truncated file, or a file of another format.

    >>> import io
    >>> file = io.BytesIO()  # or a path
    >>> rushlight.save({"a": rushlight.zeros(1)}, file)
    >>> _ = file.seek(0)
    >>> rushlight.load(file, map_location="cpu")
    {'a': tensor([0.])}
    """
    if pickle_module not in (None, pickle):
        raise not_implemented_error("load supports only Python's pickle: omit pickle_module")
    check_location(map_location)
    unpickler = AnyUnpickler if weights_only is False else WeightsUnpickler
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            if is_safetensors(file):
                return load_file(f)
            return read(file, os.fspath(f), unpickler, bool(mmap))
    if mmap:
        raise value_error("f must be a file path in order to use the mmap argument")
    if not (hasattr(f, "read") and hasattr(f, "seek") and hasattr(f, "tell")):
        raise AttributeError(
            f"load(): f must be a path or a binary file that can seek, not {type(f).__name__}: read it into "
            "io.BytesIO first"
        )
    return read(f, str(getattr(f, "name", type(f).__name__)), unpickler, False)


def is_safetensors(file: IO[bytes]) -> bool:
    """True if the open file starts like a safetensors file: the length of a header, then `{`."""
    start = file.read(9)
    file.seek(0)
    return start[8:9] == b"{" and start[:4] != b"PK\x03\x04" and not legacy.is_pickle(start)


def check_location(location: Any) -> None:
    """RuntimeError for a device other than the CPU. A function or dict as map_location is ignored."""
    if location is None or callable(location) or isinstance(location, dict):
        return
    if str(location).partition(":")[0] != "cpu":
        raise runtime_error(f"map_location={str(location)!r}: the only device of rushlight is 'cpu'")


def read(file: IO[bytes], name: str, unpickler: Callable[..., Any], mapped: bool) -> Any:
    """The object in a file of any format; the first bytes tell the format."""
    where = file.tell()
    start = file.read(512)
    file.seek(where)
    if start[:4] == b"PK\x03\x04":
        return read_zip(Reader(file, name, mapped), unpickler)
    if not start:
        raise EOFError(f"{name} is empty" + (", or at its end: file.seek(0) first" if where else ""))
    if legacy.is_tar(start):
        raise runtime_error(
            f"{name} is of a torch before 0.1.10, in a tar format that rushlight does not read: load it in torch "
            "and torch.save it again"
        )
    if not legacy.is_pickle(start):
        hint = ": it looks like safetensors; give load() its path" if start[8:9] == b"{" else ""
        raise runtime_error(f"{name} is not a file that torch.save wrote" + hint)
    if mapped:
        raise runtime_error("mmap can only be used with files saved in torch's zip format: torch.save it again")
    return LegacyReader(file, name, unpickler).load(where)


def checked_id(pid: Any) -> tuple[StorageType, str, int]:
    """The type, key and number of elements in a persistent id of a zip file."""
    kind, type, key, _, elements = pid
    if kind.__class__ is not str or kind != "storage" or not isinstance(type, StorageType):
        raise value_error("an unknown persistent id")
    if not isinstance(key, str) or not isinstance(elements, int) or elements < 0:
        raise value_error("a storage has a name and 0 or more elements")
    return type, key, elements


def read_zip(reader: Reader, unpickler: Callable[..., Any]) -> Any:
    """The object of data.pkl, with its tensors on the archive's other records."""
    storages: dict[str, TypedStorage] = {}

    def lookup(pid: Any) -> TypedStorage:
        type, key, elements = checked_id(pid)
        if key not in storages:
            memory = reader.memory(key, type.dtype)
            if len(memory) < elements * type.itemsize:
                raise reader.damaged(f"the record data/{key} is shorter than its {elements} elements")
            storages[key] = storage_on(memory[: elements * type.itemsize], type)
        return storages[key]

    return unpickler(io.BytesIO(reader.read("data.pkl").data), lookup).load()


_tell(__name__)
