"""Functions y = f(x) that turn one random variable into another: with their inverse and log |dy/dx|."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.base.errors import not_implemented_error, value_error
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints


class Transform:
    """y = f(x), from values in `domain` to values in `codomain`.

    A subclass defines `_call(x)`, `_inverse(y)` and `log_abs_det_jacobian(x, y)`. With `cache_size=1` the last pair is
    cached, so that the inverse of the last result returns the same object x.

    >>> f = rushlight.distributions.ExpTransform(cache_size=1)
    >>> x = rushlight.tensor([1., 2.])
    >>> f.inv(f(x)) is x, f.domain, f.codomain
    (True, Real(), GreaterThan(lower_bound=0.0))
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real
    _sign: int | None = None

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise value_error("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._pair: tuple = (None, None)

    @property
    def sign(self) -> int:
        """+1 for an increasing function, -1 for a decreasing one."""
        if self._sign is None:
            raise not_implemented_error(f"{type(self).__name__} neither increases nor decreases everywhere")
        return self._sign

    @property
    def event_dim(self) -> int:
        """The number of dimensions of one value, before and after. ValueError if they differ."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise value_error("Please use either .domain.event_dim or .codomain.event_dim")
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
        raise not_implemented_error(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise not_implemented_error(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy/dx|, for y = f(x)."""
        raise not_implemented_error(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Size:
        """The shape of f(x), given the shape of x."""
        return Size(shape)

    def inverse_shape(self, shape: Any) -> Size:
        """The shape of x, given the shape of f(x)."""
        return Size(shape)

    def __eq__(self, other: object) -> bool:
        return self is other or type(self) is type(other) and not self._facts() and not other._facts()

    __hash__ = None  # type: ignore[assignment]

    def _facts(self) -> dict:
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
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Size:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Size:
        return self._inv.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"InverseTransform({self._inv!r})"


class ComposeTransform(Transform):
    """y = f_n(...f_1(x)): several transforms, one after another.

    >>> d = rushlight.distributions
    >>> f = d.ComposeTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)])
    >>> f(rushlight.tensor(0.)), f.inv(rushlight.tensor(2.))
    (tensor(2.), tensor(0.))
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]
        self.bijective = all(part.bijective for part in self.parts)
        self.domain, self.codomain = self._ends()

    def _ends(self) -> tuple[Any, Any]:
        """The domain and the codomain; an elementwise part is extended to the event dimensions of a later part."""
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
            total = term if total is None else total + term
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
    return x.sum(tuple(range(-n, 0))) if n > 0 else x


class IndependentTransform(Transform):
    """y = f(x); log |dy/dx| is summed over the last `reinterpreted_batch_ndims` dimensions, which together are one
    value.

    >>> f = rushlight.distributions.IndependentTransform(rushlight.distributions.ExpTransform(), 1)
    >>> x = rushlight.tensor([1., 2.])
    >>> f.log_abs_det_jacobian(x, f(x))  # log exp(1) + log exp(2)
    tensor(3.)
    """

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
    """y = x.reshape(..., *out_shape): reshape the event dimensions.

    >>> rushlight.distributions.ReshapeTransform((4,), (2, 2))(rushlight.tensor([1., 2., 3., 4.]))
    tensor([[1., 2.],
            [3., 4.]])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise value_error("in_shape and out_shape have different numbers of elements")
        super().__init__(cache_size)
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Tensor:
        return x.reshape(*x.shape[: x.dim() - len(self.in_shape)], *self.out_shape)

    def _inverse(self, y: Any) -> Tensor:
        return y.reshape(*y.shape[: y.dim() - len(self.out_shape)], *self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Tensor) -> Tensor:
        return rushlight.zeros(x.shape[: x.dim() - len(self.in_shape)], dtype=x.dtype)

    def forward_shape(self, shape: Any) -> Size:
        return self._changed(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Size:
        return self._changed(shape, self.out_shape, self.in_shape)

    def _changed(self, shape: Any, before: Size, after: Size) -> Size:
        n = len(shape) - len(before)
        if n < 0 or tuple(shape[n:]) != tuple(before):
            raise value_error(f"Shape mismatch: expected {tuple(shape)[max(n, 0) :]} but got {tuple(before)}")
        return Size((*shape[:n], *after))
