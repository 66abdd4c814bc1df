"""Less frequent ops that read and write elements at the positions in index tensors."""

from __future__ import annotations

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import index_error, runtime_error
from rushlight.core.arguments import wrap
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, created, from_array, holder, method, noticed
from rushlight.core.views import into
from rushlight.kernels.index import HERE
from rushlight.kernels.ufunc_at import all_below
from rushlight.ops.composites import composite, given
from rushlight.ops.index import index_tensors as table
from rushlight.ops.index.along_dim import reduce_at
from rushlight.ops.index.gather_scatter import check_places, check_slices, covered, gather, landed, lined
from rushlight.ops.index.masks import nonzero, where
from rushlight.ops.math.arithmetic import writing
from rushlight.ops.shape import views as s
from rushlight.ops.shape.view_functions import broadcast_tensors
from rushlight.ops.tensor.node_names import called

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@composite()
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """out[j] = reduce of input[j] and all src[i] with index[i] = j, along `dim`; input[j] if there is no such i.

    `reduce`: "sum", "prod", "mean", "amax" or "amin". `include_self`: the input's own element takes part. Elements that
    tie share the gradient. RuntimeError for another `reduce`, shapes that do not fit, and indices out of range.

    >>> rushlight.zeros(2).scatter_reduce(0, rushlight.tensor([0, 0, 1]), rushlight.tensor([1., 3., 5.]), "amax")
    tensor([3., 5.])
    """
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)  # torch accepts these names, too
    if reduce not in REDUCTIONS:
        raise runtime_error(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}", op="scatter_reduce"
        )
    src = lined(src, index)
    check_places(input, index, src, "scatter", dim)
    return landed(reduce_at, out, input, index, covered(src, index), dim, reduce, include_self)


@composite()
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """out[j] = reduce of input[j] and all slices source[i] with index[i] = j, along `dim`: prod, mean, ...

    RuntimeError for words other than "prod", "mean", "amax" and "amin", and for shapes that do not fit.

    >>> rushlight.ones(2, 1).index_reduce(0, rushlight.tensor([0, 0]), rushlight.tensor([[2.], [3.]]), "prod")
    tensor([[6.],
            [1.]])
    """
    if reduce not in REDUCTIONS[1:]:
        raise runtime_error(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.",
            "use index_add for sums",
        )
    at, shape = wrap(dim, input._array.ndim), source._array.shape
    check_slices(input, dim, index, source, "index_reduce")
    n = input._array.shape[at] if input._array.ndim else 1
    own = holder(index)._array
    if index._array.size and not 0 <= own.min() <= own.max() < n:
        raise index_error("index out of range in self", f"indices count from 0 to {n - 1}", op="index_reduce")
    places = s.reshape(index, tuple(-1 if d == at else 1 for d in range(len(shape))))
    return landed(
        reduce_at, out, input, s.expand(places, shape) if shape else places, source, dim, reduce, include_self
    )


# -- among all elements ----------------------------------------------------------------------------


def check_flat(index: Tensor, n: int, name: str) -> None:
    """RuntimeError for an index that is not int64, IndexError for an index out of range."""
    if index._array.dtype != np.int64:
        raise runtime_error(
            f"{name}(): Expected a long tensor for index, but got {index.dtype.scalar_type}", "convert it: index.long()"
        )
    if index._array.size and not n:
        raise index_error(f"{name}(): tried to take from an empty tensor")
    if index.is_meta:  # a meta tensor has no values to check
        return
    places = holder(index)._array
    if not places.size or all_below(places, n):
        return
    wrong = places[(places >= n) | (places < -n)]
    if wrong.size:
        noticed(index)
        raise index_error(
            f"out of range: tried to access index {int(wrong.flat[0])} on a tensor of {n} elements.", op=name
        )


