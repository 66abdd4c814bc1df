"""Quantiles, counts and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import index_error, not_implemented_error, runtime_error, type_error, value_error
from rushlight.base.return_types import return_type
from rushlight.core.arguments import all_true, integer, reduced_dims, wrap
from rushlight.core.build import build, inner
from rushlight.core.tensor import Tensor, created, from_array, noticed
from rushlight.core.worlds import adopt
from rushlight.creation.ranges import linspace
from rushlight.kernels import histograms as kernels
from rushlight.kernels.float16 import is_half, single
from rushlight.ops.composites import composite, given
from rushlight.ops.index.along_dim import gather
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce import reduce as r
from rushlight.ops.shape.views import clone, expand, permute, reshape, to
from rushlight.ops.tensor.node_names import called

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import not_implemented

adopt(kernels)

# fmt: off
counted = inner(lambda x, weights, /, minlength: bincount(x, weights, minlength),
    weights=lambda g: not_implemented("bincount"),
    kernel=kernels.bincount, called="bincount", batched="dynamic", node="NotImplemented")
from_these = inner(lambda tensors, /: from_these(tensors), tensors=lambda g: not_implemented("histogram"),
    kernel=lambda tensors: tensors[0], called="histogram", node="NotImplemented")
hashed = inner(lambda x, /, axes, keepdim: hashed(x, axes, keepdim), called="hash_tensor", batched="shift")
# fmt: on

build(globals())

Extremes = return_type("aminmax", ["min", "max"])
Histogram = return_type("histogram", ["hist", "bin_edges"])
HistogramDD = return_type("histogramdd", ["hist", "bin_edges"])


@composite()
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """(min, max) of all elements or along `dim`; elements that tie share the gradient.

    RuntimeError (with `dim` IndexError) if there are no elements.

    >>> rushlight.aminmax(rushlight.tensor([3, 1, 2]))
    torch.return_types.aminmax(
    min=tensor(1),
    max=tensor(3))
    """
    if dim is None and not input._array.size:
        raise runtime_error(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.",
            shape=tuple(input.shape),
        )
    if dim is not None and input._array.ndim and not input._array.shape[wrap(dim, input._array.ndim)]:
        raise index_error(f"aminmax: Expected reduction dim {dim} to have non-zero size.", shape=tuple(input.shape))
    for t in out or ():
        if t.dtype is not input.dtype:
            raise runtime_error(
                f"Expected out tensor to have dtype {NAMES.get(input.dtype, input.dtype)}, but got "
                f"{NAMES.get(t.dtype, t.dtype)} instead"
            )
    return given(out, Extremes(called(f(input, dim, keepdim), "AminmaxBackward0") for f in (r.amin, r.amax)))


# names of dtypes in torch's messages: C types
NAMES = {
    dtypes.float32: "float",
    dtypes.float64: "double",
    dtypes.int32: "int",
    dtypes.int64: "long int",
    dtypes.bool_: "bool",
    dtypes.int16: "short int",
    dtypes.int8: "signed char",
    dtypes.uint8: "unsigned char",
}


@composite()
def nanmean(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """The mean of the elements that are not nan, over `dim` (all if None); nan if all are nan.

    >>> rushlight.nanmean(rushlight.tensor([1., rushlight.nan, 3.]))
    tensor(2.)
    """
    if input.dtype.category < dtypes.FLOATING:
        raise runtime_error(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.scalar_type}",
            "convert: x.float()",
        )
    half = input.dtype.itemsize == 2  # float16 can neither count to 70,000 nor hold such sums
    known = r.sum(to(e.eq(input, input), dtypes.float32 if half else input.dtype), dim, keepdim)
    made = e.div(r.nansum(input, dim, keepdim, dtype=dtypes.float32 if half and dtype is None else dtype), known)
    return given(
        out, to(made, input.dtype if dtype is None else dtypes.as_dtype(dtype)) if half or dtype is not None else made
    )


@composite()
def hash_tensor(
    input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Tensor | None = None
) -> Tensor:
    """The exclusive or of the elements' bits, each widened to 64: equal tensors have equal hashes. uint64.

    >>> rushlight.hash_tensor(rushlight.tensor([1, 2]))
    tensor(3, dtype=torch.uint64)
    """
    if mode != 0:
        raise runtime_error(f"Unknown hash_tensor mode: {mode}", "the only mode is 0")
    if input.is_complex():
        raise not_implemented_error(f"\"hash_tensor\" not implemented for '{input.dtype.scalar_type}'")
    if not input._array.size and not isinstance(dim, int) and not tuple(dim):
        raise runtime_error(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
            "dim with the 'dim' argument."
        )
    dims = reduced_dims(dim, input._array.ndim)
    for d in dims or ():
        if input._array.shape[d : d + 1] == (0,):
            raise index_error(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    return given(out, hashed(input, dims, keepdim))


# -- quantiles -------------------------------------------------------------------------------------


@composite()
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """The q-quantile of all elements or along `dim`: the fraction q of the elements is below it. `interpolation`
    chooses the value between two elements.

    `q`: a number in [0, 1], or a 1-d tensor of such numbers, whose dimension is then the first dimension of the result.
    `interpolation`: 'linear', 'lower', 'higher', 'midpoint' or 'nearest'. nan if an element is nan. RuntimeError for an
    empty tensor, another dtype than float32 and float64, and q out of range.

    >>> rushlight.quantile(rushlight.tensor([0., 1., 2., 3.]), 0.5)
    tensor(1.5000)
    """
    return given(out, quantiles("quantile", input, q, dim, keepdim, interpolation))


@composite()
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """`quantile` of the elements that are not nan; nan if all are nan.

    >>> rushlight.nanquantile(rushlight.tensor([0., rushlight.nan, 2.]), 0.5)
    tensor(1.)
    """
    return given(out, quantiles("nanquantile", input, q, dim, keepdim, interpolation))


def quantiles(name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    check_quantile(name, input, q, interpolation)
    size = tuple(input._array.shape)
    parts = q if isinstance(q, Tensor) else created(from_array(np.asarray(q, input._array.dtype)))
    dim = None if dim is None else wrap(dim, len(size))
    if dim is None or not size:
        x, kept, rest = reshape(input, (-1,)), (1,) * len(size), ()
    else:
        others = tuple(d for d in range(len(size)) if d != dim)
        x, kept = permute(input, (*others, dim)), tuple(1 if d == dim else n for d, n in enumerate(size))
        rest = tuple(size[d] for d in others)
    ordered = r.sort(x, -1)[0]
    found = between(ordered, ranks_of(name, ordered, parts), interpolation)  # (rest, number of q)
    found = permute(found, (len(rest), *range(len(rest))))
    return reshape(found, (*parts._array.shape, *(kept if keepdim else rest)))


def ranks_of(name: str, ordered: Tensor, parts: Tensor) -> Tensor:
    """The position of each quantile among the sorted elements: (..., number of q). The last position if there is a
    nan."""
    n = ordered._array.shape[-1]
    lost, flat = e.isnan(ordered), reshape(parts, (-1,))
    if name == "quantile":
        ranks = expand(e.mul(flat, n - 1), (*ordered._array.shape[:-1], flat._array.size))
        return e.where(r.any(lost, -1, True), n - 1, ranks)
    left = e.clamp_min(e.sub(n - 1, r.sum(lost, -1, True)), 0)
    return e.mul(flat, to(left, ordered.dtype))


def between(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """The elements at fractional ranks."""
    whole = {"lower": e.floor, "higher": e.ceil, "nearest": e.round}.get(interpolation, e.floor)
    below = whole(ranks)
    low = gather(ordered, -1, to(below, dtypes.int64))
    if interpolation in ("lower", "higher", "nearest"):
        return low
    weight = e.sub(ranks, below) if interpolation == "linear" else 0.5
    high = gather(ordered, -1, to(e.ceil(ranks), dtypes.int64))
    return e.lerp(low, high, weight)


def check_quantile(name: str, input: Tensor, q: Any, interpolation: str) -> None:
    """RuntimeError for arguments that torch rejects, with torch's messages."""
    wrong = None
    if not input._array.size:
        wrong = "input tensor must be non-empty"
    elif input.dtype not in (dtypes.float32, dtypes.float64):
        wrong = "input tensor must be either float or double dtype"
    elif isinstance(q, Tensor) and q._array.ndim > 1:
        wrong = "q must be a scalar or 1D tensor"
    elif isinstance(q, Tensor) and q.dtype is not input.dtype:
        wrong = "q tensor must be same dtype as the input tensor"
    elif isinstance(q, Tensor) and not all_true((q >= 0) & (q <= 1)):
        wrong = "q values must be in the range [0, 1]"
    elif not isinstance(q, Tensor) and not 0 <= q <= 1:
        wrong = f"q must be in the range [0, 1] but got {q}"
    elif interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        wrong = f"interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
    if wrong:
        raise runtime_error(f"{name}() {wrong}", dtype=input.dtype, shape=tuple(input.shape))


