"""Reductions: many numbers to one. In rules, `g` and `out` have the reduced dimensions kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rushlight.base.dtypes import bool_, uint8
from rushlight.base.errors import runtime_error
from rushlight.core.build import averaging, build, general, inner, inner_floating, reduction
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, holder
from rushlight.core.views import check_out, into
from rushlight.core.worlds import adopt, shared
from rushlight.kernels import reduce as kernels
from rushlight.ops.composites import composite
from rushlight.ops.tensor.node_names import of_reduction

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import (
        cast,
        cat,
        count,
        exp,
        expand,
        flip,
        isfinite,
        isnan,
        log,
        narrow,
        permute,
        reshape,
        scatter_add,
        single,
        unpermute,
        unsqueeze,
        var,
        where,
        zeros,
    )

adopt(kernels)


def same_out(op, out, result):
    check_out(out)
    if out.dtype is not result.dtype:
        raise runtime_error(
            f"Expected the dtype for input and out to match, but got {result.dtype.scalar_type} for input's dtype "
            f"and {out.dtype.scalar_type} for out's dtype.",
            f"give an out= of dtype {result.dtype}",
            op=op.name,
        )
    return into(out, result)


def bool_out(op, out, result):
    check_out(out)
    if out.dtype not in (bool_, uint8):
        raise runtime_error(
            f"{op.name} only supports bool tensor for result, got: {out.dtype.scalar_type}",
            "give an out= of dtype bool",
        )
    return into(out, result)


# fmt: off
sum = reduction(lambda x, /, dim=None, keepdim=False: sum(x, dim, keepdim), x=lambda g, x_shape: expand(g, x_shape),
    node=of_reduction("Sum"), linear="x")
nansum = reduction(lambda x, /, dim=None, keepdim=False: sum(where(isnan(x), 0, x), dim, keepdim),
    x=lambda g, x: where(isnan(x), 0, g), takes="buif")
mean = averaging(lambda x, /, dim=None, keepdim=False: mean(x, dim, keepdim),
    x=lambda g, x_shape, n: expand(shared_by(g, n), x_shape), node=of_reduction("Mean"), linear="x", takes="fc")
prod = reduction(lambda x, /, dim=None, keepdim=False: prod(x, dim, keepdim),
    x=lambda g, x, out, dims: g * product_of_others(x, out, dims), node=of_reduction("Prod"), wide_rules=True)
amax = reduction(lambda x, /, dim=None, keepdim=False: amax(x, dim, keepdim),
    x=lambda g, x, out, dims: g * evenly(standing(x, out), dims, g),
    out=same_out, exact=True, wide_rules=True, takes="buif")
amin = reduction(lambda x, /, dim=None, keepdim=False: amin(x, dim, keepdim),
    x=lambda g, x, out, dims: g * evenly(standing(x, out), dims, g),
    out=same_out, exact=True, wide_rules=True, takes="buif")
# fmt: on


def log_of_sum(x, dim=None, keepdim=False):
    """log sum exp(x), shifted by the largest element unless that is infinite or nan."""
    top = amax(x, dim, True)
    top = where(isfinite(top), top, 0.0)
    return log(sum(exp(x - top), dim, True)) + top


# fmt: off
logsumexp = averaging(lambda x, /, dim=None, keepdim=False: logsumexp(x, dim, keepdim),
    x=lambda g, x, out: g * exp(x - out), parts=log_of_sum, wide_rules=True)
all = reduction(lambda x, /, dim=None, keepdim=False: all(x, dim, keepdim), out=bool_out, empty=())
any = reduction(lambda x, /, dim=None, keepdim=False: any(x, dim, keepdim), out=bool_out, empty=())
# fmt: on


def variance(x, axes, correction):
    """The mean squared distance from the mean, with the divisor n - correction."""
    d = x - mean(x, axes, True)
    return sum(d * d, axes, True) / (count(x, axes) - correction)


# fmt: off
var_core = inner_floating(lambda x, /, axes, correction: var(x, axes, True, correction),
    x=lambda g, x, axes, correction: g * spread(x, axes, correction) * (x - mean(x, axes, True)),
    parts=variance, node="VarBackward0", batched="shift", sizes="all", wide_rules=True)
# fmt: on


def shares(x, dim):
    """exp(x) / sum exp(x), shifted by the largest element so that nothing overflows."""
    e = exp(x - amax(x, dim, True))
    return e / sum(e, dim, True)


def log_shares(x, dim):
    shifted = x - amax(x, dim, True)
    return shifted - log(sum(exp(shifted), dim, True))


# fmt: off
softmax = inner_floating(lambda x, /, dim: softmax(x, dim), x=lambda g, out, dim: out * (g - sum(g * out, dim, True)),
    parts=shares, batched="shift", sizes="all", wide_rules=True, takes="f")
log_softmax = inner_floating(lambda x, /, dim: log_softmax(x, dim),
    x=lambda g, out, dim: g - exp(out) * sum(g, dim, True),
    parts=log_shares, batched="shift", sizes="all", wide_rules=True, takes="f")
# fmt: on


def sizes_of_topk(x, k, dim, *how):
    """The sizes of values and indices: k along `dim`."""
    if not x.shape or not -len(x.shape) <= dim < len(x.shape) or not 0 <= k <= x.shape[dim]:
        return None
    dim %= len(x.shape)
    shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
    return [(shape, x.dtype), (shape, np.dtype(np.int64))]


# fmt: off
argmax = general(lambda x, /, dim=None, keepdim=False: argmax(x, dim, keepdim), sizes="all", takes="uif")
argmin = general(lambda x, /, dim=None, keepdim=False: argmin(x, dim, keepdim), sizes="all", takes="uif")
max_dim = inner(lambda x, /, dim, keepdim=False: max_dim(x, dim, keepdim),
    x=lambda gs, x_shape, indices, dim, keepdim: put_along(gs[0], indices, x_shape, dim, keepdim),
    outputs="values indices", node="MaxBackward0", called="max", batched="shift", sizes="all", takes="buif")
min_dim = inner(lambda x, /, dim, keepdim=False: min_dim(x, dim, keepdim),
    x=lambda gs, x_shape, indices, dim, keepdim: put_along(gs[0], indices, x_shape, dim, keepdim),
    outputs="values indices", node="MinBackward0", called="min", batched="shift", sizes="all", takes="buif")
sort = general(lambda x, /, dim=-1, descending=False, stable=False: sort(x, dim, descending, stable),
    x=lambda gs, x_shape, indices, dim: put_along(gs[0], indices, x_shape, dim, True),
    outputs="values indices", batched="shift", sizes="all", takes="buif")
topk = general(lambda x, /, k, dim=-1, largest=True, sorted=True: topk(x, k, dim, largest, sorted),
    x=lambda gs, x_shape, indices, dim: put_along(gs[0], indices, x_shape, dim, True),
    outputs="values indices", batched="shift", sizes=sizes_of_topk, takes="uif")
cummax = general(lambda x, /, dim: cummax(x, dim),
    x=lambda gs, indices, dim, x_shape: scatter_add(zeros(x_shape, gs[0]), indices, gs[0], dim),
    outputs="values indices", batched="shift", sizes="all", takes="buif0")
cumsum = inner(lambda x, /, dim: cumsum(x, dim), x=lambda g, dim: flip(cumsum(flip(g, (dim,)), dim), (dim,)),
    batched="shift", linear="x", sizes="all")
cumprod = inner(lambda x, /, dim: cumprod(x, dim), x=lambda g, x, out, dim: cumprod_gradient(g, x, out, dim),
    batched="shift", sizes="all", wide_rules=True)
# fmt: on


@shared
def shared_by(g, n):
    """g / n. Half precision may not hold a count of more than 256."""
    if n <= 256:
        return g / n
    wide = single(g)
    return wide / n if wide is g else cast(wide / n, g)


@shared
def standing(x, out):
    """True where x equals the reduction's result, which may be nan."""
    return (x == out) | ((x != x) & (out != out)) if somewhere(out != out) else x == out


