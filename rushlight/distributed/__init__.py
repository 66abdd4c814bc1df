"""torch.distributed for one process: programs for many machines can run on one.

With a world of one process, set up by `init_process_group`, each collective returns its tensor
unchanged. A larger world is refused.
"""

from importlib import import_module
from typing import Any

from rushlight.base.missing_names import missing
from rushlight.base.submodules import importable
from rushlight.comm.process_group import (
    Backend,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    Work,
    _rank_not_in_group,
    _state,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    broadcast_object_list,
    check_initialized,
    constants,
    destroy_process_group,
    fill,
    from_environment,
    gather,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    initialized,
    is_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    reduce,
    reduce_scatter,
    scatter,
)

importable(__name__, "constants")


def __getattr__(name: str) -> Any:
    if name in (
        "_tensor",
        "algorithms",
        "checkpoint",
        "device_mesh",
        "fsdp",
        "nn",
        "optim",
        "rpc",
        "tensor",
    ):
        return import_module(f"rushlight.distributed.{name}")
    raise missing(__name__, name)
