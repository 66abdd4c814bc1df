"""Gamma, Beta, Dirichlet and distributions composed of them. Samples have gradients by implicit differentiation.

A sample x of a distribution F(x; a) changes with the parameter such that F is constant: dx/da = -(dF/da) / (dF/dx) (M.
Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, 2018). dF/da is a fourth-order central difference
of SciPy's incomplete functions, exact to about 10 digits; torch's formulas are exact to about 4."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import rushlight
from rushlight.autograd.function import Function, once_differentiable
from rushlight.base.dependencies import scipy_part
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.distributions.constraints import independent, nonnegative, positive, real, simplex, unit_interval
from rushlight.distributions.distribution import Distribution as Base
from rushlight.distributions.distribution import ExponentialFamily, broadcast_all, normal, tiny_of
from rushlight.ops.tensor.random_tensors import source


def slope(f: Any, a: np.ndarray) -> np.ndarray:
    """df/da, by four points whose distance follows the width of the distribution."""
    h = 1e-3 * np.where(a < 1, a, np.sqrt(a))
    return (8 * (f(a + h) - f(a - h)) - (f(a + 2 * h) - f(a - 2 * h))) / (12 * h)


def gamma_slope(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """dx/da for x ~ Gamma(a, 1)."""
    special = scipy_part("special", "derivatives of Gamma, Beta and Dirichlet numbers need")
    a, x = a.astype(np.float64), x.astype(np.float64)
    lower = x < a  # the smaller tail: its relative error stays small
    moved = slope(lambda a: np.where(lower, special.gammainc(a, x), -special.gammaincc(a, x)), a)
    return -moved * np.exp(x + special.gammaln(a) - (a - 1) * np.log(x))


def beta_slope(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """dx/da for x ~ Beta(a, b)."""
    special = scipy_part("special", "derivatives of Gamma, Beta and Dirichlet numbers need")
    lower = x < a / (a + b)
    moved = slope(lambda a: np.where(lower, special.betainc(a, b, x), -special.betaincc(a, b, x)), a)
    return -moved * np.exp(special.betaln(a, b) - (a - 1) * np.log(x) - (b - 1) * np.log1p(-x))


class StandardGamma(Function):
    """Samples of Gamma(a, rate 1), differentiable with respect to a."""

    draw = "standard_gamma"

    @classmethod
    def forward(cls, ctx: Any, concentration: Tensor, generator: Any) -> Tensor:
        x = from_array(getattr(source(generator), cls.draw)(concentration._array))
        ctx.save_for_backward(concentration, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        a, x = (t._array for t in ctx.saved_tensors)
        return g * from_array(gamma_slope(a, x).astype(a.dtype)), None


def _standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    """Samples of Gamma(self, rate 1), differentiable with respect to `self`.

    >>> rushlight._standard_gamma(rushlight.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return StandardGamma.apply(self, generator)


class StandardDirichlet(StandardGamma):
    """Samples of Dirichlet(a), differentiable with respect to a."""

    draw = "dirichlet"

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        """dx_i / da_i is the derivative of a Beta sample; the other elements change in proportion."""
        a, x, g = (t._array.astype(np.float64) for t in (*ctx.saved_tensors, g))
        moved = beta_slope(a, a.sum(-1, keepdims=True) - a, x) / (1 - x)
        slopes = moved * (g - (x * g).sum(-1, keepdims=True))
        return from_array(slopes.astype(ctx.saved_tensors[0]._array.dtype)), None


class Gamma(ExponentialFamily):
    """p(x) = rate^a x^(a - 1) exp(-rate x) / Gamma(a), a the concentration, for x > 0.

    >>> d = rushlight.distributions.Gamma(rushlight.tensor(3.), rushlight.tensor(2.))
    >>> d.mean, d.variance
    (tensor(1.5000), tensor(0.7500))
    """

    arg_constraints = {"concentration": positive, "rate": positive}
    support = nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    mean = property(lambda self: self.concentration / self.rate, doc="a / rate.")
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0), doc="(a - 1) / rate, or 0.")
    variance = property(lambda self: self.concentration / self.rate.pow(2), doc="a / rate^2.")

    def sample(self, sample_shape: Any = (), *, generator: Any = None) -> Tensor:
        """Random numbers without a gradient; `generator`: another source of them, as in torch 2.15."""
        with rushlight.no_grad():
            return self.rsample(sample_shape, generator)

    def rsample(self, sample_shape: Any = (), generator: Any = None) -> Tensor:
        """Random numbers, differentiable with respect to the parameters; `generator`: another source of them."""
        shape = self._extended_shape(sample_shape)
        x = _standard_gamma(self.concentration.expand(shape), generator) / self.rate.expand(shape)
        return at_least(x, tiny_of(x))

    def log_prob(self, value: Tensor) -> Tensor:
        a, rate = self.concentration, self.rate
        x = self._checked(rushlight.as_tensor(value, dtype=rate.dtype))
        return rushlight.xlogy(a, rate) + rushlight.xlogy(a - 1, x) - rate * x - rushlight.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + rushlight.lgamma(a) + (1 - a) * rushlight.digamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        return rushlight.special.gammainc(self.concentration, self.rate * self._checked(value))


