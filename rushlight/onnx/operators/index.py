"""Operators that take and put elements by index."""

from __future__ import annotations

import math
from typing import Any

import rushlight as torch
from rushlight import Tensor

from .table import Fixed, Ints, operator


def counted(at: Tensor, size: int) -> Tensor:
    """Indices as int64; negative indices count from the end."""
    at = at.to(torch.int64)
    return torch.where(at < 0, at + size, at)


@operator("Slice", since=10)
def slices(x: Tensor, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None) -> Tensor:
    """x[start:end:step] along the axes."""
    for i, (start, end) in enumerate(zip(starts, ends)):
        axis = axes[i] % x.ndim if axes is not None else i
        step, size = 1 if steps is None else steps[i], x.shape[axis]
        if step > 0:
            x = x[(slice(None),) * axis + (slice(start, end, step),)]
        else:
            at = range(size)[slice(start, end if end >= -size else None, step)]
            x = x.index_select(axis, torch.tensor(list(at), dtype=torch.int64))
    return x


@operator("Slice", until=9)
def old_slices(x: Tensor, *, starts: Ints, ends: Ints, axes: Ints | None = None) -> Tensor:
    """x[start:end] along the axes."""
    return slices(x, starts, ends, axes)


@operator("Gather")
def gather(x: Tensor, at: Fixed, *, axis: int = 0) -> Tensor:
    """The slices of an axis at indices; the indices' shape takes the axis' place."""
    axis = axis % x.ndim
    out = x.index_select(axis, counted(at, x.shape[axis]).reshape(-1))
    return out.reshape((*x.shape[:axis], *at.shape, *x.shape[axis + 1 :]))


@operator("GatherElements")
def gather_elements(x: Tensor, at: Fixed, *, axis: int = 0) -> Tensor:
    """For each index the element of its row along an axis."""
    return x.gather(axis, counted(at, x.shape[axis]))


@operator("GatherND")
def gather_nd(x: Tensor, at: Fixed, *, batch_dims: int = 0) -> Tensor:
    """x[i, j, ...] for each vector of indices; the first `batch_dims` dimensions of both are one batch."""
    lead = at.shape[:batch_dims]
    rows = [
        torch.arange(size).reshape([-1 if i == d else 1 for i in range(at.ndim - 1)]) for d, size in enumerate(lead)
    ]
    where = at.to(torch.int64).unbind(-1)
    return x[tuple(rows) + tuple(where)]


@operator("Scatter")
def scatter(x: Tensor, at: Fixed, y: Tensor, *, axis: int = 0) -> Tensor:
    """x with elements of y put at indices of an axis."""
    return x.scatter(axis, counted(at, x.shape[axis]), y)


@operator("ScatterElements")
def scatter_elements(x: Tensor, at: Fixed, y: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    """x with elements of y put at indices of an axis, or combined with the elements there."""
    where = counted(at, x.shape[axis])
    if reduction == "none":
        return x.scatter(axis, where, y)
    return x.scatter_reduce(axis, where, y, torch_reduction(reduction))


def torch_reduction(reduction: str) -> str:
    """torch's name of a reduction."""
    match reduction:
        case "add":
            return "sum"
        case "mul":
            return "prod"
    return "a" + reduction


@operator("ScatterND")
def scatter_nd(x: Tensor, at: Fixed, y: Tensor, *, reduction: str = "none") -> Tensor:
    """x with slices of y put at x[i, j, ...] for each vector of indices, or combined with the slices there."""
    depth = at.shape[-1]
    sizes, inner = list(x.shape[:depth]), tuple(x.shape[depth:])
    strides = torch.tensor([math.prod(sizes[i + 1 :]) for i in range(depth)])
    vectors = at.to(torch.int64)
    vectors = torch.where(vectors < 0, vectors + torch.tensor(sizes), vectors)
    rows = (vectors * strides).sum(-1).reshape(-1)
    flat, new = x.reshape(-1, *inner), y.reshape(-1, *inner)
    if reduction == "none":
        return flat.index_put((rows,), new).reshape(x.shape)
    where = rows.reshape([-1] + [1] * len(inner)).expand(new.shape)
    return flat.scatter_reduce(0, where, new, torch_reduction(reduction)).reshape(x.shape)


@operator("OneHot")
def one_hot(at: Fixed, depth: Any, values: Tensor, *, axis: int = -1) -> Tensor:
    """values[1] at the index along a new axis of size `depth`, else values[0]."""
    size = int(depth.reshape(-1)[0].item())
    axis = axis % (at.ndim + 1)
    places = torch.arange(size).reshape([-1 if i == axis else 1 for i in range(at.ndim + 1)])
    return torch.where(counted(at, size).unsqueeze(axis) == places, values[1], values[0])
