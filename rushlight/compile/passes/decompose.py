"""Decomposition of ops into parts that fuse better: softmax becomes a maximum, an exponential, a sum and a quotient,
and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.compile.graph import Call, Graph, Store, Value, substitute, values_in
from rushlight.core.table import TABLE, Op, entries
from rushlight.fast.formula import Step, inputs, needed, on_steps
from rushlight.kernels.shape import keys_of
from rushlight.ops.index import along_dim
from rushlight.ops.linalg import matmul
from rushlight.ops.math.elementwise import add, bitwise_and, div, eq, mul, ne, neg, rsqrt, sub, where
from rushlight.ops.nn import loss, normalization
from rushlight.ops.reduce import reduce
from rushlight.ops.shape import views
from rushlight.ops.shape.views import getitem, reshape, to, transpose

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
REDUCTIONS = entries(reduce.sum, reduce.amax, reduce.amin)

# op -> (the function that writes a call as simpler calls, the predicate for calls that it may rewrite)
PARTS: dict[Op, tuple[Callable, Callable[[Call], bool]]] = {}


def parts(op: Any, suits: Callable[[Call], bool] = lambda step: True) -> Callable[[Callable], Callable]:
    """The decorated function writes a call of `op` in parts, if `suits(call)`."""

    def register(function: Callable) -> Callable:
        PARTS[op.op] = function, suits
        return function

    return register


class Builder:
    """Appends calls of ops. The caller gives each op as its public function, with the shape and dtype of the result."""

    def __init__(self, like: Call):
        self.steps: list[Call] = []
        self.line, self.late, self.origin = like.line, like.late, like.origin

    def call(self, op: Any, *args: Any, shape: tuple, dtype: np.dtype | None = None) -> Value:
        first = next(a for a in args if isinstance(a, Value))
        out = Value(np.broadcast_to(np.zeros((), dtype or first.dtype), shape))
        name = getattr(op, "op", op).name
        self.steps.append(Call(name, args, (out,), self.line, self.late, None, self.origin))
        return out

    def element(self, op: Any, *args: Any, dtype: np.dtype | None = None) -> Value:
        """An elementwise op; Python numbers become constants of the first value's dtype."""
        first = next(a for a in args if isinstance(a, Value))
        whole = tuple(a if isinstance(a, Value) else Value(np.asarray(a, first.dtype), "constant") for a in args)
        return self.call(op, *whole, shape=np.broadcast_shapes(*(a.shape for a in whole)), dtype=dtype)

    def where(self, c: Value, x: Value, y: float) -> Value:
        other = Value(np.asarray(y, x.dtype), "constant")
        return self.call(where, c, x, other, shape=np.broadcast_shapes(c.shape, x.shape), dtype=x.dtype)

    def check(self, name: str, *args: Any) -> None:
        """A check of the data, which raises eager's error."""
        self.steps.append(Call(name, args, (), self.line, self.late, None, self.origin))

    def kept(self, target: Value, classes: int, ignore_index: int) -> Value:
        """True where the column is the target class of the row, and the row is not ignored. `target`: shape (N,)."""
        column = self.call(reshape, target, (*target.shape, 1), shape=(*target.shape, 1))
        found = chosen(self, column, classes)
        if 0 <= ignore_index < classes:
            found = self.element(bitwise_and, found, self.element(ne, column, ignore_index, dtype=np.dtype(bool)))
        return found

    def count(self, target: Value, ignore_index: int, dtype: np.dtype) -> Value:
        """The number of rows that are not ignored, in a real dtype."""
        valid = self.element(ne, target, ignore_index, dtype=np.dtype(bool))
        return self.reduce(
            reduce.sum, self.call(to, valid, dtypes.of(dtype), shape=target.shape, dtype=dtype), None, False
        )

    def reduce(self, op: Callable, x: Value, dims: tuple | None, keepdim: bool = True) -> Value:
        dims = tuple(range(len(x.shape))) if dims is None else dims
        shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape) if keepdim or i not in dims)
        return self.call(op, x, dims, keepdim, shape=shape)


