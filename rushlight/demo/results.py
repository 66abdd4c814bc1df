"""The folder of results: checked before the work starts, and filled at its end, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rushlight.demo import BadInput


def check_folder(folder: Path, names: Iterable[str], overwrite: bool) -> None:
    """Raise `BadInput` if `write` could not make or fill the folder, or would replace results unasked."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"cannot write to {folder}: it is a file; name a folder with --out")
    try:
        if folder.exists() and any(folder.iterdir()) and not overwrite:
            raise BadInput(f"{folder} exists already; pass --overwrite to replace the results in it, or another --out")
        for name in names:
            if (folder / name).is_dir():
                raise BadInput(f"cannot replace {folder / name}: it is a folder; pass another --out")
        probe = staging(nearest(folder))
        probe.mkdir()
        probe.rmdir()
    except OSError as error:
        raise BadInput(f"cannot write to {folder}: {error.strerror}; name another folder with --out") from None


def nearest(folder: Path) -> Path:
    """The folder, or its nearest existing parent."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def staging(place: Path) -> Path:
    return place / f".rushlight-{os.getpid()}"


def write(folder: Path, writers: Mapping[str, Callable[[Path], object]]) -> None:
    """Let each writer write its file to a temporary folder, then move all files to their place.

    A new folder appears by a single rename. In an existing folder, files with these names are replaced.
    """
    fresh = not folder.exists()
    if fresh:
        folder.parent.mkdir(parents=True, exist_ok=True)
    stage = staging(folder.parent if fresh else folder)
    stage.mkdir()
    try:
        for name, writer in writers.items():
            writer(stage / name)
        if fresh:
            stage.rename(folder)
        else:
            for name in writers:
                os.replace(stage / name, folder / name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
