"""Compressed sparse matrices, by rows (CSR) or columns (CSC): where each row begins, the column
indices, the values.

A compressed matrix holds a COO matrix whose elements are sorted by rows (columns), and applies all
ops to that matrix; gradients are those of the values. Sparse results have the same layout; a
transpose has the other one. A batch of matrices (*batch, rows, columns) holds a COO tensor of all
its dimensions; each matrix stores equally many elements.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from types import FunctionType
from typing import Any

import numpy as np

from rushlight.base.device import CPU, Layout, present, sparse_csc, sparse_csr
from rushlight.base.errors import NoArray, explain
from rushlight.base.intp import as_int64, as_intp
from rushlight.base.printing import format_sparse
from rushlight.core.arguments import wrap
from rushlight.core.tensor import Tensor, from_array, method, new
from rushlight.creation.factories import as_tensor
from rushlight.sparse.creation import to_sparse
from rushlight.sparse.products import sampled_product
from rushlight.sparse.tensor import OPS, SparseTensor, made

LAYOUTS = (sparse_csr, sparse_csc)
NAMES = (("crow_indices", "col_indices"), ("ccol_indices", "row_indices"))


class NotForCompressed(NoArray):
    """Raised when an op reads `._array` of a compressed matrix; `instead` runs the sparse version
    of the op."""

    def instead(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name not in OPS:
            raise NotImplementedError(
                explain(
                    f"Could not run 'aten::{name}' with arguments from the 'SparseCsrCPU' backend.",
                    "convert it: x.to_dense()",
                    op=name,
                )
            ) from None
        like = next(a for a in args if isinstance(a, CompressedTensor))
        return back(OPS[name](*map(opened, args), **kwargs), like)


class CompressedTensor(Tensor):
    """A sparse matrix of layout `torch.sparse_csr` or `torch.sparse_csc`: made by
    `sparse_csr_tensor`, `to_sparse_csr`.

    Gradients are those of the stored values; the gradient of a leaf has the leaf's layout (in torch
    it is dense).

    >>> a = rushlight.tensor([[0., 2.], [3., 4.]]).to_sparse_csr()
    >>> a.crow_indices(), a.col_indices(), a.values()
    (tensor([0, 1, 3]), tensor([1, 0, 1]), tensor([2., 3., 4.]))
    >>> a @ rushlight.ones(2)
    tensor([2., 7.])
    """

    _coo: SparseTensor
    _by: int  # the compressed dimension: 0 for CSR, 1 for CSC, after the dimensions of the batch

    @property
    def _array(self) -> Any:  # type: ignore[override]
        raise NotForCompressed(
            explain(
                "Could not run this operation with arguments from the 'SparseCsrCPU' backend: it "
                "is not supported for sparse matrices.",
                "convert it: x.to_dense()",
            )
        )

    device = property(lambda self: CPU, doc="The CPU.")
    layout = property(lambda self: LAYOUTS[self._by], doc="torch.sparse_csr or torch.sparse_csc.")
    is_sparse = property(lambda self: False, doc="False: that is said of torch.sparse_coo alone.")
    is_sparse_csr = property(lambda self: self._by == 0, doc="Whether it is CSR.")

    @property
    def _parts_shape(self) -> tuple[int, ...]:
        """(*batch, nnz): the shape of the values."""
        batch = tuple(self._coo._size[:-2])
        return *batch, len(self._coo._of._array) // max(prod(batch), 1)

    def values(self) -> Tensor:
        """(*batch, nnz): the stored elements, in order."""
        of = self._coo._of
        return of if len(self._coo._size) == 2 else of.view(self._parts_shape)

    def _nnz(self) -> int:
        """The number of stored elements of each matrix."""
        return self._parts_shape[-1]

    def _starts(self, by: int) -> Tensor:
        self._check(by, 0)
        *batch, nnz = self._parts_shape
        lines = np.arange(self._coo._size[by - 2] + 1)
        of_each = self._coo._at._array[by - 2].reshape(prod(batch), nnz)
        starts = [np.searchsorted(of_one, lines) for of_one in of_each]
        return from_array(as_int64(np.reshape(starts, (*batch, len(lines)))))

    def _places(self, by: int) -> Tensor:
        self._check(by, 1)
        return from_array(self._coo._at._array[-1 - by].reshape(self._parts_shape))

    def _check(self, by: int, which: int) -> None:
        if by != self._by:
            name, wanted = NAMES[by][which], "row" if by == 0 else "column"
            raise RuntimeError(
                explain(
                    f"{name} expected sparse {wanted} compressed tensor layout but got "
                    f"{'SparseCsr' if self._by == 0 else 'SparseCsc'}",
                    f"x.{NAMES[self._by][which]}()",
                )
            )

    def crow_indices(self) -> Tensor:
        """(*batch, rows + 1): where each row begins in `col_indices()` and `values()`, and where
        the last ends."""
        return self._starts(0)

    def col_indices(self) -> Tensor:
        """(*batch, nnz): the column of each value."""
        return self._places(0)

    def ccol_indices(self) -> Tensor:
        """(*batch, columns + 1): where each column begins in `row_indices()` and `values()`, and
        where the last ends."""
        return self._starts(1)

    def row_indices(self) -> Tensor:
        """(*batch, nnz): the row of each value."""
        return self._places(1)

    def to_sparse(
        self,
        sparse_dim: int | None = None,
        *,
        layout: Any = None,
        blocksize: Any = None,
        dense_dim: int | None = None,
    ) -> Any:
        """The matrix as COO, or in the given layout."""
        return to_sparse(self._coo.coalesce(), layout=layout) if layout is not self.layout else self

    to_sparse_coo = to_sparse

    def transpose(self, dim0: int, dim1: int) -> CompressedTensor:
        """The transpose. That of matrices has the other layout: nothing moves."""
        n = self.ndim
        a, b = sorted((wrap(dim0, n), wrap(dim1, n)))
        if a < n - 2 <= b:
            raise RuntimeError(
                explain(
                    "transpose(): can only transpose dimensions of the same type (Batch, Sparse, "
                    f"Dense), got {a}(Batch) and {b}(Sparse)"
                )
            )
        coo: Any = self._coo.transpose(a, b)
        return held(coo, self._by ^ (a != b)) if a >= n - 2 else compressed(coo, self._by)

    def t(self) -> CompressedTensor:
        """The transpose of a matrix, in the other layout: nothing moves."""
        if self.ndim > 2:
            raise RuntimeError(
                explain(
                    f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D", ".mT"
                )
            )
        return self.transpose(0, 1)

    T = property(t, doc="The transpose.")
    mT = property(lambda self: self.transpose(-2, -1), doc="The transpose of each matrix.")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        starts, places = NAMES[self._by]
        parts = {name: getattr(self, name)()._array for name in (starts, places)} | {
            "values": self.values()._array
        }
        name = None if self.grad_fn is None else self.grad_fn.name()
        return format_sparse(
            parts, tuple(self.shape), self._nnz(), self.requires_grad, name, repr(self.layout)
        )

    @property
    def requires_grad(self) -> bool:
        """Whether its values require grad."""
        return self._coo.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._coo.requires_grad = value

    @property
    def grad(self) -> Any:
        """The gradient of each element that is stored."""
        g = self._coo._of.grad
        return None if g is None else held(made(self._coo._at, g, self._coo._size), self._by)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._coo._of.grad = None if value is None else value._coo._of

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return held, (self._coo, self._by)

    def __deepcopy__(self, memo: dict) -> CompressedTensor:
        return held(self._coo.__deepcopy__(memo), self._by)


def held(coo: SparseTensor, by: int) -> CompressedTensor:
    """The compressed matrix of a COO matrix that is already sorted."""
    t = new(CompressedTensor)
    t._node, t._grad, t._viewing, t._writes = None, None, None, None
    t._coo, t._by = coo, by
    return t


def compressed(x: Tensor, by: int) -> CompressedTensor:
    """A matrix of any layout, or a batch of matrices, as a compressed one. RuntimeError unless all
    matrices of the batch store equally many elements."""
    coo = x._coo if isinstance(x, CompressedTensor) else to_sparse(x)
    if coo.sparse_dim() < 2 or coo.dense_dim():
        raise NotImplementedError(
            explain(
                "CSR and CSC tensors must be matrices, or batches of matrices, of numbers",
                "COO tensors can have other dimensions",
                shape=tuple(x.shape),
            )
        )
    coo = coo.coalesce()
    check_batch(coo)
    if by == 1:
        *batch, row, column = coo._at._array
        order = from_array(as_int64(np.lexsort((row, column, *reversed(batch)))))
        coo = made(coo._at[:, order], coo._of[order], coo._size)
    return held(coo, by)


def check_batch(coo: SparseTensor) -> None:
    """RuntimeError unless all matrices of a batch store equally many elements."""
    batch = tuple(coo._size[:-2])
    if not batch:
        return
    if not prod(batch):
        raise RuntimeError(explain("Expected product of batch dimensions to be non-zero."))
    matrix = np.ravel_multi_index(tuple(coo._at._array[:-2]), batch)
    counts = np.bincount(as_intp(matrix), minlength=prod(batch))
    if counts.min() != counts.max():
        raise RuntimeError(
            explain(
                "Expect the same number of specified elements per batch.",
                "x.to_sparse() can store different numbers",
                counts=counts.tolist(),
            )
        )


def opened(a: Any) -> Any:
    return a._coo if isinstance(a, CompressedTensor) else a


def back(result: Any, like: CompressedTensor) -> Any:
    """A result that is a sparse matrix, in the layout of `like`."""
    if not isinstance(result, SparseTensor) or result.sparse_dim() < 2 or result.dense_dim():
        return result
    return held(result, like._by) if result._at is like._coo._at else compressed(result, like._by)


# -- methods of COO matrices -----------------------------------------------------------------------


def through(name: str) -> Callable:
    """The method of the COO matrix."""

    def call(self: CompressedTensor, *args: Any, **kwargs: Any) -> Any:
        return back(getattr(self._coo, name)(*map(opened, args), **kwargs), self)

    call.__name__, call.__doc__ = name, f"`{name}`, as of COO matrices."
    return call


def seen(name: str) -> Callable:
    """A property with the COO matrix's value."""
    return lambda self: back(getattr(self._coo, name), self)


