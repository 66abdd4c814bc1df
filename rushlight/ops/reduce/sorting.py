"""Order statistics, searches in sorted tensors, and sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import index_error, not_implemented_error, runtime_error, type_error
from rushlight.core.arguments import check_dtypes, checked_number, wrap
from rushlight.core.build import build, general, inner
from rushlight.core.tensor import Tensor, from_array, numbers
from rushlight.core.worlds import adopt
from rushlight.kernels import sorting as kernels
from rushlight.ops.composites import composite, given
from rushlight.ops.reduce import reduce as r

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import evenly, not_implemented, put_along, standing

adopt(kernels)

# fmt: off
kthvalue = general(lambda x, /, k, dim=-1, keepdim=False: kthvalue(x, k, dim, keepdim),
    x=lambda gs, x_shape, indices, dim, keepdim: put_along(gs[0], indices, x_shape, dim, keepdim),
    doc="The k-th smallest element along `dim`, counted from 1, and its index.",
    outputs="values indices", separate=True, batched="shift", takes="uif0")
mode = general(lambda x, /, dim=-1, keepdim=False: mode(x, dim, keepdim),
    x=lambda gs, x_shape, indices, dim, keepdim: put_along(gs[0], indices, x_shape, dim, keepdim),
    doc="The most frequent element along `dim`, of several the smallest, and the index of its last occurrence.",
    outputs="values indices", batched="shift", takes="buif0")
median_dim = inner(lambda x, /, dim, keepdim=False: median_dim(x, dim, keepdim),
    x=lambda gs, x_shape, indices, dim, keepdim: put_along(gs[0], indices, x_shape, dim, keepdim),
    outputs="values indices", node="MedianBackward1", called="median", batched="shift", takes="uif")
nanmedian_dim = inner(lambda x, /, dim, keepdim=False: nanmedian_dim(x, dim, keepdim),
    x=lambda gs, x_shape, indices, dim, keepdim: put_along(gs[0], indices, x_shape, dim, keepdim),
    outputs="values indices", node="NanmedianBackward1", called="nanmedian", batched="shift", takes="uif")
median_all = inner(lambda x, /: median_all(x), x=lambda g, x, out: g * evenly(standing(x, out), None, g),
    node="MedianBackward0", called="median", wide_rules=True, takes="uif")
nanmedian_all = inner(lambda x, /: nanmedian_all(x), x=lambda g, x, out: g * evenly(standing(x, out), None, g),
    node="NanmedianBackward0", called="nanmedian", wide_rules=True, takes="uif")
places = inner(lambda x, values, sorter, /, right, small: searchsorted(x, values, sorter, right, small),
    kernel=kernels.searchsorted, called="searchsorted")
among = inner(lambda x, y, /, invert: isin(x, y, invert), kernel=kernels.isin, promote="x y", called="isin")
distinct = inner(lambda x, /, dim=None: unique(x, dim),
    x=lambda gs, dim: not_implemented("_unique2" if dim is None else "unique_dim"),
    kernel=kernels.unique, called="unique", node="Unique2Backward0", outputs="output inverse_indices counts",
    batched="dynamic", takes="buif")
changes = inner(lambda x, /, dim=None, more=True: unique_consecutive(x, dim, more),
    x=lambda gs: not_implemented("unique_consecutive"),
    kernel=kernels.unique_consecutive, outputs="output inverse_indices counts", called="unique_consecutive",
    node="UniqueConsecutiveBackward0", batched="dynamic", takes="buif")
# fmt: on


build(globals())


# -- order statistics ------------------------------------------------------------------------------


@composite()
def median(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median (the lower of two middle elements): of all elements, or (values, indices) along `dim`.

    nan if an element is nan. IndexError for an empty dimension, NotImplementedError for bool and complex tensors.

    >>> rushlight.median(rushlight.tensor([4., 1., 3., 2.]))
    tensor(2.)
    """
    return middle(median_all, median_dim, input, dim, keepdim, out)


