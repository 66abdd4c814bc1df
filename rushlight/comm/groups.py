"""The process groups of this process: making them, finding them, and their ranks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from typing import Any

from rushlight.base.errors import runtime_error, value_error
from rushlight.comm.process_group import DEFAULT_TIMEOUT, ProcessGroup

__all__ = [
    "Backend", "GroupMember", "_get_default_group", "_get_pg_config", "_get_process_group_name",
    "_rank_not_in_group", "check_initialized", "destroy_process_group", "get_backend", "get_backend_config",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "initialized",
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "new_group",
    "new_subgroups", "new_subgroups_by_enumeration", "world_group",
]  # fmt: skip


class Backend(str):
    """The name of a backend, in lower case. All backends are MPI here."""

    UNDEFINED, GLOO, NCCL, MPI, UCC, XCCL = "undefined", "gloo", "nccl", "mpi", "ucc", "xccl"
    backend_list = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi"]
    # torch's backends of devices; here only the CPU's backends can be used
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}
    backend_capability = {"gloo": ["cpu"], "mpi": ["cpu"]}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise value_error(f"Backend constructor parameter must be string-ish: {name!r}")
        return str.__new__(cls, name.lower())


class GroupMember:
    """WORLD: the group of all processes. NON_GROUP_MEMBER: the value of a group that this process is not in."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER: Any = -100


group = GroupMember
_made: list[ProcessGroup] = []  # the groups of this process; the first is the group of the world
_names: list[str] = []  # the names of all groups, also of those without this process
_counts: dict[tuple[int, ...], int] = {}  # {ranks: number of groups made by use_local_synchronization}


