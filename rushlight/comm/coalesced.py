"""Collectives of several tensors at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error, value_error
from rushlight.comm.arrays import check_list, check_same, into_bytes, joined, raw, space, text
from rushlight.comm.collectives import ended, reduced_in_place, run
from rushlight.comm.groups import member
from rushlight.comm.reduce_op import ReduceOp, check_op
from rushlight.comm.work import Work
from rushlight.core.tensor import Tensor

__all__ = [
    "_CoalescingManager", "_broadcast_coalesced", "_coalescing_manager", "all_gather_coalesced",
    "all_reduce_coalesced", "supports_complex",
]  # fmt: skip


def check_same_dtype(tensors: Sequence[Tensor]) -> None:
    """ValueError for tensors of several dtypes. A complex dtype counts as the dtype of its real part."""
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
    every = check_list(tensors, "tensors")
    for t in every:
        check_op(op, t._array)
    check_same_dtype(every)
    if (own := member(group)) is None:
        return None
    return ended(reduced_in_place(own, every, op), async_op)


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]], input_tensor_list: Sequence[Tensor], group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """output_tensor_lists[i][k] = tensor k of rank i."""
    inputs = check_list(input_tensor_list, "input_tensor_list")
    check_same_dtype(inputs)
    if (own := member(group)) is None:
        return None
    if len(output_tensor_lists) != own.size():
        raise runtime_error(
            f"invalid output lists (expected {own.size()}, got {len(output_tensor_lists)})",
            "one list for each rank of the group",
        )
    lists = [check_list(one, "output_tensor_lists") for one in output_tensor_lists]
    for one in lists:
        if len(one) != len(inputs):
            raise runtime_error(f"an output list has {len(one)} tensors, and there are {len(inputs)}")
        for target, t in zip(one, inputs):
            check_same([target], t, "output_tensor_lists")
    outputs = [t for one in lists for t in one]
    x = joined(inputs) if inputs else space(0)
    out = space(x.nbytes * own.size())
    what = f"all_gather({', '.join(map(text, inputs))})"
    return run(own, async_op, what, lambda: own.transport.all_gather(out, x), into_bytes(outputs, out), outputs, inputs)


def _broadcast_coalesced(process_group: Any, tensors: Sequence[Tensor], buffer_size: int = 0, src: int = 0) -> None:
    """tensors = the tensors of rank `src` of the group, sent in one message."""
    every = check_list(tensors, "tensors")
    if (own := member(process_group)) is None or not every:
        return
    array = joined(every)
    what = f"broadcast({', '.join(map(text, every))}, src={own.ranks[src]})"
    finish = None if own.rank() == src else into_bytes(every, array)
    run(own, False, what, lambda: own.transport.broadcast(raw(array), src), finish, every)


class _CoalescingManager:
    """Operations begun inside `_coalescing_manager`."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add a work to wait for."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all works."""
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Groups the operations inside. MPI begins each of them at once; `wait()` of the yielded manager waits for the
    works that were appended to it."""
    manager = _CoalescingManager()
    yield manager
    if not async_ops:
        manager.wait()


def supports_complex(reduceOp: Any) -> bool:
    """Whether this reduction exists for complex numbers."""
    try:
        check_op(reduceOp, np.zeros(0, np.complex64))
    except (ValueError, RuntimeError):
        return False
    return True
