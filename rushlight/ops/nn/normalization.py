"""Normalization. Mean and variance are outputs of the ops, so that second derivatives go through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, inner
from rushlight.core.worlds import TENSORS, adopt, shared
from rushlight.kernels import normalization as kernels
from rushlight.ops.shape.views import reshape

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import mean, not_differentiable, others, per_channel, rsqrt, single, sqrt, sum

adopt(kernels)
TENSORS["per_channel"] = lambda a, ndim: a if a is None or ndim == 2 else reshape(a, (-1,) + (1,) * (ndim - 2))


def sizes_of_group_norm(x, weight, bias, groups, eps):
    """x's shape, and the shape of a mean and a variance for each group of each sample."""
    if x.shape[1] % groups:
        return None
    return [(x.shape, x.dtype), *[((x.shape[0], groups, 1), x.dtype)] * 2]


def normalized(x, weight, bias, dims, eps):
    """(x - mean) / sqrt(var + eps) weight + bias."""
    mu = mean(x, dims, True)
    d = x - mu
    var = mean(d * d, dims, True)
    y = d * rsqrt(var + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias, mu, var


def normalized_channels(x, weight, bias, dims, eps):
    """Like `normalized`, with one factor for each channel."""
    mu = mean(x, dims, True)
    d = x - mu
    var = mean(d * d, dims, True)
    return d * (weight / sqrt(var + eps)) + bias, mu, var


# fmt: off
layer_norm = inner(lambda x, weight, bias, /, dims, eps: layer_norm(x, weight, bias, dims, eps),
    x=lambda gs, x, weight, mu, var, dims, eps: normalized_back(
        weighted(gs[0], weight), gs[1], gs[2], x - mu, rsqrt(var + eps), dims
    ),
    weight=lambda gs, x, mu, var, eps: gs[0] * (x - mu) * rsqrt(var + eps), bias=lambda gs: gs[0],
    parts=normalized, outputs="out mu var", node="NativeLayerNormBackward0", sizes="all", takes="f")
batch_norm = inner(lambda x, weight, bias, /, dims, eps: batch_norm(x, weight, bias, dims, eps),
    x=lambda gs, x, weight, mu, var, dims, eps: batch_back(gs, x, weight, mu, rsqrt(var + eps), dims),
    weight=lambda gs, x, mu, var, dims, eps: flat(batch_dots(gs[0], x, mu, dims) * rsqrt(var + eps)),
    bias=lambda gs, dims: flat(sum(gs[0], dims, True)),
    parts=normalized_channels, outputs="out mu var", node="NativeBatchNormBackward0", sizes="leading", takes="f")
# mean and var (N, groups, 1)
group_norm = inner(lambda x, weight, bias, /, groups, eps: group_norm(x, weight, bias, groups, eps),
    x=lambda gs, x, weight, mu, var, groups, eps: group_back(
        gs, x, weight, in_groups(x, groups) - mu, rsqrt(var + eps)
    ),
    weight=lambda gs, x, mu, var, groups, eps: sum(
        gs[0] * reshape((in_groups(x, groups) - mu) * rsqrt(var + eps), x.shape), others(x)
    ),
    bias=lambda gs: sum(gs[0], others(gs[0])),
    parts=normalized_channels, outputs="out mu var", node="NativeGroupNormBackward0", sizes=sizes_of_group_norm,
    takes="f")
# terms that the gradients of x and of weight share
batch_dots = inner(lambda x, y, mu, /, dims: sum(x * (y - mu), dims, True), x=lambda g, y, mu: g * (y - mu),
    y=lambda g, x: g * x, mu=lambda g, x, dims: -sum(g * x, dims, True), batched="shift", promote="x y mu")
# mean and variance are given, as in evaluation, and get no gradient
frozen_batch_norm = inner(lambda x, weight, bias, mu, var, /, eps: frozen_batch_norm(x, weight, bias, mu, var, eps),
    x=lambda g, weight, var, eps: (
        g * per_channel(rsqrt(var + eps) if weight is None else weight * rsqrt(var + eps), len(g.shape))
    ),
    weight=lambda g, x, mu, var, eps: sum(g * (x - per_channel(mu, len(x.shape))), others(g)) * rsqrt(var + eps),
    bias=lambda g: sum(g, others(g)), mu=lambda g: not_differentiable("native_batch_norm", "running_mean"),
    var=lambda g: not_differentiable("native_batch_norm", "running_var"), node="NativeBatchNormBackward0", takes="f")
# running statistics: the old ones times `keep`, plus the new ones, (1, C, 1, ...), times `add`
moved = inner(lambda x, y, /, keep, add: x * keep + reshape(y, x.shape) * add, batched="whole")
# fmt: on


@shared
def normalized_back(g, g_mu, g_var, d, rstd, dims):
    """g through y = d rstd, d = x - mu, rstd = 1 / sqrt(var + eps), and the gradients of mu and var themselves."""
    n = 1
    for i in dims:
        n *= d.shape[i]
    n = n or 1  # an empty sum: no division by 0
    share = rstd * rstd * rstd * mean(g * d, dims, True) - (2 / n) * g_var
    return rstd * g - d * share - (rstd * mean(g, dims, True) - g_mu / n)


@shared
def weighted(g, weight):
    """g times the weight, at least in single precision, because the result is summed next."""
    return single(g) if weight is None else single(g) * weight


@shared
def batch_back(gs, x, weight, mu, rstd, dims):
    """Like `normalized_back`, with one sum for each channel, shared with the weight's gradient."""
    n = 1
    for i in dims:
        n *= x.shape[i]
    scale, g = rstd if weight is None else rstd * per_channel(weight, len(x.shape)), single(gs[0])
    slope = rstd * rstd * scale * batch_dots(g, x, mu, dims) - 2 * gs[2]
    return scale * g - (x - mu) * (slope / n) - (scale * sum(g, dims, True) - gs[1]) / n


@shared
def group_back(gs, x, weight, d, rstd):
    """`normalized_back` for groups d, giving x's gradient."""
    g = weighted(gs[0], None if weight is None else per_channel(weight, len(x.shape)))
    return reshape(normalized_back(in_groups(g, d.shape[1]), gs[1], gs[2], d, rstd, (2,)), x.shape)


@shared
def in_groups(x, groups):
    """(N, C, ...) -> (N, groups, the number of elements in C / groups channels)."""
    n = x.shape[1] // groups
    for size in x.shape[2:]:
        n *= size
    return reshape(x, (x.shape[0], groups, n))


@shared
def flat(x):
    return reshape(x, (-1,))


build(globals())
