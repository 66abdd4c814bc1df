"""torch.distributed.nn: collectives with gradients. With one process they return copies."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rushlight.base.submodules import importable
from rushlight.core.tensor import Tensor
from rushlight.distributed import ReduceOp, initialized


@initialized
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensor: sum, mean and extremes of one."""
    return tensor.clone()


@initialized
def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor."""
    return tensor.clone()


@initialized
def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensor."""
    return tensor.clone()


@initialized
def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """(tensor,): that of each process."""
    return (tensor.clone(),)


@initialized
def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """(tensor,): that of each process."""
    return (tensor.clone(),)


@initialized
def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """The first of the tensors."""
    return tensors[0].clone()


@initialized
def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """The first of the list, for the one process."""
    return input_list[0].clone()


@initialized
def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """The list: one process sends all to itself."""
    return tuple(t.clone() for t in input_tensor_list)


functional = sys.modules[__name__]  # torch.distributed.nn.functional
importable(__name__, "functional")
__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "functional",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]
