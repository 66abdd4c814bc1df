"""The records of an archive: a zip file with one folder, as torch writes it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def opened(f: Any) -> Iterator[tuple[IO[bytes], str]]:
    """(binary file that can seek, its name) of a path, an open file, or bytes."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file, os.fspath(f)
    elif isinstance(f, (bytes, bytearray)):
        yield io.BytesIO(f), "the archive"
    elif hasattr(f, "read") and hasattr(f, "seek"):
        yield f, str(getattr(f, "name", type(f).__name__))
    else:
        raise type_error(f"load(): f must be a path or a binary file that can seek, not {type(f).__name__}")