@shared
def evenly(mask, dims, g):
    """1 / count where the mask is true: ties share the gradient. g must not have half precision, which may not hold the
    count (`wide_rules`).
    """
    return cast(mask, g) / cast(sum(mask, dims, True), g)


@shared
def put_along(g, indices, shape, dim, keepdim):
    """Zeros of `shape` with g at `indices` along `dim`."""
    if not keepdim:
        g, indices = unsqueeze(g, dim), unsqueeze(indices, dim)
    return scatter_add(zeros(shape, g), indices, g, dim)


@shared
def spread(x, axes, correction):
    """2 / (n - correction), the derivative of a variance by a squared distance."""
    n = 1
    for d in range(len(x.shape)) if axes is None else axes:
        n *= x.shape[d]
    return 2 / (n - correction) if n > correction else float("inf")


@shared
def product_of_others(x, out, dims):
    """For each element the product of all others in its slice, also if elements are 0."""
    if not x.shape:  # a scalar: the empty product
        return zeros(x.shape, x) + 1
    if not somewhere(x == 0):
        return out / x
    rest = tuple(d for d in range(len(x.shape)) if d not in dims)
    y = permute(x, rest + tuple(dims))
    flat = reshape(y, y.shape[: len(rest)] + (-1,))
    before = product_before(flat, len(rest))
    after = flip(product_before(flip(flat, (-1,)), len(rest)), (-1,))
    return unpermute(reshape(before * after, y.shape), rest + tuple(dims))


@shared
def product_before(x, dim):
    """1, x0, x0 x1, ... along the dimension."""
    n = x.shape[dim]
    return cat((zeros(narrow(x, dim, 0, 1).shape, x) + 1, narrow(cumprod(x, dim), dim, 0, n - 1)), dim)


@shared
def cumprod_gradient(g, x, out, dim):
    """sum over i >= k of g_i out_i / x_k; where some x are 0, (x_0 ... x_{k-1}) (g_k + x_{k+1} (g_{k+1} + x_{k+2}
    (...))).

    The second form is computed by doubling: let `total` be the sum of k terms and `factor` the product of k x; then the
    sum of 2k terms is total_i + factor_i total_{i + k} (Blelloch, Prefix sums and their applications, 1990).
    """
    if not len(x.shape) or x.shape[dim] < 2:  # no preceding elements
        return g
    if not somewhere(x == 0):
        return flip(cumsum(flip(g * out, (dim,)), dim), (dim,)) / x
    total, factor, step = g, further(x, dim, 1), 1
    while step < x.shape[dim]:
        total = total + factor * further(total, dim, step)
        factor, step = factor * further(factor, dim, step), 2 * step
    return product_before(x, dim) * total


@shared
def further(x, dim, step):
    """x shifted by `step` along the dimension: out_i = x_{i + step}; 0 beyond the end."""
    n = x.shape[dim]
    return cat((narrow(x, dim, step, n - step), zeros(narrow(x, dim, 0, step).shape, x)), dim)


build(globals())


@composite(tensor=False, function=False)
def somewhere(x: Tensor) -> bool:
    """Whether any element is true, in any sample of vmap. Rules use this to choose a shorter formula. Always true while
    a program is recorded, because a later run may have such elements."""
    watch = mode().watch
    return (watch is not None and watch.records) or bool(any(holder(x)))
