"""Compressed sparse matrices: CSR stores the start of each row, the column indices and the values; CSC the same by
columns. The values of BSR and BSC are blocks of elements.

A compressed matrix holds a COO matrix whose elements are sorted by rows (columns), block by block, and applies all ops
to that matrix, which is in the graph. Sparse results have the same layout; a transpose has the other one. A batch of
matrices (*batch, rows, columns, *dense) holds a COO tensor of all its dimensions; each matrix stores the same
number of elements.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from types import FunctionType
from typing import Any

import numpy as np

from rushlight.base.device import CPU, Layout, present, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from rushlight.base.errors import explain, not_implemented_error, runtime_error, shown_as
from rushlight.base.intp import as_int64, as_intp
from rushlight.base.printing import format_sparse
from rushlight.core.arguments import wrap
from rushlight.core.tensor import Tensor, from_array, method, new
from rushlight.creation.factories import as_tensor
from rushlight.sparse import products
from rushlight.sparse.creation import to_sparse
from rushlight.sparse.graph import in_layout, is_dense
from rushlight.sparse.products import sampled_product
from rushlight.sparse.tensor import OPS, NotForSparse, SparseTensor, made, opened, other_layout, picked, with_values

LAYOUTS = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
NAMES = (("crow_indices", "col_indices"), ("ccol_indices", "row_indices"))


class NotForCompressed(NotForSparse):
    """Raised when an op reads `._array` of a compressed matrix; `instead` runs the sparse version of the op."""

    def instead(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name in JOINS:
            raise runtime_error(
                "Sparse CSR tensors do not have is_contiguous", f"{name} takes COO tensors: x.to_sparse()"
            ) from None
        if name not in OPS:
            raise self.named(name, "SparseCsrCPU") from None
        like = next((a for a in args if isinstance(a, CompressedTensor)), None)
        result = OPS[name](*map(opened, args), **kwargs)
        return result if like is None else back(result, like)


shown_as(NotForCompressed, "builtins", "NotImplementedError")
JOINS = ("cat", "stack", "hstack", "vstack", "dstack", "column_stack")  # functions for COO tensors only


class CompressedTensor(Tensor):
    """A sparse matrix of layout `torch.sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`. `sparse_csr_tensor`,
    `to_sparse_csr` and similar functions create it.

    The gradient of a leaf is dense for `A @ x`, and has the leaf's layout for `torch.sparse.mm(A, x)`.

    >>> a = rushlight.tensor([[0., 2.], [3., 4.]]).to_sparse_csr()
    >>> a.crow_indices(), a.col_indices(), a.values()
    (tensor([0, 1, 3]), tensor([1, 0, 1]), tensor([2., 3., 4.]))
    >>> a @ rushlight.ones(2)
    tensor([2., 7.])
    """

    _coo: SparseTensor
    _by: int  # the compressed dimension: 0 for CSR, 1 for CSC, after the dimensions of the batch
    _block: tuple[int, int] | None  # rows and columns of a block of BSR and BSC

    @property
    def _array(self) -> Any:  # type: ignore[override]
        raise NotForCompressed(
            explain(
                "Could not run this operation with arguments from the 'SparseCsrCPU' backend: it is not supported for "
                "sparse matrices.",
                "convert it: x.to_dense()",
            )
        )

    device = property(lambda self: CPU, doc="The CPU.")
    _dense = False
    layout = property(
        lambda self: LAYOUTS[self._by + (0 if self._block is None else 2)],
        doc="torch.sparse_csr, sparse_csc, sparse_bsr or sparse_bsc.",
    )
    is_sparse = property(lambda self: False, doc="False: it is True for torch.sparse_coo only.")
    is_sparse_csr = property(lambda self: self.layout is sparse_csr, doc="Whether it is CSR.")

    @property
    def _batch(self) -> tuple[int, ...]:
        return tuple(self._coo._size[: self._coo.sparse_dim() - 2])

    @property
    def _parts_shape(self) -> tuple[int, ...]:
        """(*batch, nnz): the shape of the indices."""
        each = prod(self._batch) * (1 if self._block is None else prod(self._block))
        return *self._batch, self._coo._nnz() // max(each, 1)

    def _places_of(self, dim: int) -> np.ndarray:
        """(batches, nnz): the rows (0) or columns (1) of the stored elements, or blocks."""
        at = self._coo._at._array[len(self._batch) + dim]
        if self._block is not None:
            at = at[:: prod(self._block)] // self._block[dim]
        return at.reshape(prod(self._batch), self._parts_shape[-1])

    def values(self) -> Tensor:
        """(*batch, nnz, *block, *dense): the stored elements, in order."""
        of = self._coo.elements()
        if not self._batch and self._block is None:
            return of
        return of.view(*self._parts_shape, *(self._block or ()), *of.shape[1:])

    def _nnz(self) -> int:
        """The number of stored elements, or blocks, of each matrix."""
        return self._parts_shape[-1]

    def sparse_dim(self) -> int:
        """2: rows and columns."""
        return 2

    def _starts(self, by: int) -> Tensor:
        self._check(by, 0)
        size = self._coo._size[len(self._batch) + by] // (self._block or (1, 1))[by]
        lines = np.arange(size + 1)
        starts = [np.searchsorted(of_one, lines) for of_one in self._places_of(by)]
        return from_array(as_int64(np.reshape(starts, (*self._batch, len(lines)))))

    def _places(self, by: int) -> Tensor:
        self._check(by, 1)
        return from_array(self._places_of(1 - by).reshape(self._parts_shape))

    def _check(self, by: int, which: int) -> None:
        if by != self._by:
            name, wanted = NAMES[by][which], "row" if by == 0 else "column"
            raise runtime_error(
                f"{name} expected sparse {wanted} compressed tensor layout but got {name_of(self.layout)}",
                f"x.{NAMES[self._by][which]}()",
            )

    def crow_indices(self) -> Tensor:
        """(*batch, rows + 1): the start of each row in `col_indices()` and `values()`, and the end of the last row."""
        return self._starts(0)

    def col_indices(self) -> Tensor:
        """(*batch, nnz): the column of each value."""
        return self._places(0)

    def ccol_indices(self) -> Tensor:
        """(*batch, columns + 1): the start of each column in `row_indices()` and `values()`, and the end of the last
        column.
        """
        return self._starts(1)

    def row_indices(self) -> Tensor:
        """(*batch, nnz): the row of each value."""
        return self._places(1)

    def to_sparse(
        self, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
    ) -> Any:
        """The matrix as COO, or in the given layout."""
        if layout is self.layout:
            return self
        if layout is not None and layout is not sparse_coo:
            return other_layout(self, layout, blocksize)
        coo = self._coo
        if sparse_dim not in (None, coo.sparse_dim()):
            raise runtime_error(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not "
                "supported"
            )
        same = made(coo._at, coo._of, coo._size, self.layout is sparse_csr)  # sorted by rows only in CSR
        return coo.converted_layout(same, "ToSparseBackward")

    to_sparse_coo = to_sparse

    def select(self, dim: int, index: Any) -> Any:
        """The slice at one index. For a matrix it is a COO vector."""
        return vector_in_order(back(self._coo.select(dim, index), self))

    def __getitem__(self, index: Any) -> Any:
        return vector_in_order(back(self._coo[index], self))

    def transpose(self, dim0: int, dim1: int) -> CompressedTensor:
        """The transpose. For matrices it has the other layout, without moving elements."""
        n = self._coo.sparse_dim()
        a, b = sorted((wrap(dim0, self.ndim), wrap(dim1, self.ndim)))
        if self._coo.dense_dim():
            raise runtime_error(
                "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported",
                "x.to_sparse(), a COO tensor, has a transpose",
            )
        if a < n - 2 <= b:
            raise runtime_error(
                "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
                f"{a}(Batch) and {b}(Sparse)"
            )
        coo: Any = self._coo.transpose(a, b)
        if a < n - 2:
            return compressed(coo, self._by, self._block)
        if self._block is None or a == b:
            return held(coo, self._by ^ (a != b), self._block)
        return compressed(coo, 1 - self._by, self._block[::-1])  # also transposes the elements in each block

    def t(self) -> CompressedTensor:
        """The transpose of a matrix, in the other layout: no element moves."""
        if self.ndim > 2:
            raise runtime_error(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D", ".mT")
        return self.transpose(0, 1)

    T = property(t, doc="The transpose.")
    mT = property(lambda self: self.transpose(-2, -1), doc="The transpose of each matrix.")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        starts, places = NAMES[self._by]
        parts = {name: getattr(self, name)()._array for name in (starts, places)} | {"values": self.values()._array}
        name = None if self.grad_fn is None else self.grad_fn.name()
        return format_sparse(parts, tuple(self.shape), self._nnz(), self.requires_grad, name, repr(self.layout))

    # the graph belongs to the COO matrix

    @property
    def _node(self) -> Any:
        return self._coo._node

    @_node.setter
    def _node(self, node: Any) -> None:
        self._coo._node = node

    @property
    def _grad(self) -> Any:
        return self._coo._grad

    @_grad.setter
    def _grad(self, value: Any) -> None:
        self._coo._grad = opened(value)

    @property
    def requires_grad(self) -> bool:
        """Whether backward computes its gradient."""
        return self._coo.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._coo.requires_grad = value

    @property
    def grad(self) -> Any:
        """The gradient, dense or in this layout."""
        g = self._coo._grad
        return g if g is None or is_dense(g) else in_layout(g, self)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._coo.grad = opened(value)

    def holding_places_of(self, coo: SparseTensor) -> CompressedTensor:
        """A COO matrix with the same stored places in the layout of this matrix."""
        return held(coo, self._by, self._block)

    def emptied(self, dtype: Any = None) -> CompressedTensor:
        """A matrix of the same size that stores nothing, outside the graph."""
        return held(self._coo.emptied(dtype), self._by, self._block)

    def alias(self) -> CompressedTensor:
        """A tensor with the same parts and the same node."""
        return held(self._coo.alias(), self._by, self._block)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return held, (self._coo, self._by, self._block)

    def __deepcopy__(self, memo: dict) -> CompressedTensor:
        return held(self._coo.__deepcopy__(memo), self._by, self._block)


def vector_in_order(found: Any) -> Any:
    """A row or column of a compressed matrix, marked as coalesced: its elements are sorted."""
    return found._coalesced_(True) if found.is_sparse and found.ndim == 1 else found


def name_of(layout: Layout) -> str:
    """torch's name of the layout in errors, such as SparseCsr."""
    return "Sparse" + repr(layout).rpartition("_")[2].title()


