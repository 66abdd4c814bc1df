"""Reductions, sorting, sums along dimensions."""

from __future__ import annotations

from typing import Any

from rushlight.ops.reduce import reduce, scans, sorting, vector_norm

from .rules import Step, called, expresses, same
from .writer import Symbol

same("default", reduce.cumprod, reduce.cumsum, scans.logcumsumexp, reduce.topk, reduce.logsumexp)
called("softmax.int", reduce.softmax)
called("log_softmax.int", reduce.log_softmax)
called("max.dim", reduce.max_dim)
called("min.dim", reduce.min_dim)
called("median.dim", sorting.median_dim)
called("kthvalue.default", sorting.kthvalue)
called("mode.default", sorting.mode)
called("cummax.default", reduce.cummax)
called("cummin.default", scans.cummin)


def dims_of(step: Step) -> list[int]:
    """The dimensions that a reduction goes over: None and () are all dimensions."""
    dims, ndim = step.setting(1), step.args[0].ndim
    if dims is None or dims == () or dims == []:
        return [*range(ndim)]
    return [*dims] if isinstance(dims, (tuple, list)) else [dims]


@expresses(reduce.sum, reduce.mean, reduce.nansum)
def write_sum(step: Step) -> Symbol:
    x, keepdim = step.args[0], bool(step.setting(2, False))
    if not x.ndim:
        return step.call(f"{step.op.name}.default", x)
    overload = {reduce.sum.op: "dim_IntList", reduce.mean.op: "dim"}.get(step.op, "default")
    return step.call(f"{step.op.name}.{overload}", x, dims_of(step), keepdim)


@expresses(reduce.amax, reduce.amin)
def write_extreme(step: Step) -> Symbol:
    return step.call(f"{step.op.name}.default", step.args[0], dims_of(step), bool(step.setting(2, False)))


@expresses(reduce.prod, reduce.any, reduce.all)
def write_one_by_one(step: Step) -> Symbol:
    """A reduction that ATen does over one dimension: the last one first."""
    x, dims, keepdim = step.args[0], step.setting(1), bool(step.setting(2, False))
    if dims is None:
        return step.call(f"{step.op.name}.default", x)
    overload = "dim_int" if step.runs(reduce.prod) else "dim"
    for dim in sorted([d % x.ndim for d in dims_of(step)], reverse=True):
        x = step.call(f"{step.op.name}.{overload}", x, dim, keepdim)
    return x


@expresses(reduce.argmax, reduce.argmin)
def write_place(step: Step) -> Symbol:
    x, dim = step.args[0], step.setting(1)
    dim = dim[0] if isinstance(dim, (tuple, list)) else dim
    return step.call(f"{step.op.name}.default", x, dim, bool(step.setting(2, False)))


@expresses(reduce.sort)
def write_sort(step: Step) -> Any:
    x, dim, descending, stable = (*step.args, False, False)[:4]
    return step.call("sort.stable", x, stable=bool(stable), dim=dim, descending=bool(descending))


@expresses(reduce.var_core)
def write_var(step: Step) -> Symbol:
    x, _, correction = step.args
    return step.call("var.correction", x, dims_of(step), correction=correction, keepdim=True)


@expresses(vector_norm.vector_norm)
def write_norm(step: Step) -> Symbol:
    x, order, axes, keepdim = step.args
    return step.call("linalg_vector_norm.default", x, order, None if axes is None else [*axes], bool(keepdim))
