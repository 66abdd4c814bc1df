"""Distributions on real numbers."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.core.tensor import Tensor
from rushlight.distributions.constraints import (
    dependent_property,
    greater_than,
    interval,
    less_than,
    nonnegative,
    positive,
    real,
)
from rushlight.distributions.distribution import Distribution, ExponentialFamily, broadcast_all, eps_of, normal, uniform


class LocationScale(Distribution):
    """The base of distributions with a location and a scale."""

    arg_constraints = {"loc": real, "scale": positive}
    support = real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.loc


class Normal(LocationScale, ExponentialFamily):
    """p(x) = exp(-(x - loc)^2 / (2 scale^2)) / (scale sqrt(2 pi)).

    >>> rushlight.distributions.Normal(0.0, 1.0).log_prob(rushlight.tensor(0.0))
    tensor(-0.9189)
    """

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            return rushlight.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + normal(self._extended_shape(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._checked(value) - self.loc
        return -(z**2) / (2 * self.scale**2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + rushlight.erf((self._checked(value) - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * rushlight.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Laplace(LocationScale):
    """p(x) = exp(-|x - loc| / scale) / (2 scale).

    >>> d = rushlight.distributions.Laplace(0.0, 1.0)
    >>> d.log_prob(rushlight.tensor(0.)).exp(), d.variance
    (tensor(0.5000), tensor(2.))
    """

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = rushlight.empty(shape, dtype=self.loc.dtype).uniform_(eps_of(self.loc) - 1, 1)
        return self.loc - self.scale * u.sign() * rushlight.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - (self._checked(value) - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        x = self._checked(value) - self.loc
        return 0.5 - 0.5 * x.sign() * rushlight.expm1(-x.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * rushlight.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Uniform(Distribution):
    """p(x) = 1 / (high - low) for low <= x < high.

    >>> d = rushlight.distributions.Uniform(0.0, 2.0)
    >>> d.log_prob(rushlight.tensor(1.)).exp(), d.mean, d.variance
    (tensor(0.5000), tensor(1.), tensor(0.3333))
    """

    arg_constraints = property(
        lambda self: {"low": less_than(self.high), "high": greater_than(self.low)}, doc="low < high."
    )
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)

    support = dependent_property(lambda self: interval(self.low, self.high))
    mode = property(lambda self: math.nan * self.high, doc="nan: all values are as probable.")

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.low + uniform(self._extended_shape(sample_shape), self.low) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        inside = (self.low <= self._checked(value)) & (self.high > value)
        return inside.type_as(self.low).log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(ExponentialFamily):
    """p(x) = rate exp(-rate x) for x >= 0.

    >>> d = rushlight.distributions.Exponential(rushlight.tensor(2.))
    >>> d.mean, d.log_prob(rushlight.tensor(0.)).exp()
    (tensor(0.5000), tensor(2.))
    """

    arg_constraints = {"rate": positive}
    support = nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    mode = property(lambda self: rushlight.zeros_like(self.rate), doc="0.")

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    stddev = mean

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return rushlight.empty(self._extended_shape(sample_shape), dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * self._checked(value)

    def cdf(self, value: Tensor) -> Tensor:
        return 1 - rushlight.exp(-self.rate * self._checked(value))

    def icdf(self, value: Tensor) -> Tensor:
        return -rushlight.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - rushlight.log(self.rate)
