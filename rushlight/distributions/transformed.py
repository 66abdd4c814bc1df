"""Distributions of f(x), x of another distribution; and independent dimensions as one value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.base.errors import not_implemented_error, value_error
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.continuous import Exponential, Normal, Uniform
from rushlight.distributions.distribution import Distribution, broadcast_all, eps_of, tiny_of
from rushlight.distributions.elementwise_transforms import AffineTransform, ExpTransform, PowerTransform
from rushlight.distributions.transform import ComposeTransform, Transform, sum_last
from rushlight.distributions.vector_transforms import StickBreakingTransform

EULER_GAMMA = 0.57721566490153286060


class Independent(Distribution):
    """p(x) = product of p_i(x_i): the last `reinterpreted_batch_ndims` dimensions of a batch as one value.

    >>> d = rushlight.distributions.Independent(rushlight.distributions.Normal(rushlight.zeros(4,
    ...     3), rushlight.ones(3)), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(rushlight.zeros(4, 3)).shape
    (torch.Size([4]), torch.Size([3]), torch.Size([4]))
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ):
        n = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if n < 0:
            raise value_error(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        shape = base_distribution.batch_shape + base_distribution.event_shape
        super().__init__(shape[:n], shape[n:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(
        lambda self: self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support
    )
    mean = property(lambda self: self.base_dist.mean, doc="The expected value.")
    mode = property(lambda self: self.base_dist.mode, doc="The most probable value.")
    variance = property(lambda self: self.base_dist.variance, doc="Of each number.")

    @constraints.dependent_property(event_dim=None)
    def support(self) -> Any:
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    def _expand_into(self, new: Any, batch: Size) -> None:
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*batch, *inner))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise not_implemented_error("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """f(x), x of `base_distribution`: log p(y) = log p(x) - log |dy/dx|.

    >>> d = rushlight.distributions
    >>> logistic = d.TransformedDistribution(d.Uniform(0.0, 1.0), [d.SigmoidTransform().inv])
    >>> logistic.cdf(rushlight.tensor(0.0))
    tensor(0.5000)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise value_error(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        whole = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < whole.domain.event_dim:
            raise value_error(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got "
                f"{base_shape}."
            )
        shape = whole.forward_shape(base_shape)
        expanded = whole.inverse_shape(shape)
        if tuple(base_shape) != tuple(expanded):  # a transform's arguments enlarge the batch
            base_distribution = base_distribution.expand(expanded[: len(expanded) - len(base_distribution.event_shape)])
        more = whole.domain.event_dim - len(base_distribution.event_shape)
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        n = whole.codomain.event_dim + max(len(self.base_dist.event_shape) - whole.domain.event_dim, 0)
        super().__init__(shape[: len(shape) - n], shape[len(shape) - n :], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property(event_dim=None)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        n = len(self._event_shape) - found.event_dim
        return constraints.independent(found, n) if n > 0 else found

    def _expand_into(self, new: Any, batch: Size) -> None:
        super()._expand_into(new, batch)  # expands the arguments of a subclass
        shape = ComposeTransform(self.transforms).inverse_shape((*batch, *self._event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with rushlight.no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def _through(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        y, n, total = self._checked(value), len(self._event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            n += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_last(transform.log_abs_det_jacobian(x, y), n - transform.domain.event_dim)
            y = x
        return total + sum_last(self.base_dist.log_prob(y), n - len(self.base_dist.event_shape))

    def _increasing(self, p: Tensor) -> Tensor:
        """The cumulative probability p of the base distribution as a probability of this distribution: 1 - p if the
        composed transform decreases.
        """
        sign = math.prod([t.sign for t in self.transforms])
        if isinstance(sign, int) and sign == 1:
            return p
        return sign * (p - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        x = self._checked(value)
        for transform in reversed(self.transforms):
            x = transform.inv(x)
        return self._increasing(self.base_dist.cdf(x))

    def icdf(self, value: Tensor) -> Tensor:
        return self._through(self.base_dist.icdf(self._increasing(value)))


class LogNormal(TransformedDistribution):
    """p(x) = exp(-(log x - loc)^2 / (2 scale^2)) / (x scale sqrt(2 pi)): the exp of a normal variable.

    >>> d = rushlight.distributions.LogNormal(rushlight.tensor(0.), rushlight.tensor(1.))
    >>> d.mean, d.mode  # exp(1 / 2), exp(-1)
    (tensor(1.6487), tensor(0.3679))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    loc = property(lambda self: self.base_dist.loc, doc="The mean of the logarithm.")
    scale = property(lambda self: self.base_dist.scale, doc="The deviation of the logarithm.")
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp(), doc="exp(loc + scale^2 / 2).")
    mode = property(lambda self: (self.loc - self.scale.square()).exp(), doc="exp(loc - scale^2).")

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class OfArguments(TransformedDistribution):
    """A transformed distribution whose transforms depend on its own arguments: `_made_by()`."""

    def _made_by(self) -> list[Transform]:
        """The transforms."""
        raise NotImplementedError

    def _expand_into(self, new: Any, batch: Size) -> None:
        super()._expand_into(new, batch)
        new.transforms = new._made_by()


class Gumbel(OfArguments):
    """p(x) = exp(-(z + exp(-z))) / scale, z = (x - loc) / scale: the largest of many exponential numbers.

    >>> rushlight.distributions.Gumbel(0.0, 1.0).mean  # Euler's constant
    tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        base = Uniform(
            rushlight.full_like(self.loc, tiny_of(self.loc)),
            rushlight.full_like(self.loc, 1 - eps_of(self.loc)),
            validate_args,
        )
        super().__init__(base, self._made_by(), validate_args)

    def _made_by(self) -> list[Transform]:
        return [
            ExpTransform().inv,
            AffineTransform(0, -rushlight.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]

    mean = property(lambda self: self.loc + self.scale * EULER_GAMMA, doc="loc + 0.5772 scale.")
    mode = property(lambda self: self.loc, doc="loc.")
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale, doc="pi / sqrt(6) scale.")
    variance = property(lambda self: self.stddev.pow(2), doc="pi^2 / 6 scale^2.")

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self.loc - self._checked(value)) / self.scale
        return y - y.exp() - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER_GAMMA)


class Weibull(OfArguments):
    """p(x) = k/s (x/s)^(k - 1) exp(-(x/s)^k), s the scale and k the concentration.

    >>> d = rushlight.distributions.Weibull(rushlight.tensor(1.), rushlight.tensor(2.))
    >>> d.mean, d.mode  # Gamma(1.5), sqrt(1 / 2)
    (tensor(0.8862), tensor(0.7071))
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(rushlight.ones_like(self.scale), validate_args)
        super().__init__(base, self._made_by(), validate_args)

    _concentration_reciprocal = property(lambda self: self.concentration.reciprocal(), doc="1 / k.")

    def _made_by(self) -> list[Transform]:
        return [PowerTransform(self._concentration_reciprocal), AffineTransform(0, self.scale)]

    mean = property(
        lambda self: self.scale * rushlight.exp(rushlight.lgamma(1 + self._concentration_reciprocal)),
        doc="s Gamma(1 + 1/k).",
    )

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** self._concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        r = self._concentration_reciprocal
        return self.scale.pow(2) * (
            rushlight.exp(rushlight.lgamma(1 + 2 * r)) - rushlight.exp(2 * rushlight.lgamma(1 + r))
        )

    def entropy(self) -> Tensor:
        r = self._concentration_reciprocal
        return EULER_GAMMA * (1 - r) + rushlight.log(self.scale * r) + 1


class Pareto(OfArguments):
    """p(x) = alpha scale^alpha / x^(alpha + 1) for x >= scale.

    >>> d = rushlight.distributions.Pareto(rushlight.tensor(1.), rushlight.tensor(2.))
    >>> d.mean, d.cdf(rushlight.tensor(2.))  # 1 - 2^-2
    (tensor(2.), tensor(0.7500))
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(Exponential(self.alpha, validate_args), self._made_by(), validate_args)

    def _made_by(self) -> list[Transform]:
        return [ExpTransform(), AffineTransform(0, self.scale)]

    support = constraints.dependent_property(lambda self: constraints.greater_than_eq(self.scale))
    mode = property(lambda self: self.scale, doc="scale.")

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        r = self.alpha.reciprocal()
        return (self.scale / self.alpha).log() + (1 + r)


class Kumaraswamy(OfArguments):
    """p(x) = a b x^(a - 1) (1 - x^a)^(b - 1) for x in [0, 1]: like Beta, with a cdf that can be inverted.

    >>> d = rushlight.distributions.Kumaraswamy(rushlight.tensor(2.), rushlight.tensor(1.))
    >>> d.mean, d.cdf(rushlight.tensor(0.5))  # 1 - (1 - x^2)
    (tensor(0.6667), tensor(0.2500))
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        one = rushlight.ones_like(self.concentration0)
        super().__init__(Uniform(rushlight.zeros_like(one), one, validate_args), self._made_by(), validate_args)

    def _made_by(self) -> list[Transform]:
        return [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]

    mean = property(lambda self: self._moment(1), doc="b B(1 + 1/a, b).")
    variance = property(
        lambda self: self._moment(2) - self.mean.pow(2), doc="The second moment less the mean's square."
    )

    def _moment(self, n: int) -> Any:
        """E x^n = b B(1 + n/a, b)."""
        a, b = 1 + n / self.concentration1, self.concentration0
        return rushlight.exp(b.log() + rushlight.lgamma(a) + rushlight.lgamma(b) - rushlight.lgamma(a + b))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return rushlight.where((a < 1) | (b < 1), math.nan, mode)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        t1, t0 = 1 - a.reciprocal(), 1 - b.reciprocal()
        harmonic = rushlight.digamma(b + 1) + EULER_GAMMA
        return t0 + t1 * harmonic - a.log() - b.log()


class LogisticNormal(TransformedDistribution):
    """x = stick_breaking(z), z of Normal(loc, scale): n normal numbers become n + 1 shares that add up to 1.

    >>> d = rushlight.distributions.LogisticNormal(rushlight.zeros(2), rushlight.ones(2))
    >>> d.event_shape, d.sample().sum().isclose(rushlight.tensor(1.))
    (torch.Size([3]), tensor(True))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc, doc="The means before.")
    scale = property(lambda self: self.base_dist.base_dist.scale, doc="The deviations before.")
