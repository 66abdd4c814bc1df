"""torch.distributed.nn: collectives with gradients (comm/differentiable.py)."""

from __future__ import annotations

import sys

from rushlight.base.submodules import importable
from rushlight.comm.differentiable import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

functional = sys.modules[__name__]  # torch.distributed.nn.functional
importable(__name__, "functional")
__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "functional", "gather", "reduce",
    "reduce_scatter", "scatter",
]  # fmt: skip