def at_least(x: Tensor, least: float) -> Tensor:
    """max(x, least), with gradient 1 for all elements: the maximum is outside of the graph."""
    with rushlight.no_grad():
        raised = x.clamp(min=least) - x
        low = bool((x.detach() < least).any())
    return x + raised if low else x


class Chi2(Gamma):
    """p(x) = x^(df / 2 - 1) exp(-x / 2) / (2^(df / 2) Gamma(df / 2)): the sum of `df` squares of standard normal
    variables.

    >>> d = rushlight.distributions.Chi2(rushlight.tensor(3.))
    >>> d.mean, d.variance
    (tensor(3.), tensor(6.))
    """

    arg_constraints = {"df": positive}

    def __init__(self, df: Any, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args)
        if self._validate_args:  # the base class has checked df / 2
            self._check_argument("df", positive)

    def _expand_into(self, new: Any, batch: Any) -> None:
        new.concentration, new.rate = self.concentration.expand(batch), self.rate.expand(batch)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class Dirichlet(ExponentialFamily):
    """p(x) = Gamma(sum a) prod x_i^(a_i - 1) / Gamma(a_i), for positive x that add up to 1.

    >>> d = rushlight.distributions.Dirichlet(rushlight.tensor([1., 1., 2.]))
    >>> d.mean, d.sample().sum().isclose(rushlight.tensor(1.))
    (tensor([0.2500, 0.2500, 0.5000]), tensor(True))
    """

    arg_constraints = {"concentration": independent(positive, 1)}
    support = simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.dim() < 1:
            raise value_error("`concentration` parameter must be at least one-dimensional.")
        self.concentration: Any = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        less = (self.concentration - 1).clamp(min=0.0)
        mode = less / less.sum(-1, True)
        one = rushlight.nn.functional.one_hot(mode.argmax(-1), self._event_shape[0]).to(mode)
        return rushlight.where((self.concentration < 1).all(-1, keepdim=True), one, mode)

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self.concentration.sum(-1, True)
        return a * (total - a) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return StandardDirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)), None)

    def log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        return (
            rushlight.xlogy(a - 1, self._checked(value)).sum(-1)
            + rushlight.lgamma(a.sum(-1))
            - rushlight.lgamma(a).sum(-1)
        )

    def entropy(self) -> Tensor:
        a, k = self.concentration, self._event_shape[0]
        total = a.sum(-1)
        return (
            rushlight.lgamma(a).sum(-1)
            - rushlight.lgamma(total)
            - (k - total) * rushlight.digamma(total)
            - ((a - 1) * rushlight.digamma(a)).sum(-1)
        )


