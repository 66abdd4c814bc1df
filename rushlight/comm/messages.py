"""Messages from one rank to another: send, recv, isend, irecv, several at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.base.errors import runtime_error, value_error
from rushlight.comm.arrays import check_tensor, into_bytes, raw, text
from rushlight.comm.groups import get_global_rank, member, root_in
from rushlight.comm.process_group import ProcessGroup
from rushlight.comm.work import Work
from rushlight.core.tensor import Tensor


class Request:
    """MPI's request of a message. Records the sender and checks the size."""

    def __init__(self, group: ProcessGroup, request: Any, nbytes: int, tensor: Tensor):
        self.group, self.request, self.nbytes, self.tensor = group, request, nbytes, tensor
        self.status = group.world.MPI.Status()
        self.source = -1

    def Test(self) -> bool:
        if not self.request.Test(self.status):
            return False
        self.source = self.group.ranks[self.status.source]
        came = self.status.Get_count(self.group.world.MPI.BYTE)
        if came != self.nbytes:
            raise runtime_error(
                f"rank {self.source} has sent {came} bytes, and the tensor to receive is {text(self.tensor)}: "
                f"{self.nbytes} bytes"
            )
        return True


class Receipt(Work):
    """The work of a recv."""

    def __init__(self, group: ProcessGroup, what: str, request: Request, finish: Callable):
        super().__init__(group, what, [request], finish, [request.tensor])
        self.request = request

    def source_rank(self) -> int:
        """The sender's rank in the world."""
        return self.request.source


def check_other(group: ProcessGroup, rank: int, verb: str) -> None:
    if rank == group.rank():
        raise value_error(
            f"Invalid {verb} rank: {verb} rank should not be the same as the rank of the current process."
        )


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Begin to send the tensor to rank `dst`, which calls `recv` or `irecv`."""
    check_tensor(tensor, "tensor")
    if (own := member(group)) is None:
        return None
    to = root_in(own, dst, group_dst, "dst")
    check_other(own, to, "destination")
    request = own.transport.send(raw(tensor._array), to, tag)
    return own.begin_message(Work(own, f"send({text(tensor)}, dst={own.ranks[to]})", [request], None, [tensor]))


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Begin to receive the tensor of rank `src`; None: of any rank."""
    check_tensor(tensor, "tensor")
    if (own := member(group)) is None:
        return None
    source = None
    if src is not None or group_src is not None:
        source = root_in(own, src, group_src, "src")
        check_other(own, source, "source")
    array = raw(tensor._array)
    request = Request(own, own.transport.receive(array, source, tag), array.nbytes, tensor)
    whom = "any" if source is None else own.ranks[source]
    what = f"recv({text(tensor)}, src={whom})"
    return own.begin_message(Receipt(own, what, request, into_bytes([tensor], array)))


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send the tensor to rank `dst`, and wait until its memory may be written again."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive the tensor of rank `src`; None: of any rank. Returns the sender's rank."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """One of the messages of `batch_isend_irecv`: op (isend or irecv), its tensor, and the other rank."""

    def __init__(
        self, op: Callable, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ):  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer = get_global_rank(group, group_peer) if group_peer is not None else peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages, the receiving ones first, so that none waits. Returns their works."""
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("p2p_op_list must be a non-empty list of P2POp")
    works: dict[int, Work | None] = {}
    for wanted in (irecv, isend):
        for i, one in enumerate(p2p_op_list):
            if one.op is wanted:
                works[i] = one.op(one.tensor, one.peer, one.group, one.tag)
    ordered = [works[i] for i in range(len(p2p_op_list))]
    return [work for work in ordered if work is not None]
