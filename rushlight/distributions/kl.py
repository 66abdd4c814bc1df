"""KL(p || q) = E_p[log p - log q], in closed form for pairs that have one."""
from __future__ import annotations

import math
from collections.abc import Callable

import rushlight
from rushlight.distributions.composed import Independent, MultivariateNormal
from rushlight.distributions.continuous import Exponential, Laplace, Normal, Uniform
from rushlight.distributions.discrete import Bernoulli, Categorical, OneHotCategorical
from rushlight.distributions.distribution import Distribution
from rushlight.errors import explain
from rushlight.tensor import Tensor

RULES: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable], Callable]:
    """Decorator: the function computes KL(p || q) for these types and their subclasses."""
    def register(rule: Callable) -> Callable:
        RULES[type_p, type_q] = rule
        return rule
    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """E_p[log p - log q], of the batch shape.

    NotImplementedError for pairs without a closed form here; `register_kl` adds one.

    >>> d = rushlight.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in RULES:
                return RULES[a, b](p, q)
    raise NotImplementedError(explain(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
                                      f"{type(q).__name__}", "register one with torch.distributions.kl.register_kl"))


@register_kl(Normal, Normal)
def normals(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def laplaces(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * rushlight.exp(-distance / p.scale) - 1


@register_kl(Uniform, Uniform)
def uniforms(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return rushlight.where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(Exponential, Exponential)
def exponentials(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Bernoulli, Bernoulli)
def bernoullis(p: Bernoulli, q: Bernoulli) -> Tensor:
    softplus = rushlight.nn.functional.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = rushlight.where(q.probs == 0, math.inf, ones)
    ones = rushlight.where(p.probs == 0, 0.0, ones)
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = rushlight.where(q.probs == 1, math.inf, zeros)
    return ones + rushlight.where(p.probs == 1, 0.0, zeros)


@register_kl(Categorical, Categorical)
def categoricals(p: Categorical, q: Categorical) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = rushlight.where(q.probs == 0, math.inf, t)
    return rushlight.where(p.probs == 0, 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def one_hots(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return categoricals(p._categorical, q._categorical)


@register_kl(Independent, Independent)
def independents(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("the two read different numbers of batch dimensions as one value")
    return p.summed(kl_divergence(p.base_dist, q.base_dist))


@register_kl(MultivariateNormal, MultivariateNormal)
def multivariate_normals(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    n = p.event_shape[0]
    solve = rushlight.linalg.solve_triangular
    trace = solve(q.scale_tril, p.scale_tril, upper=False).pow(2).sum((-2, -1))
    m = solve(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False).pow(2).sum((-2, -1))
    return q.half_log_det() - p.half_log_det() + 0.5 * (trace + m - n)
