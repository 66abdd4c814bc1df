"""Functions of sparse tensors: arithmetic, sums, softmax, shapes. All are composed of ops on the
values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.dtypes import bool_
from rushlight.base.errors import explain
from rushlight.base.intp import as_int64
from rushlight.core.arguments import wrap, wrap_all, wrap_new
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.views import check_dtype
from rushlight.ops.index import along_dim
from rushlight.ops.linalg import matmul
from rushlight.ops.math import elementwise
from rushlight.ops.math.arithmetic import div as dense_div
from rushlight.ops.math.arithmetic import scaled
from rushlight.ops.op_errors import MASKED
from rushlight.ops.reduce import reduce, vector_norm
from rushlight.ops.shape import views
from rushlight.ops.shape.views import cat as dense_cat
from rushlight.sparse.tensor import (
    OPS,
    SparseTensor,
    holder,
    made,
    new_zeros,
    offers,
    unique_places,
)

# Elementwise functions with f(0) = 0, so that only stored elements change. For a nonlinear f,
# duplicates are summed first.
KEEPING_ZERO = (
    "abs",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "erf",
    "erfinv",
    "expm1",
    "floor",
    "frac",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "log1p",
    "nan_to_num",
    "relu",
    "round",
    "sgn",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
)
LINEAR = ("conj", "conj_physical", "deg2rad", "neg", "positive", "rad2deg")


def of_values(name: str) -> Callable:
    """The op `name` on the values of the coalesced tensor."""

    def call(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        once = input.coalesce()
        return once.holding(getattr(once._of, name)(*args, **kwargs))

    call.__name__, call.__doc__ = name, f"`{name}` of the elements; zeros stay zeros."
    return call


OPS.update(
    {name: of_values(name) for name in KEEPING_ZERO} | {name: holder(name) for name in LINEAR}
)
for _name in (*KEEPING_ZERO, *LINEAR):
    setattr(SparseTensor, _name, OPS[_name])


@offers(reduce.any)
def any_(input: SparseTensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any element is not 0."""
    if dim is not None:
        raise NotImplementedError(
            explain(
                "any of a sparse tensor over some dimensions is not supported: use "
                "x.to_dense().any(dim)"
            )
        )
    return input.coalesce()._of.any()


@offers(elementwise.floor_divide)
def floor_divide(input: SparseTensor, other: Any) -> SparseTensor:
    """floor(input / other), for a number `other`."""
    return div(input, other, rounding_mode="floor")


@offers(elementwise.pow)
def power(input: SparseTensor, exponent: Any) -> SparseTensor:
    """input ** exponent, for a positive exponent: zeros stay zeros."""
    if not isinstance(exponent, (int, float)) or exponent <= 0:
        raise RuntimeError(
            explain(
                "pow of a sparse tensor needs a positive number: other powers of 0 are not 0",
                "x.to_dense()",
            )
        )
    once = input.coalesce()
    return once.holding(once._of**exponent)


# -- arithmetic ------------------------------------------------------------------------------------


