"""torch.distributed: process groups, collectives and training on several machines, by MPI.

A world of several processes needs mpi4py: `init_process_group` loads MPI."""

# ruff: noqa: F403, F405 - the names are in __all__ of each part
import pickle
import sys
from importlib import import_module
from typing import Any

from rushlight.base.missing_names import missing
from rushlight.base.submodules import importable
from rushlight.comm.coalesced import *
from rushlight.comm.collectives import *
from rushlight.comm.debug_level import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from rushlight.comm.errors import DistBackendError, DistError, DistNetworkError, DistQueueEmptyError, DistStoreError
from rushlight.comm.group_methods import *
from rushlight.comm.groups import *
from rushlight.comm.messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from rushlight.comm.monitored import monitored_barrier
from rushlight.comm.objects import *
from rushlight.comm.process_group import DEFAULT_TIMEOUT, ProcessGroup
from rushlight.comm.reduce_op import ReduceOp
from rushlight.comm.work import Work

default_pg_timeout = DEFAULT_TIMEOUT
all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor
_get_global_rank = get_global_rank  # the name before torch 2.0
reduce_op, QueueEmptyError = ReduceOp, DistQueueEmptyError
_pickler, _unpickler = pickle.Pickler, pickle.Unpickler
_Work, _DEFAULT_FIRST_BUCKET_BYTES = Work, 1 << 20
_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor


def _get_default_store() -> Any:
    """The store of the job. Ranks may set other keys in it."""
    return world_group().world.store


# torch has modules with these names
constants = distributed_c10d = sys.modules[__name__]
importable(__name__, "constants", "distributed_c10d")

SUBMODULES = (
    "_composable", "_functional_collectives", "_tensor", "algorithms", "autograd", "checkpoint", "device_mesh",
    "elastic", "fsdp", "launch", "launcher", "nn", "optim", "rpc", "run", "tensor", "utils",
)  # fmt: skip


ELSEWHERE = {  # name -> module, loaded on first use
    "DeviceMesh": "rushlight.distributed.device_mesh",
    "init_device_mesh": "rushlight.distributed.device_mesh",
    "TCPStore": "rushlight.comm.tcp_store",
    "GradBucket": "rushlight.nn.parallel.buckets",
    **dict.fromkeys(("FileStore", "HashStore", "PrefixStore", "Store"), "rushlight.comm.store"),
}


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return import_module(f"rushlight.distributed.{name}")
    if name in ELSEWHERE:
        return getattr(import_module(ELSEWHERE[name]), name)
    return missing(__name__, name)