def is_available() -> bool:
    """True. A world of several processes needs mpi4py."""
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` has been called."""
    return GroupMember.WORLD is not None


def is_nccl_available() -> bool:
    """False: there are no GPUs."""
    return False


is_ucc_available = is_xccl_available = is_nccl_available
is_gloo_available = is_available


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    from importlib.util import find_spec

    return find_spec("mpi4py") is not None


def is_backend_available(backend: str) -> bool:
    """Whether a group can be made with this backend."""
    return backend.lower() in Backend.backend_capability


def is_torchelastic_launched() -> bool:
    """Whether `rushlight launch`, or torchrun, has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def check_backend(name: str | None) -> str:
    """The backend's name. Of "cpu:gloo,cuda:nccl", a backend for each device, the CPU's backend."""
    wanted = (name or "gloo").lower()
    parts = dict(part.split(":", 1) for part in wanted.split(",") if ":" in part)
    wanted = parts.get("cpu", wanted)
    if wanted == "nccl":
        raise runtime_error("Distributed package doesn't have NCCL built in", "backend='gloo' is for the CPU")
    if wanted not in ("gloo", "mpi", "undefined"):
        raise value_error(f"Unknown backend {name!r}", "backend='gloo', or 'mpi'")
    return "gloo" if wanted == "undefined" else wanted


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1,
    rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Make the group of all processes. Every backend is MPI.

    The default of rank and world_size is RANK and WORLD_SIZE. Rank 0 listens at MASTER_ADDR and MASTER_PORT
    (init_method "env://") or at "tcp://host:port", or it writes its port to a file ("file://path") or a store. Under
    mpiexec and srun, MPI gives all of these.

    ValueError if there is a group already, or if a variable is missing.

    >>> rushlight.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> rushlight.distributed.all_reduce(x := rushlight.ones(2)); x
    tensor([1., 1.])
    >>> rushlight.distributed.destroy_process_group()
    """
    if is_initialized():
        raise value_error("trying to initialize the default process group twice!")
    from rushlight.comm.world import world_of  # loads sockets and MPI

    name, timeout = check_backend(backend), timeout or DEFAULT_TIMEOUT
    world = world_of(init_method, store, rank, world_size, timeout)
    world.rounds += 1
    GroupMember.WORLD = ProcessGroup(world, range(world.size), "0", name, timeout, "default_pg")
    _made[:] = [GroupMember.WORLD]
    _names[:] = ["0"]
    _counts.clear()


def destroy_process_group(group: Any = None) -> None:
    """Forget a group; without one, all groups. The processes stay connected, so that init_process_group can be called
    again."""
    check_initialized()
    if group in (None, GroupMember.WORLD):
        _made.clear()
        GroupMember.WORLD = None
    elif group in _made:
        _made.remove(group)


def check_initialized() -> None:
    if not is_initialized():
        raise value_error(
            "Default process group has not been initialized, please make sure to call init_process_group.",
            "or ask is_initialized() first",
        )


def initialized(function: Callable) -> Callable:
    """The function, which raises ValueError without a process group."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_initialized()
        return function(*args, **kwargs)

    return call


def member(group: Any) -> ProcessGroup | None:
    """The group; for None the group of the world. Returns None if this process is not in the group."""
    if group is None:
        check_initialized()
        return GroupMember.WORLD
    if group is GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        get_group = getattr(group, "get_group", None)  # of a DeviceMesh
        if get_group is not None:
            return member(get_group())
    if group not in _made:
        check_initialized()
        raise value_error(
            f"Process group {group} is not initialized in the world group map. Please initialize the group first.",
            "a group of new_group, before destroy_process_group",
        )
    return group


def world_group() -> ProcessGroup:
    """The group of all processes. ValueError if there is none."""
    check_initialized()
    assert GroupMember.WORLD is not None
    return GroupMember.WORLD


_get_default_group = world_group


def _rank_not_in_group(group: Any) -> bool:
    """Whether this process is not in the group."""
    return group is GroupMember.NON_GROUP_MEMBER


def get_rank(group: Any = None) -> int:
    """The rank of this process in the group; -1 if it is not in it."""
    own = member(group)
    return -1 if own is None else own.rank()


def get_world_size(group: Any = None) -> int:
    """The number of ranks of the group; -1 if this process is not in it."""
    own = member(group)
    return -1 if own is None else own.size()


def get_backend(group: Any = None) -> str:
    """The backend given to `init_process_group`: 'gloo' or 'mpi'."""
    own = member(group)
    if own is None:
        raise ValueError("Invalid process group specified")
    return own.backend


def get_backend_config(group: Any = None) -> str:
    """The backend of each device."""
    return f"cpu:{get_backend(group)}"


def _get_pg_config(group: Any = None) -> dict[str, Any]:
    """A description of a group."""
    own = member(group)
    if own is None:
        raise ValueError("Invalid process group specified")
    return {
        "pg_name": own.group_name,
        "pg_desc": own.group_desc,
        "backend_config": get_backend_config(own),
        "pg_size": own.size(),
        "ranks": list(own.ranks),
    }


def get_pg_count() -> int:
    """The number of groups of this process."""
    return len(_made)


def _get_process_group_name(pg: ProcessGroup) -> str:
    return pg.group_name


def get_default_backend_for_device(device: Any) -> str:
    """'gloo'."""
    return "gloo"


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """LOCAL_RANK: the rank among the ranks of this machine."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise runtime_error(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to "
        "work, assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks of the group in the world."""
    own = member(group)
    return [] if own is None else list(own.ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the world of `group_rank`. ValueError if the group has no such rank."""
    own = member(group)
    if own is None or not 0 <= group_rank < own.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return own.ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in the group of `global_rank`. ValueError if it is not in the group."""
    own = member(group)
    if own is None or global_rank not in own.numbers:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return own.numbers[global_rank]


def root_in(group: ProcessGroup, root: int | None, group_root: int | None, name: str) -> int:
    """The root's rank in the group. `root`: its rank in the world; `group_root`: its rank in the group."""
    if group_root is not None:
        if root is not None:
            raise ValueError(f"Can't specify both group_{name} and {name}")
        if not 0 <= group_root < group.size():
            raise ValueError(f"Group rank {group_root} is not part of group {group}")
        return group_root
    return get_group_rank(group, 0 if root is None else root)


@initialized
def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: str | None = None,
    device_id: Any = None,
) -> Any:  # fmt: skip
    """A group of these ranks of the world; for None, of all. All ranks of the world call this, with the same ranks.
    Ranks that are not in the group get GroupMember.NON_GROUP_MEMBER.

    >>> rushlight.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> rushlight.distributed.new_group([0]).size()
    1
    >>> rushlight.distributed.destroy_process_group()
    """
    world = world_group()
    chosen = sorted(world.ranks if ranks is None else ranks)
    if len(set(chosen)) != len(chosen) or any(rank not in world.numbers for rank in chosen):
        raise value_error(
            "The new group's rank should be within the world_size set by init_process_group",
            f"each rank once, of {world.size()}",
            ranks=list(chosen),
        )
    name = str(len(_names))
    if use_local_synchronization:  # only the members call this, so only they count the group
        if world.rank() not in chosen:
            return GroupMember.NON_GROUP_MEMBER
        count = _counts[tuple(chosen)] = _counts.get(tuple(chosen), 0) + 1
        name = "of_" + "_".join(map(str, chosen)) + f"_{count}"
    else:
        _names.append(name)
    if world.rank() not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    wanted = world.backend if backend is None else check_backend(backend)
    made = ProcessGroup(world.world, chosen, name, wanted, timeout or world.timeout, group_desc)
    _made.append(made)
    return made


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """(the subgroup of this process, all subgroups), one for each list of ranks."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    named = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(named)) != len(named):
        raise ValueError("a rank has appeared in more than one subgroup")
    settings = (timeout, backend, pg_options, False, group_desc)
    return own_and_all(ranks_per_subgroup_list, settings)


def own_and_all(parts: Sequence[Sequence[int]], settings: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """(the group of this process, all groups), one for each list of ranks. `settings`: arguments of new_group."""
    made = [new_group(ranks, *settings) for ranks in parts]
    own = next((one for one, ranks in zip(made, parts) if get_rank() in ranks), None)
    return own, made


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None, backend: str | None = None,
    pg_options: Any = None, group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Divide `group` into subgroups of `group_size` consecutive ranks; default: LOCAL_WORLD_SIZE, the ranks of a
    machine. All ranks of `group` call this. Returns (the subgroup of this process, all subgroups)."""
    size = get_world_size(group)
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by {group_size=}")
    ranks = get_process_group_ranks(group)
    parts = [ranks[at : at + group_size] for at in range(0, size, group_size)]
    alone = member(group) is not GroupMember.WORLD  # other ranks do not call this
    return own_and_all(parts, (timeout, backend, pg_options, alone, group_desc))
