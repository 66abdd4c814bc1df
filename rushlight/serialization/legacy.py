"""Files of torch before 1.6, or saved with _use_new_zipfile_serialization=False: five pickles, then the memories."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from rushlight.base.errors import runtime_error, value_error
from rushlight.serialization.name_map import StorageType

from .archive import Damaged, fill, swap
from .pickler import PROTOCOL as PICKLES
from .pickler import Pickler
from .rebuild import storage_on

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


INFO = {"protocol_version": PROTOCOL, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


def write(pickler: Pickler, file: IO[bytes]) -> None:
    """Write such a file from a pickler that has dumped the object."""
    memories = {memory.key: memory for memory in pickler.memories.values()}
    keys = sorted(memories)
    parts = [pickle.dumps(part, PICKLES) for part in (MAGIC, PROTOCOL, INFO, keys)]
    file.write(b"".join((*parts[:3], pickler.content.getvalue(), parts[3])))
    for key in keys:
        file.write(memories[key].elements.to_bytes(8, "little"))
        file.write(memories[key].bytes.data)


class LegacyReader:
    """Reads such a file from its present position; `unpickler`: a class of unpickler.py."""

    def __init__(self, file: IO[bytes], name: str, unpickler: Callable[..., Any]) -> None:
        self.file, self.name, self.unpickler = file, name, unpickler
        self.memories: dict[str, tuple[np.ndarray, StorageType]] = {}  # memory, filled at the end
        self.size = self.bytes_left = (
            file.seek(0, os.SEEK_END) if not hasattr(file, "seekable") or file.seekable() else 0
        )

    def load(self, start: int) -> Any:
        """The saved object."""
        self.file.seek(start)
        magic, protocol, info = (self.unpickle() for _ in range(3))
        if magic != MAGIC or protocol != PROTOCOL:
            raise runtime_error(
                f"{self.name} is not a file that torch.save wrote: it holds another pickle. Load it with the "
                "module pickle if you trust it"
            )
        little = not isinstance(info, dict) or info.get("little_endian", True)
        begin = self.file.tell()
        keys = (self.unpickle(), self.unpickle())[1]
        if (
            not isinstance(keys, list)
            or not all(isinstance(key, (str, int)) for key in keys)
            or sorted(map(str, keys)) != sorted(self.memories)
        ):
            raise self.damaged("the storages that follow are not those that it names")
        for key in map(str, keys):
            self.read(key, little)
        end = self.file.tell()
        self.file.seek(begin)
        # a second time, since a sparse tensor is made from the values in its memory
        result = self.unpickle()
        self.file.seek(end)
        return result

    def unpickle(self) -> Any:
        return self.unpickler(self.file, self.lookup).load()

    def lookup(self, pid: Any) -> Any:
        """The memory block of a persistent id; zeros until all pickles have been read."""
        if isinstance(pid, tuple) and pid[:1] == ("module",):
            return pid[1]  # a class with its source text, which is ignored
        kind, type, key, _, elements, view = pid
        if kind.__class__ is not str or kind != "storage" or not isinstance(type, StorageType):
            raise value_error("an unknown persistent id")
        if not isinstance(key, str) or not isinstance(elements, int):
            raise value_error("a storage has a name and a number of elements")
        item = type.itemsize
        if key not in self.memories:
            if not 0 <= elements * item <= self.bytes_left:
                raise self.damaged(f"a storage of {elements} elements cannot be in {self.size} bytes")
            self.bytes_left -= elements * item
            self.memories[key] = np.zeros(elements * item, np.uint8), type
        memory, _ = self.memories[key]
        if view is not None:
            _, offset, length = view
            if not 0 <= offset <= offset + length <= len(memory) // item:
                raise value_error("a view of a storage reaches outside the storage")
            memory = memory[offset * item : (offset + length) * item]
        return storage_on(memory, type)

    def damaged(self, what: str) -> Damaged:
        return Damaged(f"{self.name} is damaged: {what}. Copy or download it again, or save it again")

    def read(self, key: str, little: bool) -> None:
        """Read the memory block of a key: the number of elements, then the elements."""
        memory, type = self.memories[key]
        count = int.from_bytes(self.file.read(8), "little")
        if count * type.itemsize != len(memory) or fill(self.file, memory) < len(memory):
            raise self.damaged("it ends inside its storages")
        if not little and type.dtype is not None:
            memory[:] = swap(memory, type.dtype)


def is_tar(start: bytes) -> bool:
    """Whether these are the first bytes of a tar file, the format of torch before 0.1.10."""
    return start[257:262] == b"ustar"


def is_pickle(start: bytes) -> bool:
    """Whether these are the first bytes of MAGIC pickled with protocol 2 or later."""
    return start[:1] == b"\x80" and pickle.dumps(MAGIC, 2)[2:-1] in start[:40]