@offers(elementwise.add)
def add(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """input + alpha other: sparse for two sparse tensors of one size, dense for a dense input and a
    sparse other."""
    if isinstance(other, Tensor) and other.is_sparse and (alpha != 1 or alpha is True):
        other = scaled(input, other, alpha)
    if not input.is_sparse:
        zeros = input.expand(other.shape) if input.ndim else input
        return zeros + other.to_dense()
    if not isinstance(other, Tensor) or not other.is_sparse:
        raise RuntimeError(
            explain(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead.",
                "dense + sparse is dense; sparse * number is sparse",
            )
        )
    a, b = input, other
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(
            explain(
                f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != "
                f"{list(b.shape)}"
            )
        )
    both: SparseTensor = cat([a, b], 0, stacked=True).coalesce()
    return made(both._at, both._of, a.shape, a._sorted and b._sorted)  # type: ignore[attr-defined]


@offers(elementwise.sub)
def sub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """input - alpha other, with the operands of `add`."""
    if not isinstance(other, Tensor):
        return add(input, -other, alpha=alpha)  # raises add's error
    if bool_ in (input.dtype, other.dtype):
        raise RuntimeError(explain(MASKED))
    return add(input, other, alpha=-alpha)  # not -other, which wraps around for uint8


@offers(elementwise.mul)
def mul(input: Any, other: Any) -> SparseTensor:
    """input * other, elementwise; other: a number, a dense tensor that broadcasts to input's size,
    or a sparse tensor."""
    if not (isinstance(input, Tensor) and input.is_sparse):
        input, other = other, input
    if not isinstance(other, Tensor) or other.ndim == 0 and not other.is_sparse:
        return input.holding(input._of * other)
    if not other.is_sparse:
        return input.holding(input._of * seen(other, input))
    a, b = input.coalesce(), other.coalesce()
    if a.shape != b.shape:
        raise RuntimeError(
            explain(f"mul operands have incompatible sizes {list(a.shape)} and {list(b.shape)}")
        )
    size = tuple(a.shape[: a.sparse_dim()])
    flat = [np.ravel_multi_index(tuple(t._at._array), size) for t in (a, b)]
    _, of_a, of_b = np.intersect1d(flat[0], flat[1], assume_unique=True, return_indices=True)
    values = a._of[from_array(of_a)] * b._of[from_array(of_b)]
    return made(from_array(a._at._array[:, of_a]), values, a.shape, True)


@offers(elementwise.div)
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
    """input / other, for a number or a tensor of one element."""
    if isinstance(other, Tensor) and (other.is_sparse or other.numel() != 1):
        raise RuntimeError(
            explain(
                "Sparse division requires a scalar or zero-dim dense tensor divisor",
                "mul by the reciprocal of a dense tensor",
            )
        )
    divisor = other.reshape(()) if isinstance(other, Tensor) else other
    return input.holding(dense_div(input._of, divisor, rounding_mode=rounding_mode))


def in_place(name: str) -> Callable:
    """The in-place method of the op `name`."""

    def call(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        result = OPS[name](self, *args, **kwargs)
        check_dtype(self._of, result._of, name + "_")
        return self.become(result.to(self.dtype))

    call.__name__, call.__doc__ = name + "_", f"`{name}` in place."
    return call


for _name in ("add", "sub", "mul", "div", *KEEPING_ZERO, *LINEAR):
    if hasattr(Tensor, _name + "_"):  # isnan has no in-place method
        setattr(SparseTensor, _name + "_", in_place(_name))


def seen(dense: Tensor, by: SparseTensor) -> Tensor:
    """The elements of a dense tensor at the places that a sparse tensor stores."""
    try:
        whole = dense.expand(by.shape)
    except RuntimeError:
        raise RuntimeError(
            explain(
                f"mul: a dense tensor of {list(dense.shape)} does not broadcast to the sparse "
                "tensor's "
                f"{list(by.shape)}"
            )
        ) from None
    return whole[tuple(from_array(row) for row in by._at._array)]


# -- sums ------------------------------------------------------------------------------------------


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or over dimensions `dim`: sparse, unless no sparse dimension is
    left.

    >>> rushlight.sparse.sum(rushlight.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    if not input.is_sparse:
        raise RuntimeError(explain("sparse.sum is for sparse tensors", "x.sum()"))
    values = input._of if dtype is None else input._of.to(dtype)
    if dim is None:
        return values.sum()
    n = input.sparse_dim()
    dims = wrap_all(dim, input.ndim)
    inner = tuple(d - n + 1 for d in dims if d >= n)
    if inner:
        values = values.sum(inner)
    kept = [d for d in range(n) if d not in dims]
    if not kept:
        return values.sum(0)
    size = (*(input.shape[d] for d in kept), *values.shape[1:])
    return made(
        from_array(input._at._array[kept]), values, size, len(kept) == n and input._sorted
    ).coalesce()


@offers(reduce.sum)
def summed(
    input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The sum, with the signature of dense tensors: with `keepdim` summed dimensions stay, with
    size 1."""
    made_of = sum(input, dim, dtype)
    for d in sorted(wrap_all(dim, input.ndim)) if keepdim and dim is not None else ():
        made_of = made_of.unsqueeze(d)
    return made_of


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """exp(x) / sum of exp(x) over the stored elements in `dim`: elements that are not stored count
    as -inf.

    >>> a = rushlight.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], [1., 1., 5.])
    >>> rushlight.sparse.softmax(a, 1).values()
    tensor([0.5000, 0.5000, 1.0000])
    """
    return through_rows(input, dim, dtype, logarithm=False)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """x_i - log of the sum of exp(x_j) over the stored elements in `dim`: the logarithm of
    `softmax`.

    >>> a = rushlight.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], [1., 1., 5.])
    >>> rushlight.sparse.log_softmax(a, 1).values()
    tensor([-0.6931, -0.6931,  0.0000])
    """
    return through_rows(input, dim, dtype, logarithm=True)


def through_rows(input: SparseTensor, dim: int, dtype: Any, logarithm: bool) -> SparseTensor:
    """softmax, or its logarithm, over groups of stored elements whose indices differ in `dim`
    only."""
    x = input.coalesce()
    values = x._of if dtype is None else x._of.to(dtype)
    d, n = wrap(dim, x.ndim), x.sparse_dim()
    if d >= n:
        along = d - n + 1
        return x.holding(values.log_softmax(along) if logarithm else values.softmax(along))
    others = [i for i in range(n) if i != d]
    places = x._at._array[others]
    _, row = (
        unique_places(places, tuple(x.shape[i] for i in others))
        if others
        else (None, np.zeros(x._nnz(), np.int64))
    )
    if row is None:  # each group has one element
        row = np.arange(x._nnz())
    row_of, rows = from_array(row), int(row.max(initial=-1)) + 1
    index = row_of.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
    least = new_zeros((rows, *values.shape[1:]), values)
    top = least.scatter_reduce(0, index, values.detach(), "amax", include_self=False)
    shifted = values - top[row_of]
    total = least.index_add(0, row_of, shifted.exp())[row_of]
    return x.holding(shifted - total.log() if logarithm else shifted.exp() / total)


# -- shapes ----------------------------------------------------------------------------------------


@offers(views.transpose)
def transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """Swap two dimensions, both sparse or both dense."""
    order = list(range(input.ndim))
    a, b = wrap(dim0, input.ndim), wrap(dim1, input.ndim)
    order[a], order[b] = order[b], order[a]
    return permute(input, *order)


def permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    """Reorder the dimensions; sparse dimensions must stay before dense ones."""
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order, n = [d % input.ndim for d in given], input.sparse_dim()
    if sorted(order) != list(range(input.ndim)) or sorted(order[:n]) != list(range(n)):
        raise RuntimeError(
            explain(
                f"permute({tuple(given)}) of a sparse tensor with {n} sparse of {input.ndim} "
                "dimensions: "
                "sparse dimensions must stay before dense ones"
            )
        )
    values = input._of.permute(0, *(d - n + 1 for d in order[n:]))
    size = [input.shape[d] for d in order]
    return made(
        from_array(input._at._array[order[:n]]),
        values,
        size,
        order[:n] == list(range(n)) and input._sorted,
    )


def t(input: SparseTensor) -> SparseTensor:
    """The transpose of a matrix; a vector unchanged."""
    if input.ndim > 2:
        raise RuntimeError(
            explain(
                "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but it is "
                f"{input.ndim}D",
                "x.transpose(0, 1)",
            )
        )
    return transpose(input, 0, 1) if input.ndim == 2 else input


@offers(views.select)
def select(input: SparseTensor, dim: int, index: Any) -> Any:
    """The slice at one index of a sparse dimension."""
    if not isinstance(index, int) or isinstance(index, bool):
        raise NotImplementedError(
            explain(
                "indexing a sparse tensor takes one integer",
                "x.to_dense()[...], or x.index_select(dim, indices)",
            )
        )
    d = wrap(dim, input.ndim)
    if not -input.shape[d] <= index < input.shape[d]:
        raise IndexError(
            explain(
                f"select(): index {index} out of range for tensor of size {list(input.shape)} at "
                "dimension "
                f"{d}"
            )
        )
    if d >= input.sparse_dim():
        return input.holding(input._of.select(d - input.sparse_dim() + 1, index))
    here = from_array(as_int64(np.flatnonzero(input._at._array[d] == index % input.shape[d])))
    values, rest = input._of[here], [i for i in range(input.sparse_dim()) if i != d]
    if not rest:
        return values.sum(0)
    size = [n for i, n in enumerate(input.shape) if i != d]
    return made(from_array(input._at._array[rest][:, here._array]), values, size, input._sorted)


@offers(along_dim.index_select)
def index_select(input: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The slices at several indices of a sparse dimension, in their order."""
    d = wrap(dim, input.ndim)
    if d >= input.sparse_dim():
        return input.holding(input._of.index_select(d - input.sparse_dim() + 1, index))
    wanted, own = index._array, input._at._array[d]
    if wanted.size and not (-input.shape[d] <= wanted.min() and wanted.max() < input.shape[d]):
        raise IndexError(
            explain(
                f"index_select(): index out of range for dimension {d} of size {input.shape[d]}"
            )
        )
    places, found = np.nonzero(own[:, None] == wanted % input.shape[d])
    at = input._at._array[:, places].copy()
    at[d] = found
    size = [len(wanted) if i == d else n for i, n in enumerate(input.shape)]
    chosen = made(from_array(at), input._of[from_array(places)], size)
    return chosen.coalesce() if input._sorted else chosen


def unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    """A new sparse dimension of size 1."""
    d = dim % (input.ndim + 1)
    if d > input.sparse_dim():
        return input.holding(input._of.unsqueeze(d - input.sparse_dim() + 1))
    at = np.insert(input._at._array, d, 0, axis=0)
    return made(from_array(at), input._of, (*input.shape[:d], 1, *input.shape[d:]), input._sorted)


@offers(views.cat)
def cat(tensors: list[Any], dim: int = 0, stacked: bool = False) -> SparseTensor:
    """Concatenate along a sparse dimension. `stacked`: keep all at the same indices, so that they
    add up."""
    first = tensors[0]
    d = wrap(dim, first.ndim)
    check_alike(tensors, d)
    offset, places = 0, []
    for one in tensors:
        at = one._at._array.copy()
        at[d] += offset
        offset += 0 if stacked else one.shape[d]
        places.append(at)
    size = [offset if i == d and not stacked else n for i, n in enumerate(first.shape)]
    return made(
        from_array(np.concatenate(places, 1)), dense_cat([one._of for one in tensors], 0), size
    )


def check_alike(tensors: list[Any], d: int) -> None:
    """RuntimeError unless all tensors are sparse, with equal sizes except in the sparse dimension
    d."""
    for i, one in enumerate(tensors):
        if not one.is_sparse:
            raise RuntimeError(
                explain(
                    f"Concatenating sparse tensors, but a dense tensor was found at position {i}.",
                    "convert it: x.to_sparse()",
                )
            )
        others = [tuple(n for i, n in enumerate(t.shape) if i != d) for t in (tensors[0], one)]
        if one.sparse_dim() != tensors[0].sparse_dim() or others[0] != others[1]:
            raise RuntimeError(
                explain(
                    "All tensors must have the same shape (except in the concatenating "
                    "dimension), and "
                    f"as many sparse dimensions, but got {list(tensors[0].shape)} and "
                    f"{list(one.shape)}"
                )
            )
        if d >= one.sparse_dim():
            raise NotImplementedError(
                explain(
                    f"cat along dimension {d} of sparse tensors, which is dense, is not supported",
                    "x.to_dense()",
                )
            )


