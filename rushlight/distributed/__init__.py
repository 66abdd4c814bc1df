"""torch.distributed in one process: what programs for many machines call, where they run on one.

`init_process_group` with a world of one process makes the collectives what they are there: the
tensor itself. A larger world is refused."""

from importlib import import_module
from typing import Any

from rushlight.base.missing_names import missing
from rushlight.base.submodules import importable
from rushlight.comm.process_group import (
    Backend as Backend,
    GroupMember as GroupMember,
    ProcessGroup as ProcessGroup,
    ReduceOp as ReduceOp,
    Work as Work,
    _rank_not_in_group,
    _state,
    all_gather as all_gather,
    all_gather_into_tensor as all_gather_into_tensor,
    all_gather_object as all_gather_object,
    all_reduce as all_reduce,
    all_to_all as all_to_all,
    all_to_all_single as all_to_all_single,
    barrier as barrier,
    broadcast as broadcast,
    broadcast_object_list as broadcast_object_list,
    check_initialized as check_initialized,
    constants as constants,
    destroy_process_group as destroy_process_group,
    fill as fill,
    from_environment as from_environment,
    gather as gather,
    get_backend as get_backend,
    get_default_backend_for_device as get_default_backend_for_device,
    get_global_rank as get_global_rank,
    get_group_rank as get_group_rank,
    get_process_group_ranks as get_process_group_ranks,
    get_rank as get_rank,
    get_world_size as get_world_size,
    group as group,
    init_process_group as init_process_group,
    initialized as initialized,
    is_available as is_available,
    is_gloo_available as is_gloo_available,
    is_initialized as is_initialized,
    is_mpi_available as is_mpi_available,
    is_nccl_available as is_nccl_available,
    is_torchelastic_launched as is_torchelastic_launched,
    is_ucc_available as is_ucc_available,
    is_xccl_available as is_xccl_available,
    new_group as new_group,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    scatter as scatter,
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
