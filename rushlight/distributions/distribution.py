"""The base of all distributions: shapes, checks of arguments and values, samples, expanding."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import rushlight
from rushlight.base.errors import not_implemented_error, value_error
from rushlight.base.size import Size
from rushlight.core.arguments import all_true
from rushlight.core.tensor import Tensor
from rushlight.distributions.constraints import (
    Constraint,
    dependent,
    is_dependent,
    real,
    real_vector,
    simplex,
    unit_interval,
)

D = TypeVar("D", bound="Distribution")


class Distribution:
    """p(x): a random variable, or a batch of them, `batch_shape`, each with values of `event_shape`.

    `sample(shape)` gives shape + batch_shape + event_shape, `log_prob` of these values has shape + batch_shape.
    `validate_args=False`: skip the checks of arguments and values.

    >>> d = rushlight.distributions.MultivariateNormal(rushlight.zeros(3, 2), rushlight.eye(2))
    >>> d.batch_shape, d.event_shape, d.sample((4,)).shape, d.log_prob(d.sample((4,))).shape
    (torch.Size([3]), torch.Size([2]), torch.Size([4, 3, 2]), torch.Size([4, 3]))
    """

    arg_constraints: dict[str, Constraint] = {}
    support: Any = dependent
    has_rsample = False
    has_enumerate_support = False
    _validate_args = True

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                # only stored arguments: the arguments derived from them are then valid, too
                if name in self.__dict__ and not is_dependent(constraint):
                    self._check_argument(name, constraint)
        super().__init__()  # the next base class may be Module: class Prior(Distribution, Module)

    def _check_argument(self, name: str, constraint: Constraint) -> None:
        value = getattr(self, name)
        if not all_true(constraint.check(value)):
            raise value_error(
                f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid "
                f"values:\n{value}",
                "check the computation of these values: often a log, a softmax or a square root is missing",
            )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """The default of `validate_args`: whether distributions check their arguments and values."""
        if value not in (True, False):
            raise value_error("set_default_validate_args takes True or False")
        Distribution._validate_args = value

    def expand(self: D, batch_shape: Any, _instance: Any = None) -> D:
        """The same distribution with its arguments expanded to this batch shape. `_instance`: the instance to fill, if
        a subclass has expanded its own parameters.
        """
        batch = Size(batch_shape)
        new = type(self).__new__(type(self)) if _instance is None else _instance
        done = dict(new.__dict__)
        new.__dict__.update(self.__dict__)
        self._expand_into(new, batch)
        new.__dict__.update(done, _batch_shape=batch)
        return new

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        """torch's private method for a class's `expand`: the instance to fill, or a new one.

        NotImplementedError for a subclass of `cls` with another `__init__`: this subclass must define `expand`.
        """
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise not_implemented_error(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must "
                "also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _expand_into(self, new: Any, batch: Size) -> None:
        """Set the expanded arguments in `new`; a distribution that contains other distributions expands these, too."""
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                n = value.ndim - constraint.event_dim
                setattr(new, name, value.expand((*batch, *value.shape[n:])))

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise not_implemented_error(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise not_implemented_error(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The expected square of the distance from the mean."""
        raise not_implemented_error(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Random values of shape sample_shape + batch_shape + event_shape, without gradients."""
        with rushlight.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Random values computed from the parameters, so that gradients flow to the parameters."""
        raise not_implemented_error(f"{type(self).__name__} has no rsample: use sample, and log_prob for gradients")

    def sample_n(self, n: int) -> Tensor:
        """n random values."""
        return self.sample((n,))

    def _rsample_n(self, n: int) -> Tensor:
        """n random values with gradients for the parameters (reparameterized)."""
        return self.rsample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or probability, at `value`."""
        raise not_implemented_error(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to `value`."""
        raise not_implemented_error(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The value x with P(X <= x) equal to this probability."""
        raise not_implemented_error(f"{type(self).__name__} has no icdf")

    def entropy(self) -> Tensor:
        """The expected -log_prob."""
        raise not_implemented_error(f"{type(self).__name__} has no entropy")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, in the first dimension."""
        raise not_implemented_error(f"{type(self).__name__} has no list of all its values")

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """(n,) values as (n, *batch_shape), of size 1 in the batch unless `expand`."""
        values = values.reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise value_error("The value argument to log_prob must be a Tensor", "torch.tensor(value)")
        n = value.ndim - len(self._event_shape)
        if n < 0 or tuple(value.shape[n:]) != tuple(self._event_shape):
            raise value_error(
                f"The right-most size of value must match event_shape: {tuple(value.shape)} vs "
                f"{tuple(self._event_shape)}."
            )
        full = (*self._batch_shape, *self._event_shape)
        for a, b in zip(reversed(value.shape), reversed(full)):
            if a != 1 and b != 1 and a != b:
                raise value_error(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs {full}."
                )
        support = self.support
        if is_dependent(support):
            return
        if not all_true(support.check(value)):
            raise value_error(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _checked(self, value: Any) -> Any:
        """The value, checked unless `validate_args` is false."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """p(x) = exp(t(x) . theta - F(theta) + k(x)): the base class of torch's exponential families.

    >>> isinstance(rushlight.distributions.Normal(0.0, 1.0), rushlight.distributions.ExponentialFamily)
    True
    """


def one_of(probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        raise value_error("Either `probs` or `logits` must be specified, but not both.")


class computed:
    """An attribute that is computed on first access and cached; `super().name` works.

    Cached with its graph, as in torch: reinforcement learning calls log_prob at each step."""

    def __init__(self, rule: Callable[[Any], Any]):
        self.rule, self.__doc__ = rule, rule.__doc__

    def __set_name__(self, cls: type, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, cls: type | None = None) -> Any:
        if owner is None:
            return self
        with rushlight.enable_grad():
            made = owner.__dict__[self.name] = self.rule(owner)
        return made


class OfOutcomes(Distribution):
    """The base of distributions with probabilities or logits as parameter; the other form is computed on demand.

    `binary`: a logit is log(p / (1 - p)) of one probability; else logits are logarithms of a row of probabilities."""

    arg_constraints = {"probs": unit_interval, "logits": real}
    _binary = True

    @computed
    def logits(self) -> Any:
        """log(p / (1 - p)), or log p of a row."""
        return probs_to_logits(self.__dict__["probs"], self._binary)

    @computed
    def probs(self) -> Any:
        """sigmoid of the logits, or softmax of a row."""
        return logits_to_probs(self.__dict__["logits"], self._binary)

    @property
    def param_shape(self) -> Size:
        """The shape of probs, or logits."""
        return self._given.shape

    @property
    def _given(self) -> Any:
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    def _given_as(self, probs: Any, logits: Any) -> None:
        """Store the given parameter as a tensor."""
        one_of(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)


OUTCOME_CONSTRAINTS = {"probs": simplex, "logits": real_vector}


def clamp_probs(p: Tensor) -> Any:
    """min(max(p, eps), 1 - eps), eps the dtype's: clamped away from 0 and 1, so that logarithms are finite.

    >>> rushlight.distributions.utils.clamp_probs(rushlight.tensor([0., 0.5])).log()
    tensor([-15.9424,  -0.6931])
    """
    return p.clamp(eps_of(p), 1 - eps_of(p))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Any:
    """p_i = exp(x_i) / sum over j of exp(x_j) in the last dimension, or sigmoid(x) if each logit stands for itself.

    >>> convert = rushlight.distributions.utils.logits_to_probs
    >>> convert(rushlight.tensor([0., 0.])), convert(rushlight.tensor(0.), is_binary=True)
    (tensor([0.5000, 0.5000]), tensor(0.5000))
    """
    return rushlight.sigmoid(logits) if is_binary else rushlight.softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Any:
    """log p, or log(p / (1 - p)) if each probability stands for itself; away from infinity by the dtype's epsilon.

    >>> convert = rushlight.distributions.utils.probs_to_logits
    >>> convert(rushlight.tensor(0.5)), convert(rushlight.tensor(0.5), is_binary=True)
    (tensor(-0.6931), tensor(0.))
    """
    p = clamp_probs(probs)
    return p.log() - rushlight.log1p(-p) if is_binary else p.log()


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """(x, y, ...) of one shape: numbers and tensors broadcast; numbers take the tensors' dtype. ValueError for other
    types.

    >>> rushlight.distributions.utils.broadcast_all(rushlight.tensor([1., 2.]), 3)
    (tensor([1., 2.]), tensor([3., 3.]))
    """
    if not all(isinstance(v, (Tensor, int, float)) for v in values):
        raise value_error(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = rushlight.get_default_dtype() if like is None else like.dtype
    return tuple(
        rushlight.broadcast_tensors(*(v if isinstance(v, Tensor) else rushlight.tensor(v, dtype=dtype) for v in values))
    )


def eps_of(x: Tensor) -> float:
    return eps(x.dtype)


@cache
def eps(dtype: Any) -> float:
    return rushlight.finfo(dtype).eps


def tiny_of(x: Tensor) -> float:
    return rushlight.finfo(x.dtype).tiny


def uniform(shape: Any, like: Tensor) -> Any:
    """Numbers in [0, 1) in the dtype of `like`."""
    return rushlight.rand(tuple(shape), dtype=like.dtype)


def normal(shape: Any, like: Tensor) -> Any:
    """Standard normal numbers in the dtype of `like`."""
    return rushlight.randn(tuple(shape), dtype=like.dtype)
