"""Image data sets with torchvision's names: read from local files, downloaded only on request."""

from __future__ import annotations

from rushlight.vision.datasets import utils, vision
from rushlight.vision.datasets.base import VisionDataset
from rushlight.vision.datasets.celeba import CelebA
from rushlight.vision.datasets.cifar import CIFAR10, CIFAR100
from rushlight.vision.datasets.digits import Digits
from rushlight.vision.datasets.folder import DatasetFolder, FakeData, ImageFolder
from rushlight.vision.datasets.mnist import KMNIST, MNIST, FashionMNIST
from rushlight.vision.datasets.photographs import STL10, SVHN

__all__ = [
    "CIFAR10", "CIFAR100", "CelebA", "DatasetFolder", "Digits", "FakeData", "FashionMNIST", "ImageFolder", "KMNIST",
    "MNIST", "STL10", "SVHN", "VisionDataset", "utils", "vision",
]  # fmt: skip
