"""Collectives with gradients: torch.distributed.nn.functional. Their backward is a collective, too, so all ranks must
run it in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from rushlight.autograd.function import Function
from rushlight.comm import collectives
from rushlight.comm.groups import get_global_rank, get_rank, get_world_size
from rushlight.comm.reduce_op import ReduceOp
from rushlight.core.tensor import Tensor, from_array


def zeros_like(tensor: Tensor) -> Tensor:
    return from_array(np.zeros(tensor._array.shape, tensor._array.dtype))


def copy_of(tensor: Tensor) -> Tensor:
    return from_array(np.array(tensor._array, order="C"))


def written(collective: Callable, tensor: Tensor, *args: Any) -> Tensor:
    """The copy of a tensor that collective(copy, *args) has written."""
    out = copy_of(tensor)
    collective(out, *args)
    return out


def is_here(rank: int, group: Any) -> bool:
    """Whether this process has this rank in the world."""
    return get_global_rank(group, get_rank(group)) == rank


class Collective(Function):
    """forward(*tensors). `backward(*gradients)` returns its gradients, a tuple or list."""

    @staticmethod
    def forward(ctx: Any, forward: Callable, backward: Callable, *tensors: Tensor) -> Any:
        ctx.gradients = backward
        return forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return (None, None, *ctx.gradients(*grads))


@cache
def named(name: str) -> Any:
    """A subclass of Collective for the operation `name`: its nodes are called NameBackward."""
    return type(name, (Collective,), {})


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src`; its gradient there is the sum of the gradients of all ranks."""

    def backward(g: Tensor) -> tuple[Tensor]:
        total = written(collectives.reduce, g, src, ReduceOp.SUM, group)
        return (total if is_here(src, group) else zeros_like(g),)

    return named("Broadcast").apply(lambda x: written(collectives.broadcast, x, src, group), backward, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """On rank `dst` the tensors of all ranks, zeros elsewhere. Each tensor gets the gradient of its copy on `dst`."""

    def forward(x: Tensor) -> tuple[Tensor, ...]:
        outs = [zeros_like(x) for _ in range(get_world_size(group))]
        collectives.gather(x, outs if is_here(dst, group) else None, dst, group)
        return tuple(outs)

    def backward(*grads: Tensor) -> tuple[Tensor]:
        out = zeros_like(grads[0])
        collectives.scatter(out, list(grads) if is_here(dst, group) else None, dst, group)
        return (out,)

    return named("Gather").apply(forward, backward, tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """tensors[own rank] of rank `src`. The gradient of tensors[i] on `src` is the gradient of the result on rank i."""

    def forward(*xs: Tensor) -> Tensor:
        out = zeros_like(xs[0])
        collectives.scatter(out, list(xs) if is_here(src, group) else None, src, group)
        return out

    def backward(g: Tensor) -> list[Tensor]:
        outs = [zeros_like(g) for _ in range(get_world_size(group))]
        collectives.gather(g, outs if is_here(src, group) else None, src, group)
        return outs

    return named("Scatter").apply(forward, backward, *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """On rank `dst`, the sum of the tensors of all ranks; all ranks get the gradient of this sum."""

    def backward(g: Tensor) -> tuple[Tensor]:
        return (written(collectives.broadcast, g, dst, group),)

    return named("Reduce").apply(lambda x: written(collectives.reduce, x, dst, op, group), backward, tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum of input_list[own rank] of all ranks. The gradient of input_list[i] is the gradient of the sum on rank
    i."""

    def forward(*xs: Tensor) -> Tensor:
        out = zeros_like(output)
        collectives.reduce_scatter(out, list(xs), op, group)
        return out

    def backward(g: Tensor) -> list[Tensor]:
        outs = [zeros_like(g) for _ in range(get_world_size(group))]
        collectives.all_gather(outs, g, group)
        return outs

    return named("ReduceScatter").apply(forward, backward, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks; the gradient of each is the sum of the gradients of its copies on all ranks."""

    def forward(x: Tensor) -> tuple[Tensor, ...]:
        outs = [zeros_like(x) for _ in range(get_world_size(group))]
        collectives.all_gather(outs, x, group)
        return tuple(outs)

    def backward(*grads: Tensor) -> tuple[Tensor]:
        out = zeros_like(grads[0])
        collectives.reduce_scatter(out, list(grads), group=group)
        return (out,)

    return named("AllGather").apply(forward, backward, tensor)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The tensors of all ranks, reduced by `op` (default: their sum); the gradient is reduced in the same way."""

    def reduced(x: Tensor) -> Tensor:
        return written(collectives.all_reduce, x, op, group)

    return named("AllReduce").apply(reduced, lambda g: (reduced(g),), tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """input_tensor_list[own rank] of each rank; gradients go back to the ranks that sent the tensors."""

    def exchanged(like: Sequence[Tensor], xs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        outs = [zeros_like(y) for y in like]
        collectives.all_to_all(outs, list(xs), group)
        return tuple(outs)

    outputs, inputs = list(output_tensor_list), list(input_tensor_list)
    return named("AllToAll").apply(lambda *xs: exchanged(outputs, xs), lambda *grads: exchanged(inputs, grads), *inputs)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None,
) -> Tensor:  # fmt: skip
    """Part number `own rank` of each rank's input, concatenated in the order of the ranks."""

    def exchanged(like: Tensor, x: Tensor, out_splits: Any, splits: Any) -> Tensor:
        out = zeros_like(like)
        collectives.all_to_all_single(out, x, out_splits, splits, group)
        return out

    return named("AllToAllSingle").apply(
        lambda x: exchanged(output, x, output_split_sizes, input_split_sizes),
        lambda g: (exchanged(input, g, input_split_sizes, output_split_sizes),),
        input,
    )
