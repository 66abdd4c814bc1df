"""Functions of sparse tensors that move elements: transposes, slices, concatenation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.errors import index_error, not_implemented_error, runtime_error, type_error, value_error
from rushlight.base.intp import as_int64
from rushlight.core.arguments import wrap, wrap_dims, wrap_new
from rushlight.core.tensor import Tensor, from_array
from rushlight.ops.index import along_dim
from rushlight.ops.shape import views
from rushlight.ops.shape.views import cat as dense_cat
from rushlight.sparse.graph import linked
from rushlight.sparse.tensor import OPS, SparseTensor, made, new_zeros, offers, with_values


@offers(views.transpose)
def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Swap two dimensions, both sparse or both dense."""
    order = list(range(input.ndim))
    a, b = wrap(dim0, input.ndim), wrap(dim1, input.ndim)
    order[a], order[b] = order[b], order[a]
    return linked(permuted(input, order), "TransposeBackward", [(input, lambda g: g.transpose(a, b))])


def permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """Reorder the dimensions; sparse dimensions must stay before dense ones."""
    result = permuted(input, *dims)
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    back = np.argsort([d % input.ndim for d in given]).tolist()
    return linked(result, "PermuteBackward", [(input, lambda g: g.permute(back))])


def permuted(input: SparseTensor, *dims: Any) -> SparseTensor:
    """`permute`, outside the graph."""
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order, n = [d % input.ndim for d in given], input.sparse_dim()
    if sorted(order) != list(range(input.ndim)) or sorted(order[:n]) != list(range(n)):
        raise runtime_error(
            f"permute({tuple(given)}) of a sparse tensor with {n} sparse of {input.ndim} dimensions: sparse "
            "dimensions must stay before dense ones"
        )
    values = input._of.permute(0, *(d - n + 1 for d in order[n:]))
    size = [input.shape[d] for d in order]
    return made(from_array(input._at._array[order[:n]]), values, size, order[:n] == list(range(n)) and input._sorted)


def t(input: SparseTensor) -> SparseTensor:
    """The transpose of a matrix; a vector unchanged."""
    if input.ndim > 2:
        raise runtime_error(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but it is {input.ndim}D",
            "x.transpose(0, 1)",
        )
    if input.ndim < 2:
        return input
    return linked(permuted(input, 1, 0), "TBackward", [(input, lambda g: g.t())])


def put_back(g: Any, d: int, index: np.ndarray, like: SparseTensor) -> Tensor:
    """The gradient of `like` from the gradient of its slices at `index` in dimension d: zeros elsewhere."""
    n = like.sparse_dim()
    if not g.is_sparse:
        return g.new_zeros(like.shape).index_add(d, from_array(index), g)
    if d >= n:
        values = g.elements()
        shape = (len(values), *like.shape[n:])
        spread = values.new_zeros(shape).index_add(d - n + 1, from_array(index), values)
        return with_values(g._at, spread, like.shape, g._sorted)
    at = g._at._array.copy()
    at[d] = index[at[d]]
    return with_values(from_array(at), g.elements(), like.shape)


@offers(views.select)
def select(input: SparseTensor, dim: int, index: Any) -> Any:
    """The slice at one index of a sparse dimension."""
    if not isinstance(index, int) or isinstance(index, bool):
        raise not_implemented_error(
            "indexing a sparse tensor takes one integer", "x.to_dense()[...], or x.index_select(dim, indices)"
        )
    d = wrap(dim, input.ndim)
    if not -input.shape[d] <= index < input.shape[d]:
        raise index_error(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {d}"
        )
    place = as_int64(np.array([index % input.shape[d]]))
    return linked(
        selected(input, d, place[0]), "SelectBackward", [(input, lambda g: put_back(g.unsqueeze(d), d, place, input))]
    )


def selected(input: SparseTensor, d: int, index: int) -> Tensor:
    """`select`, outside the graph."""
    size, n = [n for i, n in enumerate(input.shape) if i != d], input.sparse_dim()
    if d >= n:
        return made(input._at, input._of.select(d - n + 1, index), size)
    here = from_array(as_int64(np.flatnonzero(input._at._array[d] == index)))
    values, rest = input._of[here], [i for i in range(n) if i != d]
    if not rest:
        return values.sum(0)
    return made(from_array(input._at._array[rest][:, here._array]), values, size)


