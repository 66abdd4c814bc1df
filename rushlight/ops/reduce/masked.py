"""Reductions and normalisations of the elements where `mask` is true, as in torch.masked.

`mask` broadcasts to the input's shape; None selects all elements. `dim`: one dimension or several, None or () for all;
`keepdim` keeps them with size 1; `dtype`: the input is converted first. IndexError for a dimension out of range and for
a mask of more dimensions than the input; RuntimeError for shapes that do not broadcast. A reduction of no elements
gives its identity: 0 for a sum, 1 for a product, -inf for a maximum. All functions are composed of ops and
differentiable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import Any, Protocol

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import assertion_error, describe, index_error, not_implemented_error, type_error, value_error
from rushlight.core.arguments import reduced_dims
from rushlight.core.tensor import Tensor
from rushlight.ops.linalg.matmul_api import in_single
from rushlight.ops.math import elementwise as e
from rushlight.ops.math.complex import conj
from rushlight.ops.reduce import reduce as r
from rushlight.ops.reduce import reduce_api as composites
from rushlight.ops.reduce.norms_api import vector_norm
from rushlight.ops.reduce.sorting import nanmedian
from rushlight.ops.shape.view_functions import broadcast_to
from rushlight.ops.shape.views import to

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


# -- masking ---------------------------------------------------------------------------------------


def prepared(input: Any, dtype: Any, mask: Any) -> tuple[Tensor, Tensor | None]:
    """The input in `dtype`, and the mask in the input's shape."""
    for name, value in (("input", input), ("mask", mask)):
        if not isinstance(value, Tensor) and (name == "input" or value is not None):
            raise type_error(
                f"masked: argument '{name}' must be Tensor, not {type(value).__name__}",
                "make it a tensor: torch.tensor(...)",
            )
    if dtype is not None:
        input = to(input, dtypes.as_dtype(dtype))
    if mask is None:
        return input, None
    if mask._array.ndim > input._array.ndim:
        raise index_error(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)",
            mask=describe(mask),
            input=describe(input),
        )
    mask = mask if mask.dtype is dtypes.bool_ else e.ne(mask, 0)
    return input, broadcast_to(mask, input._array.shape)


def filled(x: Tensor, mask: Tensor | None, value: float) -> Tensor:
    """x with a number where the mask is false."""
    return x if mask is None else e.where(mask, x, value)


def extreme(x: Tensor, name: str, largest: bool) -> float:
    """The largest or smallest value of x's dtype: an infinity for floating-point dtypes."""
    if x.dtype is dtypes.bool_:
        raise not_implemented_error(f"identity of {name} on torch.bool input", "convert it: x.int()")
    if x.dtype.is_complex:
        raise type_error(f"{name}: complex numbers have no order", input=describe(x))
    if x.dtype.is_floating_point:
        return math.inf if largest else -math.inf
    limits = np.iinfo(x._array.dtype)
    return int(limits.max if largest else limits.min)


least, most = partial(extreme, largest=False), partial(extreme, largest=True)


def lowest(x: Tensor, name: str) -> float:
    """The value whose exponential is 0. NotImplementedError for integers, which have no such value."""
    if x.dtype.category < dtypes.FLOATING:
        raise not_implemented_error(
            f"\"{name}\" not implemented for '{x.dtype.scalar_type}'",
            "give a dtype, or convert it: x.float()",
            input=describe(x),
        )
    return -math.inf


def dims_of(x: Tensor, dim: Any) -> tuple[int, ...] | None:
    return None if dim is None else reduced_dims(dim, x._array.ndim)


def count(x: Tensor, mask: Tensor | None, dims: tuple[int, ...] | None, keepdim: bool) -> Any:
    """The number of elements in each result: a number, or a tensor in x's real dtype."""
    if mask is None:
        return math.prod(x._array.shape if dims is None else [x._array.shape[d] for d in dims])
    return to(r.sum(mask, dims, keepdim), x.dtype.to_real())


# -- tables ----------------------------------------------------------------------------------------


