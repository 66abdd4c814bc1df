"""Functions of sparse tensors: arithmetic, sums, softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.dtypes import bool_
from rushlight.base.errors import not_implemented_error, runtime_error
from rushlight.core.arguments import wrap, wrap_dims
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.views import check_dtype
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.linalg import matmul
from rushlight.ops.math import elementwise
from rushlight.ops.math.arithmetic import div as dense_div
from rushlight.ops.math.arithmetic import scaled
from rushlight.ops.op_errors import MASKED
from rushlight.ops.reduce import reduce, vector_norm
from rushlight.ops.shape.views import cat as dense_cat
from rushlight.sparse.graph import is_dense, linked
from rushlight.sparse.hybrid_products import smm, sspaddmm
from rushlight.sparse.tensor import OPS, SparseTensor, made, new_zeros, offers, picked, unique_places, with_values

# Elementwise functions with f(0) = 0, so that only stored elements change. For a nonlinear f, duplicates are summed
# first.
KEEPING_ZERO = """\
    abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p nan_to_num
    rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh trunc"""
LINEAR = "conj conj_physical neg positive"


def of_values(name: str) -> Callable:
    """The op `name` on the values of the coalesced tensor."""

    def call(input: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        x = input.coalesce()
        return x.holding(getattr(x.elements(), name)(*args, **kwargs))

    call.__name__, call.__doc__ = name, f"`{name}` of the elements; zeros stay zeros."
    return call


def linear_op(name: str) -> Callable:
    """A linear op on the values: the gradient goes through the same op."""
    node = "".join(map(str.title, name.split("_"))) + "Backward"

    def call(input: SparseTensor) -> SparseTensor:
        values = getattr(input._of, name)()
        if values is input._of:  # conj of real numbers
            return input
        result = made(input._at, values, input._size, input._sorted)
        return linked(result, node, [(input, lambda g: getattr(g, name)())])

    call.__name__, call.__doc__ = name, f"`{name}` of the values, at the same places."
    return call


UNARY = {name: of_values(name) for name in KEEPING_ZERO.split()} | {name: linear_op(name) for name in LINEAR.split()}
OPS.update(UNARY)
for _name, _op in UNARY.items():
    setattr(SparseTensor, _name, _op)


@offers(reduce.any)
def any_(input: SparseTensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any element is not 0."""
    if dim is not None:
        raise not_implemented_error(
            "any of a sparse tensor over some dimensions is not supported: use x.to_dense().any(dim)"
        )
    return input.summed_up()._of.any()


@offers(elementwise.floor_divide)
def floor_divide(input: SparseTensor, other: Any) -> SparseTensor:
    """floor(input / other), for a number `other`."""
    return div(input.coalesce(), other, rounding_mode="floor")


@offers(elementwise.pow)
def power(input: SparseTensor, exponent: Any) -> SparseTensor:
    """input ** exponent, for a positive exponent: zeros stay zeros."""
    if not isinstance(exponent, (int, float)) or exponent <= 0:
        raise runtime_error(
            "pow of a sparse tensor needs a positive number: other powers of 0 are not 0", "x.to_dense()"
        )
    x = input.coalesce()
    return x.holding(x.elements() ** exponent)


# -- arithmetic ------------------------------------------------------------------------------------


