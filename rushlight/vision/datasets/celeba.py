"""CelebA: faces of famous people, with forty attributes each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import from_array
from rushlight.vision.datasets.base import VisionDataset, folder_of
from rushlight.vision.datasets.folder import default_loader

SPLITS = {"train": 0, "valid": 1, "test": 2, "all": None}
FILES = {
    "attr": "list_attr_celeba.txt",
    "identity": "identity_CelebA.txt",
    "bbox": "list_bbox_celeba.txt",
    "landmarks": "list_landmarks_align_celeba.txt",
}


class CelebA(VisionDataset):
    """Faces, 178 x 218: `split` 'train', 'valid', 'test' or 'all'; (image, target).

    `target_type`, one or a list, is 'attr' (40 zeros and ones, named in `attr_names`), 'identity', 'bbox' or
    'landmarks'; for an empty list the target is None. `root`/celeba holds img_align_celeba/ and the text files with the
    lists. Nothing is downloaded; RuntimeError names missing files.

    Source: Z. Liu et al., Deep Learning Face Attributes in the Wild, 2015."""

    base_folder = "celeba"

    def __init__(
        self, root: str | os.PathLike, split: str = "train", target_type: str | list[str] = "attr",
        transform: Callable | None = None, target_transform: Callable | None = None, download: bool = False,
    ):  # fmt: skip
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = split
        self.target_type = target_type if isinstance(target_type, list) else [target_type]
        if split.lower() not in SPLITS:
            raise value_error(f"Unknown value '{split}' for argument split. Valid values are {tuple(SPLITS)}.")
        for kind in self.target_type:
            if kind not in FILES:
                raise value_error(f'Target type "{kind}" is not recognized.', f"use one of {', '.join(FILES)}")
        if not self.target_type and target_transform is not None:
            raise runtime_error("target_transform is specified but target_type is empty")
        names, parts, _ = self.table("list_eval_partition.txt")
        wanted = SPLITS[split.lower()]
        chosen = np.ones(len(names), bool) if wanted is None else parts[:, 0] == wanted
        self.filename = [name for name, take in zip(names, chosen) if take]
        self.attr_names: list[str] = []
        for kind in self.target_type:
            _, values, header = self.table(FILES[kind])
            # -1 and 1 become 0 and 1
            values = (values[chosen] + 1) // 2 if kind == "attr" else values[chosen]
            self.attr_names = header if kind == "attr" else self.attr_names
            setattr(self, kind, from_array(np.ascontiguousarray(values)))

    def path(self, *names: str) -> Path:
        return folder_of(self.root).joinpath(self.base_folder, *names)

    def table(self, name: str) -> tuple[list[str], np.ndarray, list[str]]:
        """(names of images, numbers, names of columns) of a list. A list with a header begins with the number of
        images."""
        if not self.path(name).is_file():
            raise runtime_error(
                "Dataset not found or corrupted.", "unpack CelebA's files to this folder", missing=self.path(name)
            )
        lines = self.path(name).read_text().splitlines()
        headed = len(lines[0].split()) == 1
        rows = [line.split() for line in lines[2 if headed else 0 :] if line.strip()]
        return (
            [row[0] for row in rows],
            np.array([row[1:] for row in rows], np.int64),
            lines[1].split() if headed else [],
        )

    def pair(self, index: int) -> tuple[Any, Any]:
        found = [getattr(self, kind)[index] for kind in self.target_type]
        found = [value[0] if kind == "identity" else value for kind, value in zip(self.target_type, found)]
        target = None if not found else found[0] if len(found) == 1 else tuple(found)
        return default_loader(str(self.path("img_align_celeba", self.filename[index]))), target

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, target = self.pair(index)
        image = image if self.transform is None else self.transform(image)
        return (image, target if target is None or self.target_transform is None else self.target_transform(target))

    def __len__(self) -> int:
        return len(self.filename)

    def extra_repr(self) -> str:
        return f"Target type: {self.target_type}\nSplit: {self.split}"
