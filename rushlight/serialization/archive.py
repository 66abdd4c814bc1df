"""The container: a zip file of uncompressed records, each at a multiple of 64 bytes, so that records can be mapped."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from rushlight.base.dtypes import dtype
from rushlight.base.errors import runtime_error

ALIGNMENT = 64
# header of a record: length of the name, length of the extra field
_LOCAL_HEADER = struct.Struct("<26xHH")
# end of the file: signature, number of records
_END = struct.Struct("<4s6xH10x")
_ZIP64_COUNT = 0xFFFF  # this number of records means: the true number is stored elsewhere
# limit of the unpacked bytes of compressed records: the first number, plus the second times the file's size
MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO = 2**28, 100
# limit of a compressed pickle, which makes objects of up to 200 times its bytes
MAX_PICKLE_BYTES, MAX_PICKLE_RATIO = 2**21, 20
_UTF8 = 0x800  # flag of a record whose name is in UTF-8
# records besides data/*; the headers of all other records are read, to detect damaged names
RECORDS = ("data.pkl", "version")
_ZIP64_EXTRA = 20  # bytes that zipfile adds to the header of a record that may be over 2 GiB


UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    OverflowError,
    OSError,
    EOFError,
    NotImplementedError,
)  # errors that zipfile raises for a damaged file


class Damaged(RuntimeError):
    """A truncated or damaged file."""


def check_records(archive: zipfile.ZipFile, size: int, damaged: Callable[[str], Damaged]) -> None:
    """Refuse malicious archives in `size` bytes: two records of one name, names with paths, zip bombs."""
    check_table(archive, size, damaged)
    names, stored, unpacked = set(), 0, 0
    for info in archive.infolist():
        name = info.filename
        if name in names or name.startswith("/") or {"..", ""} & set(name.replace("\\", "/").split("/")[:-1]):
            what = "twice" if name in names else "a path as the name of"
            raise damaged(f"it has {what} the record {name!r}")
        names.add(name)
        if info.compress_type == zipfile.ZIP_STORED:
            stored += info.file_size
        else:
            unpacked += info.file_size
    if stored > size:
        raise damaged(f"its records are said to take {stored:,} bytes, and the file has {size:,}")
    if unpacked > MAX_UNPACKED_BYTES + MAX_UNPACKED_RATIO * size:
        raise damaged(
            f"its {size:,} bytes would unpack to {unpacked:,}. If you trust it, unzip it and zip it again without "
            "compression"
        )


def check_table(archive: zipfile.ZipFile, size: int, damaged: Callable[[str], Damaged]) -> None:
    """Refuse a table of contents that omits records: the first record is not at the start of the file, or there are
    fewer records than the end of the file states.
    """
    file: Any = archive.fp
    infos = archive.infolist()
    first = min((info.header_offset for info in infos), default=-1)
    file.seek(0)
    begins = file.read(4) == b"PK\x03\x04"
    file.seek(max(0, size - _END.size - len(archive.comment)))
    ending = file.read(_END.size)
    count = _END.unpack(ending)[1] if ending[:4] == b"PK\x05\x06" else len(infos)
    if (begins and first != 0) or count not in (len(infos), _ZIP64_COUNT):
        raise damaged("its table of contents leaves out records")


def unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """The bytes of a record in new memory, (n,) uint8; BadZipFile if their CRC differs."""
    memory = np.empty(info.file_size, np.uint8)
    with archive.open(info) as record:
        if fill(record, memory) < info.file_size or record.read(1):
            raise zipfile.BadZipFile("its length is another than declared")
    return memory


class Reader:
    """The records of an open file, by their names below the archive's one folder."""

    def __init__(self, file: IO[bytes], name: str, mapped: bool = False) -> None:
        self.file, self.name, self.mapped = file, name, mapped
        try:
            self.zip = zipfile.ZipFile(file)
        except UNREADABLE as error:
            raise self.damaged(
                f"its table of contents is missing, as after a broken download or a full disk ({error})"
            ) from error
        self.size = file.seek(0, os.SEEK_END)
        self._check_names_and_sizes()
        self.infos: dict[str, zipfile.ZipInfo] = {}
        for info in self.zip.infolist():
            name = info.filename.partition("/")[2]
            if name in self.infos:
                raise self.damaged(f"it has the record {name!r} twice")
            self.infos[name] = info
            if name not in RECORDS and not name.startswith("data/"):
                self._start(info)
        self._check_kind()
        order = bytes(self.read("byteorder")) if "byteorder" in self.infos else b"little"
        self.swapped = order == b"big"

    def _check_names_and_sizes(self) -> None:
        check_records(self.zip, self.size, self.damaged)

    def _check_kind(self) -> None:
        """RuntimeError if the archive holds something else than what `torch.save` writes."""
        if "data.pkl" not in self.infos:
            hint = ": torch.export.load reads it" if "models/model.json" in self.infos else ": it has no data.pkl"
            raise runtime_error(f"{self.name} is a zip file, but not one that torch.save wrote{hint}")
        if "constants.pkl" in self.infos:
            raise runtime_error(f"{self.name} holds a TorchScript program: torch.jit.load reads it")

    def damaged(self, what: str) -> Damaged:
        return Damaged(f"{self.name} is damaged: {what}. Copy or download it again, or save it anew")

    def read(self, record: str) -> np.ndarray:
        """A record's bytes in new memory, (n,) uint8; checked against the CRC if the file has one."""
        info = self.infos.get(record)
        if info is None:
            raise self.damaged(f"the record {record} is missing")
        if info.compress_type != zipfile.ZIP_STORED:
            return self._unpacked(info)
        self.file.seek(self._start(info))
        memory = np.empty(info.file_size, np.uint8)
        if fill(self.file, memory) < info.file_size:
            raise self.damaged(f"it ends inside the record {record}")
        if info.CRC and zlib.crc32(memory.data) != info.CRC:  # 0: torch may leave the CRC out
            raise self.damaged(f"the bytes of the record {record} do not have the sum written beside them")
        return memory

    def _unpacked(self, info: zipfile.ZipInfo) -> np.ndarray:
        name = info.filename.partition("/")[2]
        if name.endswith(".pkl") and info.file_size > max(MAX_PICKLE_BYTES, MAX_PICKLE_RATIO * info.compress_size):
            raise self.damaged(f"its pickle would unpack to {info.file_size:,} bytes")
        try:
            return unpack(self.zip, info)
        except (*UNREADABLE, RuntimeError) as error:
            raise self.damaged(f"the record {info.filename} cannot be unpacked ({error})") from error

    def _start(self, info: zipfile.ZipInfo) -> int:
        """The offset of a record's bytes in the file; checks that they end inside the file."""
        size = info.file_size if info.compress_type == zipfile.ZIP_STORED else info.compress_size
        before = info.header_offset + _LOCAL_HEADER.size
        if info.header_offset >= 0 and before + size <= self.size:
            self.file.seek(info.header_offset)
            name, extra = _LOCAL_HEADER.unpack(self.file.read(_LOCAL_HEADER.size))
            written = self.file.read(name)
            if written != (info.orig_filename or info.filename).encode("utf-8" if info.flag_bits & _UTF8 else "cp437"):
                raise self.damaged(f"another record stands in the place of {info.filename}")
            start = before + name + extra
            if start + size <= self.size:
                return start
        raise self.damaged(f"the record {info.filename} reaches outside the file")

    def memory(self, key: str, dtype: dtype | None) -> np.ndarray:
        """The memory of storage `key`, (n,) uint8: read, or mapped (pages are then read on access)."""
        info = self.infos.get(f"data/{key}")
        if self.swapped:
            return swap(self.read(f"data/{key}"), dtype)
        if self.mapped and info is not None and info.compress_type == zipfile.ZIP_STORED and info.file_size:
            start = self._start(info)
            if not start % 16:
                # c: copy on write
                return np.asarray(np.memmap(self.file, np.uint8, "c", start, info.file_size))
        return self.read(f"data/{key}")


