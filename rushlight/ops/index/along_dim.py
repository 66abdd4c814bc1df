"""Indexing along one dimension by index tensors. Users call most of these ops through ops/index/gather_scatter.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, inner
from rushlight.core.worlds import adopt, shared
from rushlight.kernels import index as kernels
from rushlight.kernels import scatter as reducing

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import cast, clone, embed, reshape, unsqueeze, where, zeros, zeros_like

adopt(kernels)
adopt(reducing)


def sizes_of_rows_summed(x, take, land, n):
    """The size of the result: n rows with the row shape of x."""
    return [((n, x.shape[1]), x.dtype)]


# fmt: off
gather = inner(lambda x, index, /, dim: gather(x, index, dim),
    x=lambda g, index, dim, x_shape: scatter_add(zeros(x_shape, g), index, g, dim),
    order="x dim index", linear="x", sizes="all")
scatter = inner(lambda x, index, source, /, dim: scatter(x, index, source, dim),
    x=lambda g, index, dim: scatter(g, index, zeros((), g), dim),
    source=lambda g, index, dim, source_shape: gather_part(g, index, dim, source_shape),
    order="x dim index source", onto=kernels.scatter_into, names={"source": "src"}, jointly="x source", sizes="all")
scatter_add = inner(lambda x, index, source, /, dim: scatter_add(x, index, source, dim), x=lambda g: g,
    source=lambda g, index, dim, source_shape: gather_part(g, index, dim, source_shape),
    order="x dim index source", onto=kernels.scatter_add_into, names={"source": "src"}, jointly="x source", sizes="all")
index_select = inner(lambda x, index, /, dim: index_select(x, index, dim),
    x=lambda g, index, dim, x_shape: index_add(zeros(x_shape, g), index, g, dim),
    order="x dim index", linear="x", sizes="all")
index_add = inner(lambda x, index, source, /, dim: index_add(x, index, source, dim), x=lambda g: g,
    source=lambda g, index, dim, source_shape: reshape(index_select(g, index, dim), source_shape),
    order="x dim index source", onto=kernels.index_add_into, jointly="x source", sizes="all")
index_copy = inner(lambda x, index, source, /, dim: index_copy(x, index, source, dim),
    x=lambda g, index, dim: index_copy(g, index, zeros_like(index_select(g, index, dim)), dim),
    source=lambda g, index, dim, source_shape: reshape(index_select(g, index, dim), source_shape),
    order="x dim index source", onto=kernels.index_copy_into, jointly="x source")

# -- elements reduced at positions along one dimension; the source has the shape of the index

reduce_at = inner(
    lambda x, index, source, /, dim, reduce, include_self=True: reduce_at(x, index, source, dim, reduce, include_self),
    x=lambda g, x, index, source, out, dim, reduce, include_self: kept_gradient(
        share_of_x(g, x, index, source, out, dim, reduce, include_self), index, dim, include_self
    ),
    source=lambda g, x, index, source, out, dim, reduce, include_self: share_of_source(
        g, x, index, source, out, dim, reduce, include_self
    ),
    node="ScatterReduceBackward0", called="scatter_reduce", onto=reducing.reduce_into, wide_rules=True)

# -- rows of a table

embedding = inner(lambda weight, index, /, padding_idx=None: embedding(weight, index),
    weight=lambda g, index, weight_shape, padding_idx: embedding_grad(g, index, weight_shape[0], padding_idx),
    linear="weight", sizes="all")
embedding_grad = inner(lambda x, index, /, n, padding_idx=None: embedding_grad(x, index, n, padding_idx),
    x=lambda g, index, padding_idx: embedding_back(g, index, padding_idx))
# Rows added up into bags: r[land[i]] += x[take[i]]. The derivative is the same op with `take` and `land` exchanged.
rows_summed = inner(lambda x, take, land, /, n: rows_summed(x, take, land, n),
    x=lambda g, take, land, x_shape: rows_summed(g, land, take, x_shape[0]),
    node="EmbeddingBagBackward0", linear="x", sizes=sizes_of_rows_summed)
# x, but without a gradient where the mask is true; the tangent passes everywhere. Used for the padding row of
# `embedding`.
without_gradient = inner(lambda x, mask, /: clone(x), x=lambda g, mask: where(mask, 0, g), linear="x", batched="whole")

# x, with its gradient multiplied by `share`. As in torch, the second derivative is not multiplied again: the derivative
# of `scaled_once` omits the share.
with_scaled_gradient = inner(lambda x, share, /: clone(x),  x=lambda g, share: scaled_once(g, share), batched="align")
scaled_once          = inner(lambda x, share, /: x * share, x=lambda g: g, batched="align")
# fmt: on


@shared
def kept_gradient(g, index, dim, include_self):
    """The gradient of the values before the write: 0 at the positions that were overwritten and not included."""
    return g if include_self else scatter(g, index, zeros((), g), dim)


@shared
def share_of_x(g, x, index, source, out, dim, reduce, include_self):
    if reduce == "sum":
        return g
    if reduce == "mean":
        return g / how_many(g, index, dim, include_self)
    if reduce == "prod":
        nonzero_x = where(x == 0, 1, x)
        return g * reduce_at(nonzero_x, index, source, dim, reduce, include_self) / nonzero_x
    mine = cast(x == out, g)
    return mine * g / scatter_add(mine, index, cast(source == gather(out, index, dim), g), dim)


@shared
def share_of_source(g, x, index, source, out, dim, reduce, include_self):
    if reduce == "sum":
        return gather(g, index, dim)
    if reduce == "mean":
        return gather(g / how_many(g, index, dim, include_self), index, dim)
    if reduce == "prod":
        return product_share(g, x, index, source, out, dim, include_self)
    theirs = cast(source == gather(out, index, dim), g)
    return theirs * gather(g / scatter_add(cast(x == out, g), index, theirs, dim), index, dim)


@shared
def how_many(g, index, dim, include_self):
    """The number of elements averaged at each position."""
    n = scatter_add(zeros(g.shape, g) + include_self, index, zeros(index.shape, g) + 1, dim)
    return where(n == 0, 1, n)


@shared
def product_share(g, x, index, source, out, dim, include_self):
    """g times the product of the other factors of the same output. If exactly one factor is 0, only its own gradient is
    not 0.
    """
    zero = source == 0
    zeros_there = scatter_add(zeros(x.shape, source), index, cast(zero, source), dim)
    alone = zero & (gather(zeros_there, index, dim) == 1)
    others = reduce_at(x, index, where(alone, 1, source), dim, "prod", include_self)
    return where(alone, gather(g * others, index, dim), gather(g * out, index, dim) / where(zero, 1, source))


@shared
def gather_part(g, index, dim, shape):
    """The gradient of a source of which `index` covers only a part: 0 outside this part."""
    if 0 in index.shape:
        return zeros(shape, g)
    part = gather(g, index, dim)
    return part if part.shape == shape else embed(part, shape, tuple(slice(n) for n in index.shape) or (...,))


@shared
def embedding_back(g, index, padding_idx):
    """The derivative of embedding_grad: rows of g, zeros for the padding row."""
    rows = embedding(g, index)
    return rows if padding_idx is None else rows * cast(unsqueeze(index != padding_idx, len(index.shape)), rows)


build(globals())
