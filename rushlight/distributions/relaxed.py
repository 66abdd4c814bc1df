"""Continuous relaxations of discrete distributions: their samples have gradients."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.discrete import Categorical, OfCategorical
from rushlight.distributions.distribution import (
    OUTCOME_CONSTRAINTS,
    ExponentialFamily,
    OfOutcomes,
    broadcast_all,
    clamp_probs,
    computed,
    uniform,
)
from rushlight.distributions.elementwise_transforms import ExpTransform, SigmoidTransform
from rushlight.distributions.transformed import TransformedDistribution


class LogitRelaxedBernoulli(OfOutcomes):
    """x = (logits + logit(u)) / temperature, u uniform: the logit of a `RelaxedBernoulli` (C. Maddison et al., 2017).

    >>> of = rushlight.distributions.relaxed_bernoulli.LogitRelaxedBernoulli
    >>> d = of(rushlight.tensor(1.), probs=rushlight.tensor(0.5))
    >>> d.log_prob(rushlight.tensor(0.)).exp()  # of a logistic variable
    tensor(0.2500)
    """

    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = temperature
        self._given_as(probs, logits)
        super().__init__(self._given.shape, (), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(uniform(shape, p))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        logits, y = broadcast_all(self.logits, self._checked(value))
        difference = logits - y * self.temperature
        return rushlight.as_tensor(self.temperature).log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """x = sigmoid((logits + logit(u)) / temperature), u uniform: in (0, 1), near 0 or 1 if the temperature is low.

    C. Maddison, A. Mnih, Y. W. Teh, *The concrete distribution*, 2017.

    >>> _ = rushlight.manual_seed(0)
    >>> x = rushlight.distributions.RelaxedBernoulli(rushlight.tensor(0.01), rushlight.tensor([0.2,
    ...     0.8])).rsample((1000,))
    >>> ((x < 0.01) | (x > 0.99)).float().mean() > 0.9
    tensor(True)
    """

    arg_constraints = OfOutcomes.arg_constraints
    support = constraints.unit_interval

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature, doc="How soft it is.")
    probs = property(lambda self: self.base_dist.probs, doc="The probability of 1.")
    logits = property(lambda self: self.base_dist.logits, doc="log(probs / (1 - probs)).")


class ExpRelaxedCategorical(OfCategorical):
    """x = log softmax((logits + gumbel) / temperature): the logarithm of a `RelaxedOneHotCategorical`.

    >>> d = rushlight.distributions.ExpRelaxedCategorical(rushlight.tensor(0.5), rushlight.tensor([1., 2.]))
    >>> d.sample().exp().sum().isclose(rushlight.tensor(1.))
    tensor(True)
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self.temperature = temperature
        super().__init__(Categorical(probs, logits), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self.logits))
        gumbels = -((-(u.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        n = self._event_shape[0]
        logits, y = broadcast_all(self.logits, self._checked(value))
        temperature = rushlight.as_tensor(self.temperature, dtype=logits.dtype)
        scale = rushlight.full_like(temperature, float(n)).lgamma() - temperature.log().mul(-(n - 1))
        score = logits - y * temperature
        return (score - score.logsumexp(-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """x = softmax((logits + gumbel) / temperature): in the simplex, near a corner if the temperature is low.

    E. Jang, S. Gu, B. Poole, *Categorical reparameterization with Gumbel-softmax*, 2017.

    >>> _ = rushlight.manual_seed(0)
    >>> d = rushlight.distributions.RelaxedOneHotCategorical(rushlight.tensor(0.01), rushlight.tensor([0.2, 0.8]))
    >>> (d.rsample((1000,)).amax(-1) > 0.99).float().mean() > 0.9
    tensor(True)
    """

    arg_constraints = OUTCOME_CONSTRAINTS
    support = constraints.simplex

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        super().__init__(ExpRelaxedCategorical(temperature, probs, logits), ExpTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature, doc="How soft it is.")
    probs = property(lambda self: self.base_dist.probs, doc="The probability of each outcome.")
    logits = property(lambda self: self.base_dist.logits, doc="Their logarithms.")


class ContinuousBernoulli(OfOutcomes, ExponentialFamily):
    """p(x) = C probs^x (1 - probs)^(1 - x) for x in [0, 1] (G. Loaiza-Ganem, J. Cunningham, 2019).

    Near probs = 0.5, inside `lims`, C and the moments are Taylor polynomials.

    >>> d = rushlight.distributions.ContinuousBernoulli(rushlight.tensor(0.5))  # uniform
    >>> d.mean, d.log_prob(rushlight.tensor(0.3)).exp()
    (tensor(0.5000), tensor(1.))
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        self._given_as(probs, logits)
        if probs is not None:
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._given.shape, (), validate_args)

    @computed
    def probs(self) -> Any:
        """sigmoid of the logits, clamped away from 0 and 1."""
        return clamp_probs(rushlight.sigmoid(self.__dict__["logits"]))

    @property
    def _outside(self) -> Any:
        """True if the exact formulas are stable; otherwise a Taylor polynomial is used."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    @property
    def _cut(self) -> Any:
        """probs, clamped to the range in which the formulas are stable."""
        return rushlight.where(self._outside, self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        """log C."""
        p = self._cut
        found = (rushlight.log1p(-p) - rushlight.log(p)).abs().log() - rushlight.where(
            p <= 0.5, rushlight.log1p(-2.0 * p.clamp(max=0.5)), rushlight.log(2.0 * p.clamp(min=0.5) - 1.0)
        )
        x = (self.probs - 0.5).pow(2)
        return rushlight.where(self._outside, found, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut
        found = p / (2.0 * p - 1.0) + 1.0 / (rushlight.log1p(-p) - rushlight.log(p))
        x = self.probs - 0.5
        return rushlight.where(self._outside, found, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        p = self._cut
        found = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / (rushlight.log1p(-p) - rushlight.log(p)).pow(2)
        x = (self.probs - 0.5).pow(2)
        return rushlight.where(self._outside, found, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, x = broadcast_all(self.logits, self._checked(value))
        loss = rushlight.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
        return -loss + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        p, x = self._cut, self._checked(value)
        found = (p.pow(x) * (1.0 - p).pow(1.0 - x) + p - 1.0) / (2.0 * p - 1.0)
        found = rushlight.where(self._outside, found, x)
        return rushlight.where(x <= 0.0, 0.0, rushlight.where(x >= 1.0, 1.0, found))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut
        found = (rushlight.log1p(-p + value * (2.0 * p - 1.0)) - rushlight.log1p(-p)) / (
            rushlight.log(p) - rushlight.log1p(-p)
        )
        return rushlight.where(self._outside, found, value)

    def entropy(self) -> Tensor:
        log0, log1 = rushlight.log1p(-self.probs), rushlight.log(self.probs)
        return self.mean * (log0 - log1) - self._log_norm() - log0