def swap(memory: np.ndarray, dtype: dtype | None) -> np.ndarray:
    """Swap the byte order of each number, and of each part of a complex number."""
    if dtype is None:
        raise runtime_error(
            "the file is of a machine of the other byte order, and holds memory of unknown dtype: save it there "
            "without uint16, uint32 and uint64 tensors"
        )
    return memory.reshape(-1, dtype.to_real().itemsize)[:, ::-1].reshape(-1)


def fill(file: IO[bytes], memory: np.ndarray) -> int:
    """Read into the whole memory block; returns the number of bytes read."""
    into: Any = getattr(file, "readinto", None)
    if into is None:
        content = file.read(len(memory))
        memory[: len(content)] = np.frombuffer(content, np.uint8)
        return len(content)
    view, done = memory.data, 0
    while done < len(memory):
        count = into(view[done:])
        if not count:
            break
        done += count
    return done


class Onward:
    """A write-only file for zipfile, without `tell` and `seek`."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self.file = file

    def write(self, data: Any) -> int:
        """Write data, unless the file has been abandoned."""
        return len(data) if self.file is None else self.file.write(data)

    def flush(self) -> None:
        """Does nothing: the caller flushes and closes the file."""


class Writer:
    """Writes records into an open file, below one folder; the same content gives the same bytes.

    A context manager: writes the table of contents at the end, unless an error was raised. The file stays open."""

    def __init__(self, file: IO[bytes], folder: str) -> None:
        self.folder, self.onward = folder, Onward(file)
        self.zip = zipfile.ZipFile(self.onward, "w")  # type: ignore[call-overload]

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is not None:
            self.onward.file = None
        self.zip.close()

    def write(self, record: str, content: Any) -> None:
        """A record of bytes, or of the memory of a flat uint8 array."""
        info = zipfile.ZipInfo(f"{self.folder}/{record}")
        info.extra = self._padding(len(info.filename.encode()), len(content))
        self.zip.writestr(info, content)

    def _padding(self, name: int, size: int) -> bytes:
        """An extra field that ends at a multiple of 64, where the content begins."""
        before = self.zip.start_dir + 30 + name + (_ZIP64_EXTRA if size * 1.05 > zipfile.ZIP64_LIMIT else 0)
        length = -(before + 4) % ALIGNMENT
        return b"FB" + struct.pack("<H", length) + b"Z" * length