def attach() -> None:
    """Give compressed matrices the methods and properties of COO matrices."""
    own = {
        "__module__",
        "__doc__",
        "coalesce",
        "indices",
        "is_coalesced",
        "_indices",
        "become",
        "holding",
        "__init__",
    }
    for name, value in vars(SparseTensor).items():
        if name in own or name in vars(CompressedTensor):
            continue
        if isinstance(value, property):
            setattr(CompressedTensor, name, property(seen(name), doc=value.__doc__))
        elif isinstance(value, FunctionType):
            setattr(CompressedTensor, name, through(name))


@method
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> CompressedTensor:
    """The matrix in the layout torch.sparse_csr.

    >>> rushlight.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return compressed(self, 0)


@method
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> CompressedTensor:
    """The matrix in the layout torch.sparse_csc."""
    return compressed(self, 1)


# -- from their parts ------------------------------------------------------------------------------


def from_parts(
    by: int,
    starts: Any,
    places: Any,
    values: Any,
    size: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> CompressedTensor:
    """The compressed matrix of these parts. RuntimeError for parts that do not fit each other."""
    if device is not None:
        present(device)
    first, other, of = (
        as_tensor(starts)._array,
        as_tensor(places)._array,
        as_tensor(values, dtype=dtype),
    )
    if size is None:
        found = first.shape[-1] - 1, int(other.max(initial=-1)) + 1
        size = *first.shape[:-1], *(found if by == 0 else found[::-1])
    check_batches(NAMES[by], first, other, of, tuple(size))
    batch = first.shape[:-1]
    rows = [a.reshape(prod(batch), a.shape[-1]) for a in (first, other, of._array)]
    for one_first, one_other, one_of in zip(*rows):
        check_parts(NAMES[by], one_first, one_other, one_of, tuple(size), by)
    counts = as_intp(np.diff(rows[0]).reshape(-1))
    along = np.repeat(np.tile(np.arange(first.shape[-1] - 1), prod(batch)), counts)
    plain = other.reshape(-1)
    matrix = np.repeat(np.arange(prod(batch)), other.shape[-1])
    above = np.unravel_index(matrix, batch) if batch else ()
    at = np.stack((*above, *((along, plain) if by == 0 else (plain, along))))
    if batch:
        of = of.reshape(-1)
    if requires_grad:
        of = of.detach().requires_grad_()
    return held(made(from_array(as_int64(at)), of, size, by == 0), by)


def check_batches(names: tuple[str, str], first: Any, other: Any, of: Tensor, size: tuple) -> None:
    """An error unless the parts have the dimensions of the batch, and one more."""
    starts, places = names
    if first.ndim != other.ndim:
        raise RuntimeError(
            explain(
                f"{starts} and {places} dimensionalities must be equal but got {first.ndim} and "
                f"{other.ndim}, respectively"
            )
        )
    if first.ndim < 1 or of.ndim < first.ndim:
        raise RuntimeError(
            explain(
                "values must have dimensionality > sum of batch and block dimensionalities "
                f"(={first.ndim - 1} + 0) but got {of.ndim}"
            )
        )
    if of.ndim > first.ndim:
        raise NotImplementedError(
            explain(
                "CSR and CSC tensors with dense dimensions are not supported",
                "COO tensors (sparse_coo_tensor) can have more dimensions",
            )
        )
    batch = tuple(size[:-2])
    if len(size) != first.ndim + 1 or not all(
        tuple(a.shape[:-1]) == batch for a in (first, other, of)
    ):
        raise RuntimeError(
            explain(
                f"the batch dimensions of {starts}, {places}, values and size must be equal",
                shapes=(first.shape, other.shape, tuple(of.shape), size),
            )
        )


def check_parts(
    names: tuple[str, str], first: Any, other: Any, of: Any, size: tuple, by: int
) -> None:
    """RuntimeError, with torch's message, unless the parts make a valid compressed matrix."""
    starts, places = names
    said = {
        f"{starts}.shape[-1] == {'nrows' if by == 0 else 'ncols'} + 1": len(first)
        == size[by - 2] + 1,
        f"{places}.shape[-1] == values.shape[-1]": len(other) == len(of),
        f"{starts}[..., 0] == 0": first[:1].tolist() == [0],
        f"{starts}[..., -1] == nnz": first[-1:].tolist() == [len(other)],
        f"0 <= {starts}[..., 1:] - {starts}[..., :-1] <= {places}.max()": (
            np.diff(first) >= 0
        ).all(),
        f"0 <= {places} < {'ncols' if by == 0 else 'nrows'}": (
            (other >= 0) & (other < size[-1 - by])
        ).all(),
    }
    for what, holds in said.items():
        if not holds:
            raise RuntimeError(explain(f"`{what}` is not satisfied.", size=size))
    inner = np.ones(len(other), bool)
    # the first element of a row has no predecessor
    inner[first[:-1][first[:-1] < len(other)]] = False
    if (np.diff(other, prepend=-1)[inner] <= 0).any():
        raise RuntimeError(
            explain(
                f"`{places}[..., {starts}[..., i - 1]:{starts}[..., i]] for all i are sorted and "
                "distinct along the last dimension values` is not satisfied.",
                "sort them in each",
            )
        )


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> CompressedTensor:
    """The matrix with values[k] at column col_indices[k] of row i, for crow_indices[i] <= k <
    crow_indices[i + 1]. A batch of matrices if the parts have more dimensions.

    With `requires_grad` the matrix is a leaf; else gradients go to `values`. RuntimeError for parts
    that do not fit each other; unlike in torch, the parts are always checked.

    >>> rushlight.sparse_csr_tensor([0, 1, 3], [1, 0, 1], [2., 3., 4.]).to_dense()
    tensor([[0., 2.],
            [3., 4.]])
    """
    return from_parts(0, crow_indices, col_indices, values, size, dtype, device, requires_grad)