# -- predicates for calls --------------------------------------------------------------------------


def has_dims(step: Call) -> bool:
    return len(step.args[0].shape) > 0


def has_variance(step: Call) -> bool:
    """False if the divisor is 0: the variance is then inf or nan, which only the kernel gives."""
    x, _, correction = step.args
    return has_dims(step) and x.size // step.outs[0].size > correction


def around_a_dimension(step: Call) -> bool:
    """Whether the first and the last dimensions are summed, and one between them is kept."""
    x, dims = step.args[:2]
    last = trailing(dims or (), len(x.shape))
    return bool(last) and 0 in dims and len(last) < len(dims)


def trailing(dims: tuple, n: int) -> tuple:
    """The suffix of the reduced dimensions: (0, 2, 3) of 4 -> (2, 3)."""
    return tuple([d for d in range(n) if all([k in dims for k in range(d, n)])])


def one_dtype(step: Call) -> bool:
    dtype = step.args[0].dtype
    return all(v.dtype == dtype for v in (*values_in(step.args), *step.outs))


def is_layer(step: Call) -> bool:
    x, *others = step.args
    return len(x.shape) >= 2 and all(v.dtype == x.dtype for v in others if v is not None)


def shares_matrix(step: Call) -> bool:
    """Whether many matrices have the same second factor."""
    x, y = step.args
    return len(x.shape) > 2 and len(y.shape) == 2 and y.dtype == x.dtype


def one_a_row(step: Call) -> bool:
    """Whether an index picks one column in each row of a matrix."""
    x, index, dim = step.args[0], step.args[1], step.args[-1]
    return len(x.shape) == 2 and dim == 1 and index.dtype == np.int64 and index.shape == (x.shape[0], 1)


def one_a_row_of_zeros(step: Call) -> bool:
    x, index, source, _ = step.args
    return one_a_row(step) and uniform_zero(x) and source.shape == index.shape


def by_classes(step: Call, classes: Value) -> bool:
    """Whether a loss of rows of `classes` has no weights, and is reduced."""
    target, weight, reduction = step.args[1], step.args[2], step.args[-1]
    return len(classes.shape) == 2 and target.dtype == np.int64 and weight is None and reduction != "none"


def uniform_zero(v: Value) -> bool:
    return v.kind == "constant" and not v._array.any()


# -- the parts -------------------------------------------------------------------------------------


def from_entry(op: Op) -> Callable[..., Any]:
    """Writes a call in the parts that the op's entry names (fast/formula.py)."""

    def write(b: Builder, *args: Any) -> Any:
        known = dict(zip(inputs(range(len(args))), args))
        given = [s if isinstance(a, Value) else a for s, a in known.items()]
        made = on_steps(op.options["parts"])(*given)
        for step in needed(made):
            x, *others = [known[a] if isinstance(a, Step) else a for a in step.args]
            if step.entry in REDUCING:
                dims = others[0] if isinstance(others[0], tuple) else (others[0],)
                known[step] = REDUCING[step.entry](b, x, dims)
            else:
                known[step] = b.element(TABLE[step.name], x, *others)
        return tuple([known[s] for s in made]) if isinstance(made, tuple) else known[made]

    return write


REDUCING: dict[Op | None, Callable] = {
    reduce.sum.op: lambda b, x, dims: b.reduce(reduce.sum, x, dims),
    reduce.amax.op: lambda b, x, dims: b.reduce(reduce.amax, x, dims),
    reduce.mean.op: lambda b, x, dims: mean(b, x, dims, True),
}
for _function, _suits in (
    (reduce.softmax, has_dims),
    (reduce.log_softmax, has_dims),
    (normalization.layer_norm, one_dtype),
):
    parts(_function, _suits)(from_entry(_function.op))


