"""The base of all distributions: shapes, checks of arguments and values, entropy, samples."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight.errors import explain
from rushlight.size import Size
from rushlight.tensor import Tensor


class Constraint:
    """A set of values: `check(x)` says for each element whether it belongs to it."""

    def __init__(self, name: str, check: Callable[[Tensor], Tensor], event_dim: int = 0, is_discrete: bool = False):
        self.name, self.check, self.event_dim, self.is_discrete = name, check, event_dim, is_discrete

    def __repr__(self) -> str:
        return self.name


real = Constraint("Real()", lambda x: x == x)
positive = Constraint("GreaterThan(lower_bound=0.0)", lambda x: x > 0)
nonnegative = Constraint("GreaterThanEq(lower_bound=0.0)", lambda x: x >= 0)
unit_interval = Constraint("Interval(lower_bound=0.0, upper_bound=1.0)", lambda x: (x >= 0) & (x <= 1))
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer = Constraint("IntegerGreaterThan(lower_bound=0)", lambda x: (x % 1 == 0) & (x >= 0), is_discrete=True)
simplex = Constraint("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
real_vector = Constraint("IndependentConstraint(Real(), 1)", lambda x: (x == x).all(-1), 1)
one_hot = Constraint("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True)


class Distribution:
    """A random variable: a batch of them, `batch_shape`, each with values of `event_shape`.

    `validate_args=False` leaves out the checks of arguments and values.
    """

    arg_constraints: dict[str, Constraint] = {}
    support: Any = real
    has_rsample = False
    has_enumerate_support = False
    _validate_args = True

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if name in self.__dict__:         # what is derived from another is right if that is
                    self.check_argument(name, constraint)

    def check_argument(self, name: str, constraint: Constraint) -> None:
        value = getattr(self, name)
        if not constraint.check(value).all():
            raise ValueError(explain(
                f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}",
                "look where these numbers come from: often a log, a softmax or a variance is missing"))

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments and values, unless told."""
        Distribution._validate_args = value

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
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def variance(self) -> Tensor:
        """The expected square of the distance from the mean."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()  # type: ignore[attr-defined]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Random values of shape sample_shape + batch_shape + event_shape; no gradient goes through them."""
        with rushlight.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Random values made of the parameters, so that gradients go through them."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample: use sample, and log_prob for gradients")

    def sample_n(self, n: int) -> Tensor:
        """n random values."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or probability, at `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The value up to which this probability lies."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def entropy(self) -> Tensor:
        """The expected -log_prob."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return self.entropy().exp()  # type: ignore[attr-defined]

    def _extended_shape(self, sample_shape: Any = ()) -> tuple:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(explain("The value argument to log_prob must be a Tensor", "torch.tensor(value)"))
        support = self.support
        if not support.check(value).all():
            raise ValueError(explain(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"))

    def checked(self, value: Tensor) -> Tensor:
        """The value, after the check that is on by default."""
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


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the tensors' dtype."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = rushlight.get_default_dtype() if like is None or not like.is_floating_point() else like.dtype
    return tuple(rushlight.broadcast_tensors(*(
        v if isinstance(v, Tensor) else rushlight.tensor(v, dtype=dtype) for v in values)))


def eps_of(x: Tensor) -> float:
    return rushlight.finfo(x.dtype).eps
