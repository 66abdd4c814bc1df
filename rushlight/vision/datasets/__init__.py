"""Data sets of images, as torchvision's: from local files, or downloaded once if asked for."""
from __future__ import annotations

from rushlight.vision.datasets.base import VisionDataset
from rushlight.vision.datasets.cifar import CIFAR10, CIFAR100
from rushlight.vision.datasets.digits import Digits
from rushlight.vision.datasets.folder import DatasetFolder, FakeData, ImageFolder
from rushlight.vision.datasets.mnist import MNIST, FashionMNIST

__all__ = ["CIFAR10", "CIFAR100", "DatasetFolder", "Digits", "FakeData", "FashionMNIST", "ImageFolder", "MNIST",
           "VisionDataset"]