@composite()
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at flat indices in row-major order; negative indices count from the end.

    >>> rushlight.take(rushlight.tensor([[4, 3, 5], [6, 7, 8]]), rushlight.tensor([0, 2, 5]))
    tensor([4, 5, 8])
    """
    check_flat(index, input._array.size, "take")
    made = called(table.index(s.reshape(input, (input._array.size,)), [index], (HERE, ...)), "TakeBackward0")
    return made if out is None else into(out, made, input, index)


@composite()
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """The input with the elements of source written, or added, at flat indices in row-major order.

    >>> rushlight.put(rushlight.zeros(2, 2), rushlight.tensor([1, 2]), rushlight.tensor([9., 8.]))
    tensor([[0., 9.],
            [8., 0.]])
    """
    check_flat(index, input._array.size, "put_")
    if source._array.size != index._array.size:
        raise index_error(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._array.size}, index.numel() = {index._array.size}"
        )
    if source._array.dtype != input._array.dtype:
        raise runtime_error(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.scalar_type} and source.dtype = {source.dtype.scalar_type}",
            "convert the source with .to(dtype)",
        )
    flat, values = s.reshape(input, (input._array.size,)), s.reshape(source, index._array.shape)
    made = table.write_at(flat, values, [index], (HERE, ...), accumulate)
    return s.reshape(made, input._array.shape)


@composite()
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """`gather` with the other dimensions broadcast; without `dim`, among all elements. For indices from argsort, argmax
    and so on.

    >>> x = rushlight.tensor([[3, 1], [2, 4]])
    >>> rushlight.take_along_dim(x, x.argsort(1), 1)
    tensor([[1, 3],
            [2, 4]])
    """
    if dim is None and indices._array.dtype == np.int32:
        indices = s.to(indices, dtypes.int64)
    if indices._array.dtype != np.int64:
        raise runtime_error(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}",
            "convert them: indices.long()",
        )
    if dim is None:
        return take_along_dim(s.reshape(input, (-1,)), s.reshape(indices, (-1,)), 0, out=out)
    if input._array.ndim != indices._array.ndim:
        raise runtime_error(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input._array.ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    dim = wrap(dim, input._array.ndim)
    n = input._array.shape[dim] if input._array.ndim else 1
    at = indices._array
    # less work than the general case
    if mode().watch is not None or at.__class__ is not np.ndarray or (at < 0).any():
        indices = where(indices < 0, indices + n, indices)
    a, b = list(input._array.shape), list(indices._array.shape)
    for d in range(len(a)):
        if d != dim:
            a[d] = b[d] = max(a[d], b[d]) if 0 not in (a[d], b[d]) else 0
    input, indices = (
        t if t._array.shape == (*size,) else s.expand(t, tuple(size)) for t, size in ((input, a), (indices, b))
    )
    return gather(input, dim, indices, out=out)


# -- where a mask is true --------------------------------------------------------------------------


@composite(looks=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """out = source[0], source[1], ... where the mask is true, one after another; input elsewhere.

    RuntimeError if the mask is not bool, dtypes differ, or the source has too few elements.

    >>> rushlight.zeros(3).masked_scatter(rushlight.tensor([True, False, True]), rushlight.tensor([1., 2., 3.]))
    tensor([1., 0., 2.])
    """
    if mask._array.dtype.kind != "b":
        raise runtime_error(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}",
            "compare first: mask = m != 0",
        )
    if source._array.dtype != input._array.dtype:
        raise runtime_error(
            f"masked_scatter: expected self and source to have same dtypes but got {input.dtype.scalar_type} and "
            f"{source.dtype.scalar_type}"
        )
    x, chosen = broadcast_tensors(input, mask)
    x = s.contiguous(x)  # the result is contiguous, as in torch
    noticed(mask)
    n = int(np.count_nonzero(chosen._array))
    if n > source._array.size:
        raise runtime_error(
            f"masked_scatter: expected number of elements to be at least the number of ones in the mask, {n}, but "
            f"source has {source._array.size}"
        )
    return table.write_at(x, s.narrow(s.reshape(source, (source._array.size,)), 0, 0, n), [chosen], (HERE, ...))


@composite(looks=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """`nonzero` with a given number of rows: truncated, or filled up.

    >>> rushlight.nonzero_static(rushlight.tensor([0, 1, 1]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    if size < 0:
        raise runtime_error(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    found = nonzero(input)._array[:size]
    rows = np.full((size, input._array.ndim), fill_value, np.int64)
    rows[: len(found)] = found
    return given(out, created(from_array(rows)))


for function in (scatter_reduce, index_reduce):
    method(writing(function, onto=True))
method(writing(put))
method(writing(masked_scatter))
