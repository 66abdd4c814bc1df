"""Joining and combining tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error, warn
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.core.views import into
from rushlight.ops.composites import composite
from rushlight.ops.index.along_dim import index_select
from rushlight.ops.shape import views as s
from rushlight.ops.shape.view_functions import several

# -- at least n dimensions -------------------------------------------------------------------


def as_row(x: Tensor) -> Tensor:
    return x if x._array.ndim else s.reshape(x, (1,))


def as_matrix(x: Tensor) -> Tensor:
    return x if x._array.ndim > 1 else s.reshape(x, (1, -1 if x._array.size else x._array.size))


def as_stack(x: Tensor) -> Tensor:
    return x if x._array.ndim > 2 else s.unsqueeze(as_matrix(x), 2)


def at_least(n: int, bring: Callable[[Tensor], Tensor]) -> None:
    """Define atleast_nd, of one tensor or of several."""

    def brought(*tensors: Tensor | Sequence[Tensor]) -> Any:
        given: Any = tensors[0] if len(tensors) == 1 else tensors
        return bring(given) if isinstance(given, Tensor) else tuple(bring(t) for t in given)

    brought.__name__ = brought.__qualname__ = f"atleast_{n}d"
    brought.__doc__ = f"""The tensor with {n} dimensions or more: new ones of size 1; several tensors give a tuple.

    >>> rushlight.atleast_{n}d(rushlight.tensor(3)).ndim
    {n}
    """
    composite(f"atleast_{n}d", tensor=False)(brought)


for n, bring in ((1, as_row), (2, as_matrix), (3, as_stack)):
    at_least(n, bring)

# -- side by side ----------------------------------------------------------------------------------


def joining(names: str, bring: Callable[[Tensor], Tensor], dim: int, says: str) -> None:
    """Define hstack or a similar function: give tensors enough dimensions by `bring`, and join them along `dim`."""
    name, *aliases = names.split()

    def join(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
        if not len(several(tensors, name)):
            raise runtime_error(f"{name} expects a non-empty TensorList")
        ts = [bring(t) for t in tensors]
        made = s.cat(ts, min(dim, ts[0]._array.ndim - 1))
        return made if out is None else into(out, made, *tensors)

    join.__name__ = join.__qualname__ = name
    join.__doc__ = f"""Tensors joined {says}.

    >>> rushlight.{name}([rushlight.tensor([1, 2]), rushlight.tensor([3, 4])]).shape
    torch.Size({list(np.shape(getattr(np, name)([[1, 2], [3, 4]])))})
    """
    composite(name, *aliases, tensor=False)(join)


def as_column(x: Tensor) -> Tensor:
    return x if x._array.ndim > 1 else s.reshape(x, (-1 if x._array.size else 0, 1))


joining("hstack", as_row, 1, "along the second dimension; vectors along the first")
joining("vstack row_stack", as_matrix, 0, "along the first dimension, vectors as rows")
joining("dstack", as_stack, 2, "along the third dimension, vectors (n) as (1, n, 1), matrices as (m, n, 1)")
joining("column_stack", as_column, 1, "along the second dimension, vectors as columns")


@composite(tensor=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """The matrix with the tensors (of at most two dimensions, vectors as rows) as blocks on its diagonal, 0 elsewhere.

    >>> rushlight.block_diag(rushlight.tensor([[1, 2]]), rushlight.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    for i, t in enumerate(tensors):
        if t._array.ndim > 2:
            raise runtime_error(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t._array.ndim} "
                "dimensions",
                "reshape it to a matrix",
            )
    if not tensors:
        return created(from_array(np.zeros((1, 0), np.float32)))
    blocks = [as_matrix(t) for t in tensors]
    width, before, rows = sum(b._array.shape[1] for b in blocks), 0, []
    for b in blocks:
        n, k = b._array.shape
        rows.append(s.cat((empty(b, n, before), b, empty(b, n, width - before - k)), 1))
        before += k
    return s.cat(rows, 0)


def empty(like: Tensor, *shape: int) -> Tensor:
    """Zeros of the shape `shape` beside a block."""
    return created(from_array(np.zeros(shape, like._array.dtype)))


# -- combinations ----------------------------------------------------------------------------------


@composite(tensor=False)
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid: one tensor for each axis, each with the grid's shape; views.

    `indexing`: "ij", the axes in their order, or "xy", the first two exchanged. RuntimeError for tensors of more than
    one dimension or of different dtypes.

    >>> rushlight.meshgrid(rushlight.tensor([1, 2]), rushlight.tensor([3, 4]), indexing="ij")[1]
    tensor([[3, 4],
            [3, 4]])
    """
    ts: Any = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
    check_axes(ts, indexing)
    if indexing == "xy" and len(ts) > 1:
        first, second, *rest = meshgrid(ts[1], ts[0], *ts[2:], indexing="ij")
        return (second, first, *rest)
    shape = tuple(t._array.size for t in ts)
    return tuple(s.expand(s.reshape(t, (1,) * i + (-1,) + (1,) * (len(ts) - i - 1)), shape) for i, t in enumerate(ts))


def check_axes(ts: Sequence[Tensor], indexing: str | None) -> None:
    """RuntimeError unless the tensors can be the axes of a grid."""
    if not len(ts):
        raise runtime_error("meshgrid expects a non-empty TensorList")
    if any(t._array.ndim > 1 for t in ts):
        bad = next(t for t in ts if t._array.ndim > 1)
        raise runtime_error(
            f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(bad.shape)}", "flatten() it"
        )
    if any(t.dtype is not ts[0].dtype for t in ts):
        raise runtime_error("torch.meshgrid expects all tensors to have the same dtype")
    if indexing is None:
        warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    elif indexing not in ("ij", "xy"):
        raise runtime_error(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')


@composite(tensor=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element from each vector, one combination per row; a single vector is returned unchanged.

    >>> rushlight.cartesian_prod(rushlight.tensor([1, 2]), rushlight.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for t in tensors:
        if t._array.ndim != 1:
            raise runtime_error(
                f"Expect a 1D vector, but got shape {list(t.shape)}", "flatten() it", op="cartesian_prod"
            )
    if len(tensors) == 1:
        return tensors[0]
    return s.stack([s.flatten(t) for t in meshgrid(*tensors, indexing="ij")], 1)


@composite(tensor=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of r elements of a vector, in the vector's order, one combination per row. `with_replacement`:
    an element may repeat.

    >>> rushlight.combinations(rushlight.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input._array.ndim != 1:
        raise runtime_error(f"Expect a 1D vector, but got shape {list(input.shape)}", "flatten() it", op="combinations")
    if r < 0:
        raise runtime_error(f"Expect a non-negative number, but got {r}", op="combinations")
    if r == 0:
        return empty(input, 0)
    take = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    found = np.array(list(take(range(input._array.size), r)), np.int64).reshape(-1, r)
    return s.reshape(index_select(input, 0, created(from_array(found.ravel()))), found.shape)
