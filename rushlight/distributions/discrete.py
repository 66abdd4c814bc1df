"""Distributions on a few values: 0 and 1, or one of n."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight.base.errors import value_error
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions.constraints import Constraint, boolean, dependent_property, integer_interval, one_hot
from rushlight.distributions.distribution import (
    OUTCOME_CONSTRAINTS,
    Distribution,
    ExponentialFamily,
    OfOutcomes,
    one_of,
)


class Bernoulli(OfOutcomes, ExponentialFamily):
    """p(1) = probs = sigmoid(logits), p(0) = 1 - probs.

    >>> coin = rushlight.distributions.Bernoulli(rushlight.tensor(0.25))
    >>> coin.log_prob(rushlight.tensor(1.)).exp(), coin.mean, coin.variance
    (tensor(0.2500), tensor(0.2500), tensor(0.1875))
    """

    support = boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._given_as(probs, logits)
        super().__init__(self._given.shape, (), validate_args)

    mean = property(lambda self: self.probs, doc="probs.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="probs (1 - probs).")

    @property
    def mode(self) -> Tensor:
        return rushlight.where(self.probs == 0.5, float("nan"), (self.probs >= 0.5).to(self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with rushlight.no_grad():
            return rushlight.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = rushlight.broadcast_tensors(self.logits, self._checked(value))
        return -rushlight.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return rushlight.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(rushlight.arange(2, dtype=self._given.dtype), expand)


class Categorical(OfOutcomes):
    """p(i) = probs[i], normalized to add up to 1; or softmax(logits)[i]. Values are int64 from 0 to n - 1.

    >>> rushlight.distributions.Categorical(rushlight.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = OUTCOME_CONSTRAINTS
    has_enumerate_support = True
    _binary = False

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        one_of(probs, logits)
        given: Any = logits if probs is None else probs
        if given.dim() < 1:
            name = "logits" if probs is None else "probs"
            raise value_error(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args)

    @dependent_property(is_discrete=True)
    def support(self) -> Constraint:
        return integer_interval(0, self._num_events - 1)

    mode = property(lambda self: self.probs.argmax(-1), doc="The most probable value.")

    @property
    def mean(self) -> Tensor:
        return rushlight.full(self._batch_shape, float("nan"), dtype=self.probs.dtype)

    variance = mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        n = Size(sample_shape).numel()
        rows = self.probs.detach().reshape(-1, self._num_events)
        return rushlight.multinomial(rows, n, True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        index, logits = self._checked(value).long().unsqueeze(-1), self.logits
        if index.shape[:-1] != logits.shape[:-1]:
            index, logits = rushlight.broadcast_tensors(index, logits)
            index = index[..., :1]
        return logits.gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        least = rushlight.finfo(self.logits.dtype).min
        return -(rushlight.clamp(self.logits, min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(rushlight.arange(self._num_events), expand)


class OfCategorical(Distribution):
    """The base of distributions composed of a `Categorical`: an event has one element for each outcome."""

    arg_constraints = OUTCOME_CONSTRAINTS

    def __init__(self, categorical: Categorical, validate_args: bool | None = None):
        self._categorical = categorical
        super().__init__(categorical.batch_shape, categorical.param_shape[-1:], validate_args)

    probs = property(lambda self: self._categorical.probs, doc="The probability of each outcome.")
    logits = property(lambda self: self._categorical.logits, doc="Their logarithms.")
    param_shape = property(lambda self: self._categorical.param_shape, doc="The shape of probs.")

    def _expand_into(self, new: Any, batch: Size) -> None:
        new._categorical = self._categorical.expand(batch)


class OneHotCategorical(OfCategorical):
    """p(x) = probs[i], x a one-hot row with a 1 at i: `Categorical` with one-hot values.

    >>> d = rushlight.distributions.OneHotCategorical(rushlight.tensor([1., 3.]))
    >>> d.log_prob(rushlight.tensor([0., 1.])).exp()
    tensor(0.7500)
    """

    support = one_hot
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        super().__init__(Categorical(probs, logits, validate_args), validate_args)

    mean = property(lambda self: self.probs, doc="probs.")
    variance = property(lambda self: self.probs * (1 - self.probs), doc="probs (1 - probs).")

    @property
    def mode(self) -> Tensor:
        n = self._event_shape[0]
        return rushlight.nn.functional.one_hot(self.probs.argmax(-1), n).to(self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        indices = self._categorical.sample(sample_shape)
        return rushlight.nn.functional.one_hot(indices, self._event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(self._checked(value).argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = rushlight.eye(n, dtype=self.probs.dtype).reshape(n, *[1] * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """x = one_hot + (probs - probs.detach()): a `OneHotCategorical` whose samples pass gradients on to probs.

    >>> probs = rushlight.tensor([0.5, 0.5], requires_grad=True)
    >>> x = rushlight.distributions.OneHotCategoricalStraightThrough(probs).rsample()
    >>> x.sum().item(), x.requires_grad
    (1.0, True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        probs = self._categorical.probs
        return self.sample(sample_shape) + (probs - probs.detach())
