"""The methods of torch's ProcessGroup: `group.allreduce([tensor]).wait()`. Each returns a Work. An argument is a
tensor, or a list with one entry for each device; here there is one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rushlight.comm import collectives, messages
from rushlight.comm.coalesced import all_gather_coalesced, all_reduce_coalesced
from rushlight.comm.monitored import monitored_barrier
from rushlight.comm.process_group import DEFAULT_TIMEOUT, ProcessGroup
from rushlight.comm.reduce_op import ReduceOp
from rushlight.core.tensor import Tensor

__all__ = [
    "AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions",
    "BroadcastOptions", "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions",
]  # fmt: skip


@dataclass
class AllreduceOptions:
    """The settings of `allreduce`."""

    reduceOp: Any = ReduceOp.SUM
    timeout: timedelta = DEFAULT_TIMEOUT
    asyncOp: bool = True


class AllreduceCoalescedOptions(AllreduceOptions):
    """The settings of `allreduce_coalesced`."""


class ReduceScatterOptions(AllreduceOptions):
    """The settings of `reduce_scatter`."""


@dataclass
class BroadcastOptions:
    """`rootRank`: the rank of the group that `broadcast` copies from."""

    rootRank: int = 0
    rootTensor: int = 0
    timeout: timedelta = DEFAULT_TIMEOUT
    asyncOp: bool = True


class GatherOptions(BroadcastOptions):
    """`rootRank`: the rank of the group that `gather` copies to."""


class ScatterOptions(BroadcastOptions):
    """`rootRank`: the rank of the group that `scatter` copies from."""


@dataclass
class ReduceOptions(BroadcastOptions):
    """`reduceOp`: the reduction of `reduce`. `rootRank`: the rank of the group that gets the result."""

    reduceOp: Any = ReduceOp.SUM


@dataclass
class AllgatherOptions:
    """The settings of `allgather`."""

    timeout: timedelta = DEFAULT_TIMEOUT
    asyncOp: bool = True


class AllToAllOptions(AllgatherOptions):
    """The settings of `alltoall`."""


@dataclass
class BarrierOptions(AllgatherOptions):
    """The settings of `barrier`."""

    device_ids: list[int] = field(default_factory=list)


def alone(value: Any) -> Any:
    """The tensor, or the list of tensors, of the only device."""
    return value if isinstance(value, Tensor) else value[0]


def per_rank(value: Any) -> Any:
    """The tensors for each rank. They may be the only element of a list of devices."""
    return value[0] if value and isinstance(value[0], (list, tuple)) else value


def op_in(given: Any) -> Any:
    """The reduction in options, or the argument itself if it is a reduction."""
    return ReduceOp.SUM if given is None else getattr(given, "reduceOp", given)


def root_of(given: Any) -> int:
    """The root in options, or the argument itself if it is a rank."""
    return 0 if given is None else getattr(given, "rootRank", given)


class GroupMethods:
    """The methods that this module adds to ProcessGroup."""

    def allreduce(self: Any, tensors: Any, opts: Any = None) -> Any:
        """tensor = the sum of the tensors of all ranks; the options may name another reduction."""
        every = [tensors] if isinstance(tensors, Tensor) else tensors
        return all_reduce_coalesced(every, op_in(opts), self, True)

    def allreduce_coalesced(self: Any, tensors: Any, opts: Any = None) -> Any:
        """`allreduce` of several tensors."""
        return all_reduce_coalesced(tensors, op_in(opts), self, True)

    def broadcast(self: Any, tensors: Any, opts: Any = None, root: int | None = None) -> Any:
        """tensor = the tensor of the root, a rank of the group."""
        source = root_of(opts) if root is None else root
        return collectives.broadcast(alone(tensors), None, self, True, source)

    def reduce(self: Any, tensors: Any, opts: Any = None, root: int | None = None, op: Any = None) -> Any:
        """On the root, tensor = the sum of the tensors of all ranks."""
        to = root_of(opts) if root is None else root
        wanted = op_in(opts if isinstance(opts, ReduceOptions) else op)
        return collectives.reduce(alone(tensors), None, wanted, self, True, to)

    def allgather(self: Any, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
        """output_tensors[i] = the tensor of rank i."""
        return collectives.all_gather(per_rank(output_tensors), alone(input_tensors), self, True)

    def allgather_coalesced(self: Any, output_lists: Any, input_list: Any, opts: Any = None) -> Any:
        """output_lists[i][k] = tensor k of rank i."""
        return all_gather_coalesced(output_lists, input_list, self, True)

    def _allgather_base(self: Any, output: Any, input: Any, opts: Any = None) -> Any:
        """output = the concatenated tensors of all ranks."""
        return collectives.all_gather_into_tensor(output, input, self, True)

    def gather(self: Any, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
        """On the root, output_tensors[i] = the tensor of rank i."""
        outputs = per_rank(output_tensors) or None
        tensor, to = alone(input_tensors), root_of(opts)
        return collectives.gather(tensor, outputs, None, self, True, to)

    def scatter(self: Any, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
        """tensor = input_tensors[own rank] of the root."""
        inputs = per_rank(input_tensors) or None
        tensor, source = alone(output_tensors), root_of(opts)
        return collectives.scatter(tensor, inputs, None, self, True, source)

    def reduce_scatter(self: Any, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
        """tensor = the sum of input_tensors[own rank] of all ranks."""
        output, inputs = alone(output_tensors), per_rank(input_tensors)
        return collectives.reduce_scatter(output, inputs, op_in(opts), self, True)

    def _reduce_scatter_base(self: Any, output: Any, input: Any, opts: Any = None) -> Any:
        """output = this rank's part of the sum of the inputs of all ranks."""
        return collectives.reduce_scatter_tensor(output, input, op_in(opts), self, True)

    def alltoall(self: Any, output_tensors: Any, input_tensors: Any, opts: Any = None) -> Any:
        """output_tensors[i] = input_tensors[own rank] of rank i."""
        return collectives.all_to_all(output_tensors, input_tensors, self, True)

    def alltoall_base(
        self: Any, output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
        input_split_sizes: Sequence[int] | None = None, opts: Any = None,
    ) -> Any:  # fmt: skip
        """output = part number `own rank` of each rank's input, concatenated in the order of the ranks."""
        return collectives.all_to_all_single(output, input, output_split_sizes, input_split_sizes, self, True)

    def send(self: Any, tensors: Any, dstRank: int, tag: int = 0) -> Any:
        """Begin to send a tensor to a rank of the group."""
        return messages.isend(alone(tensors), None, self, tag, dstRank)

    def recv(self: Any, tensors: Any, srcRank: int, tag: int = 0) -> Any:
        """Begin to receive the tensor of a rank of the group."""
        return messages.irecv(alone(tensors), None, self, tag, srcRank)

    def recv_anysource(self: Any, tensors: Any, tag: int = 0) -> Any:
        """Begin to receive a tensor of any rank."""
        return messages.irecv(alone(tensors), None, self, tag)

    def barrier(self: Any, opts: Any = None, timeout: Any = None) -> Any:
        """Wait until all ranks are here."""
        return collectives.barrier(self, True)

    def monitored_barrier(self: Any, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """Wait until all ranks are here; after the timeout, rank 0 raises RuntimeError with the missing ranks."""
        monitored_barrier(self, timeout, wait_all_ranks)

    def get_group_store(self: Any) -> Any:
        """The store of the job."""
        return self.world.store

    def _get_backend(self: Any, device: Any = None) -> Any:
        return self

    def _get_backend_name(self: Any) -> str:
        return self.backend

    def set_timeout(self: Any, timeout: timedelta) -> None:
        """Set how long operations wait for other ranks."""
        self.timeout = timeout


for one, method in vars(GroupMethods).items():
    if not one.startswith("__"):
        setattr(ProcessGroup, one, method)
