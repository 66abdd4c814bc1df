"""Functions that split tensors. `split` and `chunk` are in ops/shape/view_functions.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error, type_error
from rushlight.core.arguments import integers, wrap
from rushlight.core.tensor import Tensor
from rushlight.ops.composites import composite
from rushlight.ops.shape import views as s
from rushlight.ops.shape.view_functions import chunk_lengths, split_lengths


def between(input: Tensor, bounds: list[int], dim: int) -> tuple[Tensor, ...]:
    """The parts from each bound to the next: views."""
    lead = (slice(None),) * dim
    return tuple(s.getitem(input, (*lead, slice(a, b), ...)) for a, b in zip(bounds, bounds[1:]))


@composite()
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: int | None = None
) -> tuple[Tensor, ...]:
    """Split along `dim` into n nearly equal parts, with the longer parts first; or at the given indices.

    Views. RuntimeError for 0-d tensors and for less than one part.

    >>> rushlight.tensor_split(rushlight.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> rushlight.tensor_split(rushlight.arange(5), (1, 3))
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    where = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
    if where is None:
        raise type_error("tensor_split() missing 1 required positional argument: 'indices_or_sections'")
    if not input._array.ndim:
        raise runtime_error("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = wrap(dim, input._array.ndim)
    n = input._array.shape[dim]
    if isinstance(where, Tensor):
        where = plain_places(where)
    if hasattr(where, "__index__"):
        k = where.__index__()
        if k <= 0:
            raise runtime_error(f"number of sections must be larger than 0, got {k}", op="tensor_split")
        return between(input, [i * (n // k) + min(i, n % k) for i in range(k + 1)], dim)
    return between_indices(input, integers(where, "indices"), dim)


def between_indices(input: Tensor, indices: tuple[int, ...], dim: int) -> tuple[Tensor, ...]:
    """The parts before, between and after the indices; negative indices count from the end, as in a slice."""
    n = input._array.shape[dim]
    return between(input, [0, *(slice(i, None).indices(n)[0] for i in indices), n], dim)


def plain_places(t: Tensor) -> Any:
    """Sections or indices as Python numbers, also if they are given as a tensor."""
    if t._array.dtype != np.int64 or t._array.ndim > 1:
        raise runtime_error(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional long "
            f"tensor, but got {t.dtype} with {t._array.ndim} dims"
        )
    return t.tolist()


def splitting(name: str, least: int, dim_of: Callable[[int], int], says: str, shape: str) -> None:
    """Define hsplit or a similar function: tensor_split along one dimension, into equal parts. `shape`: the shape of
    half of a tensor (2, 2, 2), for the example.
    """

    def split(
        input: Tensor, indices_or_sections: Any = None, *, indices: Any = None, sections: int | None = None
    ) -> tuple[Tensor, ...]:
        where = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
        ndim = input._array.ndim
        if ndim < least:
            raise runtime_error(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {ndim} "
                "dimensions!",
                "reshape it",
            )
        if isinstance(where, str) or where is None:
            raise type_error(
                f"{name}() received an invalid combination of arguments. It takes the number of parts, an int, or "
                f"a tuple of ints, not {type(where).__name__}"
            )
        dim = dim_of(ndim)
        n = input._array.shape[dim]
        if hasattr(where, "__index__") and (not where.__index__() or n % where.__index__()):
            raise runtime_error(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {n} is not "
                f"divisible by the split_size {where}!",
                "tensor_split() accepts any number of parts",
            )
        return tensor_split(input, where, dim)

    split.__name__ = split.__qualname__ = name
    split.__doc__ = f"""input = cat(parts): a number of equal parts along the {says}, or the parts between indices.

    Views; see `tensor_split`. RuntimeError for too few dimensions, or a size that is not a multiple.

    >>> [part.shape for part in rushlight.{name}(rushlight.ones(2, 2, 2), [1])]
    [torch.Size([{shape}]), torch.Size([{shape}])]
    """
    composite(name)(split)


splitting("hsplit", 1, lambda ndim: min(ndim - 1, 1), "second dimension (of a vector the first)", "2, 1, 2")
splitting("vsplit", 2, lambda ndim: 0, "first dimension", "1, 2, 2")
splitting("dsplit", 3, lambda ndim: 2, "third dimension", "2, 2, 1")

# -- parts outside the graph's checks --------------------------------------------------------------


@composite()
def unsafe_split(input: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """input = cat(parts), like `split`, but writes to one part do not update the graph of another.

    Only for parts that no other code writes to.

    >>> rushlight.unsafe_split(rushlight.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    dim = wrap(dim, input._array.ndim)
    return s.split_sizes(input, split_lengths(input._array.shape[dim], split_size), dim)


@composite()
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """input = cat(parts), like `split_with_sizes`, but writes to one part do not update the graph of another.

    >>> rushlight.unsafe_split_with_sizes(rushlight.arange(5), [1, 4])
    (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return unsafe_split(input, tuple(split_sizes), dim)


@composite()
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """input = cat(parts), like `chunk`, but writes to one part do not update the graph of another.

    >>> rushlight.unsafe_chunk(rushlight.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    n = input._array.shape[wrap(dim, input._array.ndim)]
    return unsafe_split(input, chunk_lengths(n, chunks), dim)
