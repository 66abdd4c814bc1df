"""Sparse tensors from indices and values, and from dense tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.device import present, sparse_coo
from rushlight.base.errors import runtime_error, type_error
from rushlight.base.intp import as_int64
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor, from_array, method
from rushlight.creation.factories import as_tensor
from rushlight.sparse.graph import linked
from rushlight.sparse.tensor import SparseTensor, made, opened, other_layout, picked, with_values


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """out = 0, then out[indices[:, n]] += values[n] for each n.

    `indices`: (sparse_dim, nnz) integers. `values`: (nnz, *dense dimensions). `size`: by default the least size that
    the indices allow; `sparse_coo_tensor((2, 3))` stores nothing. With `requires_grad` the tensor is a leaf; else
    gradients go to `values`. RuntimeError for parts that do not fit each other and for an index outside of the size;
    unlike in torch, the indices are always checked.

    >>> rushlight.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3., 4., 5.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    if device is not None:
        present(device)
    if values is None:
        return empty(indices if size is None else size, dtype, requires_grad)
    at, of = as_tensor(indices), as_tensor(values, dtype=dtype)
    check_parts(at, of, size)
    places = at._array.astype(np.int64, copy=False)
    if size is None:
        size = (*(int(n) + 1 for n in places.max(1, initial=-1)), *of.shape[1:])
    check_places(places, tuple(size))
    at, coalesced = from_array(places), bool(is_coalesced)
    if requires_grad:
        return made(at, of, size, coalesced).requires_grad_()  # type: ignore[return-value]
    return with_values(at, of, size, coalesced)


def empty(size: Any, dtype: Any = None, requires_grad: bool = False) -> SparseTensor:
    """A sparse tensor that stores no elements."""
    kind = dtypes.or_default(dtype)
    at, values = np.zeros((len(size), 0), np.int64), np.zeros(0, kind.numpy)
    found = made(from_array(at), from_array(values), size, True)
    return found.requires_grad_(requires_grad)  # type: ignore[return-value]


def check_parts(at: Tensor, of: Tensor, size: Any) -> None:
    """RuntimeError unless there is a value for each column of indices, and `size` fits the dimensions of both."""
    if at.ndim != 2:
        raise runtime_error(
            f"indices must be sparse_dim x nnz, but got: {list(at.shape)}",
            "one row for each dimension, one column for each value",
        )
    if of.ndim == 0 or at.shape[1] != of.shape[0]:
        raise runtime_error(
            f"indices and values must have same nnz, but got nnz from indices: {at.shape[1]}, nnz from values: "
            f"{of.shape[0] if of.ndim else 'a number'}"
        )
    if size is not None and len(size) != at.shape[0] + of.ndim - 1:
        raise runtime_error(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{at.shape[0]}, dense_dim = {of.ndim - 1}"
        )
    if size is not None and tuple(size[at.shape[0] :]) != tuple(of.shape[1:]):
        raise runtime_error(
            f"values has incorrect size, expected {[of.shape[0], *size[at.shape[0] :]]}, got {list(of.shape)}"
        )


def check_places(at: np.ndarray, size: tuple) -> None:
    """RuntimeError for an index that is negative or too large."""
    if at.shape[1] == 0:
        return
    if at.min(initial=0) < 0:
        raise runtime_error(f"found negative index {at.min()} for dim {int(at.min(1).argmin())}")
    for dim, most in enumerate(at.max(1).tolist()):
        if most >= size[dim]:
            raise runtime_error(
                f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {most}"
            )


