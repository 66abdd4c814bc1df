"""Reductions, softmax, sorting and running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.onnx.to_onnx.elementwise import WORLD, exp, isnan, log, sqrt, where
from rushlight.onnx.to_onnx.onnx_graph import BOOL, INT64, Symbol
from rushlight.onnx.to_onnx.rules import Step, dims_of, expresses, fixed
from rushlight.onnx.to_onnx.sizes import product
from rushlight.ops.math import rare_functions
from rushlight.ops.reduce import reduce, scans, sorting, vector_norm


def reduced(operator: str, x: Symbol, dims: tuple[int, ...], keepdim: Any = False) -> Symbol:
    """A reduction over dimensions."""
    if not dims:
        return x
    if x.dtype.kind in "iu" and x.dtype.itemsize < 4:  # which ONNX does not take
        return reduced(operator, x.to(np.int32), dims, keepdim).to(x.dtype)
    return x.named(operator, x.graph.integers(dims), keepdims=int(bool(keepdim)))


def operator_of(step: Step) -> str:
    if step.runs(reduce.sum, reduce.nansum):
        return "ReduceSum"
    if step.runs(reduce.prod):
        return "ReduceProd"
    return "ReduceMean" if step.runs(reduce.mean) else "ReduceMax" if step.runs(reduce.amax) else "ReduceMin"


@expresses(reduce.sum, reduce.nansum, reduce.mean, reduce.prod, reduce.amax, reduce.amin)
def write_reduction(step: Step) -> Symbol:
    x, out = step.args[0], step.out.dtype
    if x.dtype == BOOL and out == BOOL:
        return reduced(operator_of(step), x.to(np.uint8), dims_of(step), step.setting(2)).to(BOOL)
    if step.runs(reduce.nansum):
        x = where(isnan(x), 0, x)
    if step.runs(reduce.mean) and any(x.shape[dim] == 0 for dim in dims_of(step)):
        return step.graph.filled(step.out.shape, np.nan, out)
    return reduced(operator_of(step), x.to(out), dims_of(step), step.setting(2))


@expresses(reduce.all, reduce.any)
def write_all(step: Step) -> Symbol:
    """Whether the number of true elements is not 0; for `all`, whether the number of false ones is."""
    truth, every = step.args[0].to(BOOL), step.runs(reduce.all)
    count = reduced("ReduceSum", (~truth if every else truth).to(np.int32), dims_of(step), step.setting(2))
    return (count == 0 if every else count != 0).to(step.out.dtype)


@expresses(reduce.logsumexp)
def write_logsumexp(step: Step) -> Symbol:
    x, dims = step.args[0].to(step.out.dtype), dims_of(step)
    top = reduced("ReduceMax", x, dims, True)
    top = where(WORLD["isfinite"](top), top, 0.0)
    found = log(reduced("ReduceSum", exp(x - top), dims, True)) + top
    return found if step.setting(2) else x.graph.squeezed(found, dims)


@expresses(reduce.var_core)
def write_variance(step: Step) -> Symbol:
    x, dims, correction = step.args[0].to(step.out.dtype), dims_of(step), step.args[2]
    away = x - reduced("ReduceMean", x, dims, True)
    divisor = WORLD["maximum"](counted(x, dims).to(x.dtype) - float(correction), 0.0)
    return reduced("ReduceSum", away * away, dims, True) / divisor


def counted(x: Symbol, dims: tuple[int, ...]) -> Symbol:
    """The number of elements along dimensions."""
    return x.graph.scalar(product([x.shape[dim] for dim in dims]))


@expresses(reduce.softmax, reduce.log_softmax)
def write_softmax(step: Step) -> Symbol:
    x = step.args[0].to(step.out.dtype)
    if not x.ndim:
        return x * 0 + (1 if step.runs(reduce.softmax) else 0)
    return x.named("Softmax" if step.runs(reduce.softmax) else "LogSoftmax", axis=step.args[1] % x.ndim)


@expresses(vector_norm.vector_norm)
def write_norm(step: Step) -> Symbol:
    (x, p, axes), keepdim = step.args[:3], step.setting(3, False)
    dims = dims_of(step._replace(args=(x, axes)))
    size = abs(x.to(step.out.dtype))
    if abs(p) == float("inf"):
        return reduced("ReduceMax" if p > 0 else "ReduceMin", size, dims, keepdim)
    if p == 2:
        return reduced("ReduceL2", size, dims, keepdim)
    if p == 1:
        return reduced("ReduceL1", size, dims, keepdim)
    return reduced("ReduceSum", size ** float(p), dims, keepdim) ** (1 / p)


@expresses(vector_norm.nonzeros)
def write_nonzeros(step: Step) -> Symbol:
    x, axes = step.args[:2]
    dims = dims_of(step._replace(args=(x, axes)))
    return reduced("ReduceSum", (x != 0).to(step.out.dtype), dims, step.setting(2, False))


@expresses(vector_norm.euclidean)
def write_distances(step: Step) -> Symbol:
    x, y = step.args
    away = x.graph.unsqueezed(x, [x.ndim - 1]) - x.graph.unsqueezed(y, [y.ndim - 2])
    return sqrt(reduced("ReduceSum", away * away, (x.ndim,)))


# -- places of elements ------------------------------------------------------------------------------


@expresses(reduce.argmax, reduce.argmin)
def write_argmax(step: Step) -> Symbol:
    x, dim, keepdim = step.args[0], step.setting(1), bool(step.setting(2))
    operator = "ArgMax" if step.runs(reduce.argmax) else "ArgMin"
    x = numeric(x)
    if dim is None:
        found = x.graph.reshaped(x, [-1]).named(operator, dtype=INT64, axis=0, keepdims=0)
        return x.graph.reshaped(found, [1] * x.ndim) if keepdim else found
    if not x.ndim:
        return x.graph.constant(np.array(0, np.int64))
    return x.named(operator, dtype=INT64, axis=dim % x.ndim, keepdims=int(keepdim))


def numeric(x: Symbol) -> Symbol:
    """x, with int32 in place of a dtype that ONNX's sorting and comparing operators do not take."""
    return x if x.dtype.kind == "f" or x.dtype in (INT64, np.dtype(np.int32)) else x.to(np.int32)


