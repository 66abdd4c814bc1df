"""Reductions over axes, which are an input since opset 13 or 18, and an attribute before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor

from .table import Ints, operator

Reduction = Callable[[Tensor, list[int], bool], Tensor]


def products(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The product over the axes."""
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keepdim=keep).to(x.dtype)
    return x


def largest(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The largest element; of none, the least number."""
    if any(x.shape[axis] == 0 for axis in axes):
        return of_none(x, axes, keep, -float("inf"))
    return x.any(axes, keepdim=keep) if x.dtype == torch.bool else x.amax(axes, keepdim=keep)


def smallest(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The smallest element; of none, the greatest number."""
    if any(x.shape[axis] == 0 for axis in axes):
        return of_none(x, axes, keep, float("inf"))
    return x.all(axes, keepdim=keep) if x.dtype == torch.bool else x.amin(axes, keepdim=keep)


def of_none(x: Tensor, axes: list[int], keep: bool, number: float) -> Tensor:
    """The reduction of axes without elements: a number, or for integers their limit."""
    if x.dtype == torch.bool:
        number = float(number > 0)
    elif not x.is_floating_point():
        limits = torch.iinfo(x.dtype)
        number = limits.min if number < 0 else limits.max
    return torch.full_like(x.sum(axes, keepdim=keep), number, dtype=x.dtype)


def total(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The sum."""
    return x.sum(axes, keepdim=keep).to(x.dtype)


def mean(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The mean."""
    return x.mean(axes, keepdim=keep)


def sum_of_sizes(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """sum(abs(x))."""
    return x.abs().sum(axes, keepdim=keep).to(x.dtype)


def sum_of_squares(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """sum(x ** 2)."""
    return (x * x).sum(axes, keepdim=keep).to(x.dtype)


def log_of_sum(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """log(sum(x))."""
    return x.sum(axes, keepdim=keep).log()


def log_of_exponentials(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """log(sum(exp(x)))."""
    return torch.logsumexp(x, axes, keepdim=keep)


def root_of_squares(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """sqrt(sum(x ** 2))."""
    if x.is_floating_point():
        return (x * x).sum(axes, keepdim=keep).sqrt()
    return (x * x).sum(axes, keepdim=keep).to(torch.float64).sqrt().to(x.dtype)


REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": total, "ReduceMean": mean, "ReduceProd": products, "ReduceMax": largest, "ReduceMin": smallest,
    "ReduceL1": sum_of_sizes, "ReduceL2": root_of_squares, "ReduceSumSquare": sum_of_squares,
    "ReduceLogSum": log_of_sum, "ReduceLogSumExp": log_of_exponentials,
}  # fmt: skip
# the reductions that leave x alone over no axes; the others then reduce each element for itself
PLAIN = (total, mean, products, largest, smallest)


def reduced(
    x: Tensor,
    axes: Ints | None = None,
    *,
    function: Reduction,
    is_plain: bool,
    keepdims: int = 1,
    noop_with_empty_axes: int = 0,
) -> Tensor:
    """A reduction over the axes; over all by default, or over none for noop_with_empty_axes=1."""
    if not axes and noop_with_empty_axes:
        return x if is_plain else function(x.unsqueeze(-1), [x.ndim], False)
    return function(x, [axis % max(x.ndim, 1) for axis in axes or range(x.ndim)], bool(keepdims))


class Reduce:
    """A reduction, with axes as an input."""

    def __init__(self, function: Reduction):
        self.settings: dict[str, Any] = {"function": function, "is_plain": function in PLAIN}

    def __call__(
        self, x: Tensor, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Tensor:
        return reduced(x, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes, **self.settings)


class OldReduce(Reduce):
    """A reduction, with axes as an attribute."""

    def __call__(self, x: Tensor, *, axes: Ints | None = None, keepdims: int = 1) -> Tensor:  # type: ignore[override]
        return super().__call__(x, axes, keepdims=keepdims)


for _name, _function in REDUCTIONS.items():
    _since = 13 if _function is total else 18
    operator(_name, since=_since)(Reduce(_function))
    operator(_name, until=_since - 1)(OldReduce(_function))
