"""Correlated normal vectors, and random matrices: covariances and correlations."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight
from rushlight.base.errors import value_error
from rushlight.core.arguments import all_true
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.distribution import Distribution, ExponentialFamily, computed, eps_of, normal
from rushlight.distributions.gamma import Beta, Chi2
from rushlight.distributions.vector_transforms import in_triangle

SQUARES = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def only(matrices: dict[str, Any]) -> tuple[str, Tensor]:
    """(name, value) of the single argument that is given."""
    given = [(name, m) for name, m in matrices.items() if m is not None]
    if len(given) != 1:
        raise value_error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    name, m = given[0]
    if m.dim() < 2:
        raise value_error(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
    return name, m


def triangle_of_inverse(precision: Any) -> Any:
    """L with L L' = precision^-1, from the Cholesky factor of the precision with reversed rows and columns; the inverse
    is not computed."""
    turned = rushlight.linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    eye = rushlight.eye(precision.shape[-1], dtype=precision.dtype)
    return rushlight.linalg.solve_triangular(turned, eye, upper=False)


def triangle(name: str, m: Any) -> Any:
    """The Cholesky factor of the covariance, from the given parameter."""
    if name == "scale_tril":
        return m
    return rushlight.linalg.cholesky(m) if name == "covariance_matrix" else triangle_of_inverse(m)


def log_diagonal(tril: Any) -> Any:
    """sum log L_ii: half of log det L L'."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def mahalanobis(tril: Any, x: Any) -> Any:
    """x' (L L')^-1 x."""
    return rushlight.linalg.solve_triangular(tril, x.unsqueeze(-1), upper=False).pow(2).sum((-2, -1))


class OfMatrix(Distribution):
    """A covariance given in one of three forms; `_unbroadcasted_scale_tril`, not expanded to the batch, gives the other
    forms. (The class has no __init__, because gpytorch calls Distribution's.)
    """

    _unbroadcasted_scale_tril: Any

    def _of_batch(self, matrices: Any) -> Any:
        """The matrices, expanded to the batch shape."""
        return matrices.expand(*self._batch_shape, *matrices.shape[-2:])

    @computed
    def scale_tril(self) -> Any:
        """Cholesky's factor L of the covariance L L'."""
        return self._of_batch(self._unbroadcasted_scale_tril)

    @computed
    def covariance_matrix(self) -> Any:
        """L L'."""
        tril = self._unbroadcasted_scale_tril
        return self._of_batch(tril @ tril.mT)

    @computed
    def precision_matrix(self) -> Any:
        """The inverse of L L'."""
        return self._of_batch(rushlight.cholesky_inverse(self._unbroadcasted_scale_tril))

    def _half_log_det(self) -> Any:
        return log_diagonal(self._unbroadcasted_scale_tril)