@expresses(reduce.max_dim, reduce.min_dim)
def write_max(step: Step) -> list:
    x, dim, keepdim = step.args[0], step.args[1], bool(step.setting(2))
    if not x.ndim:
        return [x, x.graph.constant(np.array(0, np.int64))]
    largest = step.runs(reduce.max_dim)
    values = reduced("ReduceMax" if largest else "ReduceMin", numeric(x), (dim % x.ndim,), keepdim).to(x.dtype)
    operator = "ArgMax" if largest else "ArgMin"
    return [values, numeric(x).named(operator, dtype=INT64, axis=dim % x.ndim, keepdims=int(keepdim))]


@expresses(reduce.topk)
def write_topk(step: Step) -> list:
    (x, k), dim = step.args[:2], step.setting(2, -1)
    return top(x, k, dim, step.setting(3, True)) if x.ndim else [x, x.graph.constant(np.array(0, np.int64))]


def top(x: Symbol, k: Any, dim: int, largest: bool) -> list[Symbol]:
    """The k largest or smallest elements, in order, and their places; of equal elements the first comes first."""
    inputs = [numeric(x), x.graph.number(k)]
    results = [(inputs[0].dtype, None), (INT64, None)]
    values, at = x.graph.nodes_of("TopK", inputs, results, axis=dim % x.ndim, largest=int(bool(largest)), sorted=1)
    return [values.to(x.dtype), at]


@expresses(reduce.sort)
def write_sort(step: Step) -> list:
    x, dim, descending = step.args[0], step.setting(1, -1), step.setting(2, False)
    if not x.ndim:
        return [x, x.graph.constant(np.array(0, np.int64))]
    return top(x, x.shape[dim], dim, descending)


@expresses(sorting.kthvalue)
def write_kthvalue(step: Step) -> list:
    (x, k), dim, keepdim = step.args[:2], step.setting(2, -1), step.setting(3, False)
    return picked(x, k - 1, dim, keepdim) if x.ndim else [x, x.graph.constant(np.array(0, np.int64))]


def picked(x: Symbol, place: int, dim: int, keepdim: bool) -> list[Symbol]:
    """The element at a place of each sorted row, and where it stands in the row."""
    dim %= x.ndim
    found = [x.graph.sliced(part, dim, place, place + 1) for part in top(x, x.shape[dim], dim, False)]
    return found if keepdim else [x.graph.squeezed(part, [dim]) for part in found]


@expresses(sorting.median_dim)
def write_median(step: Step) -> list:
    (x, dim), keepdim = step.args[:2], step.setting(2, False)
    if not x.ndim:
        return [x, x.graph.constant(np.array(0, np.int64))]
    return picked(x, (fixed(x.shape[dim], "size") - 1) // 2, dim, keepdim)


@expresses(sorting.median_all)
def write_median_all(step: Step) -> Symbol:
    x = step.args[0]
    total: Any = product(fixed(x.shape, "size"))
    flat = x.graph.reshaped(x, [total])
    return picked(flat, (total - 1) // 2, 0, False)[0]


@expresses(rare_functions.crossed)
def write_cross(step: Step) -> Symbol:
    """(x1 y2 - x2 y1, x2 y0 - x0 y2, x0 y1 - x1 y0) along a dimension."""
    x, y, behind = step.args
    following, last = (step.graph.constant(np.array(places)) for places in ((1, 2, 0), (2, 0, 1)))

    def taken(a: Symbol, at: Symbol) -> Symbol:
        return a.named("Gather", at, axis=a.ndim - 1 - behind)

    return taken(x, following) * taken(y, last) - taken(x, last) * taken(y, following)


@expresses(sorting.places)
def write_searchsorted(step: Step) -> Symbol:
    """The number of elements of each sorted row that stand before a value."""
    x, values, sorter, right = step.args[:4]
    graph = step.graph
    if sorter is not None:
        x = x.named("GatherElements", sorter, axis=x.ndim - 1, shape=x.shape)
    row, value = graph.unsqueezed(x, [x.ndim - 1]), graph.unsqueezed(values, [values.ndim])
    before = (row <= value) if right else (row < value)
    return reduced("ReduceSum", before.to(INT64), (max(values.ndim, x.ndim - 1),)).to(step.out.dtype)


@expresses(sorting.among)
def write_isin(step: Step) -> Symbol:
    elements, among, invert = step.args
    graph = step.graph
    flat = graph.reshaped(among, [-1]) if among.ndim != 1 else among
    same = graph.unsqueezed(elements, [elements.ndim]) == flat
    count = reduced("ReduceSum", same.to(np.int32), (elements.ndim,))
    return count == 0 if invert else count != 0


# -- running sums ------------------------------------------------------------------------------------


@expresses(reduce.cumsum)
def write_cumsum(step: Step) -> Symbol:
    x, dim = step.args[0].to(step.out.dtype), step.args[1]
    return x.named("CumSum", x.graph.scalar(dim % x.ndim)) if x.ndim else x


@expresses(scans.logcumsumexp)
def write_logcumsumexp(step: Step) -> Symbol:
    x, dim = step.args[0], step.args[1]
    if not x.ndim:
        return x
    top_ = reduced("ReduceMax", x, (dim % x.ndim,), True)
    return log(exp(x - top_).named("CumSum", x.graph.scalar(dim % x.ndim))) + top_


@expresses(reduce.cumprod)
def write_cumprod(step: Step) -> Symbol:
    x = step.args[0].to(step.out.dtype)
    return doubled(x, step.args[1], lambda a, b: a * b, 1) if x.ndim else x


@expresses(reduce.cummax, scans.cummin)
def write_cummax(step: Step) -> list:
    """The running maxima, and the last place of each."""
    x, dim = step.args
    graph, largest = step.graph, step.runs(reduce.cummax)
    if not x.ndim:
        return [x, graph.constant(np.array(0, np.int64))]
    dim, whole = dim % x.ndim, numeric(x)
    low = -np.inf if whole.dtype.kind == "f" else float(np.iinfo(np.int32).min)
    found = doubled(whole, dim, WORLD["maximum" if largest else "minimum"], low if largest else -low - (low > -np.inf))
    places = graph.unsqueezed(graph.counted(x.shape[dim]), range(1, x.ndim - dim))
    at = where(whole == found, places, 0)
    at.shape = x.shape
    return [found.to(x.dtype), doubled(at, dim, WORLD["maximum"], 0)]


def doubled(x: Symbol, dim: int, function: Any, neutral: float) -> Symbol:
    """A running reduction by doubling: each element takes the one 1, 2, 4, ... places before it."""
    graph, dim, shift, shape = x.graph, dim % x.ndim, 1, x.shape
    size = fixed(shape[dim], "size")
    while shift < size:
        before = [0] * x.ndim
        before[dim] = shift
        pads = graph.integers([*before, *[0] * x.ndim])
        moved = graph.sliced(x.named("Pad", pads, graph.constant(np.array(neutral, x.dtype))), dim, 0, size)
        x, shift = function(x, moved), 2 * shift
        x.shape = shape
    return x