def held(coo: SparseTensor, by: int, block: tuple[int, int] | None = None) -> CompressedTensor:
    """The compressed matrix of a COO matrix that is already sorted."""
    t = new(CompressedTensor)
    t._viewing, t._writes = None, None
    t._coo, t._by, t._block = coo, by, block
    return t


def compressed(
    x: Tensor, by: int, block: tuple[int, int] | None = None, dense_dim: int | None = None
) -> CompressedTensor:
    """A matrix of any layout, or a batch of matrices, as a compressed one. RuntimeError unless all matrices of the
    batch store the same number of elements."""
    if isinstance(x, CompressedTensor):
        coo: SparseTensor = x._coo
    elif x.is_sparse:
        coo = x  # type: ignore[assignment]
    else:
        coo = to_sparse(x, x.ndim - (dense_dim or 0))
    if coo.sparse_dim() < 2:
        raise runtime_error(
            f"{name_of(LAYOUTS[by])} needs 2 sparse dimensions or more, but got {coo.sparse_dim()}",
            shape=tuple(x.shape),
        )
    name = f"To{name_of(LAYOUTS[by + (0 if block is None else 2)])}Backward"
    return held(coo.converted_layout(ordered(coo, by, block), name), by, block)


def ordered(coo: SparseTensor, by: int, block: tuple[int, int] | None) -> SparseTensor:
    """The elements in the order of a compressed layout, outside the graph."""
    found = coo.summed_up()
    if block is not None:
        found = in_blocks(found, by, block)
    elif by == 1:
        found = in_order(found, 1, (1, 1))
    check_batch(found)
    return found


