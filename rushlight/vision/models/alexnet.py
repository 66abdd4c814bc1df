"""AlexNet in the version for one device (Krizhevsky 2014)."""

from __future__ import annotations

from rushlight import nn
from rushlight.vision.models.first import Classifier
from rushlight.vision.models.weights import imagenet, model

__all__ = ["AlexNet", "AlexNet_Weights", "alexnet"]


class AlexNet(Classifier):
    """Five convolutions and three linear layers: (N, 3, H, W) to (N, classes)."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, kernel_size=11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(64, 192, kernel_size=5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(192, 384, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )


AlexNet_Weights = imagenet("AlexNet", "alexnet-owt-7be5be79")
alexnet = model(AlexNet_Weights, AlexNet)
