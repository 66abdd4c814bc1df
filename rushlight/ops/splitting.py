"""Tensors taken apart: `split` and `chunk` are in shapes.py."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.errors import explain
from rushlight.ops import shape as s
from rushlight.ops.arguments import sizes, wrap
from rushlight.ops.build import composite
from rushlight.ops.shapes import chunk_lengths, split_lengths
from rushlight.tensor import Tensor


def between(input: Tensor, bounds: list[int], dim: int) -> tuple[Tensor, ...]:
    """The parts from each bound to the next: views."""
    lead = (slice(None),) * dim
    return tuple(s.getitem(input, (*lead, slice(a, b), ...)) for a, b in zip(bounds, bounds[1:]))


@composite()
def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None,
                 sections: int | None = None) -> tuple[Tensor, ...]:
    """Parts along `dim`: so many, as equal as can be, the first ones longer; or before, between and after the indices.

    Views. RuntimeError for 0-d tensors and for less than one part.

    >>> rushlight.tensor_split(rushlight.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> rushlight.tensor_split(rushlight.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    where = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
    if where is None:
        raise TypeError(explain("tensor_split() missing 1 required positional argument: 'indices_or_sections'"))
    if not input.array.ndim:
        raise RuntimeError(explain("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"))
    dim = wrap(dim, input.array.ndim)
    n = input.array.shape[dim]
    if isinstance(where, Tensor):
        where = plain_places(where)
    if hasattr(where, "__index__"):
        k = where.__index__()
        if k <= 0:
            raise RuntimeError(explain(f"number of sections must be larger than 0, got {k}", op="tensor_split"))
        return between(input, [i * (n // k) + min(i, n % k) for i in range(k + 1)], dim)
    return between_indices(input, sizes(where), dim)


def between_indices(input: Tensor, indices: tuple[int, ...], dim: int) -> tuple[Tensor, ...]:
    """The parts before, between and after the indices, which count from the end if negative, as in a slice."""
    n, lead = input.array.shape[dim], (slice(None),) * dim
    bounds = [0, *(slice(i, None).indices(n)[0] for i in indices), n]
    return tuple(s.getitem(input, (*lead, slice(a, b), ...)) for a, b in zip(bounds, bounds[1:]))


def plain_places(t: Tensor) -> Any:
    """Sections or indices given as a tensor, as Python numbers."""
    if t.array.dtype != np.int64 or t.array.ndim > 1:
        raise RuntimeError(explain("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-"
                                   f"dimensional long tensor, but got {t.dtype} with {t.array.ndim} dims"))
    return t.tolist()


def splitting(name: str, least: int, dim_of: Callable[[int], int], says: str) -> None:
    """Define hsplit and its like: tensor_split along one dimension, into equal parts."""
    def split(input: Tensor, indices_or_sections: Any = None, *, indices: Any = None,
              sections: int | None = None) -> tuple[Tensor, ...]:
        where = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
        ndim = input.array.ndim
        if ndim < least:
            raise RuntimeError(explain(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
                                       f"with {ndim} dimensions!", "reshape it"))
        if isinstance(where, str) or where is None:
            raise TypeError(explain(f"{name}() received an invalid combination of arguments. It takes the number of "
                                    f"parts, an int, or a tuple of ints, not {type(where).__name__}"))
        dim = dim_of(ndim)
        n = input.array.shape[dim]
        if hasattr(where, "__index__") and (not where.__index__() or n % where.__index__()):
            raise RuntimeError(explain(f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                                       f"dimension {n} is not divisible by the split_size {where}!",
                                       "tensor_split() takes any number of parts"))
        return tensor_split(input, where, dim)
    split.__name__ = split.__qualname__ = name
    split.__doc__ = f"Equal parts along the {says}, so many, or the parts between indices: views. See `tensor_split`."
    composite(name)(split)


splitting("hsplit", 1, lambda ndim: min(ndim - 1, 1), "second dimension (of a vector the first)")
splitting("vsplit", 2, lambda ndim: 0, "first dimension")
splitting("dsplit", 3, lambda ndim: 2, "third dimension")

# -- not watched -------------------------------------------------------------------------------------------------------


@composite()
def unsafe_split(input: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`, but writes to a part are not seen by the graph of the others: for who knows that nobody else looks."""
    dim = wrap(dim, input.array.ndim)
    return s.split_sizes(input, split_lengths(input.array.shape[dim], split_size), dim)


@composite()
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes`, but writes to a part are not seen by the graph of the others."""
    return unsafe_split(input, tuple(split_sizes), dim)


@composite()
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`, but writes to a part are not seen by the graph of the others."""
    n = input.array.shape[wrap(dim, input.array.ndim)]
    return unsafe_split(input, chunk_lengths(n, chunks), dim)
