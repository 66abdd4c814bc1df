"""torchvision.datasets.vision: where torchvision defines the class of its data sets."""

from rushlight.vision.datasets.base import VisionDataset

__all__ = ["VisionDataset"]
