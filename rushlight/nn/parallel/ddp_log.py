"""The description of a DistributedDataParallel that `_get_ddp_logging_data` returns."""

from __future__ import annotations

import os
from typing import Any

from rushlight.comm.debug_level import VARIABLE
from rushlight.comm.groups import get_backend

VARIABLES = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES"),
    *("GLOO_SOCKET_IFNAME", "GLOO_DEVICE_TRANSPORT", "NCCL_SOCKET_IFNAME", "NCCL_DEBUG"),
    *("NCCL_TOPO_DUMP_FILE", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
    VARIABLE,
)
SCALARS = {"float32": "float", "float64": "double", "float16": "Half", "bfloat16": "BFloat16"}


def variable(name: str) -> str:
    """A variable of the environment; N/A if it is not set."""
    return os.environ.get(name, "N/A")


def _dump_DDP_relevant_env_vars() -> None:
    """Print the environment variables that process groups read."""
    print("".join(f"env:{name}={variable(name)}\n" for name in VARIABLES))


def logging_data(ddp: Any) -> dict[str, Any]:
    """torch's description of a module and its buckets, without times."""
    reducer, usage = ddp.reducer, ddp.reducer.usage
    parameters = usage.parameters
    sizes = ", ".join(str(sum(p._array.nbytes for p in b.parameters)) for b in reducer.buckets)
    dtypes = sorted({SCALARS.get(p._array.dtype.name, p._array.dtype.name) for p in parameters})
    return {
        "world_size": ddp.process_group.size(),
        "rank": ddp.process_group.rank(),
        "module_name": type(ddp.module).__name__,
        "device_ids": "",
        "output_device": -1,
        "broadcast_buffers": int(ddp.forward_sync_buffers),
        "bucket_cap_bytes": ddp.bucket_bytes_cap,
        "find_unused_parameters": int(ddp.find_unused_parameters),
        "gradient_as_bucket_view": int(ddp.gradient_as_bucket_view),
        "static_graph": int(ddp.static_graph),
        "can_set_static_graph": int(usage.steady),
        "backend_name": get_backend(ddp.process_group),
        "comm_hook": getattr(reducer.hook, "__qualname__", ""),
        "iteration": usage.backwards,
        "dtypes": ", ".join(dtypes),
        "num_parameter_tensors": len(parameters),
        "total_parameter_size_bytes": sum(p._array.nbytes for p in parameters),
        "bucket_sizes": sizes,
        "unused_parameter_size": sum(p._array.nbytes for p in parameters if id(p) in usage.unused),
        "has_error": int(bool(reducer.error)),
        "error": reducer.error,
        "master_port": variable("MASTER_PORT"),
        "master_addr": variable("MASTER_ADDR"),
        "torch_distributed_debug": variable(VARIABLE),
        "cuda_visible_devices": variable("CUDA_VISIBLE_DEVICES"),
    }
