"""MNIST and data sets of the same format: 28 x 28 pixels, ten classes, IDX files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.utils.data import read_idx
from rushlight.vision.datasets.base import TrainOrTest, folder_of
from rushlight.vision.datasets.download import download


class MNIST(TrainOrTest):
    """Handwritten digits: 60,000 to train, 10,000 to test; (image 28 x 28, number).

    `root` holds MNIST/raw/train-images-idx3-ubyte and so on, as in torchvision, or the files themselves; plain or .gz.
    `download=True` downloads missing files. `data`: all images (N, 28, 28) uint8; `targets`: all labels (N,) int64. A
    sample's image is a Pillow image if Pillow is installed, otherwise an array. RuntimeError if files are missing.

    Source: Y. LeCun, C. Cortes, C. Burges, The MNIST database of handwritten digits."""

    mirrors = ["https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    classes = [
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven", "8 - eight",
        "9 - nine",
    ]  # fmt: skip

    def _read(self, download: bool) -> None:
        if download:
            self.download()
        images, labels = (self.found(kind) for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"))
        self.data, self.targets = read_idx(images), read_idx(labels).long()
        if len(self.data) != len(self.targets):
            raise runtime_error(
                f"{images} and {labels} do not belong together",
                "download both again",
                images=len(self.data),
                labels=len(self.targets),
            )

    train_data = test_data = property(lambda self: old_name(self, "data"), doc="The older name of `data`.")
    train_labels = test_labels = property(lambda self: old_name(self, "targets"), doc="The older name of `targets`.")

    @property
    def raw_folder(self) -> str:
        """The folder of downloaded files."""
        return str(folder_of(self.root) / type(self).__name__ / "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """{name: number} of the classes."""
        return {name: i for i, name in enumerate(self.classes)}

    def found(self, kind: str) -> Path:
        """The file of this kind."""
        name = ("train-" if self.train else "t10k-") + kind
        folders = [Path(self.raw_folder), folder_of(self.root)]
        for folder in folders:
            for path in (folder / name, folder / f"{name}.gz"):
                if path.is_file():
                    return path
        raise runtime_error(
            "Dataset not found. You can use download=True to download it",
            f"or put {name}, or {name}.gz, into one of the folders",
            missing=name,
            looked_in=", ".join(map(str, folders)),
        )

    def download(self) -> None:
        """Download the missing files of the four. RuntimeError if a download fails."""
        for name, md5 in self.resources:
            if not (Path(self.raw_folder) / name.removesuffix(".gz")).is_file():
                download([mirror + name for mirror in self.mirrors], Path(self.raw_folder) / name, md5)


def old_name(images: MNIST, name: str) -> Any:
    """`train_data`, `train_labels` and so on, names from before torchvision 0.3, with torchvision's warning."""
    split = "train" if images.train else "test"
    warnings.warn(f"{split}_{'data' if name == 'data' else 'labels'} has been renamed {name}", stacklevel=3)
    return getattr(images, name)


class FashionMNIST(MNIST):
    """Clothes in MNIST's form, by Zalando: 60,000 to train, 10,000 to test; (image 28 x 28, class)."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """Cursive Japanese characters in MNIST's form: 60,000 to train, 10,000 to test; (image 28 x 28, class)."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