@method
def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> SparseTensor:
    """The tensor as a sparse tensor of its nonzero elements. `sparse_dim`: the number of leading sparse dimensions; the
    others stay dense.

    >>> rushlight.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    if sparse_dim is not None and not isinstance(sparse_dim, int):
        layout, sparse_dim = sparse_dim, None
    if layout not in (None, sparse_coo):
        return other_layout(self, layout, blocksize, dense_dim)
    if self.is_sparse:
        return self  # type: ignore[return-value]
    n = self.ndim if sparse_dim is None else sparse_dim
    a = self._array
    if not a.ndim and not n:  # a 0-d tensor: stored or not, without indices
        stored = int(a != 0)
        at = from_array(np.zeros((0, stored), np.int64))
        return from_dense(self, made(at, self.detach().reshape(1)[:stored], a.shape, True))
    if not 0 < n <= self.ndim:
        raise runtime_error(f"sparse_dim must be in [1, {self.ndim}], got {n}")
    places = np.stack(np.nonzero((a != 0).any(tuple(range(n, a.ndim))) if n < a.ndim else a != 0))
    places = as_int64(places)  # NumPy's indices have 32 bits on 32-bit systems
    values = self.detach()[tuple(from_array(row) for row in places)]
    return from_dense(self, made(from_array(places), values, a.shape, True))


def from_dense(dense: Tensor, sparse: SparseTensor) -> SparseTensor:
    """The sparse tensor of a dense one, in its graph: the gradient of the dense tensor is dense."""
    return linked(sparse, "ToSparseBackward", [(dense, lambda g: g.to_dense(masked_grad=False) if g.is_sparse else g)])


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Any:
    """out[j - offsets[i], j] = diagonals[i, j]: the sparse matrix with these diagonals.

    `diagonals` (k, n) or (n,), `offsets` (k,) or a number, all different. Elements outside of `shape` are omitted.

    >>> rushlight.sparse.spdiags(rushlight.tensor([[1., 2.], [3., 4.]]), rushlight.tensor([0, 1]), (2, 2)).to_dense()
    tensor([[1., 4.],
            [0., 2.]])
    """
    rows, above = diagonals.reshape(-1, diagonals.shape[-1]), offsets.reshape(-1)._array
    if len(above) != len(rows) or len(set(above.tolist())) < len(above):
        raise runtime_error(
            "spdiags: offsets must be different numbers, one for each diagonal",
            offsets=above.tolist(),
            diagonals=tuple(diagonals.shape),
        )
    column = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    at = np.stack((column - above[:, None], column))
    inside = np.nonzero(((at >= 0) & (at < np.reshape(shape, (2, 1, 1)))).all(0))
    places = at[:, inside[0], inside[1]]
    found = with_values(from_array(places), rows[tuple(map(from_array, inside))], shape)
    return found if layout is None else found.to_sparse(layout=layout)


@method
def sparse_mask(self: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements of a dense tensor at the places that `mask` stores."""
    if self.shape != mask.shape:
        raise runtime_error(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    coo = opened(mask)
    if self.is_sparse:  # sum the values of equal indices
        coo = coo.coalesce()
    found = coo.holding(picked(opened(self), coo._at))
    if self.is_sparse:
        found._coalesced_(False)  # not marked as coalesced, as in torch
    return found if mask.is_sparse else mask.holding_places_of(found)  # type: ignore[attr-defined]


@method
def sparse_dim(self: Tensor) -> int:
    """0: a dense tensor has no sparse dimensions."""
    return 0


@method
def dense_dim(self: Tensor) -> int:
    """The number of dimensions: all are dense."""
    return self.ndim


def refused(name: str, what: str = "sparse coordinate") -> None:
    """Add a method to dense tensors that raises torch's error."""

    def call(self: Tensor) -> Any:
        raise runtime_error(f"{name} expected {what} tensor layout but got Strided", "convert it: x.to_sparse()")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "RuntimeError: only sparse tensors have it."
    method(call, name)


for _name in ("coalesce", "indices", "is_coalesced", "_indices", "_nnz"):
    refused(_name)
for _what, _names in {"row": ("crow_indices", "col_indices"), "column": ("ccol_indices", "row_indices")}.items():
    for _name in _names:
        refused(_name, f"sparse {_what} compressed")
refused("values", "sparse")
refused("_values", "sparse")
method(to_sparse, "to_sparse_coo")


class sparsetype:
    """torch.sparse.FloatTensor and so on: legacy constructors of sparse tensors of one dtype."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, *args: Any) -> SparseTensor:
        """The tensor from (indices, values), (indices, values, size), (size) or the sizes as ints."""
        if len(args) >= 2 and isinstance(args[0], Tensor):
            of = args[1]
            if of.dtype is not self.dtype:
                raise type_error(
                    f"expected values of {self.dtype}, but got {of.dtype}: convert them, v.to({self.dtype})"
                )
            return sparse_coo_tensor(*args)
        size = args[0] if len(args) == 1 and isinstance(args[0], (Size, tuple, list)) else args
        return sparse_coo_tensor(size=size, dtype=self.dtype)

    def __repr__(self) -> str:
        return f"<class 'torch.sparse.{self.dtype.scalar_type}Tensor'>"


def new(self: SparseTensor, *args: Any) -> SparseTensor:
    """A sparse tensor of the same dtype, from indices, values and size; or an empty one, from a size."""
    return sparsetype(self.dtype)(*(args or (0,)))


SparseTensor.new = new  # type: ignore[method-assign, assignment]
DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8"
TYPES = {f"{d.scalar_type}Tensor": sparsetype(d) for d in [getattr(dtypes, name) for name in DTYPES.split()]}