class MultivariateNormal(OfMatrix):
    """p(x) = exp(-1/2 (x - loc)' C^-1 (x - loc)) / sqrt((2 pi)^n det C), C = L L' with L `scale_tril`.

    Give one of `covariance_matrix`, `precision_matrix`, `scale_tril`.

    >>> d = rushlight.distributions.MultivariateNormal(rushlight.zeros(2), rushlight.tensor([[2., 0.], [0., 2.]]))
    >>> d.log_prob(rushlight.zeros(2)).exp()  # 1 / (4 pi)
    tensor(0.0796)
    """

    arg_constraints = {"loc": constraints.real_vector, **SQUARES}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise value_error("loc must be at least one-dimensional.")
        name, m = only(
            {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        )
        batch = rushlight.broadcast_shapes(m.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = m.expand(*batch, *m.shape[-2:])
        self.loc = loc.expand(*batch, loc.shape[-1])
        super().__init__(batch, loc.shape[-1:], validate_args)
        self._unbroadcasted_scale_tril = triangle(name, m)

    mean = property(lambda self: self.loc, doc="loc.")
    mode = property(lambda self: self.loc, doc="loc.")
    variance = property(
        lambda self: self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self.loc.shape),
        doc="The diagonal of the covariance.",
    )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        noise = normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        m = mahalanobis(self._unbroadcasted_scale_tril, self._checked(value) - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + m) - self._half_log_det()

    def entropy(self) -> Tensor:
        return (0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()).expand(
            self._batch_shape
        )


class LowRankMultivariateNormal(Distribution):
    """p(x) as in `MultivariateNormal`, with C = W W' + diag(D): W `cov_factor` (n, m), D `cov_diag` (n,). Work grows
    with n m^2.

    >>> W, D = rushlight.tensor([[1.], [2.]]), rushlight.ones(2)
    >>> rushlight.distributions.LowRankMultivariateNormal(rushlight.zeros(2), W, D).covariance_matrix
    tensor([[2., 2.],
            [2., 5.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise value_error("loc must be at least one-dimensional.")
        n = loc.shape[-1:]
        if cov_factor.dim() < 2 or cov_factor.shape[-2:-1] != n:
            raise value_error(f"cov_factor must be a batch of matrices with shape {n[0]} x m")
        if cov_diag.shape[-1:] != n:
            raise value_error(f"cov_diag must be a batch of vectors with shape {tuple(n)}")
        batch = rushlight.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand(*batch, *n), cov_diag.expand(*batch, *n)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        super().__init__(batch, n, validate_args)

    mean = property(lambda self: self.loc, doc="loc.")
    mode = property(lambda self: self.loc, doc="loc.")
    variance = property(
        lambda self: self.cov_factor.pow(2).sum(-1) + self.cov_diag, doc="The diagonal of the covariance."
    )
    covariance_matrix = property(
        lambda self: self.cov_factor @ self.cov_factor.mT + rushlight.diag_embed(self.cov_diag), doc="W W' + diag(D)."
    )
    scale_tril = property(lambda self: rushlight.linalg.cholesky(self.covariance_matrix), doc="Its factor.")
    precision_matrix = property(lambda self: rushlight.linalg.inv(self.covariance_matrix), doc="Its inverse.")

    @property
    def _capacitance_tril(self) -> Any:
        """Cholesky's factor of I + W' D^-1 W, (m, m)."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        eye = rushlight.eye(self.cov_factor.shape[-1], dtype=self.loc.dtype)
        return rushlight.linalg.cholesky(scaled @ self.cov_factor + eye)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        shared = normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        own = normal(shape, self.loc)
        return self.loc + (self.cov_factor @ shared.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * own

    def _log_det(self) -> Any:
        """log det of the covariance, by the matrix determinant lemma."""
        return 2 * log_diagonal(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """log p(value), by Woodbury's formula for the inverse."""
        x = self._checked(value) - self.loc
        projected = ((self.cov_factor.mT / self.cov_diag.unsqueeze(-2)) @ x.unsqueeze(-1)).squeeze(-1)
        m = (x.pow(2) / self.cov_diag).sum(-1) - mahalanobis(self._capacitance_tril, projected)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + m)

    def entropy(self) -> Tensor:
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())


class Wishart(OfMatrix, ExponentialFamily):
    """p(X) ~ det(X)^((df - n - 1) / 2) exp(-tr(V^-1 X) / 2): positive definite (n, n) matrices, V = L L', for df > n -
    1.

    X is the sum of df outer products of normal vectors with covariance V, if df is an integer. Give one of
    `covariance_matrix` (V), `precision_matrix`, `scale_tril` (L).

    >>> rushlight.distributions.Wishart(rushlight.tensor(3.), rushlight.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    arg_constraints = {**SQUARES, "df": constraints.greater_than(0)}
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        name, m = only(
            {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        )
        df = rushlight.as_tensor(df, dtype=m.dtype)
        batch, n = rushlight.broadcast_shapes(df.shape, m.shape[:-2]), m.shape[-1]
        if not all_true(df > n - 1):
            raise value_error(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        self.df = df.expand(batch)
        self.__dict__[name] = m.expand(*batch, n, n)
        super().__init__(batch, (n, n), validate_args)
        self._unbroadcasted_scale_tril = triangle(name, m)

    mean = property(lambda self: self.df.view(*self._batch_shape, 1, 1) * self.covariance_matrix, doc="df V.")

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = rushlight.where(factor <= 0, math.nan, factor)
        return factor.view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v: Any = self.covariance_matrix
        d = v.diagonal(dim1=-2, dim2=-1)
        return self.df.view(*self._batch_shape, 1, 1) * (v.pow(2) + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Any = (), max_try_correction: int = 10) -> Tensor:
        """L A A' L', A with the roots of Chi2(df - i) on its diagonal and normal numbers below (M. Bartlett, 1933).

        Samples with a singular matrix are drawn again with a warning, as in torch, at most `max_try_correction` times.
        """
        made = self._drawn(tuple(sample_shape))
        again: Any = self.support.check(made)
        if self._batch_shape:  # one flag per sample, for all matrices of the batch
            again = again.amax(tuple(range(-len(self._batch_shape), 0)))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(max_try_correction):
            if not again.any():
                break
            new = self._drawn((int(again.sum()),))
            places = again.nonzero().unbind(-1)
            made = made.index_put(places, new) if places else new[0]
            singular = ~self.support.check(new)
            if self._batch_shape:
                singular = singular.amax(tuple(range(-len(self._batch_shape), 0)))
            again = again.index_put(places, singular) if places else singular[0]
        return made

    def _drawn(self, sample_shape: tuple) -> Tensor:
        """Samples without the test for singular matrices."""
        n = self._event_shape[-1]
        df = self.df.unsqueeze(-1) - rushlight.arange(n, dtype=self.df.dtype).expand(*self._batch_shape, n)
        roots = Chi2(df, validate_args=False).rsample(sample_shape).clamp_min(eps_of(self.df)).sqrt()
        lower = rushlight.tril_indices(n, n, -1)
        below = normal((*sample_shape, *self._batch_shape, lower.shape[1]), self.df)
        a = rushlight.diag_embed(roots) + (in_triangle(below, -1) if n > 1 else 0)
        made = self._unbroadcasted_scale_tril @ a
        return made @ made.mT

    def log_prob(self, value: Tensor) -> Tensor:
        x, n, df = self._checked(value), self._event_shape[-1], self.df
        # x as a full matrix, so that both triangles get a gradient
        log_det = rushlight.linalg.slogdet(x).logabsdet
        trace = rushlight.cholesky_solve(x, self.scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -df * (n * math.log(2) / 2 + self._half_log_det())
            - rushlight.mvlgamma(df / 2, n)
            + (df - n - 1) / 2 * log_det
            - trace / 2
        )

    def entropy(self) -> Tensor:
        n, df = self._event_shape[-1], self.df
        digammas = rushlight.digamma((df.unsqueeze(-1) - rushlight.arange(n, dtype=df.dtype)) / 2).sum(-1)
        return (
            (n + 1) * (n * math.log(2) / 2 + self._half_log_det())
            + rushlight.mvlgamma(df / 2, n)
            - (df - n - 1) / 2 * (digammas)
            + n * df / 2
        )


class LKJCholesky(Distribution):
    """p(L L') ~ det(L L')^(concentration - 1): Cholesky factors L of (n, n) correlation matrices, n = `dim`.

    `concentration` 1 is the uniform distribution; larger values concentrate near the identity. D. Lewandowski, D.
    Kurowicka, H. Joe, *Generating random correlation matrices based on vines and extended onion method*, 2009.

    >>> L = rushlight.distributions.LKJCholesky(3, 2.0).sample()
    >>> (L @ L.mT).diagonal().allclose(rushlight.ones(3))
    True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise value_error(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration = rushlight.as_tensor(concentration) + 0.0
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with rushlight.no_grad():
            return self._onion(sample_shape)

    def _onion(self, sample_shape: Any) -> Tensor:
        """Row i is a direction times the root of a Beta number; the diagonal makes the length of a row 1."""
        row = rushlight.arange(self.dim - 1, dtype=self.concentration.dtype)
        marginal = self.concentration + 0.5 * (self.dim - 2)
        offset = rushlight.cat([row.new_zeros((1,)), row])
        a, b = offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset
        y = Beta(a, b, validate_args=False).sample(sample_shape).unsqueeze(-1)
        directions: Any = rushlight.randn(self._extended_shape(sample_shape), dtype=y.dtype).tril(-1)
        sphere = directions / directions.norm(dim=-1, keepdim=True)
        sphere = rushlight.where(rushlight.arange(self.dim).unsqueeze(-1) == 0, 0.0, sphere)
        w = y.sqrt() * sphere
        left = (1 - (w**2).sum(-1)).clamp(min=rushlight.finfo(w.dtype).tiny).sqrt()
        return w + rushlight.diag_embed(left)

    def log_prob(self, value: Tensor) -> Tensor:
        n, x = self.dim, self._checked(value)
        diagonal = x.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = 2 * (self.concentration - 1).unsqueeze(-1) + n - rushlight.arange(2, n + 1)
        alpha = self.concentration + 0.5 * (n - 1)
        return (order * diagonal.log()).sum(-1) - self._log_norm(alpha)

    def _log_norm(self, alpha: Any) -> Any:
        """The logarithm of the density's integral."""
        n = self.dim - 1
        return rushlight.mvlgamma(alpha - 0.5, n) - rushlight.lgamma(alpha) * n + 0.5 * n * math.log(math.pi)


_precision_to_scale_tril = triangle_of_inverse  # torch's private name, which libraries import

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]
