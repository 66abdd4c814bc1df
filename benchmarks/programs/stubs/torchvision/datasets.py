import os

import numpy as np
import torch
from torch.utils.data import Dataset


def _count(train):
    return int(
        os.environ["PROGRAMS_TRAIN"]
        if train and "PROGRAMS_TRAIN" in os.environ
        else os.environ["PROGRAMS_TEST"]
        if not train and "PROGRAMS_TEST" in os.environ
        else (512 if train else 128)
    )


def _blobs(n, height, width, channels, classes, train, seed):
    """One smooth random picture per class, plus noise: easy but not trivial."""
    proto = np.random.RandomState(seed)
    rs = np.random.RandomState(seed + (1 if train else 2))
    coarse = proto.rand(classes, 7, 7, channels)
    coarse = np.where(coarse > 0.55, coarse, 0.0)
    iy = np.linspace(0, 6, height)
    ix = np.linspace(0, 6, width)
    y0, x0 = np.floor(iy).astype(int), np.floor(ix).astype(int)
    y1, x1 = np.minimum(y0 + 1, 6), np.minimum(x0 + 1, 6)
    fy, fx = (iy - y0)[None, :, None, None], (ix - x0)[None, None, :, None]
    big = (coarse[:, y0][:, :, x0] * (1 - fx) + coarse[:, y0][:, :, x1] * fx) * (1 - fy) + (
        coarse[:, y1][:, :, x0] * (1 - fx) + coarse[:, y1][:, :, x1] * fx
    ) * fy
    labels = rs.randint(0, classes, size=n)
    scale = rs.uniform(0.6, 1.0, size=(n, 1, 1, 1))
    noise = rs.uniform(0.0, 0.35, size=(n, height, width, channels))
    pictures = np.clip(big[labels] * scale + noise * (big[labels] > 0.02), 0, 1)
    return (pictures * 255).astype(np.uint8), labels.astype(np.int64)


class _Synthetic(Dataset):
    height = width = 28
    channels = 1
    n_classes = 10
    seed = 1989

    def __init__(self, root=None, train=True, transform=None, target_transform=None, download=False):
        self.root, self.train = root, train
        self.transform, self.target_transform = transform, target_transform
        x, y = _blobs(_count(train), self.height, self.width, self.channels, self.n_classes, train, self.seed)
        self._x = x[..., 0] if self.channels == 1 else x
        self._y = y
        self.classes = [str(i) for i in range(self.n_classes)]
        self._set_public()

    def _set_public(self):
        self.data = torch.from_numpy(self._x)
        self.targets = torch.from_numpy(self._y)

    @property
    def train_data(self):
        return self.data

    @property
    def test_data(self):
        return self.data

    @property
    def train_labels(self):
        return self.targets

    @property
    def test_labels(self):
        return self.targets

    def __len__(self):
        return len(self._y)

    def __getitem__(self, i):
        x, y = self._x[int(i)], int(self._y[int(i)])
        if self.transform is not None:
            x = self.transform(x)
        if self.target_transform is not None:
            y = self.target_transform(y)
        return x, y


class MNIST(_Synthetic):
    pass


class FashionMNIST(_Synthetic):
    seed = 2017


class KMNIST(_Synthetic):
    seed = 2018


class CIFAR10(_Synthetic):
    height = width = 32
    channels = 3
    seed = 2009

    def _set_public(self):
        self.data = self._x
        self.targets = [int(v) for v in self._y]


class CIFAR100(CIFAR10):
    n_classes = 100


class FakeData(Dataset):
    def __init__(
        self,
        size=1000,
        image_size=(3, 224, 224),
        num_classes=10,
        transform=None,
        target_transform=None,
        random_offset=0,
    ):
        self.size, self.image_size, self.num_classes = min(size, _count(True)), tuple(image_size), num_classes
        self.transform, self.target_transform, self.random_offset = transform, target_transform, random_offset

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        rs = np.random.RandomState(i + self.random_offset)
        c, h, w = self.image_size
        x = rs.randint(0, 256, size=(h, w, c)).astype(np.uint8)
        y = int(rs.randint(self.num_classes))
        if self.transform is not None:
            x = self.transform(x)
        if self.target_transform is not None:
            y = self.target_transform(y)
        return x, y


class ImageFolder(FakeData):
    def __init__(self, root=None, transform=None, target_transform=None):
        super().__init__(
            size=64, image_size=(3, 64, 64), num_classes=4, transform=transform, target_transform=target_transform
        )
        self.classes = ["a", "b", "c", "d"]