def in_order(coo: SparseTensor, by: int, block: tuple[int, int]) -> SparseTensor:
    """The same elements in the order of rows (0) or columns (1) of blocks, outside the graph."""
    *batch, row, column = coo._at._array
    blocks = row // block[0], column // block[1]
    keys = (column, row, blocks[1 - by], blocks[by], *reversed(batch))
    order = from_array(as_int64(np.lexsort(keys)))
    return made(coo._at[:, order], coo._of[order], coo._size)


def in_blocks(coo: SparseTensor, by: int, block: tuple[int, int]) -> SparseTensor:
    """All elements of the blocks that store one, block by block, outside the graph."""
    *batch, row, column = coo._at._array
    n, m = coo._size[len(batch) : len(batch) + 2]
    if n % block[0] or m % block[1]:
        raise runtime_error(
            f"tensor sparse size ({n},{m}) must be divisible by given blocksize ({block[0]},{block[1]})"
        )
    touched = np.unique(np.stack((*batch, row // block[0], column // block[1])), axis=1)
    inside = np.indices(block).reshape(2, 1, -1)
    corner = touched[-2:, :, None] * np.reshape(block, (2, 1, 1))
    above = np.broadcast_to(touched[:-2, :, None], (len(batch), touched.shape[1], prod(block)))
    at = np.concatenate((above, corner + inside)).reshape(len(batch) + 2, -1)
    whole = made(from_array(as_int64(at)), picked(coo, from_array(at)), coo._size)
    return in_order(whole, by, block)


def check_batch(coo: SparseTensor) -> None:
    """RuntimeError unless all matrices of a batch store the same number of elements."""
    batch = tuple(coo._size[: coo.sparse_dim() - 2])
    if not batch:
        return
    if not prod(batch):
        raise runtime_error("Expected product of batch dimensions to be non-zero.")
    matrix = np.ravel_multi_index(tuple(coo._at._array[:-2]), batch)
    counts = np.bincount(as_intp(matrix), minlength=prod(batch))
    if counts.min() != counts.max():
        raise runtime_error(
            "Expect the same number of specified elements per batch.",
            "x.to_sparse() can store different numbers",
            counts=counts.tolist(),
        )


def back(result: Any, like: CompressedTensor) -> Any:
    """A sparse matrix in the layout of `like`; any other result unchanged."""
    if not isinstance(result, SparseTensor) or result.sparse_dim() < 2:
        return result
    if result._at is like._coo._at:
        return like.holding_places_of(result)
    by, block = like._by, like._block if result.shape == like.shape else None
    return held(result.passed(ordered(result, by, block), "CloneBackward"), by, block)


# -- methods of COO matrices -----------------------------------------------------------------------


def through(name: str) -> Callable:
    """A method that calls the method `name` of the COO matrix."""

    def call(self: CompressedTensor, *args: Any, **kwargs: Any) -> Any:
        return back(getattr(self._coo, name)(*map(opened, args), **kwargs), self)

    call.__name__, call.__doc__ = name, f"`{name}`, as of COO matrices."
    return call


def read_through(name: str) -> Callable:
    """The getter of a property with the COO matrix's value."""
    return lambda self: back(getattr(self._coo, name), self)


def attach() -> None:
    """Give compressed matrices the methods and properties of COO matrices."""
    own = {"__module__", "__doc__", "coalesce", "indices", "is_coalesced", "_indices", "become", "holding", "__init__"}
    for name, value in vars(SparseTensor).items():
        if name in own or name in vars(CompressedTensor):
            continue
        if isinstance(value, property):
            setattr(CompressedTensor, name, property(read_through(name), doc=value.__doc__))
        elif isinstance(value, FunctionType):
            setattr(CompressedTensor, name, through(name))


@method
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> CompressedTensor:
    """The matrix in the layout torch.sparse_csr.

    >>> rushlight.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return compressed(self, 0, None, dense_dim)


@method
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> CompressedTensor:
    """The matrix in the layout torch.sparse_csc."""
    return compressed(self, 1, None, dense_dim)


@method
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> CompressedTensor:
    """The matrix in the layout torch.sparse_bsr: whole blocks of rows and columns are stored.

    >>> rushlight.eye(4).to_sparse_bsr((2, 2)).values().shape
    torch.Size([2, 2, 2])
    """
    return compressed(self, 0, block_of(blocksize), dense_dim)


@method
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> CompressedTensor:
    """The matrix in the layout torch.sparse_bsc, with its blocks in the order of columns."""
    return compressed(self, 1, block_of(blocksize), dense_dim)


def block_of(blocksize: Any) -> tuple[int, int]:
    """The block as two positive integers. RuntimeError for anything else."""
    sizes = blocksize if isinstance(blocksize, (tuple, list)) else ()
    if len(sizes) != 2 or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise runtime_error(f"blocksize must be two positive integers, but got {blocksize}", "(2, 2)")
    return sizes[0], sizes[1]


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
    blocks: bool = False,
) -> CompressedTensor:
    """The compressed matrix of these parts. RuntimeError for parts that do not fit each other."""
    if device is not None:
        present(device)
    first, other, of = as_tensor(starts)._array, as_tensor(places)._array, as_tensor(values, dtype=dtype)
    n = first.ndim - 1
    block = (of.shape[n + 1], of.shape[n + 2]) if blocks and of.ndim > n + 2 else None
    dense = tuple(of.shape[n + (3 if blocks else 1) :])
    if size is None:
        size = least_size(by, first, other, block or (1, 1), dense)
    size = tuple(size)
    check_batches(NAMES[by], first, other, of, size, n + 2 + len(dense))
    rows, columns = block or (1, 1)
    grid = size[n] // rows, size[n + 1] // columns
    count = prod(first.shape[:-1])  # the number of matrices
    for i in range(count):
        parts = (a.reshape(count, *a.shape[n:])[i] for a in (first, other, of._array))
        check_parts(NAMES[by], by, grid, *parts)
    at = all_places(by, first, other, block)
    shape = (*at.shape[1:], *dense)
    coo = coo_of(from_array(at), of, shape, size, by == 0 and block is None, requires_grad)
    return held(coo, by, block)


def least_size(by: int, first: np.ndarray, other: np.ndarray, block: tuple[int, int], dense: tuple) -> tuple:
    """The least size that the indices allow."""
    found = first.shape[-1] - 1, int(other.max(initial=-1)) + 1
    n, m = found if by == 0 else found[::-1]
    return *first.shape[:-1], n * block[0], m * block[1], *dense


def all_places(by: int, first: np.ndarray, other: np.ndarray, block: tuple[int, int] | None) -> np.ndarray:
    """(batch dimensions + 2, elements): the indices of all stored elements, in their order."""
    batch = first.shape[:-1]
    counts = as_intp(np.diff(first).reshape(-1))
    along = np.repeat(np.tile(np.arange(first.shape[-1] - 1), prod(batch)), counts)
    plain = other.reshape(-1)
    matrix = np.repeat(np.arange(prod(batch)), other.shape[-1])
    above = np.unravel_index(matrix, batch) if batch else ()
    at = np.stack((*above, *((along, plain) if by == 0 else (plain, along))))
    if block:
        at = np.repeat(at, prod(block), 1)
        inside = np.indices(block).reshape(2, -1)
        at[-2:] = at[-2:] * np.reshape(block, (2, 1)) + np.tile(inside, (1, len(plain)))
    return as_int64(at)


def coo_of(places: Tensor, of: Tensor, shape: tuple, size: tuple, coalesced: bool, requires_grad: bool) -> Any:
    """The COO matrix of the values, as a leaf or in the graph of the values."""
    of = of if tuple(of.shape) == shape else of.reshape(shape)
    if requires_grad:
        return made(places, of, size, coalesced).requires_grad_()
    return with_values(places, of, size, coalesced)


def check_batches(names: tuple[str, str], first: Any, other: Any, of: Tensor, size: tuple, ndim: int) -> None:
    """RuntimeError unless all parts have the batch dimensions of `size`, and the size has `ndim` dimensions."""
    starts, places = names
    if first.ndim != other.ndim:
        raise runtime_error(
            f"{starts} and {places} dimensionalities must be equal but got {first.ndim} and {other.ndim}, respectively"
        )
    if first.ndim < 1 or of.ndim < first.ndim:
        raise runtime_error(
            f"values must have dimensionality > sum of batch and block dimensionalities (={first.ndim - 1} + 0) "
            f"but got {of.ndim}"
        )
    n = first.ndim - 1
    batch = tuple(size[:n])
    if len(size) != ndim or not all(tuple(a.shape[:n]) == batch for a in (first, other, of)):
        raise runtime_error(
            f"the batch dimensions of {starts}, {places}, values and size must be equal",
            shapes=(first.shape, other.shape, tuple(of.shape), size),
        )


def check_parts(names: tuple[str, str], by: int, size: tuple, first: Any, other: Any, of: Any) -> None:
    """RuntimeError, with torch's message, unless the parts make a valid compressed matrix of this size, in blocks."""
    starts, places = names
    said = {
        f"{starts}.shape[-1] == {'nrows' if by == 0 else 'ncols'} + 1": len(first) == size[by - 2] + 1,
        f"{places}.shape[-1] == values.shape[-1]": len(other) == len(of),
        f"{starts}[..., 0] == 0": first[:1].tolist() == [0],
        f"{starts}[..., -1] == nnz": first[-1:].tolist() == [len(other)],
        f"0 <= {starts}[..., 1:] - {starts}[..., :-1] <= {places}.max()": (np.diff(first) >= 0).all(),
        f"0 <= {places} < {'ncols' if by == 0 else 'nrows'}": ((other >= 0) & (other < size[-1 - by])).all(),
    }
    for what, holds in said.items():
        if not holds:
            raise runtime_error(f"`{what}` is not satisfied.", size=size)
    inner = np.ones(len(other), bool)
    # the first element of a row has no predecessor
    inner[first[:-1][first[:-1] < len(other)]] = False
    if (np.diff(other, prepend=-1)[inner] <= 0).any():
        raise runtime_error(
            f"`{places}[..., {starts}[..., i - 1]:{starts}[..., i]] for all i are sorted and distinct along the "
            "last dimension values` is not satisfied.",
            "sort them in each",
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
    """The matrix with values[k] at column col_indices[k] of row i, for crow_indices[i] <= k < crow_indices[i + 1]. A
    batch of matrices if the parts have more dimensions.

    With `requires_grad` the matrix is a leaf; else gradients go to `values`. RuntimeError for parts that do not fit
    each other; unlike in torch, the parts are always checked.

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
    """The matrix with values[k] at row row_indices[k] of column j, for ccol_indices[j] <= k < ccol_indices[j + 1].

    >>> rushlight.sparse_csc_tensor([0, 1, 3], [1, 0, 1], [2., 3., 4.]).to_dense()
    tensor([[0., 3.],
            [2., 4.]])
    """
    return from_parts(1, ccol_indices, row_indices, values, size, dtype, device, requires_grad)


def sparse_bsr_tensor(
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
    """The matrix whose blocks are values[k], of values (nnz, block rows, block columns): at block column col_indices[k]
    of block row i, for crow_indices[i] <= k < crow_indices[i + 1].

    >>> rushlight.sparse_bsr_tensor([0, 1], [1], [[[1., 2.], [3., 4.]]], (2, 4)).to_dense()
    tensor([[0., 0., 1., 2.],
            [0., 0., 3., 4.]])
    """
    return from_parts(0, crow_indices, col_indices, values, size, dtype, device, requires_grad, blocks=True)


def sparse_bsc_tensor(
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
    """The matrix whose blocks are values[k], of values (nnz, block rows, block columns): at block row row_indices[k] of
    block column j, for ccol_indices[j] <= k < ccol_indices[j + 1].

    >>> rushlight.sparse_bsc_tensor([0, 1], [1], [[[1., 2.]]], (2, 2)).to_dense()
    tensor([[0., 0.],
            [1., 2.]])
    """
    return from_parts(1, ccol_indices, row_indices, values, size, dtype, device, requires_grad, blocks=True)


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
    """out[row, column] = value: calls `sparse_csr_tensor` or the function of another `layout`.

    RuntimeError for other layouts.

    >>> rushlight.sparse_compressed_tensor([0, 1, 2], [1, 0], [3., 4.], (2, 2), layout=rushlight.sparse_csr).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if layout not in LAYOUTS:
        raise runtime_error(f"expected sparse compressed tensor layout but got {layout}", "torch.sparse_csr")
    which = LAYOUTS.index(layout)
    return from_parts(
        which % 2, compressed_indices, plain_indices, values, size, dtype, device, requires_grad, which > 1
    )


def mm(sparse: Tensor, dense: Tensor, reduce: str | None = None) -> Tensor:
    result = products.mm(sparse, dense, reduce)
    like = next((a for a in (sparse, dense) if isinstance(a, CompressedTensor)), None)
    return result if like is None else back(result, like)


mm.__doc__ = products.mm.__doc__


def sampled_addmm(
    input: CompressedTensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> CompressedTensor:
    """beta input + alpha mat1 @ mat2, computed only at the elements that `input`, a CSR matrix (n, m), stores.

    mat1 (n, k), mat2 (k, m). Gradients go to the values and both matrices.

    >>> places = rushlight.eye(2).to_sparse_csr()
    >>> rushlight.sparse.sampled_addmm(places, rushlight.ones(2, 3), rushlight.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if not isinstance(input, CompressedTensor):
        raise not_implemented_error(
            "Could not run 'aten::sparse_sampled_addmm' with arguments from the "
            f"'{'Sparse' if input.is_sparse else ''}CPU' backend.",
            "its first argument is a CSR matrix: x.to_sparse_csr()",
        )
    coo = input._coo
    if input.ndim != 2:
        raise not_implemented_error("sampled_addmm of batches of matrices is not supported")
    if mat1.shape[0] != coo._size[0] or mat2.shape[1] != coo._size[1] or mat1.shape[1] != mat2.shape[0]:
        raise runtime_error(
            "sampled_addmm: Expected shapes (n, k) and (k, m) for an input of shape (n, m)",
            shapes=(tuple(coo._size), tuple(mat1.shape), tuple(mat2.shape)),
        )
    row, col = map(from_array, coo._at._array)
    product = sampled_product(mat1, mat2.t(), row, col)
    scaled = coo * beta
    total: Any = scaled + coo.holding(product * alpha)
    return held(total, input._by)


__all__ = [
    "CompressedTensor", "mm", "sampled_addmm", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor",
    "sparse_csc_tensor", "sparse_csr_tensor",
]  # fmt: skip
