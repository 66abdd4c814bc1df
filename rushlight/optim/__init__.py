"""Optimizers and learning-rate schedules, with torch's names, settings and saved formats."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rushlight.base.missing_names import missing
from rushlight.optim import lr_scheduler
from rushlight.optim.adadelta import Adadelta
from rushlight.optim.adafactor import Adafactor
from rushlight.optim.adagrad import Adagrad
from rushlight.optim.adam import Adam, AdamW
from rushlight.optim.adamax import Adamax
from rushlight.optim.asgd import ASGD
from rushlight.optim.lbfgs import LBFGS
from rushlight.optim.muon import Muon
from rushlight.optim.nadam import NAdam
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.radam import RAdam
from rushlight.optim.rmsprop import RMSprop
from rushlight.optim.rprop import Rprop
from rushlight.optim.sgd import SGD
from rushlight.optim.sparse_adam import SparseAdam

if TYPE_CHECKING:
    from rushlight.optim import swa_utils as swa_utils

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "swa_utils":  # loads the modules
        return import_module("rushlight.optim.swa_utils")
    return missing(__name__, name)
