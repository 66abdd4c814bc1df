"""Downloads: resumed after an interruption, checked by their MD5, moved into place when complete."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from rushlight.base.errors import runtime_error

BLOCK_BYTES = 1 << 20
TIMEOUT_SECONDS = 30.0  # for the server's answer


def md5(path: Path) -> str:
    """The MD5 checksum of a file."""
    found = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(BLOCK_BYTES):
            found.update(block)
    return found.hexdigest()


def is_whole(path: Path, expected: str | None) -> bool:
    """Whether the file exists and has the expected checksum."""
    return path.is_file() and (expected is None or md5(path) == expected)


def download(urls: Sequence[str], path: Path, expected: str | None = None) -> None:
    """Download a file from the first URL that has it. RuntimeError with all servers' answers if none has it.

    If a connection breaks, the received part is kept in PATH.part, and the next call continues it."""
    if is_whole(path, expected):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    troubles = []
    for url in urls:
        try:
            fetch(url, part := path.with_name(path.name + ".part"))
        except OSError as error:  # also urllib's errors, and a broken connection
            troubles.append(f"{url}: {getattr(error, 'reason', error) or type(error).__name__}")
            continue
        if is_whole(part, expected):
            os.replace(part, path)
            return
        troubles.append(f"{url}: the received file has the md5 {md5(part)}, not {expected}")
        part.unlink()
    raise runtime_error(
        f"could not download {path.name}:\n  "
        + "\n  ".join(troubles)
        + f"\n  hint: download the file by hand to {path}"
    )


def fetch(url: str, part: Path) -> None:
    """Append the missing part of a file. If the server cannot resume, start at the beginning."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"User-Agent": "rushlight", **({"Range": f"bytes={have}-"} if have else {})})
    try:
        with (
            urlopen(request, timeout=TIMEOUT_SECONDS) as answer,
            open(part, "ab" if answer.status == 206 else "wb") as file,
        ):
            shutil.copyfileobj(answer, file, BLOCK_BYTES)
            length = answer.headers.get("Content-Length")
    except HTTPError as error:
        if error.code == 416 and have:  # the part is already complete
            return
        raise
    came = part.stat().st_size - (have if answer.status == 206 else 0)
    if length is not None and came < int(length):
        raise OSError(f"the connection broke after {came:,} of {int(length):,} bytes: call again to resume")
