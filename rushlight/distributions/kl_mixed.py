"""KL(p || q) of different families: -H(p) - E_p[log q], from expectations under p: for a Normal q mean and variance,
for a Gamma q E x and E log x, for a Gumbel q E x and E exp(-x / s), and so on. Pairs without a closed form are not
registered. If q excludes values of p, the divergence is inf.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight.core.tensor import Tensor
from rushlight.distributions.continuous import Exponential, Laplace, Normal, Uniform
from rushlight.distributions.count_distributions import Binomial, Poisson
from rushlight.distributions.discrete import Bernoulli
from rushlight.distributions.gamma import Beta, Gamma
from rushlight.distributions.kl import register_kl
from rushlight.distributions.relaxed import ContinuousBernoulli
from rushlight.distributions.transformed import EULER_GAMMA, Gumbel, Pareto


def uniform_log(low: Any, high: Any) -> Any:
    """E log x over [low, high]."""
    return (rushlight.xlogy(high, high) - rushlight.xlogy(low, low)) / (high - low) - 1


# E_p[log x], of positive p
LOG: dict[type, Callable] = {
    Uniform: lambda p: uniform_log(p.low, p.high),
    Exponential: lambda p: -EULER_GAMMA - p.rate.log(),
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
}
# E_p[exp(-x / s)]
EXP: dict[type, Callable] = {
    Uniform: lambda p, s: s * ((-p.low / s).exp() - (-p.high / s).exp()) / (p.high - p.low),
    Exponential: lambda p, s: p.rate / (p.rate + 1 / s),
    Gamma: lambda p, s: (1 + 1 / (p.rate * s)) ** -p.concentration,
    Normal: lambda p, s: (-p.loc / s + (p.scale / s).pow(2) / 2).exp(),
}

# -E_p[log q]
ASKED: dict[type, Callable] = {
    Normal: lambda p, q: (
        q.scale.log() + 0.5 * math.log(2 * math.pi) + (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))
    ),
    Exponential: lambda p, q: q.rate * p.mean - q.rate.log(),
    Gamma: lambda p, q: (
        q.rate * p.mean
        - (q.concentration - 1) * LOG[type(p)](p)
        - rushlight.xlogy(q.concentration, q.rate)
        + q.concentration.lgamma()
    ),
    Gumbel: lambda p, q: (
        q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * EXP[type(p)](p, q.scale)
    ),
    Uniform: lambda p, q: (q.high - q.low).log(),
    ContinuousBernoulli: lambda p, q: -p.mean * q.logits - rushlight.log1p(-q.probs) - q._log_norm(),
    Pareto: lambda p, q: (q.alpha + 1) * LOG[type(p)](p) - q.alpha.log() - q.alpha * q.scale.log(),
}
FOR_ALL: dict[type, tuple] = {
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform),
    Exponential: (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform),
    Gamma: (Beta, Exponential, Pareto, Uniform),
    Gumbel: (Exponential, Gamma, Normal, Uniform),
    Uniform: (Beta, ContinuousBernoulli),
    ContinuousBernoulli: (Beta, Uniform),
    Pareto: (Uniform,),
}
# p takes values outside the support of q, for any parameters
EXCLUDED: dict[type, tuple] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Poisson: (Bernoulli, Binomial),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
}


# the largest alpha for which the expectations of a Pareto p are infinite
INFINITE = {Exponential: 1, Gamma: 1, Normal: 2}


def expectation(asked: Callable) -> Callable:
    return lambda p, q: within(p, q, asked(p, q) - p.entropy())


def of_pareto(asked: Callable, limit: float) -> Callable:
    """A divergence of a Pareto p: inf, with gradients 0, if the expectations do not exist."""

    def divergence(p: Pareto, q: Any) -> Tensor:
        infinite = p.alpha <= limit
        finite = Pareto(p.scale, rushlight.where(infinite, limit + 1.0, p.alpha), False)
        return rushlight.where(infinite, math.inf, asked(finite, q) - finite.entropy())

    return divergence


def within(p: Any, q: Any, found: Tensor) -> Tensor:
    """inf if p takes values outside the support of q."""
    low, high = (p.low, p.high) if isinstance(p, Uniform) else (0.0, 1.0)
    bounded = isinstance(p, (Uniform, Beta, ContinuousBernoulli))
    if bounded and isinstance(q, Uniform):
        return rushlight.where((q.low > low) | (q.high < high), math.inf, found)
    if isinstance(p, Uniform) and isinstance(q, (Exponential, Gamma)):
        return rushlight.where(p.low < 0, math.inf, found)
    if isinstance(p, Uniform) and isinstance(q, ContinuousBernoulli):
        return rushlight.where((p.low < 0) | (p.high > 1), math.inf, found)
    if isinstance(p, Uniform) and isinstance(q, Pareto):
        return rushlight.where(p.low < q.scale, math.inf, found)
    return found


def never(p: Any, q: Any) -> Tensor:
    """inf, of the batch shape."""
    shape = rushlight.broadcast_shapes(p.batch_shape, q.batch_shape)
    return rushlight.full(shape, math.inf, dtype=p.mean.dtype)


for of_q, kinds in FOR_ALL.items():
    for of_p in kinds:
        register_kl(of_p, of_q)(expectation(ASKED[of_q]))
for of_q, limit in INFINITE.items():
    register_kl(Pareto, of_q)(of_pareto(ASKED[of_q], limit))
for of_p, kinds in EXCLUDED.items():
    for of_q in kinds:
        register_kl(of_p, of_q)(never)


@register_kl(Uniform, Beta)
def uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    asked = (
        (a.lgamma() + b.lgamma() - (a + b).lgamma())
        - (a - 1) * uniform_log(p.low, p.high)
        - (b - 1) * uniform_log(1 - p.high, 1 - p.low)
    )
    return rushlight.where((p.low < 0) | (p.high > 1), math.inf, asked - p.entropy())


@register_kl(Normal, Laplace)
def normal_laplace(p: Normal, q: Laplace) -> Tensor:
    """E|x - m| of a normal x is the mean of a folded normal number."""
    z = (p.loc - q.loc) / p.scale
    distance = p.scale * (math.sqrt(2 / math.pi) * (-0.5 * z.pow(2)).exp() + z * rushlight.erf(z / math.sqrt(2)))
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@register_kl(Bernoulli, Poisson)
def bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)
