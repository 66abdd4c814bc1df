"""Collectives that gradients go through: torch.distributed.nn.functional. Backward is a collective, too, so all ranks
run it, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
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


class Broadcast(Function):
    """y = x of rank src; grad x = sum of the gradients of all ranks, there."""

    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        out = copy_of(tensor)
        collectives.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        total = copy_of(grad)
        collectives.reduce(total, ctx.src, group=ctx.group)
        here = get_global_rank(ctx.group, get_rank(ctx.group)) == ctx.src
        return None, None, total if here else zeros_like(grad)


class Reduce(Function):
    """y = sum of x of all ranks, on rank dst; grad x = the gradient of rank dst."""

    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        out = copy_of(tensor)
        collectives.reduce(out, dst, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        out = copy_of(grad)
        collectives.broadcast(out, ctx.dst, ctx.group)
        return None, None, None, out


class AllReduce(Function):
    """y = sum of x of all ranks; grad x = sum of the gradients of all ranks."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        out = copy_of(tensor)
        collectives.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        out = copy_of(grad)
        collectives.all_reduce(out, ctx.op, ctx.group)
        return None, None, out


class Gather(Function):
    """y[i] = x of rank i, on rank dst, zeros elsewhere; grad x = the gradient of its y there."""

    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        outs = [zeros_like(tensor) for _ in range(get_world_size(group))]
        here = get_global_rank(group, get_rank(group)) == dst
        collectives.gather(tensor, outs if here else None, dst, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        out = zeros_like(grads[0])
        here = get_global_rank(ctx.group, get_rank(ctx.group)) == ctx.dst
        collectives.scatter(out, list(grads) if here else None, ctx.dst, ctx.group)
        return None, None, out


class Scatter(Function):
    """y = x[own rank] of rank src; grad x[i] = the gradient of rank i, there."""

    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        out = zeros_like(tensors[0])
        here = get_global_rank(group, get_rank(group)) == src
        collectives.scatter(out, list(tensors) if here else None, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        outs = [zeros_like(grad) for _ in range(get_world_size(ctx.group))]
        here = get_global_rank(ctx.group, get_rank(ctx.group)) == ctx.src
        collectives.gather(grad, outs if here else None, ctx.src, ctx.group)
        return (None, None, *outs)


class ReduceScatter(Function):
    """y = sum of x[own rank] of all ranks; grad x[i] = the gradient of rank i."""

    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *inputs: Tensor) -> Tensor:
        ctx.group = group
        out = zeros_like(output)
        collectives.reduce_scatter(out, list(inputs), op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        outs = [zeros_like(grad) for _ in range(get_world_size(ctx.group))]
        collectives.all_gather(outs, grad, ctx.group)
        return (None, None, None, *outs)


class AllGather(Function):
    """y[i] = x of rank i, on all; grad x = sum of the gradients of its y of all ranks."""

    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        outs = [zeros_like(tensor) for _ in range(get_world_size(group))]
        collectives.all_gather(outs, tensor, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        out = zeros_like(grads[0])
        collectives.reduce_scatter(out, list(grads), group=ctx.group)
        return None, out


class AllToAll(Function):
    """y[i] = x[own rank] of rank i; gradients go the way back."""

    @staticmethod
    def forward(ctx: Any, group: Any, outputs: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.inputs = group, [zeros_like(x) for x in inputs]
        outs = [zeros_like(y) for y in outputs]
        collectives.all_to_all(outs, list(inputs), group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        collectives.all_to_all(ctx.inputs, list(grads), ctx.group)
        return (None, None, *ctx.inputs)


class AllToAllSingle(Function):
    """y = part number `own rank` of x of all ranks; gradients go the way back."""

    @staticmethod
    def forward(ctx: Any, group: Any, output: Tensor, out_splits: Any, splits: Any, input: Tensor) -> Tensor:
        ctx.group, ctx.out_splits, ctx.splits = group, out_splits, splits
        ctx.input = zeros_like(input)
        out = zeros_like(output)
        collectives.all_to_all_single(out, input, out_splits, splits, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        collectives.all_to_all_single(ctx.input, grad, ctx.splits, ctx.out_splits, ctx.group)
        return None, None, None, None, ctx.input


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src`."""
    return Broadcast.apply(src, group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks on rank `dst`; zeros elsewhere."""
    return Gather.apply(dst, group, tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """tensors[own rank] of rank `src`."""
    return Scatter.apply(src, group, *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum of the tensors of all ranks on rank `dst`."""
    return Reduce.apply(dst, op, group, tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum of input_list[own rank] of all ranks."""
    return ReduceScatter.apply(op, group, output, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks."""
    return AllGather.apply(group, tensor)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum of the tensors of all ranks, or what `op` makes of them."""
    return AllReduce.apply(op, group, tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """input_tensor_list[own rank] of each rank."""
    return AllToAll.apply(group, list(output_tensor_list), *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Part number `own rank` of the inputs of all ranks, one after the other."""
    return AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)
