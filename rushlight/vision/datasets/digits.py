"""Digits: 1,797 handwritten digits of 8 x 8 pixels, included in the package."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rushlight.creation.factories import from_numpy
from rushlight.vision.datasets.base import TrainOrTest

SHIPPED = Path(__file__).parents[2] / "data" / "digits.csv.gz"


class Digits(TrainOrTest):
    """1,797 handwritten digits, a fifth of them for the test: (image 8 x 8, number). No files, no network.

    `data`: (N, 8, 8) uint8, 0 to 255; `targets`: (N,) int64. Every fifth digit belongs to the test part. An image is a
    Pillow image if Pillow is installed, otherwise an array.

    Source: E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository.

    >>> digits = rushlight.vision.datasets.Digits(train=False)
    >>> len(digits), digits.data.shape
    (360, torch.Size([360, 8, 8]))
    """

    classes = [str(i) for i in range(10)]

    def __init__(
        self, root: str | os.PathLike | None = None, train: bool = True, transform: Callable | None = None,
        target_transform: Callable | None = None, download: bool = False,
    ):  # fmt: skip
        super().__init__(root, train, transform, target_transform, download)

    def _read(self, download: bool) -> None:
        with gzip.open(SHIPPED, "rt") as file:
            # (1797, 65): 64 pixels of 0 to 16, and the label
            table = np.loadtxt(file, np.int64, delimiter=",")
        rows = table[(np.arange(len(table)) % 5 == 0) != self.train]
        pixels = np.rint(rows[:, :64] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
        self.data, self.targets = from_numpy(pixels), from_numpy(rows[:, 64].copy())