class Beta(ExponentialFamily):
    """p(x) = x^(a - 1) (1 - x)^(b - 1) / B(a, b) for x in [0, 1], a `concentration1`, b `concentration0`.

    >>> d = rushlight.distributions.Beta(2.0, 1.0)
    >>> d.mean, d.log_prob(rushlight.tensor(0.5)).exp()  # 2 / (2 + 1), 2 x
    (tensor(0.6667), tensor(1.))
    """

    arg_constraints = {"concentration1": positive, "concentration0": positive}
    support = unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        both = rushlight.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args)
        super().__init__(self._dirichlet.batch_shape, (), validate_args)

    def _expand_into(self, new: Any, batch: Any) -> None:
        new._dirichlet = self._dirichlet.expand(batch)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0], doc="a.")
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1], doc="b.")
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0), doc="a / (a + b).")
    mode = property(lambda self: self._dirichlet.mode[..., 0], doc="(a - 1) / (a + b - 2), or an end.")

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        x = self._checked(value)
        return self._dirichlet.log_prob(rushlight.stack([x, 1.0 - x], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class StudentT(Base):
    """x = loc + scale z / sqrt(c / df), z standard normal, c of Chi2(df): heavier tails than a normal variable's.

    >>> d = rushlight.distributions.StudentT(rushlight.tensor(4.))
    >>> d.mean, d.variance  # df / (df - 2)
    (tensor(0.), tensor(2.))
    """

    arg_constraints = {"df": positive, "loc": real, "scale": positive}
    support = real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args)

    mode = property(lambda self: self.loc, doc="loc.")
    mean = property(lambda self: rushlight.where(self.df > 1, self.loc, math.nan), doc="loc; nan for df <= 1.")

    @property
    def variance(self) -> Tensor:
        found = rushlight.where(self.df > 2, self.scale.pow(2) * self.df / (self.df - 2), math.inf)
        return rushlight.where(self.df <= 1, math.nan, found)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = normal(self._extended_shape(sample_shape), self.df)
        z = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * (x * rushlight.rsqrt(z / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self._checked(value) - self.loc) / self.scale
        z = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + rushlight.lgamma(0.5 * self.df)
            - rushlight.lgamma(0.5 * (self.df + 1))
        )
        return -0.5 * (self.df + 1) * rushlight.log1p(y**2 / self.df) - z

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = rushlight.lgamma(half) + math.lgamma(0.5) - rushlight.lgamma(more)
        return (
            self.scale.log()
            + more * (rushlight.digamma(more) - rushlight.digamma(half))
            + 0.5 * self.df.log()
            + log_beta
        )


class FisherSnedecor(Base):
    """x = (a / df1) / (b / df2), a of Chi2(df1), b of Chi2(df2): the quotient of two variances.

    >>> rushlight.distributions.FisherSnedecor(rushlight.tensor(3.),
    ...     rushlight.tensor(4.)).mean  # df2 / (df2 - 2)
    tensor(2.)
    """

    arg_constraints = {"df1": positive, "df2": positive}
    support = positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, (), validate_args)

    mean = property(
        lambda self: rushlight.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan), doc="df2/(df2 - 2)."
    )

    @property
    def mode(self) -> Tensor:
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return rushlight.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Tensor:
        m = self.df2
        found = 2 * m.pow(2) * (self.df1 + m - 2) / (self.df1 * (m - 2).pow(2) * (m - 4))
        return rushlight.where(m > 4, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x, y = (Gamma(df * 0.5, df, validate_args=False).rsample(sample_shape) for df in (self.df1, self.df2))
        tiny = tiny_of(x)
        return at_least(x / at_least(y, tiny), tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        x, n, m = self._checked(value), self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        return (
            (n + m).lgamma()
            - n.lgamma()
            - m.lgamma()
            + n * ratio.log()
            + (n - 1) * x.log()
            - (n + m) * rushlight.log1p(ratio * x)
        )