@offers(along_dim.index_select)
def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The slices at several indices of a sparse dimension, in their order."""
    d = wrap(dim, input.ndim)
    wanted = index._array
    if wanted.size and not (-input.shape[d] <= wanted.min() and wanted.max() < input.shape[d]):
        raise index_error(f"index_select(): index out of range for dimension {d} of size {input.shape[d]}")
    wanted = as_int64(wanted.reshape(-1) % max(input.shape[d], 1))
    return linked(slices(input, d, wanted), "IndexSelectBackward", [(input, lambda g: put_back(g, d, wanted, input))])


def slices(input: SparseTensor, d: int, wanted: np.ndarray) -> SparseTensor:
    """`index_select`, outside the graph."""
    size = [len(wanted) if i == d else n for i, n in enumerate(input.shape)]
    if d >= input.sparse_dim():
        values = input._of.index_select(d - input.sparse_dim() + 1, from_array(wanted))
        return made(input._at, values, size, input._sorted)
    own = input._at._array[d]
    found, places = np.nonzero(wanted[:, None] == own)
    at = input._at._array[:, places].copy()
    at[d] = found
    order = np.lexsort(at[::-1]) if input._sorted else np.arange(len(found))
    values = input._of[from_array(places[order])]
    return made(from_array(at[:, order]), values, size)


def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """A new dimension of size 1: dense after the first dense dimension, else sparse."""
    d, n = wrap_new(dim, input.ndim), input.sparse_dim()
    size = (*input.shape[:d], 1, *input.shape[d:])
    if d > n:
        result = made(input._at, input._of.unsqueeze(d - n + 1), size)
    else:
        at = np.insert(input._at._array, d, 0, axis=0)
        result = made(from_array(at), input._of, size)
    return linked(result, "UnsqueezeBackward", [(input, lambda g: g.squeeze(d))])


def squeeze(input: SparseTensor, dim: Any = None) -> SparseTensor:
    """Remove dimensions of size 1: all of them, or those in `dim`."""
    dims = range(input.ndim) if dim is None else wrap_dims(dim, input.ndim)
    gone = sorted(d for d in dims if input.shape[d] == 1)
    if not gone:
        return input
    n = input.sparse_dim()
    at = from_array(np.delete(input._at._array, [d for d in gone if d < n], axis=0))
    values = input._of
    for d in reversed([d - n + 1 for d in gone if d >= n]):
        values = values.squeeze(d)
    size = [m for d, m in enumerate(input.shape) if d not in gone]

    def back(g: Tensor) -> Tensor:
        for d in gone:
            g = g.unsqueeze(d)
        return g

    result = made(at, values, size, input._sorted)
    return linked(result, "SqueezeBackward", [(input, back)])


@offers(views.cat)
def cat(tensors: list[Any], dim: int = 0) -> SparseTensor:
    """Concatenate along a dimension."""
    first = tensors[0]
    d = wrap(dim, first.ndim)
    check_alike(tensors, d)
    ends = np.cumsum([one.shape[d] for one in tensors]).tolist()
    starts = [0, *ends[:-1]]
    size = [ends[-1] if i == d else n for i, n in enumerate(first.shape)]
    join = joined if d < first.sparse_dim() else joined_dense
    sources = [
        (one, lambda g, start=start, length=one.shape[d]: narrowed(g, d, start, length))
        for one, start in zip(tensors, starts)
    ]
    return linked(join(tensors, d, starts, size), "CatBackward", sources)


def narrowed(g: Tensor, d: int, start: int, length: int) -> Tensor:
    return narrow_copy(g, d, start, length) if g.is_sparse else g.narrow(d, start, length)  # type: ignore[arg-type]


def joined(tensors: list[Any], d: int, starts: list[int], size: list[int]) -> SparseTensor:
    """`cat` along a sparse dimension, outside the graph."""
    places = []
    for one, start in zip(tensors, starts):
        at = one._at._array.copy()
        at[d] += start
        places.append(at)
    at = from_array(np.concatenate(places, 1))
    return made(at, dense_cat([one._of for one in tensors], 0), size)


def joined_dense(tensors: list[Any], d: int, starts: list[int], size: list[int]) -> SparseTensor:
    """`cat` along a dense dimension, outside the graph: each value is padded with zeros."""
    at = from_array(np.concatenate([one._at._array for one in tensors], 1))
    n = tensors[0].sparse_dim()
    values = []
    for one, start in zip(tensors, starts):
        padded = new_zeros((one._nnz(), *size[n:]), one._of)
        padded.narrow(d - n + 1, start, one.shape[d]).copy_(one._of)
        values.append(padded)
    return made(at, dense_cat(values, 0), size)


def check_alike(tensors: list[Any], d: int) -> None:
    """RuntimeError unless all tensors are sparse, with equal sizes except in the sparse dimension d."""
    for i, one in enumerate(tensors):
        if not one.is_sparse:
            raise runtime_error(
                f"Concatenating sparse tensors, but a dense tensor was found at position {i}.",
                "convert it: x.to_sparse()",
            )
        others = [tuple(n for i, n in enumerate(t.shape) if i != d) for t in (tensors[0], one)]
        if one.sparse_dim() != tensors[0].sparse_dim() or others[0] != others[1]:
            raise runtime_error(
                "All tensors must have the same shape (except in the concatenating dimension), and the same number "
                f"of sparse dimensions, but got {list(tensors[0].shape)} and {list(one.shape)}"
            )


@offers(views.stack)
def stack(tensors: list[Any], dim: int = 0) -> SparseTensor:
    """Stack along a new sparse dimension."""
    return cat([one.unsqueeze(dim) if one.is_sparse else one for one in tensors], wrap_new(dim, tensors[0].ndim))


@offers(views.unbind)
def unbind(input: SparseTensor, dim: int = 0) -> tuple:
    """The slices along a dimension."""
    return tuple([select(input, dim, i) for i in range(input.shape[wrap(dim, input.ndim)])])


def narrow_copy(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """`length` slices, from `start` on."""
    d = wrap(dim, input.ndim)
    if not 0 <= start <= input.shape[d] or not 0 <= length <= input.shape[d] - start:
        raise runtime_error(
            f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {input.shape[d]}).",
            start=start,
            length=length,
        )
    index = np.arange(start, start + length, dtype=np.int64)
    return linked(
        sliced(input, d, start, length), "NarrowCopyBackward", [(input, lambda g: put_back(g, d, index, input))]
    )


def sliced(input: SparseTensor, d: int, start: int, length: int) -> SparseTensor:
    """`narrow_copy`, outside the graph."""
    size = [length if i == d else n for i, n in enumerate(input.shape)]
    if d >= input.sparse_dim():
        values = input._of.narrow(d - input.sparse_dim() + 1, start, length)
        return made(input._at, values, size, input._sorted)
    at = input._at._array
    inside = np.flatnonzero((at[d] >= start) & (at[d] < start + length))
    at = at[:, inside]
    at[d] -= start
    return made(from_array(at), input._of[from_array(inside)], size, input._sorted)


def joining(first: int, least: int, dim: int) -> Callable:
    """hstack or a similar function: extend each tensor by `with_dimensions`, then concatenate along `dim`."""

    def join(tensors: Any) -> SparseTensor:
        extended = [with_dimensions(one, first, least) for one in tensors]
        return cat(extended, min(dim, extended[0].ndim - 1))

    return join


def with_dimensions(x: Any, first: int, least: int) -> Any:
    """The tensor with at least `least` dimensions: new ones at the front up to `first` dimensions, then at the end."""
    while x.ndim < least:
        x = x.unsqueeze(0 if x.ndim < first else x.ndim)
    return x


OPS.update(
    {
        "hstack": joining(1, 1, 1),
        "vstack": joining(2, 2, 0),
        "row_stack": joining(2, 2, 0),
        "dstack": joining(2, 3, 2),
        "column_stack": joining(0, 2, 1),
    }
)


# -- indexing --------------------------------------------------------------------------------------


def getitem(self: Any, index: Any) -> Any:
    """x[i], x[a:b], x[None], x[...] and several of these. NotImplementedError for tensors of indices and masks."""
    parts = index if isinstance(index, tuple) else (index,)
    taken = sum([part is not None and part is not Ellipsis for part in parts])
    if taken > self.ndim:
        raise index_error(f"too many indices for tensor of dimension {self.ndim}")
    found, dim = self, 0
    for part in parts:
        if part is Ellipsis:
            dim += self.ndim - taken
        elif part is None:
            found, dim = found.unsqueeze(dim), dim + 1
        elif isinstance(part, slice):
            found, dim = sliced_by(found, dim, part), dim + 1
        else:
            found = found.select(dim, as_index(part))
    return found


def as_index(part: Any) -> int:
    """A part of an index as an integer. NotImplementedError for anything else."""
    if isinstance(part, bool) or not hasattr(part, "__index__") or getattr(part, "ndim", 0) > 0:
        raise not_implemented_error(
            "Could not run 'aten::index.Tensor' with arguments from the 'SparseCPU' backend.",
            "x.to_dense()[...], or x.index_select(dim, indices)",
        )
    return part.__index__()


def sliced_by(x: Any, dim: int, part: slice) -> Any:
    """x[part] along one dimension."""
    places = range(*part.indices(x.shape[dim]))
    if part.step is not None and part.step < 0:
        raise value_error("step must be greater than zero", "x.flip(dim) of a dense tensor")
    if len(places) == x.shape[dim]:
        return x
    if not x.is_sparse:
        return x[(slice(None),) * dim + (part,)]
    if places.step == 1:
        return narrow_copy(x, dim, places.start, len(places))
    return index_select(x, dim, from_array(np.array(places, np.int64)))


def refuse_assignment(self: Any, index: Any, value: Any) -> None:
    raise type_error("Cannot assign to a sparse tensor", "make a new one: torch.sparse_coo_tensor")


def no_expand(self: Any, *size: Any, **settings: Any) -> None:
    raise runtime_error("expand is unsupported for Sparse tensors", "x.to_dense().expand(...)")


def movedim(input: SparseTensor, source: Any, destination: Any) -> SparseTensor:
    """Move the dimensions `source` to the positions `destination`; the others keep their order."""
    n = input.ndim
    moved, to = ((d,) if isinstance(d, int) else tuple(d) for d in (source, destination))
    at = dict(zip(wrap_dims(to, n), wrap_dims(moved, n)))
    rest = iter([d for d in range(n) if d not in at.values()])
    return permute(input, *[at[d] if d in at else next(rest) for d in range(n)])


OPS.update(dict.fromkeys(("expand", "broadcast_to", "repeat", "reshape_as"), no_expand))
OPS.update({"movedim": movedim, "moveaxis": movedim})


def resized(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Change the size. RuntimeError if a stored element is outside of the new size."""
    at, shape = self._at._array, tuple(size[:sparse_dim])
    stays = (sparse_dim, dense_dim) == (self.sparse_dim(), self.dense_dim())
    inside = stays and bool((at < np.reshape(shape, (-1, 1))).all())
    if self._nnz() and not (inside and tuple(size[sparse_dim:]) == tuple(self._of.shape[1:])):
        raise runtime_error(
            "shrinking the size of sparse or dense dimensions of a sparse tensor that stores elements is not supported",
            "x.sparse_resize_and_clear_(...), or a new tensor",
        )
    if not self._nnz():
        return cleared(self, size, sparse_dim, dense_dim)
    return self.take_over(made(self._at, self._of, size, self._sorted))


