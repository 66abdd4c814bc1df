"""The records of an archive: a zip file with one folder, as torch writes it."""

from __future__ import annotations

import io
import os
from typing import IO, Any

from rushlight.base.errors import type_error
from rushlight.serialization.archive import Reader


class Records(Reader):
    """The records by their names below the folder. `needed`: records without which the file is of another kind."""

    needed: tuple[str, ...] = ()
    kind = "an archive"

    def _check_kind(self) -> None:
        for name in self.needed:
            if name not in self.infos:
                raise self.damaged(f"it has no record {name}, and is not {self.kind}")

    def text(self, record: str, most: int) -> str:
        """A record as text; Damaged if it is longer than `most` bytes, or not UTF-8."""
        info = self.infos.get(record)
        if info is not None and info.file_size > most:
            raise self.damaged(f"the record {record} has {info.file_size:,} bytes, and {most:,} are allowed")
        try:
            return bytes(self.read(record)).decode()
        except UnicodeDecodeError:
            raise self.damaged(f"the record {record} is not text in UTF-8") from None


class Opened:
    """(binary file that can seek, its name) of a path, an open file, or bytes: a context manager, which closes the
    file of a path."""

    def __init__(self, f: Any):
        self.of_path: IO[bytes] | None = None
        self.file: Any
        if isinstance(f, (str, os.PathLike)):
            self.of_path = open(f, "rb")  # noqa: SIM115 -- __exit__ closes the file
            self.file = self.of_path
            self.name = os.fspath(f)
        elif isinstance(f, (bytes, bytearray)):
            self.file, self.name = io.BytesIO(f), "the archive"
        elif hasattr(f, "read") and hasattr(f, "seek"):
            self.file, self.name = f, str(getattr(f, "name", type(f).__name__))
        else:
            raise type_error(f"load(): f must be a path or a binary file that can seek, not {type(f).__name__}")

    def __enter__(self) -> tuple[IO[bytes], str]:
        return self.file, self.name

    def __exit__(self, *error: object) -> None:
        if self.of_path is not None:
            self.of_path.close()
