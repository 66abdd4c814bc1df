"""Reductions over axes, which are an input since opset 13 or 18, and an attribute before."""

from __future__ import annotations

from collections.abc import Callable

import rushlight as torch
from rushlight import Tensor

from .table import Ints, operator

Reduction = Callable[[Tensor, list[int], bool], Tensor]


def products(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """The product over the axes."""
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keepdim=keep)
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


def root_of_squares(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    """sqrt(sum(x ** 2))."""
    if x.is_floating_point():
        return (x * x).sum(axes, keepdim=keep).sqrt()
    return (x * x).sum(axes, keepdim=keep).to(torch.float64).sqrt().to(x.dtype)


REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keepdim=keep).to(x.dtype),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keepdim=keep),
    "ReduceProd": lambda x, axes, keep: products(x, axes, keep).to(x.dtype),
    "ReduceMax": largest,
    "ReduceMin": smallest,
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keepdim=keep).to(x.dtype),
    "ReduceL2": root_of_squares,
    "ReduceSumSquare": lambda x, axes, keep: (x * x).sum(axes, keepdim=keep).to(x.dtype),
    "ReduceLogSum": lambda x, axes, keep: x.sum(axes, keepdim=keep).log(),
    "ReduceLogSumExp": lambda x, axes, keep: torch.logsumexp(x, axes, keepdim=keep),
}
# the operators that leave x alone over no axes; the others then reduce each element for itself
PLAIN = ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin")


class Reduce:
    """A reduction by its name, with axes as an input."""

    def __init__(self, name: str):
        self.name = name

    def __call__(
        self, x: Tensor, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Tensor:
        function = REDUCTIONS[self.name]
        if not axes and noop_with_empty_axes:
            return x if self.name in PLAIN else function(x.unsqueeze(-1), [x.ndim], False)
        return function(x, [axis % max(x.ndim, 1) for axis in axes or range(x.ndim)], bool(keepdims))


class OldReduce(Reduce):
    """A reduction by its name, with axes as an attribute."""

    def __call__(self, x: Tensor, *, axes: Ints | None = None, keepdims: int = 1) -> Tensor:  # type: ignore[override]
        return super().__call__(x, axes, keepdims=keepdims)


for _name in REDUCTIONS:
    _since = 13 if _name == "ReduceSum" else 18
    operator(_name, since=_since)(Reduce(_name))
    operator(_name, until=_since - 1)(OldReduce(_name))
