"""Elementwise transforms: powers, exponentials, sigmoids, affine functions."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import eps_of, tiny_of
from rushlight.distributions.transform import Transform, sum_last


class ExpTransform(Transform):
    """y = exp(x).

    >>> f, x = rushlight.distributions.ExpTransform(), rushlight.tensor(2.)
    >>> f(x), f.inv(f(x)), f.log_abs_det_jacobian(x, f(x))
    (tensor(7.3891), tensor(2.), tensor(2.))
    """

    codomain, bijective, _sign = constraints.positive, True, 1

    def _call(self, x: Any) -> Tensor:
        return x.exp()

    def _inverse(self, y: Any) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^exponent, of positive numbers.

    >>> f = rushlight.distributions.PowerTransform(rushlight.tensor(2.))
    >>> f(rushlight.tensor(3.)), f.inv(rushlight.tensor(9.))
    (tensor(9.), tensor(3.))
    """

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else rushlight.tensor(float(exponent))

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: Any) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Size:
        return rushlight.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())


def clipped_sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), kept away from 0 and 1."""
    return rushlight.sigmoid(x).clamp(tiny_of(x), 1 - eps_of(x))


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)).

    >>> f = rushlight.distributions.SigmoidTransform()
    >>> f(rushlight.tensor(0.)), f.inv(rushlight.tensor(0.5))
    (tensor(0.5000), tensor(0.))
    """

    codomain, bijective, _sign = constraints.unit_interval, True, 1

    def _call(self, x: Tensor) -> Tensor:
        return clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = y.clamp(tiny_of(y), 1 - eps_of(y))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        softplus = rushlight.nn.functional.softplus
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x)).

    >>> f = rushlight.distributions.SoftplusTransform()
    >>> f(rushlight.tensor(0.)), f.inv(f(rushlight.tensor(3.)))
    (tensor(0.6931), tensor(3.))
    """

    codomain, bijective, _sign = constraints.positive, True, 1

    def _call(self, x: Tensor) -> Tensor:
        return rushlight.nn.functional.softplus(x)

    def _inverse(self, y: Any) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        return -rushlight.nn.functional.softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x).

    >>> f = rushlight.distributions.TanhTransform()
    >>> f(rushlight.tensor(0.)), f.inv(rushlight.tensor(0.5)).tanh()
    (tensor(0.), tensor(0.5000))
    """

    codomain, bijective, _sign = constraints.interval(-1.0, 1.0), True, 1

    def _call(self, x: Any) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Any) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - rushlight.nn.functional.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|: two x for each y.

    >>> y = rushlight.distributions.AbsTransform()
    >>> y(rushlight.tensor([-2.,
    ...     3.])), y.inv(rushlight.tensor(2.))  # of the two x the one that is not negative
    (tensor([2., 3.]), tensor(2.))
    """

    codomain = constraints.positive

    def _call(self, x: Any) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale x; `event_dim` dimensions are one value.

    >>> f = rushlight.distributions.AffineTransform(loc=1.0, scale=2.0)
    >>> x = rushlight.tensor(3.)
    >>> f(x), f.inv(f(x)), f.log_abs_det_jacobian(x, f(x)).exp()
    (tensor(7.), tensor(3.), tensor(2.))
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        self.domain = self.codomain = (
            constraints.real if event_dim == 0 else constraints.independent(constraints.real, event_dim)
        )

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        scale = self.scale if isinstance(self.scale, Tensor) else rushlight.tensor(float(self.scale), dtype=x.dtype)
        log = scale.abs().log()
        return sum_last(log.expand(rushlight.broadcast_shapes(x.shape, log.shape)), self._event_dim)

    def forward_shape(self, shape: Any) -> Size:
        return rushlight.broadcast_shapes(shape, *(v.shape for v in (self.loc, self.scale) if isinstance(v, Tensor)))

    inverse_shape = forward_shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and all(
            bool((rushlight.as_tensor(a) == rushlight.as_tensor(b)).all())
            for a, b in ((self.loc, other.loc), (self.scale, other.scale))
        )
