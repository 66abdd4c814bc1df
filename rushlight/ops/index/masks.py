"""Conditions and masks: choosing elements, and reading and writing at masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.dtypes import holding, int64
from rushlight.base.errors import index_error, not_a_tensor, runtime_error, type_error, warn_once
from rushlight.base.intp import as_int64
from rushlight.core.arguments import checked_number, wrap
from rushlight.core.tensor import Tensor, created, from_array, method, noticed, numbers
from rushlight.core.views import into
from rushlight.kernels import index as kernels
from rushlight.kernels.index import HERE
from rushlight.ops.composites import composite, given
from rushlight.ops.index.index_tensors import index
from rushlight.ops.math.arithmetic import writing
from rushlight.ops.math.elementwise import masked
from rushlight.ops.math.elementwise import where as choose
from rushlight.ops.shape import views as s
from rushlight.ops.shape.view_functions import broadcast_tensors
from rushlight.ops.tensor.node_names import called


def one_number(value: Any, input: Tensor, name: str) -> Tensor:
    """A number or a 0-d tensor as a 0-d tensor of the input's dtype. RuntimeError if the dtype cannot hold it."""
    if not isinstance(value, Tensor):
        return created(from_array(holding(checked_number(value, name), input.dtype)))
    if value._array.dtype.kind == "c" and input._array.dtype.kind not in "cb" and np.any(np.imag(numbers(value))):
        raise runtime_error(
            f"value cannot be converted to type {input.dtype} without overflow", "use the real part: .real", op=name
        )
    if value._array.ndim:
        raise runtime_error(
            f"{name} only supports a 0-dimensional value tensor, but got tensor with {value._array.ndim} dimension(s).",
            "pass a number",
        )
    return value if value._array.dtype == input._array.dtype else s.to(value, input.dtype)


@composite()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """out = value where the mask is true, input elsewhere; `value`: a number or a 0-d tensor.

    RuntimeError if the mask is not bool, or the value is complex and the input is not.

    >>> rushlight.tensor([1., 2.]).masked_fill(rushlight.tensor([True, False]), 0)
    tensor([0., 2.])
    """
    if not isinstance(mask, Tensor):
        raise not_a_tensor("masked_fill", "mask", 1, mask)
    if mask._array.dtype.kind != "b":
        raise runtime_error(
            f"masked_fill only supports boolean masks, but got mask with dtype {mask.dtype}",
            "compare first: mask = m != 0",
        )
    made = masked(mask, one_number(value, input, "masked_fill_"), input)
    # torch's result is contiguous, whatever x's memory order
    if made._array.__class__ is np.ndarray and not made._array.flags.c_contiguous:
        return called(s.contiguous(made), "MaskedFillBackward0")
    return made


@composite(looks=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """The tensor with one number, or a 0-d tensor, at the slices `index` along `dim`.

    IndexError for an index out of range.

    >>> rushlight.index_fill(rushlight.zeros(3), 0, rushlight.tensor([0, 2]), 5)
    tensor([5., 0., 5.])
    """
    if index.dtype is not int64:
        raise index_error(f"index_fill_(): Expected dtype int64 for index. Got {index.dtype}", "use index.long()")
    if index._array.ndim > 1:
        raise index_error("Index has to be a vector/scalar", "flatten() it", op="index_fill_")
    ndim = input._array.ndim
    dim = wrap(dim, ndim)
    n = input._array.shape[dim] if ndim else 1
    places = numbers(index)
    wrong = places[(places >= n) | (places < -n)]
    if wrong.size:
        raise index_error(
            f"index {int(wrong.flat[0])} is out of bounds for dimension {dim} with size {n}", op="index_fill_"
        )
    chosen = np.zeros(n, bool)
    chosen[index._array] = True
    mask = created(from_array(chosen.reshape([n if d == dim else 1 for d in range(ndim)])))
    return choose(mask, one_number(value, input, "index_fill_"), input)


@composite()
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where the mask is true, as a vector.

    >>> rushlight.masked_select(rushlight.tensor([1, 2, 3]), rushlight.tensor([True, False, True]))
    tensor([1, 3])
    """
    if mask._array.dtype.kind != "b":
        raise runtime_error(
            "masked_select: expected BoolTensor for mask", "compare first: mask = m != 0", mask=mask.dtype
        )
    a, b = broadcast_tensors(input, mask)
    made = called(index(a, [b], (HERE, ...)), "MaskedSelectBackward0")
    return made if out is None else into(out, made, input, mask)


@composite(tensor=False)
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """`input` where the condition is true, `other` elsewhere, broadcast; for the condition alone, the result of
    `nonzero` as a tuple.

    >>> rushlight.where(rushlight.tensor([True, False]), 1., 2.)
    tensor([1., 2.])
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise type_error(
            "where() received an invalid combination of arguments: it takes (condition) or (condition, input, other)"
        )
    if isinstance(condition, Tensor) and condition._array.dtype == np.uint8:  # torch's old kind of masks
        warn_once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead."
        )
        condition = condition != 0
    if isinstance(condition, Tensor) and condition._array.dtype.kind != "b":
        raise runtime_error(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}",
            "compare first: condition != 0",
        )
    return choose(condition, input, other, out=out)


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor where the condition is true, `other` elsewhere."""
    return where(condition, self, other)


method(where_method, "where")


@composite()
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not 0: a row per element, or with `as_tuple` a vector per dimension.

    RuntimeError for an `out` of another dtype than int64, or with `as_tuple`.

    >>> rushlight.nonzero(rushlight.tensor([0, 1, 1]))
    tensor([[1],
            [2]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("nonzero", "input", 0, input)
    noticed(input)
    if out is not None and (as_tuple or out._array.dtype != np.int64):
        raise runtime_error(
            "nonzero: as_tuple has no out="
            if as_tuple
            else f"nonzero: Expected out tensor to have scalar type Long but got scalar type {out.dtype.scalar_type}"
        )
    found = kernels.nonzero(input._array)
    rows = as_int64(np.stack(found)).T
    if as_tuple:
        return created(from_array(rows)).unbind(1)
    return given(out, created(from_array(rows if input._array.ndim else rows[:, :0].copy())))


@composite("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not 0, a row per element.

    >>> rushlight.argwhere(rushlight.tensor([0, 1, 1]))
    tensor([[1],
            [2]])
    """
    return nonzero(input)


for function in (masked_fill, index_fill):
    method(writing(function))
