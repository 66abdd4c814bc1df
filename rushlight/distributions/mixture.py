"""Mixtures of distributions of one family, and von Mises' distribution on the circle."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.base.errors import value_error
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.discrete import Categorical
from rushlight.distributions.distribution import Distribution, broadcast_all


class MixtureSameFamily(Distribution):
    """p(x) = sum of w_i p_i(x): a batch of components, in the last batch dimension, chosen by a `Categorical`.

    >>> d = rushlight.distributions
    >>> mix = d.Categorical(rushlight.ones(2))
    >>> d.MixtureSameFamily(mix, d.Normal(rushlight.tensor([-1., 3.]), rushlight.ones(2))).mean
    tensor(1.)
    """

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise value_error(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise value_error("The Component distribution need to be an instance of torch.distributions.Distribution")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        batch = component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixture_distribution.batch_shape), reversed(batch)):
            if a != 1 and b != 1 and a != b:
                raise value_error(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is not compatible "
                    f"with `component_distribution.batch_shape`({batch})"
                )
        n = mixture_distribution.logits.shape[-1]
        if n != component_distribution.batch_shape[-1]:
            raise value_error(
                f"`mixture_distribution component` ({n}) does not equal `component_distribution.batch_shape[-1]` "
                f"({component_distribution.batch_shape[-1]})"
            )
        super().__init__(batch, component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution, doc="Which component.")
    component_distribution = property(lambda self: self._component_distribution, doc="The components.")

    @constraints.dependent_property(event_dim=None)
    def support(self) -> Any:
        """The support of the components; each component checks the value."""
        inner = self._component_distribution.support
        if constraints.is_dependent(inner):
            return inner
        return constraints.Constraint(
            f"MixtureSameFamilyConstraint({inner!r})",
            lambda x: inner.check(self._padded(x)),
            inner.event_dim,
            inner.is_discrete,
        )

    def _expand_into(self, new: Any, batch: Size) -> None:
        new._mixture_distribution = self._mixture_distribution.expand(batch)
        new._component_distribution = self._component_distribution.expand(
            (*batch, self._mixture_distribution._num_events)
        )

    def _padded(self, x: Tensor) -> Any:
        """`x` with a dimension for the components."""
        return x.unsqueeze(-1 - len(self._event_shape))

    @property
    def _weights(self) -> Any:
        """The probabilities of the components, with dimensions of size 1 for the dimensions of a value."""
        probs = self._mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return (self._weights * self._component_distribution.mean).sum(-1 - len(self._event_shape))

    @property
    def variance(self) -> Tensor:
        """The mean of the variances plus the variance of the means."""
        dim, w, c = -1 - len(self._event_shape), self._weights, self._component_distribution
        of_means = w * (c.mean - self._padded(self.mean)).pow(2.0)
        return (w * c.variance).sum(dim) + of_means.sum(dim)

    def cdf(self, value: Tensor) -> Tensor:
        return (self._component_distribution.cdf(self._padded(value)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        of_components = self._component_distribution.log_prob(self._padded(self._checked(value)))
        weights = rushlight.log_softmax(self._mixture_distribution.logits, -1)
        return rushlight.logsumexp(of_components + weights, -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with rushlight.no_grad():
            dim, n = len(sample_shape) + len(self._batch_shape), len(self._event_shape)
            which: Any = self._mixture_distribution.sample(sample_shape)
            drawn: Any = self._component_distribution.sample(sample_shape)
            which = which.reshape(*which.shape, *[1] * (n + 1)).expand(*which.shape, 1, *self._event_shape)
            return drawn.gather(dim, which).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"


class VonMises(Distribution):
    """p(x) = exp(concentration cos(x - loc)) / (2 pi I0(concentration)), on a circle.

    >>> d = rushlight.distributions.VonMises(rushlight.tensor(0.), rushlight.tensor(1.))
    >>> d.log_prob(rushlight.tensor([0., 3.])).exp(), d.mean
    (tensor([0.3417, 0.0467]), tensor(0.))
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    mean = property(lambda self: self.loc, doc="loc.")
    mode = property(lambda self: self.loc, doc="loc.")

    @property
    def variance(self) -> Tensor:
        """1 - I1 / I0, the circular variance."""
        k = self.concentration
        return 1 - rushlight.special.i1e(k) / rushlight.special.i0e(k)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self.concentration
        log_i0 = rushlight.log(rushlight.special.i0e(k)) + k
        return k * rushlight.cos(self._checked(value) - self.loc) - math.log(2 * math.pi) - log_i0

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples by rejection from a wrapped Cauchy distribution (D. Best, N. Fisher, 1979), in float64."""
        with rushlight.no_grad():
            shape = self._extended_shape(sample_shape)
            loc, k = self.loc.double(), self.concentration.double()
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = rushlight.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho)).expand(shape)
            k, x = k.expand(shape), rushlight.zeros(shape, dtype=rushlight.float64)
            done = rushlight.zeros(shape, dtype=rushlight.bool)
            while not done.all():
                u1, u2, u3 = rushlight.rand((3, *shape), dtype=rushlight.float64).unbind()
                z = rushlight.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = rushlight.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