@offers(elementwise.add)
def add(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """input + alpha other: sparse for two sparse tensors of one size, dense for a dense input and a sparse other."""
    if not (isinstance(input, Tensor) and isinstance(other, Tensor) and other.is_sparse):
        raise runtime_error(
            "add(sparse, dense) is not supported. Use add(dense, sparse) instead.",
            "dense + sparse is dense; sparse * number is sparse",
        )
    with no_grad():
        added: Any = other.detach()
        if alpha != 1 or alpha is True:
            added = scaled(input, added, alpha)
        total = sparse_sum(input, added) if input.is_sparse else dense_sum(input, added)  # type: ignore[arg-type]
    return linked(total, "AddBackward", [(input, lambda g: g), (other, lambda g: times(g, alpha))])


def times(g: Tensor, factor: Any) -> Tensor:
    """g times the conjugate of a number; g itself if the number is 1."""
    return g if factor == 1 else g * factor.conjugate()


def dense_sum(input: Tensor, other: SparseTensor) -> Tensor:
    """dense + sparse, outside the graph."""
    return (input.expand(other.shape) if input.ndim else input) + other.to_dense()


def sparse_sum(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The sum of two sparse tensors of one size, outside the graph."""
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        raise runtime_error(
            f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}"
        )
    at = from_array(np.concatenate((a._at._array, b._at._array), 1))
    both = made(at, dense_cat([a._of, b._of], 0), a._size).coalesce()
    return made(both._at, both._of, a._size, a._sorted and b._sorted)


@offers(elementwise.sub)
def sub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """input - alpha other, with the operands of `add`."""
    if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        raise runtime_error(
            "sub: expected 'self' and 'other' to be tensors of the same size",
            "sparse - number would be dense: x.to_dense() - 1",
        )
    if bool_ in (input.dtype, other.dtype):
        raise runtime_error(MASKED)
    return add(input, other, alpha=-alpha)  # not -other, which wraps around for uint8


@offers(elementwise.mul, elementwise.multiple)
def mul(input: Any, other: Any) -> SparseTensor:
    """input * other, elementwise; other: a number, a dense tensor that broadcasts to input's size, or a sparse
    tensor."""
    if not (isinstance(input, Tensor) and input.is_sparse):
        input, other = other, input
    if not isinstance(other, Tensor):
        scaled = made(input._at, input._of * other, input._size, input._sorted)
        return linked(scaled, "MulBackward", [(input, lambda g: times(g, other))])
    with no_grad():
        multiply: Any = product_of if other.is_sparse else scaled_by
        result = multiply(input, other)
    saved = other if input._node is not None else None, input if other._node is not None else None

    def to_other(g: Tensor, _: Any, x: Tensor) -> Tensor:
        found = g * conj(x)
        if not other.ndim:
            return found.sum()
        return found if found.shape == other.shape else found.to_dense(masked_grad=False)

    sources = [(input, lambda g, y, _: g * conj(y)), (other, to_other)]
    return linked(result, "MulBackward", sources, *saved)


def conj(t: Tensor) -> Tensor:
    return t.conj() if t.is_complex() else t


def scaled_by(input: SparseTensor, other: Tensor) -> SparseTensor:
    """A sparse tensor times a dense one that broadcasts to its size, outside the graph."""
    factor = elements_at(other, input) if other.ndim else other
    return made(input._at, input._of * factor, input._size, input._sorted)


def product_of(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The elementwise product of two sparse tensors, outside the graph."""
    coalesced = a._sorted and b._sorted
    a, b = a.summed_up(), b.summed_up()
    if a.shape != b.shape:
        raise runtime_error(f"mul operands have incompatible sizes {list(a.shape)} and {list(b.shape)}")
    size = tuple(a.shape[: a.sparse_dim()])
    flat = [np.ravel_multi_index(tuple(t._at._array), size) for t in (a, b)]
    _, of_a, of_b = np.intersect1d(flat[0], flat[1], assume_unique=True, return_indices=True)
    values = a._of[from_array(of_a)] * b._of[from_array(of_b)]
    return made(from_array(a._at._array[:, of_a]), values, a.shape, coalesced)


@offers(elementwise.div)
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
    """input / other, for a number or a tensor of one element."""
    if isinstance(other, Tensor) and (other.is_sparse or other.numel() != 1):
        raise runtime_error(
            "Sparse division requires a scalar or zero-dim dense tensor divisor",
            "mul by the reciprocal of a dense tensor",
        )
    with no_grad():
        divisor = other.reshape(()) if isinstance(other, Tensor) else other
        values = dense_div(input._of, divisor, rounding_mode=rounding_mode)
    result = made(input._at, values, input._size, input._sorted)
    if rounding_mode is not None:
        sources = [(t, lambda g: g * 0) for t in (input, other) if isinstance(t, Tensor)]
        return linked(result, "DivBackward", sources[:1])
    if not isinstance(other, Tensor):
        return linked(result, "DivBackward", [(input, lambda g: g / complex_conj(other))])
    return linked(
        result,
        "DivBackward",
        [(input, lambda g, x, y: g / conj(y)), (other, lambda g, x, y: (-g * conj(x / y / y)).sum().reshape(y.shape))],
        input,
        other,
    )


def complex_conj(number: Any) -> Any:
    return number.conjugate() if isinstance(number, complex) else number


def in_place(name: str) -> Callable:
    """The in-place method of the op `name`."""

    def call(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        result = OPS[name](self, *args, **kwargs)
        check_dtype(self._of, result._of, name + "_")
        self.become(result.to(self.dtype))
        return self._coalesced_(False) if name == "mul" else self  # not coalesced, as in torch

    call.__name__, call.__doc__ = name + "_", f"`{name}` in place."
    return call


for _name in ("add", "sub", "mul", "div", *UNARY):
    if hasattr(Tensor, _name + "_"):  # isnan has no in-place method
        setattr(SparseTensor, _name + "_", in_place(_name))


def elements_at(dense: Tensor, sparse: SparseTensor) -> Tensor:
    """The elements of a dense tensor, broadcast, at the indices of a sparse tensor."""
    try:
        whole = dense.expand(sparse.shape)
    except RuntimeError:
        raise runtime_error(
            f"mul: a dense tensor of {list(dense.shape)} does not broadcast to the sparse tensor's {list(sparse.shape)}"
        ) from None
    return whole[tuple(from_array(row) for row in sparse._at._array)]


# -- sums ------------------------------------------------------------------------------------------


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of all elements, or over dimensions `dim`: sparse, unless no sparse dimension is left.

    >>> rushlight.sparse.sum(rushlight.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    if not input.is_sparse:
        raise runtime_error("sparse.sum is for sparse tensors", "x.sum()")
    values = input.elements() if dtype is None else input.elements().to(dtype)
    if dim is None:
        return values.sum()
    n = input.sparse_dim()
    dims = wrap_dims(dim, input.ndim)
    inner = tuple(d - n + 1 for d in dims if d >= n)
    if inner:
        values = values.sum(inner)
    kept = [d for d in range(n) if d not in dims]
    if not kept:
        return values.sum(0)
    size = (*(input.shape[d] for d in kept), *values.shape[1:])
    return with_values(from_array(input._at._array[kept]), values, size, len(kept) == n and input._sorted).coalesce()


@offers(reduce.sum)
def summed(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum, with the signature of dense tensors: with `keepdim` summed dimensions stay, with size 1."""
    dims = sorted(range(input.ndim) if dim is None else wrap_dims(dim, input.ndim))
    found = sum(input.detach(), dim, dtype)
    kept = keepdim and dim is not None
    for d in dims if kept else ():
        found = found.unsqueeze(d)

    def back(g: Tensor) -> Tensor:
        for d in () if kept or not g.ndim else dims:
            g = g.unsqueeze(d)
        return g.expand(input.shape) if is_dense(g) else at_stored(g, dims, input)

    return linked(found, "SumBackward", [(input, back)])


def at_stored(g: Any, dims: list[int], input: SparseTensor) -> SparseTensor:
    """The gradient at the elements that `input` stores, from a sparse gradient of the sum with size 1 in `dims`."""
    x = input.summed_up()
    at = x._at._array.copy()
    at[[d for d in dims if d < len(at)]] = 0
    values = picked(g, from_array(at)).expand(x._of.shape)
    return with_values(x._at, values, x._size, True)


def softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """exp(x) / sum of exp(x) over the stored elements in `dim`: elements that are not stored count as -inf.

    >>> a = rushlight.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], [1., 1., 5.])
    >>> rushlight.sparse.softmax(a, 1).values()
    tensor([0.5000, 0.5000, 1.0000])
    """
    return through_rows(input, dim, dtype, logarithm=False)


def log_softmax(input: SparseTensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """x_i - log of the sum of exp(x_j) over the stored elements in `dim`: the logarithm of `softmax`.

    >>> a = rushlight.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], [1., 1., 5.])
    >>> rushlight.sparse.log_softmax(a, 1).values()
    tensor([-0.6931, -0.6931,  0.0000])
    """
    return through_rows(input, dim, dtype, logarithm=True)


def through_rows(input: SparseTensor, dim: int, dtype: Any, logarithm: bool) -> SparseTensor:
    """softmax, or its logarithm, over groups of stored elements whose indices differ in `dim` only."""
    x = input.coalesce()
    values = x.elements() if dtype is None else x.elements().to(dtype)
    d, n = wrap(dim, x.ndim), x.sparse_dim()
    if d >= n:
        along = d - n + 1
        return x.holding(values.log_softmax(along) if logarithm else values.softmax(along))
    others = [i for i in range(n) if i != d]
    places = x._at._array[others]
    row = unique_places(places, tuple(x.shape[i] for i in others))[1] if others else np.zeros(x._nnz(), np.int64)
    if row is None:  # each group has one element
        row = np.arange(x._nnz())
    row_of, rows = from_array(row), int(row.max(initial=-1)) + 1
    index = row_of.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
    least = new_zeros((rows, *values.shape[1:]), values)
    top = least.scatter_reduce(0, index, values.detach(), "amax", include_self=False)
    shifted = values - top[row_of]
    total = least.index_add(0, row_of, shifted.exp())[row_of]
    return x.holding(shifted - total.log() if logarithm else shifted.exp() / total)


@offers(matmul.linear)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input weight^T + bias, where input or weight is a sparse matrix."""
    product = OPS["matmul"](input, weight.t())
    return product if bias is None else product + bias


def norm(input: SparseTensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of all elements."""
    if dim is not None:
        raise not_implemented_error(
            "norm of a sparse tensor over some dimensions is not supported: use x.to_dense().norm(p, dim)"
        )
    return input.coalesce().elements().norm(p)


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
        "norm": norm,
        "smm": smm,
        "sspaddmm": sspaddmm,
        "any": any_,
        "floor_divide": floor_divide,
        "__floordiv__": floor_divide,
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