class Reduction(Protocol):
    def __call__(
        self, input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor: ...


class Scan(Protocol):
    def __call__(self, input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor: ...


def documented(call: Any, name: str, example: Sequence[str], place: str = "") -> Any:
    """The function with its name. `example`: text of the docstring, numbers of which the second is masked, result."""
    text, numbers, shown = example
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""{text}

    >>> rushlight.masked.{name}(rushlight.tensor([{numbers}]){place}, mask=rushlight.tensor([True, False, True]))
    tensor({shown})
    """
    return call


def reduction(name: str, compute: Callable, identity: Callable, *example: str) -> Reduction:
    """compute(x, dims, keepdim), with `identity(x, name)` in place of masked elements."""

    def call(
        input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        x, mask = prepared(input, dtype, mask)
        made = compute(filled(x, mask, identity(x, name)), dims_of(x, dim), keepdim)
        widens = dtype is None and compute in (r.sum, r.prod)  # integers add up in int64
        return made if widens else to(made, x.dtype)

    return documented(call, name, example)


def place_of(name: str, compute: Callable, identity: Callable, *example: str) -> Reduction:
    """compute(x, dim, keepdim), an index in the dtype of x, with `identity(x, name)` in place of masked elements."""

    def call(
        input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        x, mask = prepared(input, dtype, mask)
        return to(compute(filled(x, mask, identity(x, name)), dim, keepdim), x.dtype)

    return documented(call, name, example)


def scan(name: str, compute: Callable, identity: Callable, *example: str) -> Scan:
    """compute(x, dim, dtype), of the shape of x, with `identity(x, name)` in place of masked elements."""

    def call(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
        x, mask = prepared(input, dtype, mask)
        return compute(filled(x, mask, identity(x, name)), dim, dtype)

    return documented(call, name, example, place=", 0")


# fmt: off
# name, function, value of masked elements; docstring, elements and result of the example
sum = reduction(
    "sum", r.sum, lambda x, name: 0,
    "The sum; integers add up in int64; an empty sum is 0.", "1., 2., 4.", "5.")
prod = reduction(
    "prod", r.prod, lambda x, name: 1,
    "The product; integers multiply in int64; an empty product is 1.", "1., 2., 4.", "4.")
amax = reduction(
    "amax", r.amax, least,
    "The largest element; without elements -inf, or the smallest integer. Ties share the gradient.", "1., 9., 4.", "4.")
amin = reduction(
    "amin", r.amin, most,
    "The smallest element; without elements inf, or the largest integer. Ties share the gradient.", "1., -9., 4.", "1.")
logsumexp = reduction(
    "logsumexp", r.logsumexp, lambda x, name: -math.inf if x.dtype.is_complex else least(x, name),
    "log sum exp(x), in the input's dtype as in torch; -inf without elements.", "1., 9., 1.", "1.6931")
argmax = place_of(
    "argmax", r.argmax, least,
    "The index of the largest element, in the input's dtype as in torch.", "1, 9, 4", "2")
argmin = place_of(
    "argmin", r.argmin, most,
    "The index of the smallest element, in the input's dtype as in torch.", "1, -9, 4", "0")
softmax = scan(
    "softmax", lambda x, dim, dtype: composites.softmax(x, dim), lowest,
    "exp(x_i) / sum over j of exp(x_j); 0 for masked elements, nan if all are masked.",
    "1., 9., 1.", "[0.5000, 0.0000, 0.5000]")
log_softmax = scan(
    "log_softmax", lambda x, dim, dtype: composites.log_softmax(x, dim), lowest,
    "x_i - log sum over j of exp(x_j); -inf for masked elements, nan if all are masked.",
    "1., 9., 1.", "[-0.6931,    -inf, -0.6931]")
softmin = scan(
    "softmin", lambda x, dim, dtype: composites.softmax(e.neg(x), dim), lambda x, name: -lowest(x, name),
    "exp(-x_i) / sum over j of exp(-x_j); 0 for masked elements, nan if all are masked.",
    "1., -9., 1.", "[0.5000, 0.0000, 0.5000]")
cumsum = scan(
    "cumsum", lambda x, dim, dtype: composites.cumsum(x, dim, dtype=dtype), lambda x, name: 0,
    "out_i = x_0 + ... + x_i along `dim`; masked elements count as 0.", "1., 9., 4.", "[1., 1., 5.]")
cumprod = scan(
    "cumprod", lambda x, dim, dtype: composites.cumprod(x, dim, dtype=dtype), lambda x, name: 1,
    "out_i = x_0 ... x_i along `dim`; masked elements count as 1.", "2., 9., 4.", "[2., 2., 8.]")
# fmt: on


# -- other functions -------------------------------------------------------------------------------


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The sum divided by the number of elements; nan for an empty mean. ValueError for integers without a `dtype`.

    >>> rushlight.masked.mean(rushlight.tensor([1., 2., 4.]), mask=rushlight.tensor([True, False, True]))
    tensor(2.5000)
    """
    x, mask = prepared(input, dtype, mask)
    if x.dtype.category < dtypes.FLOATING:
        raise value_error(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {x.dtype}",
            "give a dtype, or convert it: x.float()",
        )
    return in_single(lambda x: mean_over(x, mask, dims_of(x, dim), keepdim), x)


def mean_over(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool) -> Tensor:
    """The mean of x, which must not have half precision, because half precision may not hold a count."""
    return e.div(r.sum(filled(x, mask, 0), dims, keepdim), count(x, mask, dims, keepdim))


def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """sum |x - mean|^2 / (n - correction), n the number of elements; `correction` is 1, or 0 if `unbiased` is false.

    Integers become the default dtype. nan without elements.

    >>> rushlight.masked.var(rushlight.tensor([1., 2., 4.]), mask=rushlight.tensor([True, False, True]))
    tensor(4.5000)
    """
    x, mask = prepared(input, dtype, mask)
    if unbiased is not None and correction is not None:
        raise assertion_error("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    if x.dtype.category < dtypes.FLOATING:
        x = to(x, dtypes.get_default_dtype())
    return in_single(lambda x: variance(x, mask, dims_of(x, dim), keepdim, correction), x)


def variance(x: Tensor, mask: Tensor | None, dims: Any, keepdim: bool, correction: float) -> Tensor:
    """The mean squared distance from the mean, with the divisor n - correction."""
    away = filled(e.sub(x, mean_over(x, mask, dims, True)), mask, 0)
    total = r.sum(e.mul(away, conj(away)), dims, keepdim)
    left = count(x, mask, dims, keepdim) - correction
    return e.div(total, e.clamp_min(left, 0) if isinstance(left, Tensor) else max(left, 0))


def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The square root of `var`, with the same arguments.

    >>> rushlight.masked.std(rushlight.tensor([1., 2., 5.]), mask=rushlight.tensor([True, False, True]))
    tensor(2.8284)
    """
    return e.sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))


def norm(
    input: Tensor, ord: float = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(sum |x|^ord)^(1/ord): `linalg.vector_norm`; masked elements count as 0 (inf if `ord` is -inf).

    >>> rushlight.masked.norm(rushlight.tensor([3., 9., 4.]), mask=rushlight.tensor([True, False, True]))
    tensor(5.)
    """
    x, mask = prepared(input, dtype, mask)
    return vector_norm(filled(x, mask, math.inf if ord == -math.inf else 0), ord, dims_of(x, dim), keepdim)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The median of the elements that are neither masked nor nan, the lower one of two; nan if there are none.

    ValueError for integers if a whole row is masked.

    >>> rushlight.masked.median(rushlight.tensor([1., 9., 4., 5.]), mask=rushlight.tensor([True, False, True, True]))
    tensor(4.)
    """
    x, mask = prepared(input, dtype, mask)
    whole = not x.dtype.is_floating_point
    values = nanmedian(filled(to(x, dtypes.float64) if whole else x, mask, math.nan), dim, keepdim)[0]
    if not whole:
        return values
    if np.isnan(values._array).any():
        raise value_error(
            "masked median expects no fully masked out rows if dtype is not floating point",
            "convert it: x.float()",
            input=describe(input),
        )
    return to(values, x.dtype)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """log(exp(x) + exp(y)), elementwise; a masked element counts as -inf.

    >>> rushlight.masked.logaddexp(rushlight.tensor([1., 2.]), rushlight.tensor([1., 2.]),
    ...                            input_mask=rushlight.tensor([True, False]))
    tensor([1.6931, 2.0000])
    """
    x, x_mask = prepared(input, dtype, input_mask)
    y, y_mask = prepared(other, dtype, other_mask)
    return e.logaddexp(filled(x, x_mask, lowest(x, "logaddexp")), filled(y, y_mask, lowest(y, "logaddexp")))


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """x / max(norm(x, ord), eps), the norm along `dim`; 0 for masked elements.

    >>> rushlight.masked.normalize(rushlight.tensor([3., 9., 4.]), 2, 0, mask=rushlight.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    x, mask = prepared(input, dtype, mask)
    length = norm(x, ord, dim, keepdim=True, mask=mask)
    return e.div(filled(x, mask, 0), e.clamp_min(length, eps))


# -- which results are defined: torch's names ------------------------------------------------------

# functions whose result has the input's shape
SCANS = (softmax, log_softmax, softmin, normalize, cumsum, cumprod)


def _input_mask(input: Tensor, *args: Any, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
    """The mask in the input's shape. ValueError if it is None."""
    _, mask = prepared(input, None, mask)
    if mask is None:
        raise value_error("_input_mask requires explicit mask", "mask=torch.ones_like(x, dtype=torch.bool)")
    return mask


def _output_mask(op: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Whether each result of a function of this module includes at least one element."""
    if op is logaddexp:
        return e.logical_or(*[_input_mask(input, mask=kwargs.get(name)) for name in ("input_mask", "other_mask")])
    inside = _input_mask(input, mask=kwargs.get("mask"))
    if op in SCANS:
        return inside
    given = dict(zip(list(signature(op).parameters)[1:], args)) | kwargs
    dim = given.get("dim", -1 if op is median else None)
    return r.any(inside, dims_of(input, dim), given.get("keepdim", False))
