"""KL(p || q) = E_p[log p - log q], in closed form for pairs that have one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight.base.errors import not_implemented_error, value_error
from rushlight.core.arguments import all_true
from rushlight.core.tensor import Tensor
from rushlight.distributions.continuous import Exponential, Laplace, Normal, Uniform
from rushlight.distributions.count_distributions import Binomial, Geometric, Poisson
from rushlight.distributions.discrete import Bernoulli, Categorical, OneHotCategorical
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.gamma import Beta, Dirichlet, Gamma
from rushlight.distributions.heavy_tailed import Cauchy
from rushlight.distributions.matrices import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    Wishart,
    log_diagonal,
    mahalanobis,
)
from rushlight.distributions.relaxed import ContinuousBernoulli
from rushlight.distributions.transform import sum_last
from rushlight.distributions.transformed import EULER_GAMMA, Gumbel, Independent, Pareto, TransformedDistribution

_KL_REGISTRY: dict[tuple[type, type], Callable] = {}  # torch's name


def register_kl(type_p: type, type_q: type) -> Callable[[Callable], Callable]:
    """A decorator: kl_divergence(p, q) = function(p, q) for p, q of these types and their subclasses.

    >>> d = rushlight.distributions
    >>> class Fixed(d.Normal): pass
    >>> @d.register_kl(Fixed, Fixed)
    ... def _(p, q):
    ...     return (p.loc - q.loc).abs()
    >>> d.kl_divergence(Fixed(0.0, 1.0), Fixed(3.0, 1.0))
    tensor(3.)
    """

    def register(rule: Callable) -> Callable:
        _KL_REGISTRY[type_p, type_q] = rule
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q) = E_p[log p - log q], of the batch shape.

    NotImplementedError for pairs without a closed form in rushlight; `register_kl` adds a pair.

    >>> d = rushlight.distributions
    >>> d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for a in type(p).__mro__:
        for b in type(q).__mro__:
            if (a, b) in _KL_REGISTRY:
                return _KL_REGISTRY[a, b](p, q)
    raise not_implemented_error(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}",
        "register one with torch.distributions.kl.register_kl",
    )


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


@register_kl(Gamma, Gamma)
def gammas(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + rushlight.lgamma(b)
        - rushlight.lgamma(a)
        + (a - b) * rushlight.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Dirichlet, Dirichlet)
def dirichlets(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    return (
        total.lgamma()
        - b.sum(-1).lgamma()
        - (a.lgamma() - b.lgamma()).sum(-1)
        + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)
    )


@register_kl(Beta, Beta)
def betas(p: Beta, q: Beta) -> Tensor:
    return dirichlets(p._dirichlet, q._dirichlet)


@register_kl(Poisson, Poisson)
def poissons(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def geometrics(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - rushlight.special.xlog1py(1 / p.probs - 1, -q.probs) - q.probs.log()


@register_kl(Binomial, Binomial)
def binomials(p: Binomial, q: Binomial) -> Tensor:
    """The divergence for equal numbers of trials; inf if p has more trials."""
    if not all_true(p.total_count >= q.total_count):
        raise not_implemented_error("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return rushlight.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def continuous_bernoullis(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return (
        p.mean * (p.logits - q.logits)
        + p._log_norm()
        - q._log_norm()
        + rushlight.log1p(-p.probs)
        - rushlight.log1p(-q.probs)
    )


@register_kl(Cauchy, Cauchy)
def cauchys(p: Cauchy, q: Cauchy) -> Tensor:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def gumbels(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return (
        distance
        - ratio.log()
        + ratio * EULER_GAMMA
        + rushlight.exp(rushlight.lgamma(1 + ratio) - distance)
        - (1 + EULER_GAMMA)
    )


@register_kl(Pareto, Pareto)
def paretos(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return rushlight.where(p.scale < q.scale, math.inf, found)


@register_kl(TransformedDistribution, TransformedDistribution)
def transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """The divergence of the base distributions: equal transforms do not change it."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise not_implemented_error("KL of distributions by different transforms is not implemented")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def independents(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise not_implemented_error("p and q have different reinterpreted_batch_ndims")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def correlated(p: Any, q: Any) -> Tensor:
    """The divergence of two normal vectors, from the Cholesky factors of their covariances."""
    a, b, n = p.scale_tril, q.scale_tril, p.event_shape[0]
    if p.event_shape != q.event_shape:
        raise value_error(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    trace = rushlight.linalg.solve_triangular(b, a, upper=False).pow(2).sum((-2, -1))
    return log_diagonal(b) - log_diagonal(a) + 0.5 * (trace + mahalanobis(b, q.loc - p.loc) - n)


for one in (MultivariateNormal, LowRankMultivariateNormal):
    for other in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(one, other)(correlated)


@register_kl(Wishart, Wishart)
def wisharts(p: Wishart, q: Wishart) -> Tensor:
    n = p.event_shape[-1]
    trace = rushlight.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False).pow(2).sum((-2, -1))
    steps = rushlight.arange(n, dtype=p.df.dtype)
    digammas = rushlight.digamma((p.df.unsqueeze(-1) - steps) / 2).sum(-1)
    return (
        q.df * (q._half_log_det() - p._half_log_det())
        + rushlight.mvlgamma(q.df / 2, n)
        - rushlight.mvlgamma(p.df / 2, n)
        + (p.df - q.df) / 2 * digammas
        + p.df * (trace - n) / 2
    )
