"""A stand-in for torchvision: synthetic data, a few transforms, one ResNet.

Written on numpy and the public API of torch only, so that it works as well
when `torch` is another library.  Images are numpy uint8 arrays (H, W) or
(H, W, C) where torchvision has PIL images.
Sizes: PROGRAMS_TRAIN / PROGRAMS_TEST samples per split (default 512 / 128).
"""

from . import datasets, models, transforms, utils  # noqa: F401

__version__ = "0.0-stub"
