"""Reductions composed of ops, with torch's signatures: max and min in their three forms, variances, norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.dtypes import HALVES
from rushlight.base.errors import not_implemented_error, runtime_error, warn
from rushlight.base.lazy import complete
from rushlight.core.arguments import reduced_dims, sizes
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, method, noticed
from rushlight.core.views import into, unregistered
from rushlight.core.worlds import TENSORS, broadcast_axes
from rushlight.ops.composites import composite, given
from rushlight.ops.linalg.arguments import check_tensor
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.arithmetic import writing
from rushlight.ops.reduce import reduce as r
from rushlight.ops.reduce.vector_norm import norm_of_order
from rushlight.ops.shape.views import reshape, squeeze, to
from rushlight.ops.tensor.node_names import called


def extreme(name: str, both: Any, whole: Any, along: Any) -> None:
    def pick(
        input: Tensor, dim: Any = None, keepdim: Any = False, *, other: Tensor | None = None, out: Any = None
    ) -> Any:
        if isinstance(dim, Tensor) or other is not None:
            return both(input, dim if other is None else other, out=out)
        if dim is None:
            made = extreme_of_all(whole, input, name)
            return made if out is None else into(out, made)
        made = along(input, dim, keepdim)
        return made if out is None else into(out, made)

    pick.__name__ = pick.__qualname__ = name
    pick.__doc__ = f"""The {"largest" if name == "max" else "smallest"} element: of all, along a dimension, or of two.

    {name}(input): one element, its gradient shared by ties; RuntimeError if there is none. {name}(input, dim,
    keepdim=False): (values, indices), the first of equal elements. {name}(input, other): element by element. nan wins.

    >>> rushlight.{name}(rushlight.tensor([[1, 3], [5, 2]]), 1).indices
    tensor({"[1, 0]" if name == "max" else "[0, 1]"})
    """
    composite(name)(pick)


def extreme_of_all(whole: Any, input: Tensor, name: str) -> Tensor:
    if input._array.size == 0:
        raise runtime_error(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    return called(whole(input), f"{name.capitalize()}Backward1")


extreme("max", e.maximum, r.amax, r.max_dim)
extreme("min", e.minimum, r.amin, r.min_dim)


def dims_and_correction(input: Tensor, dim: Any, unbiased: Any, correction: Any) -> tuple[tuple | None, float]:
    if isinstance(dim, bool):  # var(False): the first positional argument is `unbiased`
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return (None if dim is None else reduced_dims(dim, input._array.ndim)), correction


@composite()
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """sum (x - mean)^2 / (n - correction) over `dim` (all if None); correction 1 by default (`unbiased=False`: 0).

    >>> rushlight.var(rushlight.tensor([1., 2., 3., 4.]))
    tensor(1.6667)
    """
    floats_only(input, "var")
    if input._array.dtype.char in HALVES:
        return in_single(var, input, dim, unbiased, keepdim, correction, out)
    made = spread(input, dim, unbiased, keepdim, correction)
    return made if out is None else into(out, made)


def spread(input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any, name: str = "var") -> Tensor:
    """`var` of float32, float64 or complex numbers. `name`: the name of the function that warns, if any."""
    dims, correction = dims_and_correction(input, dim, unbiased, correction)
    made = r.var_core(input, dims, correction)
    if name and input._array.size <= correction * made._array.size:
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel)."
        )
    return called(kept_or_not(made, dims, keepdim), "VarBackward0")


@composite()
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """sqrt(sum (x - mean)^2 / (n - correction)): the square root of `var`, with the same arguments.

    >>> rushlight.std(rushlight.tensor([1., 2., 3., 4.]))
    tensor(1.2910)
    """
    floats_only(input, "std")
    if input._array.dtype.char in HALVES:
        return in_single(std, input, dim, unbiased, keepdim, correction, out)
    squares = spread(input, dim, unbiased, keepdim, correction, "std")
    if input._array.dtype.char == "f" and beyond_single(squares._array):
        wide = spread(to(input, dtypes.float64), dim, unbiased, keepdim, correction, "")
        made = to(e.root_of_squares(wide), input.dtype)
    else:
        made = e.root_of_squares(squares)
    made = called(made, "StdBackward0")
    return made if out is None else into(out, made)


def with_mean(function: Callable) -> None:
    """Define var_mean or std_mean."""

    def call(
        input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        dims, _ = dims_and_correction(input, dim, unbiased, correction)
        return function(input, dim, unbiased, keepdim, correction=correction), r.mean(input, dims, keepdim)

    call.__name__ = call.__qualname__ = name = function.__name__ + "_mean"
    call.__doc__ = f"""({function.__name__}, mean) over the same dimensions.

    >>> rushlight.{name}(rushlight.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """
    composite(name, tensor=False)(call)


with_mean(var)
with_mean(std)


def beyond_single(squares: Any) -> bool:
    """True if squares in single precision have underflowed although their root is in range."""
    if squares.__class__ is not np.ndarray or mode().watch is not None or not squares.size:
        return False
    if squares.size <= LISTED_ELEMENTS:
        return not all([MIN_EXACT_SQUARE < square < inf for square in squares.ravel().tolist()])
    return not np.minimum.reduce(squares, None) > MIN_EXACT_SQUARE or not np.maximum.reduce(squares, None) < np.inf


# squares above this number are normal numbers, with full precision
MIN_EXACT_SQUARE = 2.0**-80
LISTED_ELEMENTS = 16  # up to this number of elements, Python compares faster than two reductions


def in_single(
    function: Any, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any, out: Any
) -> Tensor:
    """var or std of a tensor of 16-bit floats, computed in float32, because the squares may overflow."""
    made = to(function(to(input, dtypes.float32), dim, unbiased, keepdim, correction=correction), input.dtype)
    return given(out, made)


def floats_only(input: Tensor, name: str) -> None:
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise runtime_error(
            f"{name}: only support floating point and complex dtypes", "convert: x.float()", dtype=input.dtype
        )


def kept_or_not(x: Tensor, dims: tuple | None, keepdim: bool) -> Tensor:
    """A new result, with the reduced dimensions as size 1 if `keepdim`, otherwise without them."""
    if keepdim:
        return x
    if x._node is None and x._array.__class__ is np.ndarray and mode().watch is None:
        x._array = x._array.squeeze(dims)  # without making a view
        return x
    return unregistered(reshape(x, ()) if dims is None else squeeze(x, dims))


@composite()
def softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """exp(x_i) / sum over j of exp(x_j), along `dim`; shifted by the largest, so that nothing overflows.

    >>> rushlight.softmax(rushlight.tensor([1., 2., 3.]), 0)
    tensor([0.0900, 0.2447, 0.6652])
    """
    made = r.softmax(input if dtype is None else to(input, dtype), dim)
    return made if out is None else into(out, made)


@composite()
def log_softmax(input: Tensor, dim: int, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """x_i - log sum over j of exp(x_j), along `dim`; shifted by the largest, so that nothing overflows.

    >>> rushlight.log_softmax(rushlight.tensor([[1000., 0.]]), 1)
    tensor([[    0., -1000.]])
    """
    made = r.log_softmax(input if dtype is None else to(input, dtype), dim)
    return made if out is None else into(out, made)


@composite()
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Tensor | None = None, dtype: Any = None
) -> Tensor:
    """(sum |x|^p)^(1/p) over `dim` (all if None); 'fro' is p = 2, inf the largest |x|, 0 the number of nonzeros.

    >>> rushlight.norm(rushlight.tensor([3., 4.]))
    tensor(5.)
    """
    x = input if dtype is None else to(input, dtype)
    floats_only(x, "linalg.vector_norm: Expected a floating point or complex tensor as input")
    if p == "nuc":  # the sum of singular values, whose op is loaded later
        complete()
        made = TENSORS["linalg_matrix_norm"](x, p, tuple(range(x._array.ndim)) if dim is None else dim, keepdim)
    else:
        dims = None if dim is None else reduced_dims(dim, x._array.ndim)
        order = 2.0 if p in ("fro", None) else float(p)
        check_identity(x, order, dims)
        made = norm_of_order(x, order, dims, keepdim)
    return given(out, made)


def check_identity(x: Tensor, p: float, axes: Any) -> None:
    """RuntimeError for the norm of no elements if p is negative or inf."""
    if (p >= 0 and p != math.inf) or x._array.size:
        return
    name = f"{p:g}"
    if axes is None or any(x._array.shape[d] == 0 for d in axes):
        raise runtime_error(
            f"linalg.vector_norm cannot compute the {name} norm on an empty tensor because the operation does not "
            "have an identity",
            shape=tuple(x.shape),
        )


def running(name: str, input: Tensor, dim: int, dtype: Any, out: Tensor | None) -> Tensor:
    """cumsum or cumprod in `dtype`, which is also the dtype of `out`."""
    op = getattr(r, name)
    wanted = out.dtype if dtype is None and out is not None else None if dtype is None else dtypes.as_dtype(dtype)
    if wanted is dtypes.bool_:
        raise not_implemented_error(f"\"{name}_out_cpu\" not implemented for 'Bool'", "use an integer dtype")
    if out is not None and out.dtype is not wanted:
        raise runtime_error(f"Expected out tensor to have dtype {wanted}, but got {out.dtype} instead", op=name)
    return given(out, op(input, dim) if wanted is None else to(op(to(input, wanted), dim), wanted))


def running_in_place(function: Callable) -> Callable:
    """The in-place form, computed in the tensor's own dtype."""
    write = writing(function)

    def written(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        if dtype is not None and dtypes.as_dtype(dtype) is not input.dtype:
            raise runtime_error(
                f"Bad in-place call: input tensor dtype {input.dtype} and output tensor dtype {dtype} should match",
                "omit dtype",
                op=write.__name__,
            )
        return write(input, dim, dtype=input.dtype)

    written.__name__, written.__qualname__, written.__doc__ = write.__name__, write.__qualname__, write.__doc__
    return written


@composite()
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """out_i = x_0 + ... + x_i along `dim`; integers add up in int64.

    >>> rushlight.cumsum(rushlight.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    return running("cumsum", input, dim, dtype, out)


@composite()
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """out_i = x_0 ... x_i along `dim`; integers multiply in int64.

    >>> rushlight.cumprod(rushlight.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """
    return running("cumprod", input, dim, dtype, out)


for function in (cumsum, cumprod):
    method(running_in_place(function))


@composite("argsort")
def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """indices with input[indices] in order along `dim`; `stable`: equal elements stay in their order.

    >>> rushlight.argsort(rushlight.tensor([3., 1., 2.])), rushlight.argsort(rushlight.tensor([3.,
    ...     1., 2.]), descending=True)
    (tensor([1, 2, 0]), tensor([0, 2, 1]))
    """
    return given(out, r.sort(input, dim, descending)[1])


@composite()
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """The number of elements that are not 0, over `dim` (all if None), as int64.

    >>> x = rushlight.tensor([[0., 1.], [2., 3.]])
    >>> rushlight.count_nonzero(x), rushlight.count_nonzero(x, dim=0)
    (tensor(3), tensor([1, 2]))
    """
    return r.sum(input if input._array.dtype.kind == "b" else input != 0, dim)


def check_pair(input: Any, other: Any, name: str) -> None:
    check_tensor(input, name, "input")
    check_tensor(other, name, "other", 2)


@composite()
def equal(input: Tensor, other: Tensor) -> bool:
    """True if both have one shape and input_i = other_i everywhere.

    >>> x = rushlight.tensor([1., 2.])
    >>> rushlight.equal(x, x.clone()), rushlight.equal(x, x[:1])
    (True, False)
    """
    check_pair(input, other, "equal")
    noticed(input)
    noticed(other)
    return input._array.shape == other._array.shape and bool((input._array == other._array).all())


@composite()
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """|input - other| <= atol + rtol |other|, elementwise. RuntimeError for different dtypes.

    >>> rushlight.isclose(rushlight.tensor([1., 1.]), rushlight.tensor([1 + 1e-7, 1.1]))
    tensor([ True, False])
    """
    check_pair(input, other, "isclose")
    if input.dtype is not other.dtype:
        raise runtime_error(
            f"{input.dtype.scalar_type} did not match {other.dtype.scalar_type}",
            "convert one: other.to(input.dtype)",
            op="isclose",
        )
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if bound < 0:
            raise runtime_error(f"{name} must be greater than or equal to zero, but got {bound}")
    if input.dtype.category < dtypes.FLOATING:  # bool has no subtraction; integers may wrap around
        input, other = (to(t, dtypes.float64) for t in (input, other))
    near = e.le(e.abs(e.sub(input, other)), e.add(e.mul(e.abs(other), rtol), atol))
    near = e.logical_or(e.logical_and(near, e.isfinite(other)), e.eq(input, other))
    return e.logical_or(near, e.logical_and(e.isnan(input), e.isnan(other))) if equal_nan else near


@composite()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """all of |input - other| <= atol + rtol |other|, a bool; `equal_nan`: nan is close to nan.

    >>> x = rushlight.tensor([0.1, 0.2])
    >>> rushlight.allclose(x, x + 1e-9), rushlight.allclose(x, x + 0.1)
    (True, False)
    """
    return bool(r.all(isclose(input, other, rtol, atol, equal_nan)).item())


@method
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum the tensor to a smaller shape that broadcasts to the tensor's shape. RuntimeError for another shape.

    >>> rushlight.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    to_shape = sizes(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    shape = self._array.shape
    extra = len(shape) - len(to_shape)
    if extra < 0 or any(n not in (1, m) for n, m in zip(to_shape, shape[extra:])):
        raise runtime_error(
            f"size {{{list(to_shape)}}} is not expandable to size {{{list(shape)}}}.",
            "each size must be 1 or the tensor's own, counted from the last dimension",
        )
    dims = broadcast_axes(shape, to_shape) or (None if not to_shape else ())
    return self if dims == () else reshape(r.sum(self, dims, True), to_shape)
