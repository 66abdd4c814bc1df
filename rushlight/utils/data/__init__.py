"""Data sets, samplers, loaders, and the IDX format of MNIST."""

from __future__ import annotations

from rushlight.base.missing_names import tell as _tell
from rushlight.utils.data import _utils as _utils
from rushlight.utils.data import distributed as distributed
from rushlight.utils.data.collate import default_collate, default_collate_fn_map, default_convert
from rushlight.utils.data.dataloader import DataLoader
from rushlight.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    functional_datapipe,
    random_split,
)
from rushlight.utils.data.idx import read_idx
from rushlight.utils.data.sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from rushlight.utils.data.worker import get_worker_info

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "default_collate", "default_collate_fn_map", "default_convert", "functional_datapipe",
    "get_worker_info",
    "random_split", "read_idx",
]  # fmt: skip

_tell(__name__)