def cleared(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
    """Change the size and remove all stored elements."""
    at = from_array(np.zeros((sparse_dim, 0), np.int64))
    values = self._of.new_zeros((0, *size[sparse_dim:]))
    return self.take_over(made(at, values, size, self._sorted))


def attach() -> None:
    """Attach these functions as methods of sparse tensors."""
    for name, f in {
        "transpose": transpose,
        "swapaxes": transpose,
        "swapdims": transpose,
        "permute": permute,
        "t": t,
        "select": select,
        "index_select": index_select,
        "unsqueeze": unsqueeze,
        "squeeze": squeeze,
        "unbind": unbind,
        "narrow_copy": narrow_copy,
        "movedim": movedim,
        "moveaxis": movedim,
        "adjoint": lambda self: transpose(self, -2, -1).conj(),
        "expand": no_expand,
        "broadcast_to": no_expand,
        "repeat": no_expand,
        "sparse_resize_": resized,
        "sparse_resize_and_clear_": cleared,
        "__getitem__": getitem,
        "__setitem__": refuse_assignment,
    }.items():
        setattr(SparseTensor, name, f)
    for name in ("T", "mT"):
        setattr(SparseTensor, name, property(lambda self: transpose(self, -2, -1), doc="The transpose."))
    for name in ("H", "mH"):
        setattr(SparseTensor, name, property(lambda self: transpose(self, -2, -1).conj(), doc="The adjoint."))
