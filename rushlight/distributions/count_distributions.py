"""Distributions on whole numbers: counts of events, of successes, of trials."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.base.errors import not_implemented_error, value_error
from rushlight.core.arguments import all_true
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.constraints import dependent_property, nonnegative, nonnegative_integer, real
from rushlight.distributions.discrete import Categorical, OfCategorical
from rushlight.distributions.distribution import ExponentialFamily, OfOutcomes, broadcast_all, one_of, tiny_of
from rushlight.distributions.gamma import Gamma


class Poisson(ExponentialFamily):
    """p(k) = exp(-rate) rate^k / k!.

    >>> rushlight.distributions.Poisson(rushlight.tensor(2.)).log_prob(rushlight.tensor(0.))
    tensor(-2.)
    """

    arg_constraints = {"rate": nonnegative}
    support = nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    mean = property(lambda self: self.rate, doc="rate.")
    mode = property(lambda self: self.rate.floor(), doc="rate, rounded down.")
    variance = property(lambda self: self.rate, doc="rate.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with rushlight.no_grad():
            return rushlight.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        rate, k = broadcast_all(self.rate, self._checked(value))
        return k.xlogy(rate) - rate - (k + 1).lgamma()


class Geometric(OfOutcomes):
    """p(k) = (1 - probs)^k probs: failures before the first success.

    >>> rushlight.distributions.Geometric(rushlight.tensor(0.5)).log_prob(rushlight.tensor([0., 1., 2.])).exp()
    tensor([0.5000, 0.2500, 0.1250])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": real}
    support = nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._given_as(probs, logits)
        super().__init__(self._given.shape, (), validate_args)
        if self._validate_args and probs is not None and not all_true(self.probs > 0):
            raise value_error(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution {self!r} "
                f"to be positive but found invalid values:\n{self.probs}"
            )

    mean = property(lambda self: 1.0 / self.probs - 1.0, doc="1 / probs - 1.")
    mode = property(lambda self: rushlight.zeros_like(self.probs), doc="0.")
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs, doc="(1 - probs) / probs^2.")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            u = rushlight.empty(shape, dtype=self.probs.dtype).uniform_(tiny_of(self.probs), 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        k, p = broadcast_all(self._checked(value), self.probs)
        p = rushlight.where((p == 1) & (k == 0), 0.0, p)  # 0 log 0 is 0
        return k * (-p).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        cross_entropy = rushlight.nn.functional.binary_cross_entropy_with_logits
        return cross_entropy(self.logits, self.probs, reduction="none") / self.probs


class OfTrials(OfOutcomes):
    """The base of distributions with a `total_count`, in the dtype of the probabilities or logits."""

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        one_of(probs, logits)
        count, given = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = count.type_as(given)
        setattr(self, "logits" if probs is None else "probs", given)
        super().__init__(given.shape, (), validate_args)


class Binomial(OfTrials):
    """p(k) = (n choose k) probs^k (1 - probs)^(n - k), n the `total_count`.

    >>> d = rushlight.distributions.Binomial(2, rushlight.tensor(0.5))
    >>> d.log_prob(rushlight.tensor([0., 1., 2.])).exp()
    tensor([0.2500, 0.5000, 0.2500])
    """

    arg_constraints = {"total_count": nonnegative_integer, "probs": constraints.unit_interval, "logits": real}
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(total_count, probs, logits, validate_args)

    support = dependent_property(lambda self: constraints.integer_interval(0, self.total_count), is_discrete=True)
    mean = property(lambda self: self.total_count * self.probs, doc="n probs.")
    mode = property(
        lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count),
        doc="(n + 1) probs, rounded down.",
    )
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs), doc="n probs (1 - probs).")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with rushlight.no_grad():
            return rushlight.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """k logits - n log(1 + exp(logits)), without large intermediate numbers. At logits 0, the gradient is the mean
        of both sides' gradients."""
        k, n, logits = self._checked(value), self.total_count, self.logits
        positive = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2
        normalizer = n * (positive + rushlight.log1p(rushlight.exp(-logits.abs()))) - rushlight.lgamma(n + 1)
        return k * logits - rushlight.lgamma(k + 1) - rushlight.lgamma(n - k + 1) - normalizer

    def entropy(self) -> Tensor:
        if not all_true(self.total_count == self.total_count.max()):
            raise not_implemented_error("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(rushlight.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = int(self.total_count.max())
        if not all_true(self.total_count.min() == n):
            raise not_implemented_error("Inhomogeneous total count not supported by `enumerate_support`.")
        return self._enumerated(rushlight.arange(1 + n, dtype=self._given.dtype), expand)


class NegativeBinomial(OfTrials):
    """p(k) = Gamma(n + k) / (k! Gamma(n)) (1 - probs)^n probs^k: successes before n failures; n need not be whole.

    >>> d = rushlight.distributions.NegativeBinomial(rushlight.tensor(2.), rushlight.tensor(0.5))
    >>> d.mean, d.log_prob(rushlight.tensor(0.)).exp()
    (tensor(2.), tensor(0.2500))
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": real,
    }
    support = nonnegative_integer

    mean = property(lambda self: self.total_count * rushlight.exp(self.logits), doc="n exp(logits).")
    mode = property(
        lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0),
        doc="(n - 1) exp(logits), rounded down, or 0.",
    )
    variance = property(lambda self: self.mean / rushlight.sigmoid(-self.logits), doc="mean / (1 - probs).")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with rushlight.no_grad():
            rate = Gamma(self.total_count, rushlight.exp(-self.logits), validate_args=False).sample(sample_shape)
            return rushlight.poisson(rate)

    def log_prob(self, value: Tensor) -> Tensor:
        k, n, logsigmoid = self._checked(value), self.total_count, rushlight.nn.functional.logsigmoid
        choices = rushlight.lgamma(n + k) - rushlight.lgamma(1.0 + k) - rushlight.lgamma(n)
        choices = rushlight.where(n + k == 0.0, 0.0, choices)
        return n * logsigmoid(-self.logits) + k * logsigmoid(self.logits) + choices


class Multinomial(OfCategorical):
    """p(k) = n! prod probs_i^k_i / k_i!, counts k with the sum n, the `total_count`: n draws of a `Categorical`.

    >>> d = rushlight.distributions.Multinomial(3, rushlight.tensor([0.5, 0.5]))
    >>> d.log_prob(rushlight.tensor([2., 1.])).exp()  # 3 / 8
    tensor(0.3750)
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if not isinstance(total_count, int):
            raise not_implemented_error("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(Categorical(probs, logits), validate_args)

    support = dependent_property(lambda self: constraints.multinomial(self.total_count), is_discrete=True, event_dim=1)
    mean = property(lambda self: self.probs * self.total_count, doc="n probs.")
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs), doc="n probs (1 - probs).")

    def sample(self, sample_shape: Any = ()) -> Tensor:
        # (n, *sample, *batch)
        drawn: Any = self._categorical.sample((self.total_count, *sample_shape))
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = rushlight.zeros(self._extended_shape(sample_shape), dtype=drawn.dtype)
        counts = counts.scatter_add(-1, drawn, rushlight.ones_like(drawn))
        return counts.type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        logits, k = broadcast_all(self.logits, self._checked(value))
        logits = rushlight.where((k == 0) & (logits == -float("inf")), 0.0, logits)
        return rushlight.lgamma(k.sum(-1) + 1) - rushlight.lgamma(k + 1).sum(-1) + (logits * k).sum(-1)

    def entropy(self) -> Tensor:
        n = rushlight.tensor(float(self.total_count), dtype=self.probs.dtype)
        one = Binomial(self.total_count, self.probs)
        k: Any = one.enumerate_support(False)[1:]
        weighted = rushlight.exp(one.log_prob(k)) * rushlight.lgamma(k + 1)
        return n * self._categorical.entropy() - rushlight.lgamma(n + 1) + weighted.sum((0, -1))