@parts(reduce.sum, around_a_dimension)
def sum(b: Builder, x: Value, dims: tuple, keepdim: bool) -> Value:
    """A sum that keeps a dimension in the middle begins with sums along the rows, in the loop that computes the rows (a
    convolution's bias gradient is such a sum).
    """
    last = trailing(dims, len(x.shape))
    return b.reduce(
        reduce.sum, b.reduce(reduce.sum, x, last, keepdim), tuple([d for d in dims if d not in last]), keepdim
    )


@parts(reduce.mean, has_dims)
def mean(b: Builder, x: Value, dims: tuple | None = None, keepdim: bool = False) -> Value:
    total = b.reduce(reduce.sum, x, dims, keepdim)
    return b.element(div, total, float(x.size // max(total.size, 1)))


@parts(reduce.var_core, has_variance)
def var_core(b: Builder, x: Value, dims: tuple | None, correction: float) -> Value:
    """The variance from differences to the first number, exact for nearby numbers: equal numbers have variance 0."""
    dims = tuple(range(len(x.shape))) if dims is None else dims
    key = (*[slice(1) if i in dims else slice(None) for i in range(len(x.shape))], ...)
    first = b.call(getitem, x, key, shape=tuple([1 if i in dims else n for i, n in enumerate(x.shape)]))
    d = b.element(sub, x, first)
    total = b.reduce(reduce.sum, d, dims)
    n = x.size // max(total.size, 1)
    d = b.element(sub, d, b.element(div, total, float(n)))
    return b.element(div, b.reduce(reduce.sum, b.element(mul, d, d), dims), float(n - correction))


@parts(normalization.group_norm, one_dtype)
def group_norm(b: Builder, x: Value, weight: Value | None, bias: Value | None, groups: int, eps: float) -> tuple:
    rows = len(x._array), groups, x.size // (len(x._array) * groups)
    layer_norm, x_rows = PARTS[normalization.layer_norm.op][0], b.call(reshape, x, rows, shape=rows)
    out, mu, var = layer_norm(b, x_rows, None, None, (2,), eps)
    out, shape = b.call(reshape, out, x.shape, shape=x.shape), (-1, *(1,) * (len(x.shape) - 2))
    for op, a in ((mul, weight), (add, bias)):
        out = out if a is None else b.element(op, out, b.call(reshape, a, shape, shape=(a.size, *shape[1:])))
    return out, mu, var


@parts(normalization.frozen_batch_norm, one_dtype)
def frozen_batch_norm(
    b: Builder, x: Value, weight: Value | None, bias: Value | None, mu: Value, var: Value, eps: float
) -> Value:
    shape = (-1, *(1,) * (len(x.shape) - 2))

    def per_channel(a: Value) -> Value:
        return b.call(reshape, a, shape, shape=(a.size, *shape[1:]))

    weight, bias = weight and per_channel(weight), bias and per_channel(bias)
    mu, var = per_channel(mu), per_channel(var)
    return scaled(b, b.element(sub, x, mu), var, eps, weight, bias)


def scaled(b: Builder, d: Value, var: Value, eps: float, weight: Value | None, bias: Value | None) -> Value:
    """d / sqrt(var + eps) weight + bias."""
    out = b.element(mul, d, b.element(rsqrt, b.element(add, var, eps)))
    out = out if weight is None else b.element(mul, out, weight)
    return out if bias is None else b.element(add, out, bias)


@parts(matmul.linear, is_layer)
def linear(b: Builder, x: Value, weight: Value, bias: Value | None) -> Value:
    across = b.call(transpose, weight, 0, 1, shape=weight.shape[::-1])
    product = mm(b, x, across)
    return product if bias is None else b.element(add, product, bias)


@parts(matmul.mm, shares_matrix)
def mm(b: Builder, x: Value, y: Value) -> Value:
    """One large product instead of many small ones if all have the same second factor."""
    rows, n = x.size // x.shape[-1], y.shape[-1]
    if len(x.shape) == 2:
        return b.call(matmul.mm, x, y, shape=(rows, n))
    flat = b.call(reshape, x, (rows, x.shape[-1]), shape=(rows, x.shape[-1]))
    shape = (*x.shape[:-1], n)
    return b.call(reshape, b.call(matmul.mm, flat, y, shape=(rows, n)), shape, shape=shape)


def chosen(b: Builder, target: Value, n: int) -> Value:
    """True where the column is the target class of the row. `target`: shape (N, 1)."""
    return b.element(eq, Value(np.arange(n), "constant"), target, dtype=np.dtype(bool))


@parts(along_dim.gather, one_a_row)
def gather(b: Builder, x: Value, index: Value, dim: int) -> Value:
    """One element of each row."""
    b.check("check_index", index, x.shape[-1])
    return b.reduce(reduce.sum, b.where(chosen(b, index, x.shape[-1]), x, 0.0), (len(x.shape) - 1,))


@parts(along_dim.scatter_add, one_a_row_of_zeros)
def scatter_add(b: Builder, x: Value, index: Value, source: Value, dim: int) -> Value:
    """Zeros except for one element of each row."""
    b.check("check_index", index, x.shape[-1])
    return b.where(chosen(b, index, x.shape[-1]), source, 0.0)


@parts(loss.nll_loss, lambda step: by_classes(step, step.args[0]))
def nll_loss(b: Builder, x: Value, target: Value, weight: None, ignore_index: int, reduction: str) -> Value:
    rows, classes = x.shape
    b.check("check_classes", target, classes, ignore_index)
    kept = b.kept(target, classes, ignore_index)
    total = b.element(neg, b.reduce(reduce.sum, b.where(kept, x, 0.0), None, False))
    return total if reduction == "sum" else b.element(div, total, b.count(target, ignore_index, x.dtype))


@parts(loss.nll_loss_grad, lambda step: by_classes(step, step.outs[0]))
def nll_loss_grad(
    b: Builder, g: Value, target: Value, weight: None, size: tuple, ignore_index: int, reduction: str
) -> Value:
    b.check("check_classes", target, size[1], ignore_index)
    share = b.element(neg, g)
    if reduction == "mean":
        share = b.element(div, share, b.count(target, ignore_index, g.dtype))
    return b.where(b.kept(target, size[1], ignore_index), share, 0.0)


@parts(views.split_sizes, lambda step: step.args[2] >= 0)
def split_sizes(b: Builder, x: Value, lengths: tuple, dim: int) -> tuple:
    """Views; they are not made again in each run if the memory stays the same."""
    keys, parts = keys_of(tuple(lengths), dim), [(*x.shape[:dim], n, *x.shape[dim:][1:]) for n in lengths]
    return tuple(b.call(getitem, x, key, shape=shape) for key, shape in zip(keys, parts))


def decompose(graph: Graph) -> None:
    """Replace suitable calls by their parts, if the dtype can be fused."""
    steps: list[Any] = []
    by: dict[Value, Value] = {}
    for step in graph.steps:
        op = step.entry
        if isinstance(step, Store) or op is None or not suits(step):
            steps.append(step)
            continue
        b = Builder(step)
        write, _ = PARTS[op]
        made = write(b, *step.args)
        for old, new in zip(step.outs, made if isinstance(made, tuple) else (made,)):
            by[old], new._array, new.traced = new, old._array, old.traced
        steps += b.steps
    graph.steps = steps
    substitute(graph, by)


def suits(step: Any) -> bool:
    """Whether the decomposition of this call computes the same as its kernel."""
    if step.entry not in PARTS:
        return False
    x, out = step.args[0], step.outs[0]
    if out.dtype.name not in ("float32", "float64") or x.dtype != out.dtype or out.size == 0 or x.size == 0:
        return False
    _, fits = PARTS[step.entry]
    return fits(step)
