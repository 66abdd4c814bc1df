"""Rarely used scans: running minima, and sums of exponentials; cumsum, cumprod and cummax are in reduce.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, general
from rushlight.core.worlds import adopt, shared
from rushlight.kernels import scans as kernels

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import cat, cumsum, exp, log, narrow, scatter_add, where, zeros

adopt(kernels)

# fmt: off
cummin = general(lambda x, /, dim: cummin(x, dim),
    x=lambda gs, indices, dim, x_shape: scatter_add(zeros(x_shape, gs[0]), indices, gs[0], dim),
    outputs="values indices", batched="shift", sizes="all", takes="buif0")
logcumsumexp = general(lambda x, /, dim: log(cumsum(exp(x), dim)),
    x=lambda g, x, out, dim: exp(x - firm(out)) * decayed(g, out, dim),
    batched="shift", sizes="all", wide_rules=True, takes="fc")
# fmt: on


@shared
def firm(x):
    """x with 0 in place of -inf, so that it can be subtracted."""
    return where(x == -float("inf"), 0, x)


@shared
def decayed(g, out, dim):
    """h_k = sum over i >= k of g_i exp(out_k - out_i), which is g_k + a_k h_(k+1): by doubling, in log n steps.

    No exponent is above 0 for real numbers, so nothing overflows, and the result is linear in g."""
    n, step = (out.shape or (1,))[dim], 1
    if n < 2:
        return g
    one, following = narrow(out, dim, 0, n - 1), narrow(out, dim, 1, n - 1)
    # equal numbers may be infinite: their difference would be nan
    a = padded(exp(where(one == following, 0, one - firm(following))), dim, 1)
    while step < n:
        g = g + a * ahead(g, dim, step)
        a = a * ahead(a, dim, step)
        step *= 2
    return g


@shared
def ahead(x, dim, step):
    """x shifted by `step`: out_i = x_{i + step}; 0 beyond the end."""
    return padded(narrow(x, dim, step, x.shape[dim] - step), dim, step)


@shared
def padded(x, dim, n):
    """x followed by n zeros."""
    return cat((x, zeros(x.shape[:dim] + (n,) + x.shape[dim + 1 :], x)), dim)


build(globals())
