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
    """1,797 handwritten digits, a fifth of them to test: (image 8 x 8, number). No files, no network.

    `data` (N, 8, 8) uint8, from 0 to 255, and `targets` (N,) int64 are all of them; every fifth digit is of the test.
    An image is a Pillow image where Pillow is installed, an array else.

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
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        with gzip.open(SHIPPED, "rt") as file:
            # (1797, 65): 64 pixels of 0 to 16, and the label
            table = np.loadtxt(file, np.int64, delimiter=",")
        rows = table[(np.arange(len(table)) % 5 == 0) != train]
        pixels = np.rint(rows[:, :64] * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
        self.data, self.targets = from_numpy(pixels), from_numpy(rows[:, 64].copy())
