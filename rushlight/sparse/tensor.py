"""Sparse tensors in coordinate format (COO, torch's `sparse_coo`): indices and values of the
nonzero elements.

A sparse tensor consists of two dense tensors, indices and values. All its functions are composed of
ops on the values, so its gradients are those of the values, and no derivative is defined here. A
sparse tensor has no `array`: an op that reads it gets `NotForSparse`, whose `instead` runs the
function for sparse operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from rushlight.base.device import CPU, sparse_coo, sparse_csc, sparse_csr
from rushlight.base.errors import NoArray, explain
from rushlight.base.intp import as_int64
from rushlight.base.printing import format_sparse
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor, from_array, new

F = TypeVar("F", bound=Callable)
OPS: dict[str, Callable] = {}  # name of a dense op -> the function for sparse operands


def offers(*dense: Callable) -> Callable[[F], F]:
    """A decorator: registers a function in place of these dense functions if an operand is
    sparse."""

    def offer(function: F) -> F:
        OPS.update({op.__name__: function for op in dense})
        return function

    return offer


class NotForSparse(NoArray):
    """Raised when an op reads `._array` of a sparse tensor; `instead` runs the sparse version of
    the op."""

    def instead(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name not in OPS:
            raise NotImplementedError(
                explain(
                    f"Could not run 'aten::{name}' with arguments from the 'SparseCPU' backend.",
                    "convert it: x.to_dense()",
                    op=name,
                )
            ) from None
        return OPS[name](*args, **kwargs)


class SparseTensor(Tensor):
    """A tensor of zeros, except for `values` (nnz, *dense dimensions) at `indices` (sparse_dim,
    nnz).

    Made by `sparse_coo_tensor` and `x.to_sparse()`. Values with equal indices are summed by
    `coalesce`. `requires_grad`, `grad` and the graph are those of the values.

    >>> rushlight.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3))
    tensor(indices=tensor([[0, 1],
                           [2, 0]]),
           values=tensor([3., 4.]),
           size=(2, 3), nnz=2, layout=torch.sparse_coo)
    """

    _at: Tensor
    _of: Tensor
    _size: Size
    _sorted: bool

    @property
    def _array(self) -> Any:  # type: ignore[override]
        raise NotForSparse(
            explain(
                "Could not run this operation with arguments from the 'SparseCPU' backend: it is "
                "not supported for sparse tensors.",
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

    def _values(self) -> Tensor:
        """(nnz, *dense dimensions), as stored; outside the graph."""
        return self._of.detach()

    def indices(self) -> Tensor:
        """(sparse_dim, nnz) int64: the indices, unique and sorted. RuntimeError if the tensor is
        not coalesced."""
        return self._once("indices")._at

    def values(self) -> Tensor:
        """(nnz, *dense dimensions): the values at `indices()`. RuntimeError if the tensor is not
        coalesced."""
        return self._once("values")._of

    def _once(self, what: str) -> SparseTensor:
        if not self._sorted:
            raise RuntimeError(
                explain(
                    f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first",
                    f"x.coalesce().{what}()",
                )
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
            raise RuntimeError(
                explain(
                    f"a Tensor with {self.numel()} elements cannot be converted to Scalar",
                    "index one element, or reduce it (sum) first",
                    shape=tuple(self._size),
                )
            )
        return self.to_dense().item()

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(
            explain("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")
        )

    def tolist(self) -> Any:
        return self.to_dense().tolist()

    # -- autograd: the graph of the values ------------------------------------------------

    is_leaf = property(lambda self: self._of.is_leaf, doc="Whether no recorded op made its values.")
    grad_fn = property(
        lambda self: self._of.grad_fn, doc="The node of the op that made its values."
    )
    data = property(lambda self: self.detach(), doc="The same values outside the graph.")

    @property
    def requires_grad(self) -> bool:
        return self._of.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._of.requires_grad = value

    @property
    def grad(self) -> Any:
        """The gradient of each stored value; values that are summed into one element have the same
        gradient."""
        g = self._of.grad
        if g is None or self._sorted:
            return None if g is None else self.holding(g)
        at, where = unique_places(self._at._array, tuple(self._size[: self.sparse_dim()]))
        if where is None:
            return self.holding(g)
        first = np.unique(where, return_index=True)[1]
        return made(from_array(at), g[from_array(first)], self._size, True)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._of.grad = None if value is None else value._of  # type: ignore[attr-defined]

    def register_hook(self, hook: Callable) -> Any:
        return self._of.register_hook(lambda g: hook(self.holding(g)))

    def retain_grad(self) -> None:
        self._of.retain_grad()

    # -- the same places, other values -------------------------------------------------------------

    def holding(self, values: Tensor) -> SparseTensor:
        """A sparse tensor with the same indices and other values."""
        return made(
            self._at, values, (*self._size[: self.sparse_dim()], *values.shape[1:]), self._sorted
        )

    def coalesce(self) -> SparseTensor:
        """The tensor with unique, sorted indices and summed values; the tensor itself if it is
        coalesced."""
        if self._sorted:
            return self
        at, where = unique_places(self._at._array, tuple(self._size[: self.sparse_dim()]))
        if where is None:
            return made(self._at, self._of, self._size, True)
        total = new_zeros((at.shape[1], *self._of.shape[1:]), self._of)
        return made(
            from_array(at), total.index_add(0, from_array(where), self._of), self._size, True
        )

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor."""
        values = self._of if dtype is None else self._of.to(dtype)
        zeros = new_zeros(tuple(self._size), values)
        if self.sparse_dim() == 0:
            return zeros + values.sum(0)
        places = tuple(from_array(row) for row in self._at._array)
        return zeros.index_put(places, values, accumulate=not self._sorted)

    def to_sparse(
        self,
        sparse_dim: int | None = None,
        *,
        layout: Any = None,
        blocksize: Any = None,
        dense_dim: int | None = None,
    ) -> SparseTensor:
        """The tensor itself. NotImplementedError for other layouts or another number of sparse
        dimensions."""
        if layout not in (None, sparse_coo):
            return other_layout(self, layout)
        if sparse_dim not in (None, self.sparse_dim()):
            raise NotImplementedError(
                explain(
                    "to_sparse: the number of sparse dimensions of a sparse tensor stays; make it "
                    "dense "
                    "first, x.to_dense().to_sparse(n)"
                )
            )
        return self

    to_sparse_coo = to_sparse

    def to(self, *args: Any, **kwargs: Any) -> Any:
        return self.holding(self._of.to(*args, **kwargs))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the tensor's type in torch; with `dtype`, the tensor converted to that
        dtype."""
        if dtype is None:
            return f"torch.sparse.{self.dtype.scalar_type}Tensor"
        return self.holding(self._of.type(dtype))

    def copy_(self, other: Tensor, non_blocking: bool = False) -> SparseTensor:
        """Take over the indices and values of another tensor, converted to this tensor's dtype."""
        if not other.is_sparse or other.shape != self.shape:
            raise RuntimeError(
                explain(
                    "copy_() between dense and sparse Tensors is not implemented! Found self type "
                    "= "
                    f"{self.type()} and src type = {other.type()}"
                )
            )
        return self.become(other.to(self.dtype).clone())  # type: ignore[arg-type]

    def become(self, other: SparseTensor) -> SparseTensor:
        """Take over the indices and values of a tensor of the same size."""
        self._at, self._of, self._sorted = other._at, other._of, other._sorted
        return self

    def zero_(self) -> SparseTensor:
        """Remove all stored elements. Returns the tensor."""
        return self.become(self.emptied())

    def emptied(self, dtype: Any = None) -> SparseTensor:
        """An empty sparse tensor of the same size, outside the graph."""
        return made(
            self._at[:, :0], self._of[:0].detach().to(dtype or self.dtype), self._size, self._sorted
        )

    def resize_as_(self, the_template: Any, *, memory_format: Any = None) -> SparseTensor:
        """Take the size of another tensor. RuntimeError unless this tensor is empty, or the sizes
        are equal."""
        if self._nnz() and self._size != the_template.shape:
            raise RuntimeError(
                explain(
                    f"the size of a sparse tensor that stores values stays {tuple(self._size)}",
                    "call x.zero_() first, or create a new tensor with torch.sparse_coo_tensor",
                )
            )
        if self._size != the_template.shape:
            self.become(the_template.emptied(self.dtype))._size = the_template._size
        return self

    def clone(self, *, memory_format: Any = None) -> SparseTensor:
        """A copy, in the graph."""
        return made(self._at.clone(), self._of.clone(), self._size, self._sorted)

    def contiguous(self, memory_format: Any = None) -> SparseTensor:
        """The tensor itself."""
        return self

    # -- operators ---------------------------------------------------------------------------------

    def __getitem__(self, i: Any) -> Any:
        found = self
        for one in i if isinstance(i, tuple) else (i,):
            found = OPS["select"](found, 0, one) if found.is_sparse else found[one]
        return found

    def __iter__(self) -> Iterator:
        return iter(OPS["unbind"](self))

    def __matmul__(self, other: Any) -> Any:
        return OPS["matmul"](self, other) if isinstance(other, Tensor) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return OPS["matmul"](other, self)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return rebuilt, (self._at, self._of, tuple(self._size), self._sorted)

    def __deepcopy__(self, memo: dict) -> SparseTensor:
        from copy import deepcopy

        if id(self) not in memo:
            memo[id(self)] = made(
                deepcopy(self._at, memo), deepcopy(self._of, memo), self._size, self._sorted
            )
        return memo[id(self)]