# -- counts ----------------------------------------------------------------------------------------


@composite(looks=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The count of 0, 1, ... in `input`, or the sum of their weights. The result has at least `minlength` elements.

    RuntimeError for other inputs than one dimension of nonnegative integers, and for weights of another shape.

    >>> rushlight.bincount(rushlight.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    x = input._array
    if x.dtype.kind not in "iu":
        raise not_implemented_error(f"\"bincount_cpu\" not implemented for '{input.dtype.scalar_type}'")
    if minlength < 0:
        raise runtime_error("minlength should be >= 0", minlength=minlength)
    if x.ndim != 1 or (x.size and x.min() < 0):
        raise runtime_error("bincount only supports 1-d non-negative integral inputs.", shape=tuple(x.shape))
    if weights is not None and weights._array.shape != x.shape:
        raise runtime_error(
            "weights should be 1-d and have the same length as input", shape=x.shape, weights=weights._array.shape
        )
    return counted(input, weights, minlength)


@composite(looks=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
    """The count of elements in each of `bins` equal parts of [min, max] (of the elements' own range if min == max).

    >>> rushlight.histc(rushlight.tensor([1., 2., 2., 4.]), bins=3, min=1, max=4)
    tensor([1., 2., 1.])
    """
    half = is_half(input._array)  # float16 can hold neither a count nor a position
    x = (single(input._array) if half else floats("histogram_cpu", input)._array).reshape(-1)
    check_bins([bins])
    min, max = (bound.item() if isinstance(bound, Tensor) else bound for bound in (min, max))
    if max < min:
        raise runtime_error("torch.histc: max must be larger than min", min=min, max=max)
    low, high = (min, max) if min != max or not x.size else (x.min(), x.max())
    if not (isfinite(low) and isfinite(high)):
        raise runtime_error(
            f"torch.histc: range of [{low:g}, {high:g}] is not finite", "does the input contain nan or inf?"
        )
    if low == high:
        low, high = low - 1, high + 1
    counts = kernels.counts_in_range(x, bins, low, high).astype(input._array.dtype, copy=False)
    return given(out, from_array(counts))


@composite(looks=True)
def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """(hist, bin_edges): the count or total weight of the elements in [edge_i, edge_(i+1)); the last bin is closed.

    `bins`: the number of equal parts of `range` (default: the range of all elements), or a tensor of edges. `density`
    divides by the total and the width of each bin. Elements outside the edges are ignored. RuntimeError for other
    dtypes and shapes.

    >>> rushlight.histogram(rushlight.tensor([1., 2., 2., 4.]), 3, range=(1., 4.)).hist
    tensor([1., 2., 1.])
    """
    points = reshape(floats("histogramdd", input), (-1, 1))
    flat = None if weight is None or weight._array.shape != input._array.shape else reshape(weight, (-1,))
    bins = clone(bins) if isinstance(bins, Tensor) else integer(bins, "bins")
    hist, edges = boxes(points, [bins], range, weight if flat is None else flat, density)
    return given(out, Histogram((hist, edges[0])))


@composite(tensor=False, looks=True)
def histogramdd(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """(hist, bin_edges) of points with d coordinates, input (..., d): the count or total weight of the points in each
    box.

    `bins`: for each coordinate the number of equal parts, or a tensor of edges. `range`: 2 d numbers. See `histogram`.

    >>> rushlight.histogramdd(rushlight.tensor([[0., 1.], [1., 0.]]), [2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])
    """
    if input._array.ndim < 2:
        raise runtime_error(
            f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {input._array.ndim}"
        )
    d = input._array.shape[-1]
    each = [bins] * d if isinstance(bins, int) else list(bins)
    if len(each) != d:
        raise runtime_error(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input.",
            bins=len(each),
            innermost=d,
        )
    if weight is not None and weight._array.shape == input._array.shape[:-1]:
        weight = reshape(weight, (-1,))
    points = reshape(floats("histogramdd", input), (prod(input._array.shape[:-1]), d))
    return HistogramDD(boxes(points, each, range, weight, density))


def floats(name: str, input: Tensor) -> Tensor:
    if input._array.dtype.kind != "f":
        raise not_implemented_error(f"\"{name}\" not implemented for '{input.dtype.scalar_type}'", "convert: x.float()")
    return input


def check_bins(bins: Sequence[int]) -> None:
    for i, n in enumerate(bins):
        if n <= 0:
            raise runtime_error(f"torch.histogram(): bins must be > 0, but got {n} for dimension {i}")


def boxes(points: Tensor, bins: list, range: Any, weight: Tensor | None, density: bool) -> tuple[Tensor, tuple]:
    """The histogram of points (n, d) and its edges."""
    x = points._array
    if weight is not None and weight._array.shape != x.shape[:1]:
        raise runtime_error(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(x.shape)} and weight with shape "
            f"{list(weight._array.shape)}"
        )
    if weight is not None and weight.dtype is not points.dtype:
        raise runtime_error(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the "
            f"same dtype, but got input({NAMES.get(points.dtype, points.dtype)}), and "
            f"weight({NAMES.get(weight.dtype, weight.dtype)})"
        )
    if not bins:  # no coordinates, so no boxes
        return from_array(np.asarray(nan if density else 0, x.dtype)), ()
    edges = edges_of(points, bins, range)
    hist = kernels.counts_between(x, edges, None if weight is None else weight._array)
    if density:
        hist = hist / hist.sum()
        for i, one in enumerate(edges):
            hist /= np.diff(one).reshape([-1 if d == i else 1 for d in np.arange(len(edges))])
    sources = [t for t in (points, weight, *bins) if isinstance(t, Tensor)]
    return from_these([from_array(hist), *sources]), tuple(from_these([from_array(one), *sources]) for one in edges)


def edges_of(points: Tensor, bins: list, range: Any) -> list[np.ndarray]:
    """The edges of the bins along each coordinate."""
    x, d = points._array, len(bins)
    if isinstance(bins[0], Tensor):
        for i, b in enumerate(bins):
            check_edges(i, b, points)
        return [b._array for b in bins]
    check_bins(bins)
    if range is not None and len(range) != 2 * d:
        raise runtime_error(
            f"torch.histogramdd: for a {d}-dimensional histogram range should have {2 * d} elements, but got "
            f"{len(range)}"
        )
    ends = range if range is not None else np.stack((x.min(0), x.max(0)), 1).ravel() if len(x) else [0, 1] * d
    return [
        spread(i, n, float(low), float(high), x.dtype)
        for i, (n, low, high) in enumerate(zip(bins, ends[::2], ends[1::2]))
    ]


def spread(i: int, n: int, low: float, high: float, dtype: np.dtype) -> np.ndarray:
    """n + 1 equally spaced edges; a range of width 0 is extended by half a unit on both sides."""
    if not (isfinite(low) and isfinite(high)):
        raise runtime_error(f"torch.histogramdd: dimension {i}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise runtime_error(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {i}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, n + 1, dtype=dtypes.of(dtype))._array


def check_edges(i: int, b: Tensor, points: Tensor) -> None:
    if b.dtype is not points.dtype:
        raise runtime_error(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with "
            f"dtype {NAMES.get(points.dtype, points.dtype)} and bins for dimension {i} with dtype "
            f"{NAMES.get(b.dtype, b.dtype)}"
        )
    if b._array.ndim != 1:
        raise runtime_error(
            f"torch.histogramdd: bins tensor should have one dimension, but got {b._array.ndim} dimensions in the "
            f"bins tensor for dimension {i}"
        )
    if not b._array.size:
        raise runtime_error(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins "
            f"tensor for dimension {i}"
        )
    check_bins([b._array.size - 1])


# -- places ----------------------------------------------------------------------------------------


@composite(tensor=False, looks=True)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates of flat indices in a tensor of this shape, an int64 tensor for each dimension.

    TypeError for indices that are not integers, ValueError for a shape with a negative size or too small.

    >>> rushlight.unravel_index(rushlight.tensor([4]), (2, 3))
    (tensor([1]), tensor([1]))
    """
    if not isinstance(indices, Tensor) or indices._array.dtype.kind not in "iu":
        raise type_error(f"expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', indices)}")
    if not isinstance(shape, (int, tuple, list)):
        raise type_error(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in shape:
        if not isinstance(n, (int, np.integer)):
            raise type_error(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in shape):
        raise value_error(f"'shape' cannot have negative values, but got {shape}")
    noticed(indices)
    rest, found = indices._array.astype(np.int64), []  # small integers cannot hold a size
    for n in reversed(shape):
        found.append(created(from_array(np.asarray(rest % n if n else rest))))
        rest = rest // n if n else rest
    return tuple(reversed(found))
