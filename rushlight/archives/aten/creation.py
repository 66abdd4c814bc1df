"""New tensors: filled, counted, random. The sizes of a file are checked before memory is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as torch
from rushlight.archives.budget import new_tensor
from rushlight.core.tensor import Tensor

from .table import dtype_of, operator

Make = Callable[..., Tensor]


class Filled:
    """zeros(size), ones(size), empty(size), rand(size): ATen's further arguments are settings."""

    def __init__(self, make: Make):
        self.make = make

    def __call__(self, size: Sequence[int], dtype: Any = None, *ignored: Any) -> Tensor:
        return self.make(list(size), dtype=allowed(size, dtype))


class Like:
    """zeros_like(x) and so on."""

    def __init__(self, make: Make):
        self.make = make

    def __call__(self, x: Tensor, dtype: Any = None, *ignored: Any) -> Tensor:
        return self.make(list(x.shape), dtype=allowed(x.shape, dtype) or x.dtype)


class New:
    """x.new_zeros(size) and so on."""

    def __init__(self, make: Make):
        self.make = make

    def __call__(self, x: Tensor, size: Sequence[int], dtype: Any = None, *ignored: Any) -> Tensor:
        return self.make(list(size), dtype=allowed(size, dtype) or x.dtype)


def allowed(size: Sequence[int], dtype: Any) -> Any:
    """The dtype of a new tensor; LimitExceeded if the tensor is too large."""
    found = dtype_of(dtype)
    new_tensor(size, 4 if found is None else found.itemsize)
    return found


for _name in ("zeros", "ones", "empty", "rand", "randn"):
    operator(_name)(Filled(getattr(torch, _name)))
    operator(f"{_name}_like")(Like(getattr(torch, _name)))
    operator(f"new_{_name}")(New(getattr(torch, _name)))


@operator("full")
def full(size: Sequence[int], value: Any, dtype: Any = None, *ignored: Any) -> Tensor:
    return torch.full(list(size), value, dtype=allowed(size, dtype))


@operator("full_like")
def full_like(x: Tensor, value: Any, dtype: Any = None, *ignored: Any) -> Tensor:
    return full(x.shape, value, dtype_of(dtype) or x.dtype)


@operator("new_full")
def new_full(x: Tensor, size: Sequence[int], value: Any, dtype: Any = None, *ignored: Any) -> Tensor:
    return full(size, value, dtype_of(dtype) or x.dtype)


@operator("arange")
def arange(*bounds: Any, dtype: Any = None) -> Tensor:
    start, end, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if step:
        new_tensor([max(0, int((end - start) / step))], 8)
    return torch.arange(start, end, step, dtype=dtype_of(dtype))


@operator("linspace")
def linspace(start: Any, end: Any, steps: int, dtype: Any = None) -> Tensor:
    return torch.linspace(start, end, steps, dtype=allowed([steps], dtype))


@operator("eye")
def eye(n: int, m: int | None = None, dtype: Any = None, *ignored: Any) -> Tensor:
    m = n if m is None else m
    return torch.eye(n, m, dtype=allowed([n, m], dtype))


@operator("tensor", "scalar_tensor", "as_tensor")
def tensor(values: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    if isinstance(values, Tensor):
        return values if dtype is None else values.to(dtype_of(dtype))
    return torch.tensor(values, dtype=dtype_of(dtype), requires_grad=requires_grad)


@operator("randint")
def randint(*args: Any, dtype: Any = None) -> Tensor:
    low, high, size = args if len(args) == 3 else (0, *args)
    return torch.randint(low, high, tuple(size), dtype=allowed(size, dtype))


@operator("randperm")
def randperm(n: int, dtype: Any = None) -> Tensor:
    return torch.randperm(n, dtype=allowed([n], dtype) or torch.int64)


@operator("tril_indices")
def tril_indices(row: int, col: int, offset: int = 0, dtype: Any = None) -> Tensor:
    new_tensor([row, col], 16)
    return torch.tril_indices(row, col, offset)


@operator("triu_indices")
def triu_indices(row: int, col: int, offset: int = 0, dtype: Any = None) -> Tensor:
    new_tensor([row, col], 16)
    return torch.triu_indices(row, col, offset)


operator("multinomial")(lambda x, count, replacement=False: torch.multinomial(x, count, replacement))
operator("is_grad_enabled")(lambda: torch.is_grad_enabled())
