"""Sparse tensors in coordinate format (COO, torch's `sparse_coo`): indices and values of the nonzero elements.

A sparse tensor consists of two dense tensors, indices and values, and has its own node in the graph. As in torch, its
gradient is dense or sparse: a product's gradient also has the elements that are not stored (graph.py). A function of
the stored elements alone is composed of ops on `elements()` and of `with_values`; its gradient is sparse. A sparse
tensor has no `_array`: reading it raises `NotForSparse`, whose `instead` runs the function for sparse operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from weakref import ref

import numpy as np

from rushlight.base import dtypes
from rushlight.base.device import CPU, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from rushlight.base.errors import NoArray, explain, not_implemented_error, runtime_error, shown_as, type_error
from rushlight.base.intp import as_int64
from rushlight.base.printing import format_sparse
from rushlight.base.size import Size
from rushlight.core.mode import mode
from rushlight.core.node import hooks_of
from rushlight.core.tensor import Tensor, from_array, new
from rushlight.ops.shape.views import cat
from rushlight.sparse.graph import AccumulateSparse, is_dense, linked

F = TypeVar("F", bound=Callable)
OPS: dict[str, Callable] = {}  # name of a dense op -> the function for sparse operands


def offers(*dense: Callable) -> Callable[[F], F]:
    """A decorator: registers a function in place of these dense functions if an operand is sparse."""

    def offer(function: F) -> F:
        OPS.update({op.__name__: function for op in dense})
        return function

    return offer


class NotForSparse(NoArray):
    """Raised when an op reads `._array` of a sparse tensor; `instead` runs the sparse version of the op."""

    op = ""  # the op that has no sparse version

    def instead(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name not in OPS:
            raise self.named(name, "SparseCPU") from None
        return OPS[name](*args, **kwargs)

    def named(self, op: str, backend: str) -> NoArray:
        """The error for an op without a sparse version; it names the innermost op."""
        if self.op:
            return self
        error = type(self)(
            explain(
                f"Could not run 'aten::{op}' with arguments from the '{backend}' backend.",
                "convert it: x.to_dense()",
                op=op,
            )
        )
        error.op = op
        return error


shown_as(NotForSparse, "builtins", "NotImplementedError")


class SparseTensor(Tensor):
    """A tensor of zeros, except for `values` (nnz, *dense dimensions) at `indices` (sparse_dim, nnz).

    Made by `sparse_coo_tensor` and `x.to_sparse()`. Values with equal indices are summed by `coalesce`. The gradient of
    a leaf is dense for `S @ x`, and sparse for `torch.sparse.mm(S, x)`.

    >>> rushlight.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3))
    tensor(indices=tensor([[0, 1],
                           [2, 0]]),
           values=tensor([3., 4.]),
           size=(2, 3), nnz=2, layout=torch.sparse_coo)
    """

    _at: Tensor
    _of: Tensor  # the values, outside the graph; `elements()` are the same in the graph
    _size: Size
    _sorted: bool

    @property
    def _array(self) -> Any:  # type: ignore[override]
        raise NotForSparse(
            explain(
                "Could not run this operation with arguments from the 'SparseCPU' backend: it is not supported for "
                "sparse tensors.",
                "convert it: x.to_dense(); or use the stored values: x.values()",
            )
        )

    # -- attributes --------------------------------------------------------------------------------

    shape = property(lambda self: self._size, doc="The size of each dimension.")
    dtype = property(lambda self: self._of.dtype, doc="The type of the elements.")
    device = property(lambda self: CPU, doc="The CPU.")
    layout = property(lambda self: sparse_coo, doc="torch.sparse_coo.")
    ndim = property(lambda self: len(self._size), doc="The number of dimensions.")
    itemsize = property(lambda self: self._of.itemsize, doc="Bytes of one element.")
    is_sparse = property(lambda self: True, doc="True.")
    _dense = False

    def size(self, dim: int | None = None) -> Any:
        return self._size if dim is None else self._size[dim]

    def dim(self) -> int:
        return len(self._size)

    def numel(self) -> int:
        return self._size.numel()

    ndimension, nelement = dim, numel

    def element_size(self) -> int:
        return self._of.itemsize

    def is_complex(self) -> bool:
        return self._of.is_complex()

    def sparse_dim(self) -> int:
        """The number of sparse dimensions, which have indices."""
        return self._at.shape[0]

    def dense_dim(self) -> int:
        """The number of dense dimensions: the dimensions of each value."""
        return self._of.ndim - 1

    def _nnz(self) -> int:
        """The number of stored values."""
        return self._at.shape[1]

    def is_coalesced(self) -> bool:
        """Whether the indices are known to be unique and sorted."""
        return self._sorted

    def _indices(self) -> Tensor:
        """(sparse_dim, nnz) int64, as stored."""
        return self._at

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Declare whether the indices are known to be unique and sorted."""
        self._sorted = coalesced or self._nnz() < 2
        return self

    def _values(self) -> Tensor:
        """(nnz, *dense dimensions), as stored; outside the graph."""
        return self._of.detach()

    def elements(self) -> Tensor:
        """(nnz, *dense dimensions), as stored, in the graph."""
        if self._node is None:
            return self._of
        at, size, first = self._at, self._size, None
        if not self._sorted:
            unique, where = unique_places(at._array, tuple(size[: self.sparse_dim()]))
            if where is not None:  # all values of one element get the element's gradient
                at, first = from_array(unique), np.unique(where, return_index=True)[1]

        def back(g: Tensor) -> Tensor:
            values = g if first is None else g[from_array(first)]
            return with_values(at, values, size, True)

        return linked(self._of.detach(), "ValuesBackward", [(self, back)])

    def indices(self) -> Tensor:
        """(sparse_dim, nnz) int64: the indices, unique and sorted. RuntimeError if the tensor is not coalesced."""
        return self._once("indices")._at

    def values(self) -> Tensor:
        """(nnz, *dense dimensions): the values at `indices()`. RuntimeError if the tensor is not coalesced."""
        return self._once("values").elements()

    def _once(self, what: str) -> SparseTensor:
        if not self._sorted:
            raise runtime_error(
                f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first", f"x.coalesce().{what}()"
            )
        return self

    def __len__(self) -> int:
        return self._size[0]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        name = None if self.grad_fn is None else self.grad_fn.name()
        return format_sparse(
            {"indices": self._at._array, "values": self._of._array},
            tuple(self._size),
            self._nnz(),
            self.requires_grad,
            name,
        )

    def __bool__(self) -> bool:
        return bool(self.to_dense())

    def item(self) -> Any:
        if self.numel() != 1:
            raise runtime_error(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar",
                "index one element, or reduce it (sum) first",
                shape=tuple(self._size),
            )
        return self.to_dense().item()

    def numpy(self, *, force: bool = False) -> Any:
        raise type_error("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def tolist(self) -> Any:
        return self.to_dense().tolist()

    # -- autograd ----------------------------------------------------------------------------------

    data = property(lambda self: self.detach(), doc="The same values outside the graph.")

    @property
    def requires_grad(self) -> bool:
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if bool(value) == (self._node is not None):
            return
        if self._node is None:
            dtypes.check_differentiable(self.dtype)
            self._node = AccumulateSparse(self)
        else:
            Tensor.requires_grad.__set__(self, value)  # type: ignore[attr-defined]

    def register_hook(self, hook: Callable) -> Any:
        if self._node is None:
            return super().register_hook(hook)
        return hooks_of(self._node).add("tensor", hook)

    def retain_grad(self) -> None:
        if self._node is None or self.is_leaf:
            super().retain_grad()
        else:
            hooks_of(self._node).retained = ref(self)

    def alias(self) -> SparseTensor:
        """A tensor with the same parts and the same node. In-place writes to this tensor do not change the alias."""
        found = self.detach()
        found._node = self._node
        return found

    def detach(self) -> SparseTensor:
        """The same elements, outside the graph."""
        return made(self._at, self._of, self._size, self._sorted)

    def passed(self, result: SparseTensor, name: str) -> SparseTensor:
        """Link a result that has this tensor's elements to this tensor: gradients pass unchanged."""
        return linked(result, name, [(self, lambda g: g)])

    def converted_layout(self, result: SparseTensor, name: str) -> SparseTensor:
        """Link a result in another layout to this tensor: the gradient is sparse, as in torch."""
        n = self.sparse_dim()
        return linked(result, name, [(self, lambda g: g.to_sparse(n) if is_dense(g) else g)])

    # -- other values at the same indices ----------------------------------------------------------

    def holding(self, values: Tensor) -> SparseTensor:
        """A sparse tensor with the same indices and other values, in the graph of the values."""
        size = (*self._size[: self.sparse_dim()], *values.shape[1:])
        return with_values(self._at, values, size, self._sorted)

    def coalesce(self) -> SparseTensor:
        """The tensor with unique, sorted indices and summed values; the tensor itself if it is coalesced."""
        if self._sorted:
            return self
        return self.passed(self.summed_up(), "CoalesceBackward")

    def summed_up(self) -> SparseTensor:
        """The coalesced tensor, outside the graph."""
        at, where = unique_places(self._at._array, tuple(self._size[: self.sparse_dim()]))
        if where is None:
            return made(self._at, self._of, self._size, True)
        total = new_zeros((at.shape[1], *self._of.shape[1:]), self._of)
        values = total.index_add(0, from_array(where), self._of)
        return made(from_array(at), values, self._size, True)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor. `masked_grad` (default True): the gradient has the stored elements only."""
        n, at = self.sparse_dim(), None
        if masked_grad is not False and self._node is not None:
            at = self.summed_up()._at

        def back(g: Tensor) -> Tensor:
            if at is not None:
                return with_values(at, picked(g, at), self._size, True)
            return g.to_sparse(n) if is_dense(g) else g

        values = self._of if dtype is None else self._of.to(dtype)
        return linked(self.filled_in(values), "ToDenseBackward", [(self, back)])

    def _filled(self) -> Tensor:
        """The dense tensor, through which all gradients pass."""
        return self.to_dense(masked_grad=False)

    def filled_in(self, values: Tensor) -> Tensor:
        """The dense tensor with these values at the stored places, outside the graph."""
        zeros = new_zeros(tuple(self._size), values)
        if self.sparse_dim() == 0:
            return zeros + values.sum(0)
        places = tuple(from_array(row) for row in self._at._array)
        return zeros.index_put(places, values, accumulate=not self._sorted)

    def to_sparse(
        self, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
    ) -> SparseTensor:
        """The tensor itself. NotImplementedError for other layouts or another number of sparse dimensions."""
        if layout not in (None, sparse_coo):
            return other_layout(self, layout, blocksize, dense_dim)
        if sparse_dim not in (None, self.sparse_dim()):
            raise not_implemented_error(
                "to_sparse: the number of sparse dimensions of a sparse tensor stays; make it dense first, "
                "x.to_dense().to_sparse(n)"
            )
        return self

    to_sparse_coo = to_sparse

    def to(self, *args: Any, **kwargs: Any) -> Any:
        return self.converted(self._of.to(*args, **kwargs))

    def converted(self, values: Tensor) -> SparseTensor:
        """The tensor with its values in another dtype; the tensor itself if nothing changes."""
        if values is self._of:
            return self
        return self.passed(made(self._at, values, self._size, self._sorted), "ToCopyBackward")

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the tensor's type in torch; with `dtype`, the tensor converted to that dtype."""
        if dtype is None:
            return f"torch.sparse.{self.dtype.scalar_type}Tensor"
        return self.converted(self._of.type(dtype))

    def copy_(self, other: Tensor, non_blocking: bool = False) -> SparseTensor:
        """Take over the indices and values of another tensor, converted to this tensor's dtype."""
        if not other.is_sparse or other.shape != self.shape:
            raise runtime_error(
                f"copy_() between dense and sparse Tensors is not implemented! Found self type = {self.type()} "
                f"and src type = {other.type()}"
            )
        return self.become(other.to(self.dtype).clone())  # type: ignore[arg-type]

    def become(self, other: SparseTensor) -> SparseTensor:
        """Take over the indices, the values and the node of a tensor of the same size. RuntimeError for a leaf that
        requires grad."""
        if self._node is not None and self._node.leaf and mode().grad:
            raise runtime_error(
                "a leaf Variable that requires grad is being used in an in-place operation.",
                "give it a clone(), or write under no_grad()",
            )
        self._at, self._of, self._sorted = other._at, other._of, other._sorted
        if self._node is None or not self._node.leaf:
            self._node = other._node
        return self

    def zero_(self) -> SparseTensor:
        """Remove all stored elements. Returns the tensor."""
        return self.become(self.emptied())

    def emptied(self, dtype: Any = None) -> SparseTensor:
        """A sparse tensor of the same size that stores nothing, outside the graph."""
        values = self._of.new_zeros((0, *self._of.shape[1:]), dtype=dtype)
        return made(self._at[:, :0], values, self._size, True)

    def resize_as_(self, the_template: Any, *, memory_format: Any = None) -> SparseTensor:
        """Take the size of another tensor. RuntimeError unless this tensor is empty, or the sizes are equal."""
        if self._nnz() and self._size != the_template.shape:
            raise runtime_error(
                f"the size of a sparse tensor that stores values stays {tuple(self._size)}",
                "call x.zero_() first, or create a new tensor with torch.sparse_coo_tensor",
            )
        if self._size != the_template.shape:
            self.take_over(the_template.emptied(self.dtype))
        return self

    def take_over(self, other: SparseTensor) -> SparseTensor:
        """Take over the indices, the values and the size of a tensor."""
        self.become(other)._size = other._size
        return self

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        """A copy, in the graph."""
        copy = made(self._at.clone(), self._of.clone(), self._size, self._sorted)
        return self.passed(copy, "CloneBackward")

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: a sparse tensor has no strides."""
        return (0,) * len(self._size) if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: a sparse tensor has no strides."""
        return False

    def new_zeros(self, *size: Any, dtype: Any = None, **settings: Any) -> SparseTensor:
        """A sparse tensor of this size that stores nothing."""
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        at, of = np.zeros((len(shape), 0), np.int64), self._of.new_zeros(0, dtype=dtype)
        return made(from_array(at), of, shape, True)

    def contiguous(self, memory_format: Any = None) -> SparseTensor:
        """The tensor itself."""
        return self

    # -- operators ---------------------------------------------------------------------------------

    def __iter__(self) -> Iterator:
        return iter(OPS["unbind"](self))

    def __matmul__(self, other: Any) -> Any:
        return OPS["matmul"](self, other) if isinstance(other, Tensor) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return OPS["matmul"](other, self)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        of = self._of.detach().requires_grad_(self.requires_grad)
        return rebuilt, (self._at, of, tuple(self._size), self._sorted)

    def __deepcopy__(self, memo: dict) -> SparseTensor:
        from copy import deepcopy

        if id(self) not in memo:
            if not self.is_leaf:
                raise runtime_error(
                    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
                    "the moment.",
                    "x.detach() is outside the graph",
                )
            found = made(deepcopy(self._at, memo), deepcopy(self._of, memo), self._size, self._sorted)
            found.__dict__.update(self.__dict__, _at=found._at, _of=found._of)
            memo[id(self)] = found.requires_grad_(self.requires_grad)
        return memo[id(self)]


def converter(name: str) -> Callable:
    """A method that converts the values by the dense method `name`."""

    def call(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        return self.converted(getattr(self._of, name)(*args, **kwargs))

    call.__name__, call.__doc__ = name, f"`{name}` of the values, at the same places."
    return call


CONVERTERS = "float double half bfloat16 long int short char byte bool cfloat cdouble cpu cuda pin_memory"
for _name in CONVERTERS.split():
    setattr(SparseTensor, _name, converter(_name))


def made(at: Tensor, values: Tensor, size: Any, is_coalesced: bool = False) -> SparseTensor:
    """A sparse tensor of these parts, without checks, outside the graph."""
    t = new(SparseTensor)
    t._node, t._grad, t._viewing, t._writes = None, None, None, None
    t._at, t._size = at, Size(size)
    t._sorted = is_coalesced or at.shape[1] < 2
    t._of = values if values._node is None else values.detach()
    return t


def with_values(at: Tensor, values: Tensor, size: Any, is_coalesced: bool = False) -> SparseTensor:
    """A sparse tensor of these parts, without checks, in the graph of the values."""
    return linked(
        made(at, values, size, is_coalesced),
        "SparseCooTensorWithDimsAndTensorsBackward",
        [(values, lambda g: picked(g, at))],
    )


def picked(g: Any, at: Tensor) -> Tensor:
    """(nnz, *dense dimensions): the elements of a tensor, dense or sparse, at these indices."""
    if is_dense(g):
        if at.shape[0] == 0:  # a sparse tensor without sparse dimensions
            return g.unsqueeze(0).expand(at.shape[1], *g.shape)
        return g[tuple(from_array(row) for row in at._array)]
    g = g.coalesce()
    values, known, wanted = g.elements(), g._at._array, at._array
    if known is wanted or np.array_equal(known, wanted):
        return values
    size = tuple(g._size[: g.sparse_dim()])
    flat, flat_wanted = (np.ravel_multi_index(tuple(a), size) for a in (known, wanted))
    where = np.searchsorted(flat, flat_wanted)
    found = where < len(flat)
    found[found] = flat[where[found]] == flat_wanted[found]
    with_zero = values.new_zeros(1, *values.shape[1:])
    return cat([values, with_zero])[from_array(np.where(found, where, len(flat)))]


def rebuilt(at: Tensor, values: Tensor, size: tuple, is_coalesced: bool) -> SparseTensor:
    """The sparse tensor from pickled parts. Called by pickle."""
    return made(at, values, size, is_coalesced).requires_grad_(values.requires_grad)  # type: ignore[return-value]


def opened(x: Any) -> Any:
    """The COO matrix that a compressed matrix holds; anything else unchanged."""
    return getattr(x, "_coo", x)


def new_zeros(shape: tuple, like: Tensor) -> Any:
    return from_array(np.zeros(shape, like._array.dtype))


def unique_places(at: np.ndarray, size: tuple) -> tuple[np.ndarray, np.ndarray | None]:
    """(sorted unique indices, the position of each stored value among these); (indices, None) if they are already
    sorted and unique.
    """
    if at.shape[1] == 0 or at.shape[0] == 0:
        return at[:, :1], None if at.shape[1] < 2 else np.zeros(at.shape[1], np.int64)
    flat = np.ravel_multi_index(tuple(at), size)
    if (flat[1:] > flat[:-1]).all():
        return at, None
    places, where = np.unique(flat, return_inverse=True)
    return as_int64(np.stack(np.unravel_index(places, size))), where


def other_layout(x: Any, layout: Any, blocksize: Any = None, dense_dim: int | None = None) -> Any:
    """A matrix in a compressed layout. RuntimeError for another layout."""
    if layout is sparse_csr:
        return x.to_sparse_csr(dense_dim)
    if layout is sparse_csc:
        return x.to_sparse_csc(dense_dim)
    if layout is sparse_bsr:
        return x.to_sparse_bsr(blocksize, dense_dim)
    if layout is sparse_bsc:
        return x.to_sparse_bsc(blocksize, dense_dim)
    raise runtime_error(f"to_sparse: {layout} is not a sparse layout", "layout=torch.sparse_coo")
