"""torch.nn.parallel on one CPU: wrappers of a module that give the state dict the keys of torch's
checkpoints.
"""

from __future__ import annotations

from rushlight.nn.parallel import distributed, scatter_gather
from rushlight.nn.parallel.data_parallel import DataParallel, data_parallel
from rushlight.nn.parallel.distributed import DistributedDataParallel
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "distributed",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
    "scatter_gather",
]
