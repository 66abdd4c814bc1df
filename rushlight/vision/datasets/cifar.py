"""CIFAR-10 and CIFAR-100: photographs of 32 x 32 pixels, in pickles."""

from __future__ import annotations

import pickle
import tarfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.serialization.name_map import encode
from rushlight.vision.datasets.base import TrainOrTest, as_image, folder_of
from rushlight.vision.datasets.download import download, is_whole

List = list[tuple[str, str]]  # files and their md5


class ArrayUnpickler(pickle.Unpickler):
    """An unpickler of arrays, containers, strings and numbers only."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (("numpy", "ndarray"), ("numpy", "dtype")):
            return getattr(np, name)
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        if (module, name) == ("_codecs", "encode"):
            return encode  # this function accepts only latin1
        raise pickle.UnpicklingError(f"the file refers to {module}.{name}: this is not a file of CIFAR")


def read(path: Path) -> dict[str, Any]:
    """The dictionary in one file."""
    with open(path, "rb") as file:
        return ArrayUnpickler(file, encoding="latin1").load()


class CIFAR10(TrainOrTest):
    """Photographs of ten kinds of things: 50,000 to train, 10,000 to test; (image 32 x 32, class).

    `root` holds the folder cifar-10-batches-py, or the archive cifar-10-python.tar.gz; `download=True` downloads it.
    `data`: all images, an array (N, 32, 32, 3) of uint8; `targets`: all labels, a list. A sample's image is a Pillow
    image if Pillow is installed, otherwise an array. RuntimeError if files are missing or changed.

    Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009."""

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list: List = [
        ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
    ]
    test_list: List = [("test_batch", "40351d587109b95175f43aff81a1287e")]
    meta = {"filename": "batches.meta", "key": "label_names", "md5": "5ff9c542aee3614f3951f8cda6e48888"}

    def _read(self, download: bool) -> None:
        if download:
            self.download()
        elif not self._check_integrity() and (folder_of(self.root) / self.filename).is_file():
            self.unpack()
        if not self._check_integrity():
            raise runtime_error(
                "Dataset not found or corrupted. You can use download=True to download it",
                f"or put {self.filename} into {self.root}",
                missing="; ".join(self.faults()),
            )
        parts = [read(self.folder / name) for name, _ in (self.train_list if self.train else self.test_list)]
        pixels = np.concatenate([part["data"] for part in parts]).reshape(-1, 3, 32, 32)
        self.data = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))
        key = "labels" if "labels" in parts[0] else "fine_labels"
        self.targets: list[int] = [label for part in parts for label in part[key]]
        self.classes: list[str] = read(self.folder / self.meta["filename"])[self.meta["key"]]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return folder_of(self.root) / self.base_folder

    def files(self) -> List:
        return [*self.train_list, *self.test_list, (self.meta["filename"], self.meta["md5"])]

    def faults(self) -> list[str]:
        """The files that are missing or changed."""
        return [str(self.folder / name) for name, md5 in self.files() if not is_whole(self.folder / name, md5)]

    def _check_integrity(self) -> bool:
        return not self.faults()

    def download(self) -> None:
        """Download and unpack the archive, unless all files exist. RuntimeError if the download fails."""
        if not self._check_integrity():
            download([self.url], folder_of(self.root) / self.filename, self.tgz_md5)
            self.unpack()

    def unpack(self) -> None:
        """Extract only the files of the data set from the archive."""
        wanted = {f"{self.base_folder}/{name}": self.folder / name for name, _ in self.files()}
        self.folder.mkdir(exist_ok=True)
        with tarfile.open(folder_of(self.root) / self.filename) as archive:
            for member in archive:
                if member.name in wanted and member.isfile():
                    content: IO[bytes] | None = archive.extractfile(member)
                    if content is not None:
                        wanted[member.name].write_bytes(content.read())

    def pair(self, index: int) -> tuple[Any, int]:
        return as_image(self.data[index]), self.targets[index]


class CIFAR100(CIFAR10):
    """Photographs of a hundred kinds of things: 50,000 to train, 10,000 to test; (image 32 x 32, class)."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list: List = [("train", "16019d7e3df5f24257cddd939b257f8d")]
    test_list: List = [("test", "f0ef6b0ae62326f3e7ffdfab6717acfc")]
    meta = {"filename": "meta", "key": "fine_label_names", "md5": "7973b15100ade9c7d40fb424638fde48"}
