"""gather, scatter and index_add with torch's signatures: numbers for tensors, factors, reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import explain, index_error, runtime_error, type_error, warn_once
from rushlight.core.arguments import checked_number, wrap
from rushlight.core.tensor import Tensor, created, from_array, method
from rushlight.core.views import into
from rushlight.kernels.index import HERE
from rushlight.ops.composites import composite
from rushlight.ops.index import along_dim as table
from rushlight.ops.index.getitem import check_same_dtype, choosing
from rushlight.ops.index.index_tensors import write_at
from rushlight.ops.math.arithmetic import scaled, writing
from rushlight.ops.tensor.node_names import called


def check_source(input: Tensor, index: Tensor, src: Tensor, name: str) -> None:
    """RuntimeError unless the source has the input's dtype and the index's number of dimensions."""
    if src._array.dtype != input._array.dtype:
        raise runtime_error(
            f"{name}(): Expected self.dtype to be equal to src.dtype",
            "convert with .to(dtype)",
            input=input.dtype,
            src=src.dtype,
        )
    at = index._array.shape
    if len(src._array.shape or (1,)) != len(at or (1,)):
        raise runtime_error(
            "Index tensor must have the same number of dimensions as src tensor",
            op=name,
            index=list(at),
            src=list(src.shape),
        )


def check_places(input: Tensor, index: Tensor, src: Tensor | None, name: str, dim: int) -> None:
    """Raise RuntimeError unless the index fits the input and the source."""
    x, at = input._array.shape, index._array.shape
    if not index._array.size:
        return
    if len(x or (1,)) != len(at or (1,)):
        raise runtime_error(
            "Index tensor must have the same number of dimensions as self tensor",
            "unsqueeze and expand it",
            op=name,
            index=list(at),
            input=list(x),
        )
    if src is not None:
        check_source(input, index, src, name)
    dim = wrap(dim, len(x))
    too_large = any([k > n and d != dim for d, (k, n) in enumerate(zip(at, x))])
    if too_large or (src is not None and any([k > n for k, n in zip(at, src._array.shape)])):
        beside = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
        raise runtime_error(
            f"Expected index {list(at)} to be no larger than self {list(x)} apart from dimension {dim}{beside}", op=name
        )


@composite()
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
    """out[i][j] = input[index[i][j]][j] for dim 0, input[i][index[i][j]] for dim 1, and so on; the result has the
    index's shape.

    RuntimeError for an index out of range, or an index larger than the input in another dimension.

    >>> rushlight.gather(rushlight.tensor([[1, 2], [3, 4]]), 1, rushlight.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    made = table.gather(input, dim, index)
    if out is None:
        return made
    if out._array.dtype != made._array.dtype:
        raise runtime_error(
            f"Expected out tensor to have dtype {made.dtype}, but got {out.dtype} instead",
            f"give an out= of dtype {made.dtype}",
            op="gather",
        )
    return into(out, made, input, index)


@composite()
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices at `index` along `dim`, as a copy. IndexError for an index out of range.

    >>> rushlight.index_select(rushlight.tensor([[1, 2], [3, 4]]), 1, rushlight.tensor([1]))
    tensor([[2],
            [4]])
    """
    if index._array.ndim > 1:
        raise index_error("index_select(): Index is supposed to be a vector", "flatten() it", shape=list(index.shape))
    if not input._array.ndim and index._array.size != 1:
        raise runtime_error(
            f"index_select(): Index to scalar can have only 1 value, got {index._array.size} value(s)",
            "unsqueeze(0) makes a vector of it",
        )
    made = table.index_select(input, dim, index)
    return made if out is None else into(out, made, input, index)


@composite()
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """out = input, then out[index[i][j]][j] = src[i][j] for dim 0, and so on; `src` may be one number for all
    positions.

    `reduce`: "add" or "multiply" the values instead of writing them. If an index occurs twice, the last value wins.
    RuntimeError for shapes or dtypes that do not fit, and for an index out of range.

    >>> rushlight.zeros(1, 3).scatter(1, rushlight.tensor([[2]]), 5.)
    tensor([[0., 0., 5.]])
    """
    given = lined(src, index) if value is None else value
    if reduce is not None and isinstance(given, Tensor):
        warn_once(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
            "PyTorch release. Use torch.scatter_reduce instead for more reduction options."
        )
    if reduce not in (None, "add", "multiply"):
        raise runtime_error(
            "reduce argument must be either add or multiply.",
            "scatter_reduce() supports more reductions",
            reduce=reduce,
        )
    check_places(input, index, given if isinstance(given, Tensor) else None, "scatter", dim)
    source = (
        given
        if isinstance(given, Tensor)
        else created(from_array(np.asarray(checked_number(given, "scatter")).astype(input._array.dtype)))
    )
    if reduce is None:
        r = landed(table.scatter, out, input, dim, index, source)
        return called(r, f"ScatterBackward{0 if isinstance(given, Tensor) else 1}") if out is None else r
    source = source if isinstance(given, Tensor) else source.expand(index._array.shape)
    return landed(table.reduce_at, out, input, index, covered(source, index), dim, "sum" if reduce == "add" else "prod")


def landed(op: Callable, out: Tensor | None, input: Tensor, *args: Any) -> Tensor:
    """The result of an op that writes at positions of the input, or `out` filled with it. `out` may be the input
    itself, but may not share a part of the input's memory.
    """
    if out is None or out is input:
        return op(input, *args, out=out)
    return into(out, op(input, *args), input, *[t for t in args if isinstance(t, Tensor)])


def lined(src: Any, index: Tensor) -> Any:
    """A one-number tensor as a row if the index is a row; the first element of a row if the index is a number."""
    if not isinstance(src, Tensor) or src._array.ndim + index._array.ndim != 1:
        return src
    return src if not src._array.size else src[0] if src._array.ndim else src.reshape(1)


def covered(src: Tensor, index: Tensor) -> Tensor:
    """The part of src that matches the index's shape."""
    if src._array.shape == index._array.shape or src._array.ndim != index._array.ndim:
        return src
    return src[tuple(slice(n) for n in index._array.shape)]


@composite()
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """out = input, then out[index[i][j]][j] += src[i][j] for dim 0, and so on.

    RuntimeError for shapes or dtypes that do not fit, and for an index out of range.

    >>> rushlight.zeros(3).scatter_add(0, rushlight.tensor([0, 0, 2]), rushlight.tensor([1., 2., 3.]))
    tensor([3., 0., 3.])
    """
    src = lined(src, index)
    check_places(input, index, src, "scatter_add", dim)
    return landed(table.scatter_add, out, input, dim, index, src)


def check_slices(input: Tensor, dim: int, index: Tensor, source: Tensor, name: str) -> None:
    """RuntimeError unless the slices of the source fit the index and the input."""
    x, y = input._array.shape, source._array.shape
    if index._array.ndim > 1:
        raise index_error(f"{name}(): Index should have dimension 1 or 0 (got {index._array.ndim})", "flatten() it")
    if source._array.dtype != input._array.dtype:
        raise runtime_error(
            f"{name}(): self ({input.dtype.scalar_type}) and source ({source.dtype.scalar_type}) must have the "
            "same scalar type",
            "convert with .to(dtype)",
        )
    dim = wrap(dim, len(x))
    kind = IndexError if name == "index_copy" else RuntimeError
    # index_copy treats a number as a slice with one element
    ranks = len(x) != len(y) and (x and y or kind is RuntimeError)
    if ranks or x[:dim] + x[dim + 1 :] != y[:dim] + y[dim + 1 :]:
        raise (kind if ranks else RuntimeError)(
            explain(
                "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape "
                f"= {list(x)} source.shape = {list(y)}",
                op=name,
            )
        )
    n = y[dim] if dim < len(y) else 1
    if n != index._array.size:
        raise kind(
            explain(f"{name}(): Number of indices ({index._array.size}) should be equal to source.size(dim) ({n})")
        )


@composite()
def index_add(
    input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """out = input, then out[index[i]] += alpha source[i], slices along `dim`.

    >>> rushlight.zeros(3).index_add(0, rushlight.tensor([0, 0]), rushlight.ones(2))
    tensor([2., 0., 0.])
    """
    check_slices(input, dim, index, source, "index_add")
    return landed(table.index_add, out, input, dim, index, source if alpha == 1 else scaled(source, source, alpha))


@composite()
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """out = input, then out[index[i]] = source[i], slices along `dim`.

    >>> rushlight.zeros(3).index_copy(0, rushlight.tensor([2, 0]), rushlight.tensor([1., 2.]))
    tensor([2., 0., 1.])
    """
    check_slices(input, dim, index, source, "index_copy")
    return landed(table.index_copy, out, input, dim, index, source)


@composite()
def index_put(
    input: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The tensor with `values`, broadcast, written or added at the positions given by the index tensors.

    One index tensor for each dimension, None for a whole dimension, or a mask. RuntimeError for another dtype of
    values, IndexError for a position out of range.

    >>> rushlight.index_put(rushlight.zeros(3), (rushlight.tensor([0, 0]),), rushlight.tensor(2.), accumulate=True)
    tensor([4., 0., 0.])
    """
    check_same_dtype(input, values)
    if len(indices) > input._array.ndim:
        raise index_error(f"too many indices for tensor of dimension {input._array.ndim} (got {len(indices)})")
    for i, index in enumerate(indices):
        if index is not None and not isinstance(index, Tensor):
            raise type_error(
                f"expected Tensor as element {i} in argument 0, but got {type(index).__name__}",
                "make it a tensor: torch.tensor(...)",
            )
    key = tuple(slice(None) if index is None else HERE for index in indices)
    places = [choosing(index) for index in indices if index is not None]
    return landed(write_at, out, input, values, places, (*key, ...), accumulate)


for function in (scatter, scatter_add, index_add, index_copy, index_put):
    method(writing(function, onto=True))
