"""Distributions made of others: independent dimensions, correlated normals."""
from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight.distributions.continuous import Normal
from rushlight.distributions.distribution import Distribution, real_vector
from rushlight.errors import explain
from rushlight.tensor import Tensor


class Independent(Distribution):
    """The last `reinterpreted_batch_ndims` dimensions of a batch as one value: their log_probs add up."""

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None):
        n = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if n < 0:
            raise ValueError(explain("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                                     f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"))
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        self.has_rsample = base_distribution.has_rsample
        shape = base_distribution.batch_shape + base_distribution.event_shape
        super().__init__(shape[:n], shape[n:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self.summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self.summed(self.base_dist.entropy())

    def summed(self, x: Tensor) -> Tensor:
        n = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-n, 0))) if n else x  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MultivariateNormal(Distribution):
    """p(x) = exp(-1/2 (x - loc)' C^-1 (x - loc)) / sqrt((2 pi)^n det C), C = L L' with L `scale_tril`.

    Give one of `covariance_matrix`, `precision_matrix`, `scale_tril`.
    """

    support = real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None):
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if loc.dim() < 1 or given[0].dim() < 2:
            raise ValueError(explain("loc must be at least one-dimensional, and the matrix two-dimensional"))
        covariance = rushlight.linalg.inv(precision_matrix) if precision_matrix is not None else covariance_matrix
        tril = scale_tril if covariance is None else rushlight.linalg.cholesky(covariance)
        assert tril is not None
        batch = rushlight.broadcast_shapes(tril.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, loc.shape[-1])  # type: ignore[attr-defined]
        self.scale_tril = tril.expand(*batch, *tril.shape[-2:])
        super().__init__(batch, loc.shape[-1:], validate_args)

    @property
    def covariance_matrix(self) -> Tensor:
        """L L'."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return rushlight.cholesky_inverse(self.scale_tril)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.pow(2).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = rushlight.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def half_log_det(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self.checked(value) - self.loc).unsqueeze(-1)  # type: ignore[attr-defined]
        m = rushlight.linalg.solve_triangular(self.scale_tril, z, upper=False).pow(2).sum((-2, -1))
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + m) - self.half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self.half_log_det()


class LogNormal(Normal):
    """exp of a normal variable."""

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return super().rsample(sample_shape).exp()  # type: ignore[attr-defined]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with rushlight.no_grad():
            return self.rsample(sample_shape)

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()  # type: ignore[attr-defined]

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()  # type: ignore[attr-defined]

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)  # type: ignore[attr-defined]
        return squared.expm1() * (2 * self.loc + squared).exp()

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()  # type: ignore[attr-defined]

    def log_prob(self, value: Tensor) -> Tensor:
        log = value.log()  # type: ignore[attr-defined]
        return super().log_prob(log) - log

    def cdf(self, value: Tensor) -> Tensor:
        return super().cdf(value.log())  # type: ignore[attr-defined]

    def icdf(self, value: Tensor) -> Tensor:
        return super().icdf(value).exp()  # type: ignore[attr-defined]

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc
