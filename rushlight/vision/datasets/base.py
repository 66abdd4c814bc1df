"""Base classes of image data sets: folder, transforms, repr."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rushlight.base.errors import type_error, value_error
from rushlight.utils.data import Dataset
from rushlight.vision.images import pillow


class VisionDataset(Dataset[tuple]):
    """Samples (image, target): a subclass defines `pair(i)`, without transforms, and `__len__`.

    `transform` changes the image, `target_transform` the target, or `transforms` both at once."""

    def __init__(
        self, root: str | os.PathLike | None = None, transforms: Callable | None = None,
        transform: Callable | None = None, target_transform: Callable | None = None,
    ):  # fmt: skip
        if transforms is not None and (transform is not None or target_transform is not None):
            raise value_error("Only transforms or transform/target_transform can be passed as argument")
        self.root = os.path.expanduser(os.fspath(root)) if root is not None else None
        self.transforms, self.transform, self.target_transform = transforms, transform, target_transform

    def pair(self, index: int) -> tuple[Any, Any]:
        """Image and target, not transformed."""
        raise NotImplementedError

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image, target = self.pair(index)
        if self.transforms is not None:
            return self.transforms(image, target)
        image = image if self.transform is None else self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)

    def __len__(self) -> int:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Further lines of the repr."""
        return ""

    def __repr__(self) -> str:
        lines = [f"Number of datapoints: {len(self)}"]
        lines += [f"Root location: {self.root}"] if self.root is not None else []
        lines += self.extra_repr().splitlines()
        if self.transform is not None or self.target_transform is not None:
            both = {"Transform": self.transform, "Target transform": self.target_transform}
            shown = [
                f"{name}: " + str(t).replace("\n", "\n" + " " * (len(name) + 2))
                for name, t in both.items()
                if t is not None
            ]
            lines.append("\n".join(["StandardTransform", *shown]))
        return "\n    ".join([f"Dataset {type(self).__name__}", *lines])


class TrainOrTest(VisionDataset):
    """The training or the test part of a data set, in memory: `data` and `targets`. A subclass reads them in
    `_read`."""

    data: Any
    targets: Any

    def __init__(
        self, root: str | os.PathLike | None, train: bool = True, transform: Callable | None = None,
        target_transform: Callable | None = None, download: bool = False,
    ):  # fmt: skip
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        self._read(download)

    def _read(self, download: bool) -> None:
        """Set `data` and `targets`."""
        raise NotImplementedError

    def pair(self, index: int) -> tuple[Any, int]:
        return as_image(self.data._array[index]), int(self.targets._array[index])

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"


def as_image(array: Any) -> Any:
    """A Pillow image if Pillow is installed, as in torchvision; otherwise a copy of the array."""
    module = pillow()
    return array.copy() if module is None else module.fromarray(array)


def folder_of(root: str | None) -> Path:
    """The folder as a path. TypeError for None."""
    if root is None:
        raise type_error("a folder is needed: root='data'")
    return Path(root)
