"""Sums of sparse tensors: each rank gathers the indices and values of all ranks, and adds values with equal indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.comm.process_group import ProcessGroup
from rushlight.comm.reduce_op import ReduceOp
from rushlight.comm.work import Work
from rushlight.core.tensor import from_array
from rushlight.sparse import sparse_coo_tensor


def gathered(array: np.ndarray, group: ProcessGroup) -> np.ndarray:
    """The arrays of all ranks: (ranks, *shape)."""
    x = np.ascontiguousarray(array)
    out = np.empty((group.size(), *x.shape), x.dtype)
    what = f"all_gather({x.dtype} {x.shape})"
    group.begin(what, lambda: [group.transport.all_gather(out, x)]).wait()
    return out


def gathered_rows(array: np.ndarray, counts: list[int], group: ProcessGroup) -> np.ndarray:
    """The rows of all ranks; rank i has counts[i] rows."""
    mine = np.zeros((max(counts), *array.shape[1:]), array.dtype)
    mine[: len(array)] = array
    every = gathered(mine.reshape(-1).view(np.uint8), group).reshape(len(counts), -1)
    whole = every.view(array.dtype).reshape(len(counts), *mine.shape)
    return np.concatenate([rows[:count] for rows, count in zip(whole, counts)])


def sparse_all_reduce(group: ProcessGroup, tensor: Any, op: ReduceOp) -> Work:
    """The completed work of `all_reduce` of a sparse COO tensor. Gloo supports only sums."""
    if op is not ReduceOp.SUM:
        raise runtime_error("unsupported reduction operation of sparse tensors", "SUM")
    own = tensor.detach().coalesce()
    at, values = own._indices()._array, own._values()._array
    shapes = gathered(np.array([*tensor.shape, own.sparse_dim()]), group)
    if (shapes != shapes[0]).any():
        raise runtime_error("sparse tensors differ in shape between ranks")
    counts = gathered(np.array([at.shape[1]]), group).reshape(-1).tolist()
    if any(counts):
        at = gathered_rows(np.ascontiguousarray(at.T), counts, group).T
        values = gathered_rows(np.ascontiguousarray(values), counts, group)
        total = sparse_coo_tensor(from_array(at.copy()), from_array(values), tensor.shape)
        tensor.copy_(total.coalesce())
    work = Work(group, f"sparse_all_reduce({tensor.dtype})", [], None, [tensor])
    work.poll()
    return work
