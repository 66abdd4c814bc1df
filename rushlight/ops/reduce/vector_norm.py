"""Lengths of vectors, and distances between points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.core.build import build, inner
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import adopt, shared
from rushlight.kernels import norms as kernels
from rushlight.ops.reduce import reduce as reduce

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import evenly, index_copy, reshape, sgn, where, zeros, zeros_like

adopt(kernels)

# fmt: off
vector_norm = inner(lambda x, /, p, axes, keepdim=False: vector_norm(x, p, axes, keepdim),
    x=lambda g, x, out, p, axes: norm_gradient(kept(g, x, axes), x, kept(out, x, axes), p, axes),
    node="LinalgVectorNormBackward0", batched="shift", wide_rules=True)
# the norm of order 0, which has no gradient
nonzeros = inner(lambda x, /, axes, keepdim=False: vector_norm(x, 0, axes, keepdim), x=lambda g: no_gradient(g),
    node="LinalgVectorNormBackward0", batched="shift")
# distances between the rows of x (..., m, n) and y (..., k, n)
euclidean = inner(lambda x, y, /: euclidean(x, y), x=lambda g, x, y, out: drawn(g * per_length(out), x, y),
    y=lambda g, x, y, out: drawn((g * per_length(out)).mT, y, x), node="CdistBackward0", batched="matrix")
# distances of the rows i < j of x (n, m); `pairs` holds i n + j for each pair of rows
apart = inner(lambda x, pairs, /: apart(x, pairs),
    x=lambda g, x, pairs, out: drawn(both_ways(g * per_length(out), pairs, x.shape[0]), x, x), node="PdistBackward0")

# the largest |x_i - y_i| of two rows; each of several largest differences gets the whole gradient, as in torch
farthest = inner(lambda x, /: farthest(x), x=lambda g, x, out: apart_most(g, x, out),
    node="CdistBackward0", batched="matrix")
# fmt: on


@shared
def no_gradient(g):
    """None: the input gets no gradient, because the result is piecewise constant."""
    return None


@shared
def apart_most(g, x, out):
    """The derivative of max |x| along the last dimension; each of several largest elements gets the whole gradient."""
    g, out = reshape(g, tuple(g.shape) + (1,)), reshape(out, tuple(out.shape) + (1,))
    return where(abs(x) == out, g * sgn(x), 0)


@shared
def both_ways(w, pairs, n):
    """The values of pairs (i, j) as a symmetric matrix (n, n)."""
    w = reshape(index_copy(zeros((n * n,), w), pairs, w, 0), (n, n))
    return w + w.mT


@shared
def per_length(out):
    """1 / out, and 0 where out is 0. The second derivative there does not exist and is nan."""
    return where(out == 0, 0, 1 / out)


@shared
def ratio(g, out):
    """g / out, and 0 where out is 0. The second derivative there does not exist and is nan."""
    return where(out == 0, 0, g / out)


@shared
def drawn(w, x, y):
    """sum over j of w_ij (x_i - y_j)."""
    return x * sum(w, (len(w.shape) - 1,), True) - w @ y


@shared
def kept(r, x, axes):
    """A reduction of x with the reduced dimensions restored as size 1."""
    return reshape(r, tuple(1 if axes is None or i in axes else n for i, n in enumerate(x.shape)))


@shared
def norm_gradient(g, x, out, p, axes):
    """g sgn(x) (|x| / |x|_p)^(p - 1); for infinite p the largest elements share it; 0 at 0."""
    if p == 0:
        return zeros_like(x)
    if p == 1:
        return g * sgn(x)
    if p == 2:
        return g * ratio(x, out)
    size = abs(x)
    if p in (float("inf"), -float("inf")):
        return g * evenly(size == out, axes, g) * sgn(x)
    share = size / where(out == 0, 1, out)
    if p > 2:
        return g * sgn(x) * share ** (p - 1)
    none = (x == 0) | (out == 0)
    return g * sgn(x) * where(none, 0, where(none, 1, share) ** (p - 1))


build(globals())


def norm_of_order(x: Tensor, p: float, axes: Any, keepdim: bool) -> Tensor:
    """The public norm. For order 0 the input gets no gradient; `vector_norm` would give it a gradient of zeros."""
    return vector_norm(x, p, axes, keepdim) if p else nonzeros(x, axes, keepdim)
