"""Transforms of vectors into simplices and triangular matrices, transforms of parts, and a distribution's cdf as a
transform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight.base.errors import value_error
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import eps_of, tiny_of
from rushlight.distributions.transform import Transform, sum_last


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last dimension; not one to one.

    >>> f = rushlight.distributions.SoftmaxTransform()
    >>> f(rushlight.tensor([0., 0.])), f.inv(rushlight.tensor([0.5, 0.5])).exp()
    (tensor([0.5000, 0.5000]), tensor([0.5000, 0.5000]))
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return rushlight.softmax(x, -1)

    def _inverse(self, y: Any) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """y_i = s_i (1 - s_1) ... (1 - s_(i - 1)): Stick breaking: n numbers become n + 1 shares that add up to 1.

    s_i = sigmoid(x_i - log(n + 1 - i)), the last share is 1: x = 0 gives equal parts.

    >>> f = rushlight.distributions.StickBreakingTransform()
    >>> f(rushlight.tensor([0., 0.])), f(rushlight.tensor([0., 0.])).sum()
    (tensor([0.3333, 0.3333, 0.3333]), tensor(1.))
    """

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def _call(self, x: Any) -> Tensor:
        z = rushlight.sigmoid(x - self._offset(x.shape[-1], x)).clamp(tiny_of(x), 1 - eps_of(x))
        pad = rushlight.nn.functional.pad
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Any) -> Tensor:
        first = y[..., :-1]
        left = (1 - first.cumsum(-1)).clamp(min=tiny_of(y))
        return first.log() - left.log() + self._offset(first.shape[-1], y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        x = x - self._offset(x.shape[-1], x)
        return (-x + rushlight.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def _offset(self, n: int, like: Tensor) -> Any:
        """log(n), log(n - 1), ..., log(1): with these offsets, zeros become equal shares."""
        return rushlight.arange(n, 0, -1, dtype=like.dtype).log()

    def forward_shape(self, shape: Any) -> Size:
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Size:
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """y = lower triangle of x below the diagonal + exp of its diagonal: any matrix becomes a Cholesky factor.

    >>> rushlight.distributions.LowerCholeskyTransform()(rushlight.tensor([[0., 5.], [2., 0.]]))
    tensor([[1., 0.],
            [2., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Any) -> Tensor:
        return x.tril(-1) + rushlight.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Any) -> Tensor:
        return y.tril(-1) + rushlight.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Transform):
    """y = L L', L from `LowerCholeskyTransform`.

    >>> rushlight.distributions.PositiveDefiniteTransform()(rushlight.tensor([[0., 5.], [2., 0.]]))
    tensor([[1., 2.],
            [2., 5.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        triangle = LowerCholeskyTransform()(x)
        return triangle @ triangle.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(rushlight.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """L L' = C: from n (n - 1) / 2 numbers to Cholesky's factor L of an (n, n) correlation matrix C.

    Rows of length 1: their squares come from stick breaking.

    >>> L = rushlight.distributions.CorrCholeskyTransform()(rushlight.tensor([0., 0., 0.5]))
    >>> L.shape, (L @ L.mT).diagonal().allclose(rushlight.ones(3))
    (torch.Size([3, 3]), True)
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x: Any) -> Tensor:
        eps = eps_of(x)
        r = in_triangle(x.tanh().clamp(-1 + eps, 1 - eps), -1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + rushlight.eye(r.shape[-1], dtype=r.dtype)
        return r * rushlight.nn.functional.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Tensor:
        left = rushlight.nn.functional.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        t = of_triangle(y, -1) / of_triangle(left, -1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Tensor:
        left = of_triangle(1 - (y * y).cumsum(-1), -2)
        tanh = -2 * (x + rushlight.nn.functional.softplus(-2 * x) - math.log(2.0))
        return 0.5 * left.log().sum(-1) + tanh.sum(-1)

    def forward_shape(self, shape: Any) -> Size:
        n = round(0.5 + math.sqrt(0.25 + 2 * shape[-1]))
        if n * (n - 1) // 2 != shape[-1]:
            raise value_error("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Size:
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


def in_triangle(x: Tensor, diagonal: int) -> Any:
    """(..., n (n + 1) / 2) numbers in the lower triangle of a matrix, row by row."""
    n = round((math.sqrt(1 + 8 * x.shape[-1]) - 1) / 2) - diagonal
    row, col = rushlight.tril_indices(n, n, diagonal)
    flat = x.new_zeros(*x.shape[:-1], n * n)
    at = (row * n + col).expand(x.shape)
    return flat.scatter(-1, at, x).reshape(*x.shape[:-1], n, n)


def of_triangle(x: Tensor, diagonal: int) -> Any:
    """The numbers in the lower triangle of a matrix, row by row."""
    row, col = rushlight.tril_indices(x.shape[-2], x.shape[-1], diagonal)
    return x[..., row, col]


class CumulativeDistributionTransform(Transform):
    """y = P(X <= x), of a distribution.

    >>> f = rushlight.distributions.CumulativeDistributionTransform(rushlight.distributions.Normal(0.0, 1.0))
    >>> f(rushlight.tensor(0.)), f.inv(rushlight.tensor(0.5))
    (tensor(0.5000), tensor(0.))
    """

    bijective, codomain, _sign = True, constraints.unit_interval, 1

    def __init__(self, distribution: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution
        self.domain = distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


class CatTransform(Transform):
    """y = (f_1(x_1), f_2(x_2), ...): transforms of parts with the given `lengths` along `dim`.

    >>> d = rushlight.distributions
    >>> f = d.CatTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)], lengths=[1, 2])
    >>> f(rushlight.tensor([0., 1., 2.]))
    tensor([1., 2., 4.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ):
        super().__init__(cache_size)
        self.transforms, self.dim, self.lengths = list(tseq), dim, list(lengths or [1] * len(tseq))
        self.bijective = all(t.bijective for t in self.transforms)
        self.domain = constraints.cat([t.domain for t in self.transforms], dim, self.lengths)
        self.codomain = constraints.cat([t.codomain for t in self.transforms], dim, self.lengths)

    def _parts(self, x: Tensor) -> Any:
        return rushlight.split(x, self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return rushlight.cat([t(part) for t, part in zip(self.transforms, self._parts(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return rushlight.cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        n = self.domain.event_dim
        terms = [
            sum_last(t.log_abs_det_jacobian(a, b), n - t.domain.event_dim)
            for t, a, b in zip(self.transforms, self._parts(x), self._parts(y))
        ]
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        return rushlight.cat(terms, dim + n) if dim + n < 0 else sum(terms[1:], terms[0])


class StackTransform(Transform):
    """y[i] = f_i(x[i]): transforms of the slices along `dim`.

    >>> d = rushlight.distributions
    >>> d.StackTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)])(rushlight.tensor([0., 1.]))
    tensor([1., 2.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.bijective = all(t.bijective for t in self.transforms)
        self.domain = constraints.stack([t.domain for t in self.transforms], dim)
        self.codomain = constraints.stack([t.codomain for t in self.transforms], dim)

    def _slices(self, x: Tensor) -> Any:
        return rushlight.unbind(x, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return rushlight.stack([t(one) for t, one in zip(self.transforms, self._slices(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return rushlight.stack([t.inv(one) for t, one in zip(self.transforms, self._slices(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return rushlight.stack(
            [t.log_abs_det_jacobian(a, b) for t, a, b in zip(self.transforms, self._slices(x), self._slices(y))],
            self.dim,
        )


__all__ = [
    "CatTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform",
]  # fmt: skip
