"""Files that are the old one or the new one at any moment, whenever the program or the machine stops."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing_path(filename: str | os.PathLike) -> Iterator[Path]:
    """The path of a new file beside, which takes the name when all is written, and is removed if that fails.

    A device or a pipe is itself written to. RuntimeError if the folder is missing.
    """
    path = Path(os.path.realpath(filename))
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist: make it first")
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        yield path
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        yield beside
        with open(beside, "r+b") as file:
            os.fsync(file.fileno())               # or a power cut could leave the new name on an empty file
        if path.exists():
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        os.replace(beside, path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)            # a full disk does not say which file it has no room for
        raise


@contextmanager
def replacing(filename: str | os.PathLike) -> Iterator[IO[bytes]]:
    """The same, open for writing."""
    with replacing_path(filename) as path, open(path, "wb") as file:
        yield file
