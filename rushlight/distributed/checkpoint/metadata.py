"""The file `.metadata` of a checkpoint, in the format of torch.distributed.checkpoint: a pickle of objects of torch's
classes. Here they are read into records and written from records. No class named in a file is imported."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rushlight.base.device import strided
from rushlight.base.dtypes import dtype
from rushlight.base.size import Size
from rushlight.serialization.name_map import Name
from rushlight.serialization.pickler import Pickler
from rushlight.serialization.unpickler import WeightsUnpickler, refusal

HOME = "torch.distributed.checkpoint.metadata"
FILES_HOME = "torch.distributed.checkpoint.filesystem"
NAMES = (
    *("Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "TensorProperties"),
    *("ChunkStorageMetadata", "MetadataIndex", "StorageMeta"),
)
VERSION = "1.0.0"


@dataclass
class Stored:
    """A part of a value in a file. `offsets`, `sizes`: its place in the whole tensor; None for an object."""

    file: str
    start: int
    length: int
    offsets: tuple[int, ...] | None = None
    sizes: tuple[int, ...] | None = None


@dataclass
class Entry:
    """A value of the checkpoint. `path`: its keys in the nested state. `dtype`, `shape`: of a tensor; None for an
    object."""

    path: tuple[str | int, ...]
    parts: list[Stored]
    dtype: dtype | None = None
    shape: tuple[int, ...] | None = None


class Record:
    """An object of one of torch's classes: the class's name and the pickled state."""

    name: Name
    state: Any = None

    def __init__(self, state: Any):
        self.state = state

    def __setstate__(self, state: Any) -> None:
        self.state = state


def record_class(home: str, name: str) -> type[Record]:
    return type(name, (Record,), {"name": Name(home, name)})


CLASSES = {(HOME, name): record_class(HOME, name) for name in NAMES}
CLASSES[FILES_HOME, "_StorageInfo"] = record_class(FILES_HOME, "_StorageInfo")
NEW_OBJECT, ENCODING = Name("copyreg", "__newobj__"), Name(HOME, "_MEM_FORMAT_ENCODING")


class Encoding(int):
    """torch's number of a memory format: 0 is contiguous."""


def new_record(cls: Any) -> Record:
    """In place of copyreg.__newobj__, by which pickles make objects: a new record."""
    if cls not in CLASSES.values():
        raise refusal(f"the file makes an object of {cls}")
    return cls(None)


def path_of(*parts: str) -> str:
    """A path, as text."""
    return "/".join(parts)


# the functions that a file may call
FUNCTIONS = {
    ("copyreg", "__newobj__"): new_record,
    (HOME, "_MEM_FORMAT_ENCODING"): Encoding,
    **{
        (home, kind): path_of
        for home in ("pathlib", "pathlib._local")
        for kind in ("Path", "PosixPath", "PurePosixPath", "WindowsPath")
    },
}


class MetadataUnpickler(WeightsUnpickler):
    """Reads `.metadata`. pickle.UnpicklingError for names of other classes."""

    def __init__(self, file: Any):
        super().__init__(file, no_storage)
        self.users = {**self.users, **CLASSES}
        self.allowed = {**self.allowed, **CLASSES, **FUNCTIONS}
        self.callables |= {id(f) for f in (*CLASSES.values(), *FUNCTIONS.values())}


def no_storage(pid: Any) -> Any:
    raise refusal("metadata has tensors")


class MetadataPickler(Pickler):
    """Writes records as objects of torch's classes."""

    def reducer_override(self, obj: Any) -> Any:
        """The reduction of a record."""
        if isinstance(obj, Record):
            return NEW_OBJECT, (type(obj).name,), obj.state
        if isinstance(obj, Encoding):
            return ENCODING, (int(obj),)
        return super().reducer_override(obj)


def record(name: str, state: Any, home: str = HOME) -> Record:
    return CLASSES[home, name](state)


def written_metadata(entries: dict[str, Entry]) -> bytes:
    """The content of `.metadata`."""
    values, places = {}, {}
    for name, entry in entries.items():
        if entry.shape is None:
            values[name] = record("BytesStorageMetadata", {})
        else:
            chunks = [
                record("ChunkStorageMetadata", {"offsets": Size(part.offsets or ()), "sizes": Size(part.sizes or ())})
                for part in entry.parts
            ]
            layout = (entry.dtype, strided, False, Encoding(0), False)
            values[name] = record(
                "TensorStorageMetadata",
                {"properties": record("TensorProperties", layout), "size": Size(entry.shape), "chunks": chunks},
            )
        for number, part in enumerate(entry.parts):
            offset = None if part.offsets is None else Size(part.offsets)
            index = {"fqn": name, "offset": offset, "index": None if offset is None else number}
            info = {
                "relative_path": part.file, "offset": part.start, "length": part.length, "transform_descriptors": None,
            }  # fmt: skip
            places[record("MetadataIndex", index)] = record("_StorageInfo", info, FILES_HOME)
    pickler = MetadataPickler()
    pickler.dump(
        record(
            "Metadata",
            {
                "state_dict_metadata": values,
                "planner_data": {name: entry.path for name, entry in entries.items()},
                "storage_data": places,
                "storage_meta": None,
                "version": VERSION,
            },
        )
    )
    return pickler.content.getvalue()


def read_metadata(content: bytes) -> dict[str, Entry]:
    """The entries that `.metadata` describes."""
    state = MetadataUnpickler(io.BytesIO(content)).load().state
    paths = state.get("planner_data") or {}
    found = {}
    for name, value in state["state_dict_metadata"].items():
        entry = found[name] = Entry(tuple(paths.get(name, (name,))), [])
        if value.name.name == "TensorStorageMetadata":
            entry.dtype = value.state["properties"].state[0]
            entry.shape = tuple(value.state["size"])
    sizes = {
        (name, tuple(chunk.state["offsets"])): tuple(chunk.state["sizes"])
        for name, value in state["state_dict_metadata"].items()
        for chunk in (value.state or {}).get("chunks", ())
    }
    for index, info in state["storage_data"].items():
        name, offset = index.state["fqn"], index.state.get("offset")
        where = info.state
        if where.get("transform_descriptors"):
            raise NotImplementedError(f"{name} is compressed: {where['transform_descriptors']}")
        place = (where["relative_path"], where["offset"], where["length"])
        shape = found[name].shape
        if shape is None:
            found[name].parts.append(Stored(*place))
        else:
            at: Sequence[int] = offset if offset is not None else (0,) * len(shape)
            found[name].parts.append(Stored(*place, tuple(at), sizes[name, tuple(at)]))
    return found
