"""torch.distributed for one process: programs for many machines can run on one.

With a world of one process, set up by `init_process_group`, each collective returns its tensor
unchanged. A larger world is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from enum import Enum
from functools import wraps
from types import SimpleNamespace
from typing import Any

from rushlight.base.errors import explain
from rushlight.core.tensor import Tensor


class ReduceOp(Enum):
    """The reduction of several processes' values. Over one process, each reduction returns the
    value.
    """

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]     # its name inside torch's own


class Backend(str):
    """The name of a backend, in small letters; here one process serves for all."""

    UNDEFINED, GLOO, NCCL, MPI, UCC, XCCL = "undefined", "gloo", "nccl", "mpi", "ucc", "xccl"

    def __new__(cls, name: str) -> Backend:
        return str.__new__(cls, name.lower())


class Work:
    """The handle of a collective with async_op=True; it is complete from the start."""

    def wait(self, timeout: Any = None) -> bool:
        """True."""
        return True

    is_completed = is_success = wait


class ProcessGroup:
    """One process."""

    def rank(self) -> int:
        """0."""
        return 0

    def size(self) -> int:
        """1."""
        return 1


class GroupMember:
    """The group of all processes, and the marker of a process outside a group."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = object()


group = GroupMember
constants = SimpleNamespace(default_pg_timeout=timedelta(minutes=30))  # torch's module of it
_state: dict[str, str] = {}  # "backend" while there is a process group


def is_available() -> bool:
    """True, for one process."""
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` has been called."""
    return "backend" in _state


def is_nccl_available() -> bool:
    """False: there are no GPUs."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_torchelastic_launched = (
    is_nccl_available
)
is_gloo_available = is_available


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Create the group of this process. Missing arguments are read from WORLD_SIZE and RANK, as
    torchrun sets them.

    ValueError if these are not set, or if a group exists; RuntimeError for a world of more than one
    process.

    >>> rushlight.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> rushlight.distributed.all_reduce(x := rushlight.ones(2)); x
    tensor([1., 1.])
    >>> rushlight.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError(explain("trying to initialize the default process group twice!"))
    world_size = int(from_environment("WORLD_SIZE")) if world_size == -1 else world_size
    rank = int(from_environment("RANK")) if rank == -1 else rank
    if world_size != 1:
        raise RuntimeError(
            explain(
                f"rushlight trains in one process, and this is a world of {world_size}",
                "use world_size=1",
            )
        )
    if backend == "nccl":
        raise RuntimeError(
            explain(
                "Distributed package doesn't have NCCL built in", "backend='gloo' is for the CPU"
            )
        )
    _state["backend"] = backend or "gloo"
    GroupMember.WORLD = ProcessGroup()


def from_environment(name: str) -> str:
    if name not in os.environ:
        raise ValueError(
            explain(
                "Error initializing torch.distributed using env:// rendezvous: environment "
                "variable "
                f"{name} expected, but not set",
                "give rank=0, world_size=1",
            )
        )
    return os.environ[name]


def destroy_process_group(group: Any = None) -> None:
    """Forget the group."""
    check_initialized()
    if group in (None, GroupMember.WORLD):
        _state.clear()
        GroupMember.WORLD = None


def check_initialized() -> None:
    if not is_initialized():
        raise ValueError(
            explain(
                "Default process group has not been initialized, please make sure to call "
                "init_process_group.",
                "or check is_initialized() first",
            )
        )


def initialized(function: Callable) -> Callable:
    """The function, which needs a process group."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_initialized()
        done = function(*args, **kwargs)
        return Work() if kwargs.get("async_op") else done

    return call


@initialized
def get_rank(group: Any = None) -> int:
    """0: the only process."""
    return 0


@initialized
def get_world_size(group: Any = None) -> int:
    """1: the only process."""
    return 1


@initialized
def get_backend(group: Any = None) -> str:
    """The backend given to `init_process_group`."""
    return _state["backend"]


def get_default_backend_for_device(device: Any) -> str:
    """'gloo'."""
    return "gloo"


@initialized
def new_group(
    ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None, **more: Any
) -> ProcessGroup:
    """A group of the one process."""
    return ProcessGroup()


@initialized
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> None:
    """Returns at once: there are no other processes."""


@initialized
def all_reduce(
    tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> None:
    """The tensor is unchanged: sum, mean, minimum and maximum over one process."""


@initialized
def broadcast(
    tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False, group_src: Any = None
) -> None:
    """The tensor is unchanged."""


@initialized
def reduce(
    tensor: Tensor, dst: int = 0, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> None:
    """The tensor is unchanged."""


@initialized
def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> None:
    """tensor_list[0] becomes the tensor."""
    fill(tensor_list[0], tensor)


@initialized
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> None:
    """The output becomes the input."""
    fill(output_tensor, input_tensor)


@initialized
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: Any = None,
    async_op: bool = False,
) -> None:
    """gather_list[0] becomes the tensor."""
    if gather_list:
        fill(gather_list[0], tensor)


@initialized
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int = 0,
    group: Any = None,
    async_op: bool = False,
) -> None:
    """The tensor becomes scatter_list[0]."""
    if scatter_list:
        fill(tensor, scatter_list[0])


@initialized
def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> None:
    """The output becomes input_list[0]."""
    fill(output, input_list[0])


@initialized
def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """object_list[0] becomes the object."""
    object_list[0] = obj


@initialized
def broadcast_object_list(
    object_list: list, src: int = 0, group: Any = None, device: Any = None
) -> None:
    """The list is unchanged."""


@initialized
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> None:
    """The output becomes the input."""
    fill(output, input)


@initialized
def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> None:
    """Copy the only input to the only output."""
    fill(output_tensor_list[0], input_tensor_list[0])


@initialized
def get_process_group_ranks(group: Any = None) -> list[int]:
    """[0]."""
    return [0]


def get_global_rank(group: Any, group_rank: int) -> int:
    """0: the only process. ValueError for another."""
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return 0


def get_group_rank(group: Any, global_rank: int) -> int:
    """0: the only process. ValueError for another."""
    return get_global_rank(group, global_rank)


def _rank_not_in_group(group: Any) -> bool:
    """False: the only process is in each group."""
    return False


def fill(to: Tensor, tensor: Tensor) -> None:
    """Write a tensor into another."""
    to.data.copy_(tensor.reshape(to.shape))
