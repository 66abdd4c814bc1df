"""Atomic replacement of files: whenever the program or the machine stops, the file is the old or
the new one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing_path(filename: str | os.PathLike) -> Iterator[Path]:
    """Yields the path of a temporary file in the same folder, which is renamed at the end, or
    removed after an error.

    For a device or a pipe, yields its own path. RuntimeError if the folder is missing.
    """
    path = Path(os.path.realpath(filename))
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist: create it first")
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        yield path
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        yield beside
        with open(beside, "r+b") as file:
            # without this, a power cut could leave an empty file under the new name
            os.fsync(file.fileno())
        if path.exists():
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        os.replace(beside, path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # the error for a full disk names no file
        raise


@contextmanager
def replacing(filename: str | os.PathLike) -> Iterator[IO[bytes]]:
    """`replacing_path`, with the file open for writing."""
    with replacing_path(filename) as path, open(path, "wb") as file:
        yield file