@offers(views.stack)
def stack(tensors: list[Any], dim: int = 0) -> SparseTensor:
    """Stack along a new sparse dimension."""
    return cat(
        [one.unsqueeze(dim) if one.is_sparse else one for one in tensors],
        wrap_new(dim, tensors[0].ndim),
    )


@offers(views.unbind)
def unbind(input: SparseTensor, dim: int = 0) -> tuple:
    """The slices along a dimension."""
    return tuple([select(input, dim, i) for i in range(input.shape[wrap(dim, input.ndim)])])


def narrow_copy(input: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """The slices from `start` on, `length` of them."""
    d = wrap(dim, input.ndim)
    if not 0 <= start <= input.shape[d] or not 0 <= length <= input.shape[d] - start:
        raise RuntimeError(
            explain(
                "Invalid range to narrow. range(start, start+length) must be a subset of range(0, "
                f"{input.shape[d]}).",
                start=start,
                length=length,
            )
        )
    if d >= input.sparse_dim():
        return input.holding(input._of.narrow(d - input.sparse_dim() + 1, start, length))
    at = input._at._array
    inside = np.flatnonzero((at[d] >= start) & (at[d] < start + length))
    at = at[:, inside]
    at[d] -= start
    size = [length if i == d else n for i, n in enumerate(input.shape)]
    return made(from_array(at), input._of[from_array(inside)], size, input._sorted)


@offers(matmul.linear)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input weight^T + bias, where input or weight is a sparse matrix."""
    made_of = OPS["matmul"](input, weight.t())
    return made_of if bias is None else made_of + bias


def norm(
    input: SparseTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of all elements."""
    if dim is not None:
        raise NotImplementedError(
            explain(
                "norm of a sparse tensor over some dimensions is not supported: use "
                "x.to_dense().norm(p, dim)"
            )
        )
    return input.coalesce()._of.norm(p)


@offers(vector_norm.vector_norm)
def length(input: SparseTensor, p: float, axes: tuple | None, keepdim: bool = False) -> Tensor:
    """The vector norm that `torch.norm` calls."""
    return norm(input, p, axes, keepdim)


def attach() -> None:
    """Attach these functions as methods and operators of sparse tensors."""
    for name, f in {
        "add": add,
        "sub": sub,
        "mul": mul,
        "div": div,
        "pow": power,
        "sum": summed,
        "transpose": transpose,
        "permute": permute,
        "t": t,
        "select": select,
        "index_select": index_select,
        "unsqueeze": unsqueeze,
        "norm": norm,
        "any": any_,
        "floor_divide": floor_divide,
        "__floordiv__": floor_divide,
        "unbind": unbind,
        "narrow_copy": narrow_copy,
        "__add__": add,
        "__sub__": sub,
        "__mul__": mul,
        "__truediv__": div,
        "__pow__": power,
        "__neg__": OPS["neg"],
        "__abs__": OPS["abs"],
        "__rmul__": mul,
        "multiply": mul,
        "true_divide": div,
        "__radd__": lambda self, other: add(other, self),
        "mm": OPS["mm"],
        "mv": OPS["mv"],
        "bmm": OPS["bmm"],
        "__rsub__": lambda self, other: sub(other, self),
        "matmul": OPS["matmul"],
        "spmm": OPS["matmul"],
    }.items():
        setattr(SparseTensor, name, f)
    for name in ("T", "mT"):
        setattr(
            SparseTensor, name, property(lambda self: transpose(self, -2, -1), doc="The transpose.")
        )
