"""Collectives of several tensors at once, and the operations of a group as its methods, as in torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error, type_error, value_error
from rushlight.comm.arrays import check_same, check_tensor, into_bytes, joined, raw, space, text
from rushlight.comm.collectives import ended, reduced_in_place
from rushlight.comm.groups import member
from rushlight.comm.reduce_op import ReduceOp, check_op
from rushlight.comm.work import Work
from rushlight.core.tensor import Tensor

__all__ = [
    "_CoalescingManager", "_broadcast_coalesced", "_coalescing_manager", "all_gather_coalesced",
    "all_reduce_coalesced", "supports_complex",
]  # fmt: skip


def check_tensors(values: Any, name: str) -> list[Tensor]:
    """The tensors of a list of any length."""
    if not isinstance(values, (list, tuple)):
        raise type_error(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but "
            f"got {type(values)} instead."
        )
    return [check_tensor(value, name) for value in values]


def check_same_dtype(tensors: Sequence[Tensor]) -> None:
    """ValueError for tensors of several dtypes; complex numbers go with those of their parts."""
    for t in tensors:
        if t._array.real.dtype != tensors[0]._array.real.dtype:
            raise value_error(
                f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and {t.dtype}",
                "one call for each dtype",
            )


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of each tensor, as one operation."""
    every = check_tensors(tensors, "tensors")
    for t in every:
        check_op(op, t._array)
    check_same_dtype(every)
    if (own := member(group)) is None:
        return None
    return ended(reduced_in_place(own, every, op), async_op)


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """output_tensor_lists[i][k] = tensor k of rank i."""
    inputs = check_tensors(input_tensor_list, "input_tensor_list")
    check_same_dtype(inputs)
    if (own := member(group)) is None:
        return None
    if len(output_tensor_lists) != own.size():
        raise runtime_error(
            f"invalid output lists (expected {own.size()}, got {len(output_tensor_lists)})",
            "one list for each rank of the group",
        )
    lists = [check_tensors(one, "output_tensor_lists") for one in output_tensor_lists]
    for one in lists:
        if len(one) != len(inputs):
            raise runtime_error(f"an output list has {len(one)} tensors, and there are {len(inputs)}")
        for target, t in zip(one, inputs):
            check_same([target], t, "output_tensor_lists")
    outputs = [t for one in lists for t in one]
    x = joined(inputs) if inputs else space(0)
    out = space(x.nbytes * own.size())
    work = own.begin(
        f"all_gather({', '.join(map(text, inputs))})",
        lambda: [own.transport.all_gather(out, x)],
        into_bytes(outputs, out),
        outputs,
        inputs,
    )
    return ended(work, async_op)


def _broadcast_coalesced(process_group: Any, tensors: Sequence[Tensor], buffer_size: int = 0, src: int = 0) -> None:
    """tensors = those of rank `src` of the group, in one message."""
    every = check_tensors(tensors, "tensors")
    if (own := member(process_group)) is None or not every:
        return
    array = joined(every)
    what = f"broadcast({', '.join(map(text, every))}, src={own.ranks[src]})"
    finish = None if own.rank() == src else into_bytes(every, array)
    own.begin(what, lambda: [own.transport.broadcast(raw(array), src)], finish, every).wait()


class _CoalescingManager:
    """The operations that were begun inside `_coalescing_manager`."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add a work to wait for."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all."""
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Operations inside belong together. MPI begins each at once; `wait()` of what this yields waits for the works that
    were appended."""
    manager = _CoalescingManager()
    yield manager
    if not async_ops:
        manager.wait()


def supports_complex(reduceOp: Any) -> bool:
    """Whether complex numbers have this reduction."""
    try:
        check_op(reduceOp, np.zeros(0, np.complex64))
    except (ValueError, RuntimeError):
        return False
    return True
