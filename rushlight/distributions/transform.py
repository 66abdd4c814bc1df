"""Functions y = f(x) that turn one random variable into another: with inverse and the logarithm of |dy/dx|."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.distributions import constraints
from rushlight.distributions.distribution import eps_of, tiny_of
from rushlight.errors import explain
from rushlight.size import Size
from rushlight.tensor import Tensor


class Transform:
    """y = f(x), from values in `domain` to values in `codomain`.

    A subclass gives `_call(x)`, `_inverse(y)` and `log_abs_det_jacobian(x, y)`. With `cache_size=1` the last pair is
    kept, so that the inverse of a result is the very x that it was made of.
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real
    _sign: int | None = None

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._pair: tuple = (None, None)

    @property
    def sign(self) -> int:
        """+1 if it increases, -1 if it decreases."""
        if self._sign is None:
            raise NotImplementedError(f"{type(self).__name__} neither increases nor decreases everywhere")
        return self._sign

    @property
    def event_dim(self) -> int:
        """How many dimensions one value has, before and after. ValueError if these differ."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return InverseTransform(self)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same function, with or without a cache."""
        if cache_size == self._cache_size:
            return self
        from copy import copy
        twin = copy(self)
        twin._cache_size, twin._pair = cache_size, (None, None)
        return twin

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._pair[0]:
            self._pair = (x, self._call(x))
        return self._pair[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._pair[1]:
            self._pair = (self._inverse(y), y)
        return self._pair[0]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx|, for y = f(x)."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Size:
        """The shape of f(x), of that of x."""
        return Size(shape)

    def inverse_shape(self, shape: Any) -> Size:
        """The shape of x, of that of f(x)."""
        return Size(shape)

    def __eq__(self, other: object) -> bool:
        return self is other or type(self) is type(other) and not self.facts() and not other.facts()  # type: ignore

    __hash__ = None  # type: ignore[assignment]

    def facts(self) -> dict:
        return {name: value for name, value in self.__dict__.items() if name not in ("_cache_size", "_pair")}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform):
        super().__init__(transform._cache_size)
        self._inv = transform
        self.domain, self.codomain, self.bijective = transform.codomain, transform.domain, transform.bijective

    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)  # type: ignore[operator]

    def forward_shape(self, shape: Any) -> Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Size:
        return self._inv.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """Several transforms, one after another."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]
        self.bijective = all(part.bijective for part in self.parts)
        self.domain, self.codomain = self.ends()

    def ends(self) -> tuple[Any, Any]:
        """The sets from which and to which it leads; a part on single numbers takes all dimensions of a later one's."""
        if not self.parts:
            return constraints.real, constraints.real
        domain, codomain, n = self.parts[0].domain, self.parts[-1].codomain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            n = max(n + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        if n > domain.event_dim:
            domain = constraints.independent(domain, n - domain.event_dim)
        m = self.parts[0].domain.event_dim
        for part in self.parts:
            m = max(m + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        if m > codomain.event_dim:
            codomain = constraints.independent(codomain, m - codomain.event_dim)
        return domain, codomain

    @property
    def sign(self) -> int:
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Transform:
        return ComposeTransform([part.inv for part in reversed(self.parts)], self._cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if cache_size == self._cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Tensor) -> Tensor:
        return self.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        n, total = self.domain.event_dim, None
        for i, part in enumerate(self.parts):
            result = y if i == len(self.parts) - 1 else part(x)
            term = sum_last(part.log_abs_det_jacobian(x, result), n - part.domain.event_dim)
            total = term if total is None else total + term  # type: ignore[operator]
            n += part.codomain.event_dim - part.domain.event_dim
            x = result
        return rushlight.zeros_like(x) if total is None else total

    def forward_shape(self, shape: Any) -> Size:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return Size(shape)

    def inverse_shape(self, shape: Any) -> Size:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return Size(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform: Transform = ComposeTransform([])


def sum_last(x: Tensor, n: int) -> Any:
    """The sum over the last n dimensions."""
    return x.sum(tuple(range(-n, 0))) if n > 0 else x  # type: ignore[attr-defined]


class IndependentTransform(Transform):
    """Another transform, with more of the last dimensions as one value."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)

    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Size:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Size:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Values of one shape as those of another."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Tensor:
        return x.reshape(*x.shape[:x.dim() - len(self.in_shape)], *self.out_shape)

    def _inverse(self, y: Any) -> Tensor:
        return y.reshape(*y.shape[:y.dim() - len(self.out_shape)], *self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        return rushlight.zeros(x.shape[:x.dim() - len(self.in_shape)], dtype=x.dtype)

    def forward_shape(self, shape: Any) -> Size:
        return self.changed(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Size:
        return self.changed(shape, self.out_shape, self.in_shape)

    def changed(self, shape: Any, before: Size, after: Size) -> Size:
        n = len(shape) - len(before)
        if n < 0 or tuple(shape[n:]) != tuple(before):
            raise ValueError(explain(f"Shape mismatch: expected {tuple(shape)[max(n, 0):]} but got {tuple(before)}"))
        return Size((*shape[:n], *after))


class ExpTransform(Transform):
    """y = exp(x)."""

    codomain, bijective, _sign = constraints.positive, True, 1

    def _call(self, x: Any) -> Tensor:
        return x.exp()

    def _inverse(self, y: Any) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^exponent, of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else rushlight.tensor(float(exponent))

    @property
    def sign(self) -> Any:
        return self.exponent.sign()  # type: ignore[attr-defined]

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
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())  # type: ignore


def clipped_sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), which never is 0 or 1."""
    return rushlight.sigmoid(x).clamp(tiny_of(x), 1 - eps_of(x))


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    codomain, bijective, _sign = constraints.unit_interval, True, 1

    def _call(self, x: Tensor) -> Tensor:
        return clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = y.clamp(tiny_of(y), 1 - eps_of(y))  # type: ignore[attr-defined]
        return y.log() - (-y).log1p()  # type: ignore[attr-defined, operator]

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        softplus = rushlight.nn.functional.softplus
        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    codomain, bijective, _sign = constraints.positive, True, 1

    def _call(self, x: Tensor) -> Tensor:
        return rushlight.nn.functional.softplus(x)

    def _inverse(self, y: Any) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        return -rushlight.nn.functional.softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    codomain, bijective, _sign = constraints.interval(-1.0, 1.0), True, 1

    def _call(self, x: Any) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Any) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - rushlight.nn.functional.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|: two x for each y."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale x; `event_dim` dimensions are one value."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        self.domain = self.codomain = constraints.real if event_dim == 0 else constraints.independent(
            constraints.real, event_dim)

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)  # type: ignore

    def _call(self, x: Any) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        scale = self.scale if isinstance(self.scale, Tensor) else rushlight.tensor(float(self.scale), dtype=x.dtype)
        log = scale.abs().log()  # type: ignore[attr-defined]
        return sum_last(log.expand(rushlight.broadcast_shapes(x.shape, log.shape)), self._event_dim)

    def forward_shape(self, shape: Any) -> Size:
        return rushlight.broadcast_shapes(shape, *(v.shape for v in (self.loc, self.scale) if isinstance(v, Tensor)))

    inverse_shape = forward_shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and all(
            bool((rushlight.as_tensor(a) == rushlight.as_tensor(b)).all())
            for a, b in ((self.loc, other.loc), (self.scale, other.scale)))


__all__ = ["AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform",
           "IndependentTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftplusTransform",
           "TanhTransform", "Transform", "identity_transform"]
