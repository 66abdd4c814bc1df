"""torch.nn.parallel: wrappers of a module, which give its state the keys of torch's checkpoints."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rushlight.base.missing_names import missing
from rushlight.nn.parallel import scatter_gather
from rushlight.nn.parallel.data_parallel import DataParallel, data_parallel
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter

if TYPE_CHECKING:
    from rushlight.nn.parallel import distributed
    from rushlight.nn.parallel.distributed import DistributedDataParallel

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "distributed", "gather", "parallel_apply", "replicate",
    "scatter", "scatter_gather",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load the wrappers for several processes on first use."""
    if name not in ("DistributedDataParallel", "distributed"):
        return missing(__name__, name)
    module = import_module("rushlight.nn.parallel.distributed")
    return module if name == "distributed" else module.DistributedDataParallel
