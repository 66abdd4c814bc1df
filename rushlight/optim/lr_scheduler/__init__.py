"""Learning-rate schedules: call `scheduler.step()` after the optimizer's steps of each epoch (or batch)."""

from __future__ import annotations

from rushlight.optim.lr_scheduler.base import LRScheduler
from rushlight.optim.lr_scheduler.composed import ChainedScheduler, SequentialLR
from rushlight.optim.lr_scheduler.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from rushlight.optim.lr_scheduler.decay import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from rushlight.optim.lr_scheduler.plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler  # its name in older programs

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

for _name in __all__:  # torch has a single file: some programs compare with its __name__
    globals()[_name].__module__ = __name__
del _name
