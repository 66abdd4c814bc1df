"""Atomic replacement of files: if the program or the machine stops at any time, the file is the old or the new one.

The new content is written to `.NAME.XXXXXXXX.saving` beside the file, which is renamed at the end. A program that is
killed leaves this temporary file, but no lock on the file. The next save in the folder removes temporary files without
a lock."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from rushlight.base.errors import runtime_error

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed
    fcntl = cast(Any, None)

SUFFIX = ".saving"
RANDOM_BYTES = 4  # bytes of the random part of a temporary file's name


@contextmanager
def replacing_path(filename: str | os.PathLike) -> Iterator[Path]:
    """Yields the path of a temporary file in the same folder, which is renamed at the end, or removed after an error.

    For a device or a pipe, yields its own path. RuntimeError if the folder is missing.
    """
    path = Path(os.path.realpath(filename))
    if not path.parent.is_dir():
        raise runtime_error(f"Parent directory {path.parent} does not exist: create it first")
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        yield path
        return
    remove_left_over(path.parent)
    beside, locked = temporary(path)
    try:
        yield beside
        with open(beside, "r+b") as file:
            # without this, a power cut could leave an empty file under the new name
            os.fsync(file.fileno())
        if path.exists():
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        if fcntl is None:
            locked.close()  # Windows cannot rename an open file
        os.replace(beside, path)
    except BaseException as error:
        locked.close()
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # the error for a full disk lacks the file name
        raise
    finally:
        locked.close()


def temporary(path: Path) -> tuple[Path, IO[bytes]]:
    """(path, open file) of a new temporary file beside `path`, locked until it is closed."""
    while True:
        beside = path.with_name(f".{path.name}.{os.urandom(RANDOM_BYTES).hex()}{SUFFIX}")
        file = open(beside, "xb")  # noqa: SIM115  (closed by the caller)
        if lock(file) and beside.exists():  # otherwise another save has removed it before the lock
            return beside, file
        file.close()


def lock(file: IO[bytes]) -> bool:
    """Lock a file until the file is closed. False if another program has locked the file.

    On a file system without locks, the file counts as locked by this process, and no file is removed (below).
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def remove_left_over(folder: Path) -> None:
    """Remove temporary files of programs that were killed: files without a lock."""
    for path in folder.glob(f".*{SUFFIX}"):
        with suppress(OSError):  # gone, owned by another user, or open on Windows
            if fcntl is None:
                path.unlink()
                continue
            with open(path, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


@contextmanager
def replacing(filename: str | os.PathLike) -> Iterator[IO[bytes]]:
    """`replacing_path`, with the file open for writing."""
    with replacing_path(filename) as path, open(path, "wb") as file:
        yield file
