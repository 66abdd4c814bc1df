"""Files of data sets: fetched, checked and unpacked, with torchvision's names."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

from rushlight.vision.datasets.download import download, is_whole, md5

__all__ = [
    "calculate_md5", "check_integrity", "check_md5", "download_and_extract_archive", "download_url", "extract_archive",
    "list_dir", "list_files",
]  # fmt: skip


def calculate_md5(fpath: str | os.PathLike, chunk_size: int = 1 << 20) -> str:
    """The md5 sum of a file."""
    return md5(Path(fpath))


def check_md5(fpath: str | os.PathLike, md5: str) -> bool:
    """Whether a file has this md5 sum."""
    return md5 == calculate_md5(fpath)


def check_integrity(fpath: str | os.PathLike, md5: str | None = None) -> bool:
    """Whether the file exists, and has the md5 sum, if it is given."""
    return is_whole(Path(fpath), md5)


def download_url(
    url: str, root: str | os.PathLike, filename: str | None = None, md5: str | None = None, max_redirect_hops: int = 3
) -> None:
    """Download a file to the folder `root`, unless it exists."""
    path = Path(os.path.expanduser(root)) / (filename or os.path.basename(url))
    if not is_whole(path, md5):
        download([url], path, md5)


def extract_archive(
    from_path: str | os.PathLike, to_path: str | os.PathLike | None = None, remove_finished: bool = False
) -> str:
    """Unpack a .zip, .tar, .tar.gz or .gz into `to_path`, by default the archive's folder. Returns the folder, or the
    unpacked file of a .gz."""
    source = Path(from_path)
    target = source.parent if to_path is None else Path(to_path)
    if source.suffix == ".gz" and not source.name.endswith(".tar.gz"):
        target = target / source.stem if to_path is None or target.is_dir() else target
        with gzip.open(source) as packed, open(target, "wb") as file:
            shutil.copyfileobj(packed, file)
    else:
        shutil.unpack_archive(source, target)
    if remove_finished:
        source.unlink()
    return str(target)


def download_and_extract_archive(
    url: str, download_root: str | os.PathLike, extract_root: str | os.PathLike | None = None,
    filename: str | None = None, md5: str | None = None, remove_finished: bool = False,
) -> None:  # fmt: skip
    """`download_url`, then `extract_archive`."""
    root = Path(os.path.expanduser(download_root))
    download_url(url, root, filename, md5)
    extract_archive(root / (filename or os.path.basename(url)), extract_root or root, remove_finished)


def list_dir(root: str | os.PathLike, prefix: bool = False) -> list[str]:
    """The names, or paths with `prefix`, of the folders in a folder."""
    return [
        os.path.join(root, name) if prefix else name
        for name in os.listdir(root)
        if os.path.isdir(os.path.join(root, name))
    ]


def list_files(root: str | os.PathLike, suffix: str, prefix: bool = False) -> list[str]:
    """The names, or paths with `prefix`, of the files in a folder that end in `suffix`."""
    return [
        os.path.join(root, name) if prefix else name
        for name in os.listdir(root)
        if os.path.isfile(os.path.join(root, name)) and name.endswith(suffix)
    ]