@composite()
def nanmedian(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The median of the elements that are not nan: of all, or (values, indices) along `dim`; nan if all are.

    >>> rushlight.nanmedian(rushlight.tensor([3., float("nan"), 1.]))
    tensor(1.)
    """
    return middle(nanmedian_all, nanmedian_dim, input, dim, keepdim, out)


def middle(whole: Any, along: Any, input: Tensor, dim: Any, keepdim: bool, out: Any) -> Any:
    return given(out, whole(input) if dim is None else along(input, dim, keepdim))


@composite()
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements in order along the first dimension.

    >>> rushlight.msort(rushlight.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    return given(out, r.sort(input, 0, stable=True)[0])


# -- searches --------------------------------------------------------------------------------------


@composite(tensor=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """i with sorted[i - 1] < input <= sorted[i]: the position at which to insert each value in the sorted last
    dimension.

    `right`, or side='right': sorted[i - 1] <= input < sorted[i]. The sequence has one dimension, or the leading
    dimensions of the values. `sorter`: the indices that sort the sequence. The result is int64, or int32 with
    `out_int32`. RuntimeError for shapes and options that do not fit.

    >>> rushlight.searchsorted(rushlight.tensor([1, 3, 5]), rushlight.tensor([3, 4]))
    tensor([1, 2])
    """
    values = as_values(input)
    both = (sorted_sequence, values)
    answers = all([t.dtype is dtypes.bool_ for t in both])  # bool has an order only among bools
    check_dtypes("searchsorted", "uif" if answers else "buif", *both)
    return places_of(sorted_sequence, values, out_int32, right, side, sorter, out)


def places_of(
    sorted_sequence: Tensor,
    values: Tensor,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: Tensor | None,
    out: Tensor | None,
) -> Tensor:
    """`searchsorted` of values of any dtype."""
    check_search(sorted_sequence, values, right, side, sorter)
    if out is not None and out.dtype is not (dtypes.int32 if out_int32 else dtypes.int64):
        raise runtime_error(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) "
            "depending on whether out_int32 flag is True, but we got output tensor's dtype "
            f"{out.dtype.scalar_type} and out_int32 flag is {out_int32}"
        )
    return given(out, places(sorted_sequence, values, sorter, right or side == "right", out_int32))


def as_values(input: Any) -> Tensor:
    """A number as a 0-d tensor. TypeError for other values."""
    if isinstance(input, Tensor):
        return input
    return from_array(np.asarray(checked_number(input, "searchsorted")))


def check_search(x: Tensor, values: Tensor, right: bool, side: str | None, sorter: Tensor | None) -> None:
    """RuntimeError for arguments that `searchsorted` does not accept, with torch's messages."""
    a, b = x._array.shape, values._array.shape
    wrong = None
    if side not in (None, "left", "right"):
        wrong = f"side can only be 'left' or 'right' but got {side}"
    elif right and side == "left":
        wrong = "side and right can't be set to opposites, got side of left while right was True"
    elif sorter is not None and (why := unfit_sorter(sorter, a)):
        wrong = why
    elif not a:
        wrong = "boundaries tensor should have positive dimension, but got 0 dimension"
    elif len(a) > 1 and not b:
        wrong = (
            "input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
            f"tensor dim({len(a)}) and input value's dim(0) numel(1)"
        )
    elif len(a) > 1 and a[:-1] != b[:-1]:
        wrong = (
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input "
            f"value tensor must match, but we got boundaries tensor {list(a)} and input value tensor {list(b)}"
        )
    if wrong:
        raise runtime_error(f"torch.searchsorted(): {wrong}", sequence=a, values=b)


def unfit_sorter(sorter: Tensor, shape: tuple[int, ...]) -> str:
    """The problem with boundaries of this shape, in torch's words; "" if they fit."""
    if sorter.dtype is not dtypes.int64:
        return f"sorter must be a tensor of long dtype but got dtype {sorter.dtype.scalar_type}"
    if sorter._array.shape != shape:
        return (
            f"boundary and sorter must have the same size, but got boundary tensor {list(shape)} and got sorter "
            f"tensor {list(sorter._array.shape)}"
        )
    if not sorter._array.size:
        return ""
    places = numbers(sorter)
    inside = 0 <= places.min() <= places.max() < shape[-1]
    return "" if inside else "sorter index out of range"


@composite(tensor=False)
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """i with boundaries[i - 1] < input <= boundaries[i]: the bucket of each value; right=True: <= and <.

    >>> rushlight.bucketize(rushlight.tensor([0.5, 2.5]), rushlight.tensor([1., 2., 3.]))
    tensor([0, 2])
    """
    if boundaries._array.ndim != 1:
        raise runtime_error(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return places_of(boundaries, as_values(input), out_int32, right, None, None, out)


@composite(tensor=False)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Tensor | None = None
) -> Tensor:
    """Whether each element is among `test_elements`; with `invert`, whether it is not. One of the two may be a number.

    >>> rushlight.isin(rushlight.tensor([1, 2, 3]), rushlight.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise type_error(
            f"isin() received an invalid combination of arguments - got ({type(elements).__name__}, "
            f"{type(test_elements).__name__}), but expected one of: (Tensor, Tensor), (Number, Tensor), (Tensor, "
            "Number)"
        )
    for t in (elements, test_elements):
        if isinstance(t, Tensor) and (t.is_complex() or t.dtype is dtypes.bool_):
            raise runtime_error(f"Unsupported input type encountered for isin(): {t.dtype.scalar_type}")
    return given(out, among(elements, test_elements, invert))


# -- sets ------------------------------------------------------------------------------------------


@composite()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in order, or along `dim` the distinct slices.

    `return_inverse`: also the index of each element's value; `return_counts`: also the count of each value.
    RuntimeError for complex tensors, and for slices of no elements.

    >>> rushlight.unique(rushlight.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    return with_counts(distinct, input, return_inverse, return_counts, dim)


@composite()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements that differ from their predecessor, or along `dim` the slices; arguments as in `unique`.

    >>> rushlight.unique_consecutive(rushlight.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    return with_counts(changes, input, return_inverse, return_counts, dim)


def with_counts(find: Any, input: Tensor, inverse: bool, counts: bool, dim: int | None) -> Any:
    if input.is_meta:
        raise input._array.touched("unique")  # type: ignore[attr-defined]
    if input.is_complex():
        raise not_implemented_error(f"\"unique\" not implemented for '{input.dtype.scalar_type}'")
    if dim is not None and not input._array.ndim:
        raise index_error(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = None if dim is None else wrap(dim, input._array.ndim)
    found, where, times = find(input, dim) if find is distinct else find(input, dim, inverse or counts)
    picked = (found, *((where,) if inverse else ()), *((times,) if counts else ()))
    return picked if len(picked) > 1 else found
