"""Data sets of photographs with other file formats: house numbers (SVHN), STL-10."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.base.dependencies import scipy_part
from rushlight.base.errors import runtime_error, value_error
from rushlight.vision.datasets.base import VisionDataset, as_image, folder_of
from rushlight.vision.datasets.download import download, is_whole


class Photographs(VisionDataset):
    """The base of data sets with named splits. `data`: (N, 3, H, W) uint8, `labels`: (N,), arrays in memory."""

    data: np.ndarray
    labels: np.ndarray

    def __init__(
        self, root: str | os.PathLike, split: str, splits: Collection[str], transform: Callable | None,
        target_transform: Callable | None,
    ):  # fmt: skip
        super().__init__(root, transform=transform, target_transform=target_transform)
        if split not in splits:
            raise value_error(f"Unknown value '{split}' for argument split. Valid values are {tuple(splits)}.")
        self.split = split

    def pair(self, index: int) -> tuple[Any, int]:
        return as_image(self.data[index].transpose(1, 2, 0)), int(self.labels[index])

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {self.split}"


class SVHN(Photographs):
    """House numbers in photographs, 32 x 32: `split` 'train' (73,257), 'test' (26,032) or 'extra' (531,131); (image,
    digit).

    `root` holds train_32x32.mat and so on; `download=True` fetches it. `data` (N, 3, 32, 32) uint8 and `labels` (N,)
    are arrays. RuntimeError if the file is missing or changed.

    Source: Y. Netzer et al., Reading Digits in Natural Images with Unsupervised Feature Learning, 2011."""

    home = "http://ufldl.stanford.edu/housenumbers/"
    split_list = {
        "train": "e26dedcc434d2e4c54c9b2d4a06d8373",
        "test": "eb5a983be6a315427106f1b164d9cef3",
        "extra": "a93ce644f1a588dc4d68dda5feec44a7",
    }

    def __init__(
        self, root: str | os.PathLike, split: str = "train", transform: Callable | None = None,
        target_transform: Callable | None = None, download: bool = False,
    ):  # fmt: skip
        super().__init__(root, split, self.split_list, transform, target_transform)
        self.filename = f"{split}_32x32.mat"
        if download:
            self.download()
        if not is_whole(self.path, self.split_list[split]):
            raise runtime_error(
                "Dataset not found or corrupted. You can use download=True to download it",
                f"or put {self.filename} into {self.root}",
            )
        read = scipy_part("io", "SVHN's files are read by").loadmat(self.path)
        self.labels = read["y"].astype(np.int64).squeeze()
        self.labels[self.labels == 10] = 0  # the file counts from 1 to 10
        self.data = np.ascontiguousarray(read["X"].transpose(3, 2, 0, 1))

    @property
    def path(self) -> Path:
        return folder_of(self.root) / self.filename

    def download(self) -> None:
        """Download the file of this split, unless it exists."""
        if not is_whole(self.path, self.split_list[self.split]):
            download([self.home + self.filename], self.path, self.split_list[self.split])


class STL10(Photographs):
    """Photographs of ten kinds of things, 96 x 96: `split` 'train' (5,000), 'test' (8,000) or 'unlabeled' (100,000).

    `root` holds the folder stl10_binary with train_X.bin and so on. `data` (N, 3, 96, 96) uint8 and `labels` (N,) are
    arrays; the label of an unlabelled image is -1. Nothing is downloaded.

    Source: A. Coates, H. Lee and A. Ng, An Analysis of Single Layer Networks in Unsupervised Feature Learning, 2011."""

    base_folder = "stl10_binary"
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(
        self, root: str | os.PathLike, split: str = "train", folds: int | None = None,
        transform: Callable | None = None, target_transform: Callable | None = None, download: bool = False,
    ):  # fmt: skip
        super().__init__(root, split, self.splits, transform, target_transform)
        self.folds = folds
        self.classes = self.file("class_names.txt").read_text().split()
        parts = [self.read(name) for name in split.split("+")]
        self.data = np.concatenate([data for data, _ in parts])
        self.labels = np.concatenate([labels for _, labels in parts])
        if folds is not None and split == "train":
            chosen = np.array(self.file("fold_indices.txt").read_text().splitlines()[folds].split(), np.int64)
            self.data, self.labels = self.data[chosen], self.labels[chosen]

    def file(self, name: str) -> Path:
        path = folder_of(self.root) / self.base_folder / name
        if not path.is_file():
            raise runtime_error(
                "Dataset not found or corrupted.",
                f"unpack stl10_binary.tar.gz from http://ai.stanford.edu/~acoates/stl10 into {self.root}",
                missing=path,
            )
        return path

    def read(self, split: str) -> tuple[np.ndarray, np.ndarray]:
        pixels = np.fromfile(self.file(f"{split}_X.bin"), np.uint8).reshape(-1, 3, 96, 96)
        labels = (
            np.full(len(pixels), -1, np.int64)
            if split == "unlabeled"
            else np.fromfile(self.file(f"{split}_y.bin"), np.uint8).astype(np.int64) - 1
        )
        return np.ascontiguousarray(pixels.transpose(0, 1, 3, 2)), labels