def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> CompressedTensor:
    """The matrix with values[k] at row row_indices[k] of column j, for ccol_indices[j] <= k <
    ccol_indices[j + 1].

    >>> rushlight.sparse_csc_tensor([0, 1, 3], [1, 0, 1], [2., 3., 4.]).to_dense()
    tensor([[0., 3.],
            [2., 4.]])
    """
    return from_parts(1, ccol_indices, row_indices, values, size, dtype, device, requires_grad)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Layout,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> CompressedTensor:
    """out[row, column] = value: `sparse_csr_tensor` or `sparse_csc_tensor`, by `layout`.

    NotImplementedError for other layouts.

    >>> rushlight.sparse_compressed_tensor([0, 1, 2], [1, 0], [3., 4.], (2, 2),
    ...     layout=rushlight.sparse_csr).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if layout not in LAYOUTS:
        raise NotImplementedError(
            explain(f"sparse tensors of layout {layout} are not supported", "use torch.sparse_csr")
        )
    return from_parts(
        LAYOUTS.index(layout),
        compressed_indices,
        plain_indices,
        values,
        size,
        dtype,
        device,
        requires_grad,
    )


def sampled_addmm(
    input: CompressedTensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> CompressedTensor:
    """beta input + alpha mat1 @ mat2, computed only at the elements that `input`, a CSR matrix (n,
    m), stores.

    mat1 (n, k), mat2 (k, m). Gradients go to the values and both matrices.

    >>> places = rushlight.eye(2).to_sparse_csr()
    >>> rushlight.sparse.sampled_addmm(places, rushlight.ones(2, 3), rushlight.ones(3, 2)).values()
    tensor([4., 4.])
    """
    coo = input._coo
    if input.ndim != 2:
        raise NotImplementedError(explain("sampled_addmm of batches of matrices is not supported"))
    if (
        mat1.shape[0] != coo._size[0]
        or mat2.shape[1] != coo._size[1]
        or mat1.shape[1] != mat2.shape[0]
    ):
        raise RuntimeError(
            explain(
                "sampled_addmm: Expected shapes (n, k) and (k, m) for an input of shape (n, m)",
                shapes=(tuple(coo._size), tuple(mat1.shape), tuple(mat2.shape)),
            )
        )
    row, col = map(from_array, coo._at._array)
    product = sampled_product(mat1, mat2.t(), row, col)
    return held(coo.holding(coo._of * beta + product * alpha), input._by)


__all__ = [
    "CompressedTensor",
    "sampled_addmm",
    "sparse_compressed_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
]
