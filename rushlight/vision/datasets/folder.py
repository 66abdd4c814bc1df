"""Images in folders, one folder for each class; and images of noise, for tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rushlight.base.errors import explain, index_error
from rushlight.ops.tensor.random_tensors import randint, randn
from rushlight.random import fork_rng, manual_seed
from rushlight.vision.datasets.base import VisionDataset
from rushlight.vision.images import pillow
from rushlight.vision.transforms.functional import to_pil_image

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Whether a name ends in one of the extensions, ignoring case."""
    return filename.lower().endswith(extensions)


def is_image_file(filename: str) -> bool:
    """Whether a file name has an image extension."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def default_loader(path: str) -> Any:
    """The image in a file, in RGB. ImportError without Pillow."""
    module = pillow()
    if module is None:
        raise ImportError(explain("images are read with Pillow, which is not installed", "pip install pillow"))
    with module.open(path) as image:
        return image.convert("RGB")


class DatasetFolder(VisionDataset):
    """Samples root/class/.../file, read by `loader(path)`, with the number of the class as target.

    Files have one of the `extensions`, or satisfy `is_valid_file(path)`. `classes`: the sorted names of the folders;
    `samples`: pairs (path, class index). FileNotFoundError for a class without files, unless `allow_empty`, and if
    there are no classes."""

    def __init__(
        self, root: str | os.PathLike, loader: Callable[[str], Any], extensions: Sequence[str] | None = None,
        transform: Callable | None = None, target_transform: Callable | None = None,
        is_valid_file: Callable[[str], bool] | None = None, allow_empty: bool = False,
    ):  # fmt: skip
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader, self.extensions = loader, extensions
        self.classes, self.class_to_idx = self.find_classes(self.root or "")
        valid = is_valid_file or (lambda path: has_file_allowed_extension(path, tuple(extensions or ())))
        found = {name: files_of(Path(self.root or "", name), valid) for name in self.classes}
        empty = [name for name, paths in found.items() if not paths]
        if empty and not allow_empty:
            counted = f"files that count end in {', '.join(extensions)}" if extensions else "see is_valid_file"
            raise FileNotFoundError(explain(f"Found no valid file for the classes {', '.join(empty)}.", counted))
        self.samples = self.imgs = [(path, self.class_to_idx[name]) for name, paths in found.items() for path in paths]
        self.targets = [number for _, number in self.samples]

    def find_classes(self, directory: str | os.PathLike) -> tuple[list[str], dict[str, int]]:
        """The names of the folders in `directory`, in order, and their numbers."""
        classes = sorted(entry.name for entry in Path(directory).iterdir() if entry.is_dir())
        if not classes:
            raise FileNotFoundError(
                explain(f"Couldn't find any class folder in {directory}.", "put the images of each class into a folder")
            )
        return classes, {name: i for i, name in enumerate(classes)}

    def pair(self, index: int) -> tuple[Any, int]:
        path, target = self.samples[index]
        return self.loader(path), target

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images root/class/.../name.png, with the number of the class as target; Pillow reads them."""

    def __init__(
        self, root: str | os.PathLike, transform: Callable | None = None, target_transform: Callable | None = None,
        loader: Callable[[str], Any] = default_loader, is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ):  # fmt: skip
        super().__init__(
            root,
            loader,
            IMG_EXTENSIONS if is_valid_file is None else None,
            transform,
            target_transform,
            is_valid_file,
            allow_empty,
        )


def files_of(folder: Path, valid: Callable[[str], bool]) -> list[str]:
    """The files under a folder, in order, folder by folder."""
    walk = sorted(os.walk(folder, followlinks=True))
    return [path for place, _, names in walk for name in sorted(names) if valid(path := os.path.join(place, name))]


class FakeData(VisionDataset):
    """`size` Pillow images of noise with random targets; each index gives the same sample every time.

    >>> len(rushlight.vision.datasets.FakeData(size=10))
    10
    """

    def __init__(
        self, size: int = 1000, image_size: tuple[int, ...] = (3, 224, 224), num_classes: int = 10,
        transform: Callable | None = None, target_transform: Callable | None = None, random_offset: int = 0,
    ):  # fmt: skip
        super().__init__(None, transform=transform, target_transform=target_transform)
        self.size, self.num_classes, self.image_size, self.random_offset = (
            size, num_classes, image_size, random_offset,
        )  # fmt: skip

    def pair(self, index: int) -> tuple[Any, int]:
        if index >= self.size:
            raise index_error(f"{type(self).__name__} index out of range")
        with fork_rng():
            manual_seed(index + self.random_offset)
            image, target = randn(*self.image_size), randint(0, self.num_classes, (1,))
        return to_pil_image(image), int(target)

    def __len__(self) -> int:
        return self.size
