"""Gradients of nn.Embedding(sparse=True): the sum of the rows that the ranks have looked up."""

from __future__ import annotations

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.comm.collectives import all_gather_into_tensor
from rushlight.comm.objects import numbers
from rushlight.comm.process_group import ProcessGroup
from rushlight.comm.sparse_reduce import gathered_rows
from rushlight.core.tensor import Tensor, from_array
from rushlight.nn.module import Module
from rushlight.sparse import sparse_coo_tensor


def sparse_parameters(module: Module) -> set[int]:
    """The ids of the parameters whose gradients are sparse."""
    from rushlight.nn.embedding import Embedding, EmbeddingBag

    return {id(m.weight) for m in module.modules() if isinstance(m, (Embedding, EmbeddingBag)) and m.sparse}


def sparse_mean(parameter: Tensor, divisor: float, group: ProcessGroup) -> Tensor:
    """The sum of the ranks' sparse gradients of a parameter, divided by `divisor`. A rank without a gradient has no
    rows. RuntimeError for a dense gradient."""
    grad = parameter._grad
    if grad is not None and not grad.is_sparse:
        raise runtime_error(
            "a parameter of a module with sparse=True has a dense gradient",
            "sparse=False for a weight that is used elsewhere, too",
        )
    shape = parameter._array.shape
    if grad is None:
        rows = np.zeros((0,), np.int64)
        values = np.zeros((0, *shape[1:]), parameter._array.dtype)
    else:
        grad = grad.coalesce()
        rows, values = grad._indices()._array[0], grad._values()._array
    counts = np.zeros(group.size(), np.int64)
    all_gather_into_tensor(from_array(counts), numbers([len(rows)]), group)
    sizes = counts.tolist()
    if not max(sizes):
        return sparse_coo_tensor(from_array(rows[None]), from_array(values), shape)
    every = gathered_rows(np.ascontiguousarray(rows), sizes, group)
    total = gathered_rows(np.ascontiguousarray(values), sizes, group)
    total /= total.dtype.type(divisor)
    return sparse_coo_tensor(from_array(every[None]), from_array(total), shape).coalesce()