def holder(name: str) -> Callable:
    """A method that applies the dense method `name` to the values."""

    def call(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        return self.holding(getattr(self._of, name)(*args, **kwargs))

    call.__name__, call.__doc__ = name, f"`{name}` of the values, at the same places."
    return call


for _name in (
    "float",
    "double",
    "half",
    "bfloat16",
    "long",
    "int",
    "short",
    "char",
    "byte",
    "bool",
    "cfloat",
    "cdouble",
    "detach",
    "cpu",
    "cuda",
    "pin_memory",
):
    setattr(SparseTensor, _name, holder(_name))


def made(at: Tensor, values: Tensor, size: Any, is_coalesced: bool = False) -> SparseTensor:
    """A sparse tensor of these parts, without checks."""
    t = new(SparseTensor)
    t._node, t._grad, t._viewing, t._writes = None, None, None, None
    t._at, t._of, t._size, t._sorted = at, values, Size(size), is_coalesced
    return t


def rebuilt(at: Tensor, values: Tensor, size: tuple, is_coalesced: bool) -> SparseTensor:
    """The sparse tensor from pickled parts. Called by pickle."""
    return made(at, values, size, is_coalesced)


def new_zeros(shape: tuple, like: Tensor) -> Any:
    return from_array(np.zeros(shape, like._array.dtype))


def unique_places(at: np.ndarray, size: tuple) -> tuple[np.ndarray, np.ndarray | None]:
    """(sorted unique indices, the position of each stored value among these); (indices, None) if
    already sorted unique."""
    if at.shape[1] == 0 or at.shape[0] == 0:
        return at[:, :1], None if at.shape[1] < 2 else np.zeros(at.shape[1], np.int64)
    flat = np.ravel_multi_index(tuple(at), size)
    if (flat[1:] > flat[:-1]).all():
        return at, None
    places, where = np.unique(flat, return_inverse=True)
    return as_int64(np.stack(np.unravel_index(places, size))), where


def other_layout(x: Any, layout: Any) -> Any:
    """A matrix in the layout torch.sparse_csr or torch.sparse_csc. NotImplementedError for another
    layout.
    """
    if layout is sparse_csr:
        return x.to_sparse_csr()
    if layout is sparse_csc:
        return x.to_sparse_csc()
    raise NotImplementedError(
        explain(
            f"sparse tensors of layout {layout} are not supported, only torch.sparse_coo",
            "omit layout=; for other formats use SciPy",
        )
    )
