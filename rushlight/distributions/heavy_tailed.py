"""Distributions with heavy tails: Cauchy's, power laws; and halves of symmetric distributions."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.continuous import LocationScale, Normal
from rushlight.distributions.distribution import Distribution, broadcast_all, uniform
from rushlight.distributions.elementwise_transforms import AbsTransform, PowerTransform
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.transformed import TransformedDistribution


class Cauchy(LocationScale):
    """p(x) = 1 / (pi scale (1 + ((x - loc) / scale)^2)): it has no mean.

    >>> d = rushlight.distributions.Cauchy(0.0, 1.0)
    >>> d.mean, d.cdf(rushlight.tensor([-1., 0., 1.]))
    (tensor(nan), tensor([0.2500, 0.5000, 0.7500]))
    """

    mean = property(lambda self: rushlight.full_like(self.loc, math.nan), doc="nan.")
    variance = property(lambda self: rushlight.full_like(self.loc, math.inf), doc="inf.")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = rushlight.empty(self._extended_shape(sample_shape), dtype=self.loc.dtype).cauchy_()
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return rushlight.atan((self._checked(value) - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return rushlight.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Half(TransformedDistribution):
    """|x| of a symmetric x around 0: twice its density."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    _whole: Any

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(self._whole(0, scale, validate_args=False), AbsTransform(), validate_args)
        if self._validate_args:
            self._check_argument("scale", constraints.positive)

    scale = property(lambda self: self.base_dist.scale, doc="The width.")
    mode = property(lambda self: rushlight.zeros_like(self.scale), doc="0.")

    def log_prob(self, value: Tensor) -> Tensor:
        x = rushlight.as_tensor(self._checked(value))
        found = self.base_dist.log_prob(x) + math.log(2)
        return rushlight.where(x >= 0, found, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """p(x) = sqrt(2 / pi) exp(-x^2 / (2 scale^2)) / scale for x >= 0: |x| of a normal x around 0.

    >>> rushlight.distributions.HalfNormal(rushlight.tensor(1.)).mean  # sqrt(2 / pi)
    tensor(0.7979)
    """

    _whole = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi), doc="sqrt(2 / pi) scale.")
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi), doc="(1 - 2 / pi) scale^2.")


class HalfCauchy(Half):
    """p(x) = 2 / (pi scale (1 + (x / scale)^2)) for x >= 0: |x| of a Cauchy x around 0.

    >>> rushlight.distributions.HalfCauchy(rushlight.tensor(1.)).cdf(rushlight.tensor(1.))
    tensor(0.5000)
    """

    _whole = Cauchy
    mean = property(lambda self: rushlight.full_like(self.scale, math.inf), doc="inf.")
    variance = property(lambda self: rushlight.full_like(self.scale, math.inf), doc="inf.")


class InverseGamma(TransformedDistribution):
    """p(x) = rate^a x^(-a - 1) exp(-rate / x) / Gamma(a), a the concentration: 1 / x of a Gamma(concentration, rate).

    >>> rushlight.distributions.InverseGamma(rushlight.tensor(3.),
    ...     rushlight.tensor(4.)).mean  # rate / (a - 1)
    tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args)
        minus_one = -rushlight.ones((), dtype=base.rate.dtype)
        super().__init__(base, PowerTransform(minus_one), validate_args)

    concentration = property(lambda self: self.base_dist.concentration, doc="Of the Gamma variable.")
    rate = property(lambda self: self.base_dist.rate, doc="Of the Gamma variable.")
    mode = property(lambda self: self.rate / (self.concentration + 1), doc="rate / (a + 1).")

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return rushlight.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return rushlight.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class GeneralizedPareto(Distribution):
    """P(X <= x) = 1 - (1 + k z)^(-1/k), z = (x - loc) / scale, k the concentration; 1 - exp(-z) for k = 0.

    >>> d = rushlight.distributions.GeneralizedPareto(rushlight.tensor(0.), rushlight.tensor(1.), rushlight.tensor(0.5))
    >>> d.mean, d.cdf(rushlight.tensor(2.))  # 1 - (1 + 1)^-2
    (tensor(2.), tensor(0.7500))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        upper = rushlight.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    def _general_or_limit(self, general: Tensor, limit: Tensor) -> Tensor:
        """`general`, or `limit` if the concentration is near 0."""
        near = rushlight.isclose(self.concentration, rushlight.zeros_like(self.concentration))
        return rushlight.where(near, limit, general)

    @property
    def _safe_concentration(self) -> Tensor:
        """The concentration as a divisor: 1 if it is near 0."""
        return self._general_or_limit(self.concentration, rushlight.ones_like(self.concentration))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        z, k = (self._checked(value) - self.loc) / self.scale, self._safe_concentration
        return -self.scale.log() + self._general_or_limit(-(1 + 1 / k) * rushlight.log1p(k * z), -z)

    def cdf(self, value: Tensor) -> Tensor:
        z, k = (self._checked(value) - self.loc) / self.scale, self._safe_concentration
        return 1 - rushlight.exp(self._general_or_limit(-rushlight.log1p(k * z) / k, -z))

    def icdf(self, value: Tensor) -> Tensor:
        log, k = rushlight.log1p(-value), self._safe_concentration
        general = self.loc + self.scale / k * rushlight.expm1(-k * log)
        return self._general_or_limit(general, self.loc - self.scale * log)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return rushlight.where(k < 1, self.loc + self.scale / (1 - k), math.nan)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return rushlight.where(k < 0.5, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), math.nan)

    mode = property(lambda self: self.loc, doc="loc.")

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


__all__ = ["Cauchy", "GeneralizedPareto", "HalfCauchy", "HalfNormal", "InverseGamma"]
