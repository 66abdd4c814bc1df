"""torch's private functional collectives, which libraries import. Each returns a new tensor."""

from __future__ import annotations

from typing import Any

from rushlight.comm import collectives, differentiable
from rushlight.comm.groups import get_world_size
from rushlight.comm.reduce_op import ReduceOp
from rushlight.core.tensor import Tensor
from rushlight.ops.shape.views import cat


def op_named(name: str) -> ReduceOp:
    """The ReduceOp of a lower-case name."""
    return {"PROD": ReduceOp.PRODUCT}.get(name.upper()) or ReduceOp[name.upper()]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor. The collective has already waited."""
    return tensor


def all_to_all_single_autograd(
    self: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None, tag: str = ""
) -> Tensor:
    """Part number `own rank` of each rank's tensor, concatenated in the order of the ranks."""
    rows = self.shape[0] if not output_split_sizes else sum(output_split_sizes)
    output = self.new_empty((rows, *self.shape[1:]))
    return differentiable.all_to_all_single(output, self, output_split_sizes, input_split_sizes, group)


def all_reduce(self: Tensor, reduceOp: str, group: Any = None, tag: str = "") -> Tensor:
    """The tensors of all ranks, reduced by `reduceOp`."""
    return differentiable.all_reduce(self, op_named(reduceOp), group)


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any = None, tag: str = "") -> Tensor:
    """The tensors of all ranks, joined along `gather_dim`."""
    return cat(differentiable.all_gather(self, group), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any = None, tag: str = "") -> Tensor:
    """The tensors of all ranks, reduced by `reduceOp`: this rank's part along `scatter_dim`."""
    parts = [part.contiguous() for part in self.chunk(get_world_size(group), scatter_dim)]
    return differentiable.reduce_scatter(parts[0], parts, op_named(reduceOp), group)


def broadcast(self: Tensor, src: int, group: Any = None, tag: str = "") -> Tensor:
    """The tensor of rank `src`."""
    output = self.detach().clone()
    collectives.broadcast(output, src, group)
    return output


__all__ = [
    "all_gather_tensor", "all_reduce", "all_to_all_single_autograd", "broadcast", "reduce_scatter_tensor",
    "wait_tensor",
]  # fmt: skip
