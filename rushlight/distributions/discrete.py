"""Distributions on a few values: 0 and 1, or one of n."""
from __future__ import annotations

from typing import Any

import rushlight
from rushlight.distributions.distribution import (
    Constraint,
    Distribution,
    boolean,
    broadcast_all,
    eps_of,
    one_hot,
    real,
    real_vector,
    simplex,
    unit_interval,
)
from rushlight.errors import explain
from rushlight.size import Size
from rushlight.tensor import Tensor


def one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class Bernoulli(Distribution):
    """p(1) = probs = sigmoid(logits), p(0) = 1 - probs."""

    arg_constraints = {"probs": unit_interval, "logits": real}
    support = boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        one_of(probs, logits)
        if probs is not None:
            self.probs, = broadcast_all(probs)
        else:
            self.logits, = broadcast_all(logits)
        super().__init__((self.probs if probs is not None else self.logits).shape, (), validate_args)

    def __getattr__(self, name: str) -> Tensor:
        if name == "logits" and "probs" in self.__dict__:
            p = self.probs.clamp(eps_of(self.probs), 1 - eps_of(self.probs))  # type: ignore[attr-defined]
            value = rushlight.log(p) - rushlight.log1p(-p)
        elif name == "probs" and "logits" in self.__dict__:
            value = rushlight.sigmoid(self.logits)
        else:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return value

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with rushlight.no_grad():
            return rushlight.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))  # type: ignore[attr-defined]

    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = rushlight.broadcast_tensors(self.logits, self.checked(value))
        return -rushlight.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return rushlight.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


class Categorical(Distribution):
    """p(i) = probs[i], which are made to add up to 1; or softmax(logits)[i]. Values are int64 from 0 to n - 1.

    >>> rushlight.distributions.Categorical(rushlight.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": simplex, "logits": real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        one_of(probs, logits)
        given = probs if probs is not None else logits
        if given.dim() < 1:  # type: ignore[union-attr]
            name = "probs" if probs is not None else "logits"
            raise ValueError(explain(f"`{name}` parameter must be at least one-dimensional."))
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)  # type: ignore[attr-defined]
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)  # type: ignore[union-attr, operator]
        self._num_events = given.shape[-1]  # type: ignore[union-attr]
        super().__init__(given.shape[:-1], (), validate_args)  # type: ignore[union-attr]

    def __getattr__(self, name: str) -> Tensor:
        if name == "logits" and "probs" in self.__dict__:
            return self.probs.clamp(eps_of(self.probs), 1 - eps_of(self.probs)).log()  # type: ignore[attr-defined]
        if name == "probs" and "logits" in self.__dict__:
            return rushlight.softmax(self.logits, -1)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def support(self) -> Constraint:  # type: ignore[override]
        last = self._num_events - 1
        return Constraint(f"IntegerInterval(lower_bound=0, upper_bound={last})",
                          lambda x: (x % 1 == 0) & (x >= 0) & (x <= last), is_discrete=True)

    @property
    def param_shape(self) -> Size:
        """The shape of probs."""
        return self.probs.shape

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        return self.probs.argmax(-1)  # type: ignore[attr-defined]

    @property
    def mean(self) -> Tensor:
        return rushlight.full(self._batch_shape, float("nan"), dtype=self.probs.dtype)

    variance = mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        n = Size(sample_shape).numel()
        rows = self.probs.detach().reshape(-1, self._num_events)  # type: ignore[attr-defined]
        return rushlight.multinomial(rows, n, True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self.checked(value).long().unsqueeze(-1)  # type: ignore[attr-defined]
        value, logits = rushlight.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        least = rushlight.finfo(self.logits.dtype).min
        return -(rushlight.clamp(self.logits, min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, in the first dimension."""
        values = rushlight.arange(self._num_events).reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """`Categorical`, with values as rows of zeros with one 1."""

    arg_constraints = {"probs": simplex, "logits": real_vector}
    support = one_hot

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def __getattr__(self, name: str) -> Tensor:
        if name in ("probs", "logits"):
            return getattr(self._categorical, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        indices = self._categorical.sample(sample_shape)
        return rushlight.nn.functional.one_hot(indices, self._categorical._num_events).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(self.checked(value).argmax(-1))  # type: ignore[attr-defined]

    def entropy(self) -> Tensor:
        return self._categorical.entropy()
