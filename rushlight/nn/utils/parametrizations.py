"""Common parametrizations of weights: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight import linalg
from rushlight.base.errors import index_error, not_implemented_error, value_error
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.nn.module import Module
from rushlight.nn.utils.norm import as_matrix, largest_singular, norm_except_dim, unit, with_norm
from rushlight.nn.utils.parametrize import register_parametrization
from rushlight.nn.utils.spectral_norm import rows_of
from rushlight.ops.grad_mode import no_grad
from rushlight.ops.linalg.matmul_api import matmul
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce import reduce as r
from rushlight.ops.shape.views import cat, tril
from rushlight.ops.tensor.random_tensors import randn

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """g v / |v|."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return with_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """(length, weight): the weight itself is the direction."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """weight = g v / |v|, with length g and direction v of each slice along `dim` (None: of the whole) as separate
    parameters; returns the module.

    g and v are `parametrizations.weight.original0` and `original1`; states of the older form, `weight_g` and
    `weight_v`, load too. T. Salimans, D. Kingma, Weight Normalization, https://arxiv.org/abs/1602.07868

    >>> m = rushlight.nn.utils.parametrizations.weight_norm(rushlight.nn.Linear(3, 2))
    >>> m.parametrizations.weight.original0.shape
    torch.Size([2, 1])
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(OldKeys(name))
    return module


class OldKeys:
    """The hook that also loads states with `weight_g` and `weight_v`."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, state: dict, prefix: str, *others: Any) -> None:
        for i, end in enumerate(("_g", "_v")):
            if prefix + self.name + end in state:
                state[f"{prefix}parametrizations.{self.name}.original{i}"] = state.pop(prefix + self.name + end)


class _SpectralNorm(Module):
    """weight / its largest singular value. The singular vectors are buffers; a vector has none."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        ndim = weight._array.ndim
        if not -ndim <= dim < ndim:
            raise index_error(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise value_error(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps, self.n_power_iterations = dim % ndim, eps, n_power_iterations
        if ndim > 1:
            with no_grad():
                matrix = as_matrix(weight, self.dim)
                height, width = matrix._array.shape
                self.register_buffer("_u", unit(matrix.new_empty(height).normal_(0, 1), eps))
                self.register_buffer("_v", unit(matrix.new_empty(width).normal_(0, 1), eps))
                self._step(matrix, 15)

    def _step(self, matrix: Tensor, times: int) -> None:
        """One power iteration of the singular vectors, in place."""
        for _ in range(times):
            self._u.copy_(unit(matmul(matrix, self._v), self.eps))
            self._v.copy_(unit(matmul(matrix.mH, self._u), self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight._array.ndim == 1:
            return unit(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            with no_grad():
                self._step(matrix, self.n_power_iterations)
        return e.div(weight, largest_singular(matrix, self._u.clone(), self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """weight / its largest singular value, the weight seen as a matrix with `dim` as rows (1 for ConvTranspose, else
    0); returns the module. Each read of the weight in training improves the value by `n_power_iterations` steps.
    ValueError for an unknown name. T. Miyato and others, Spectral Normalization, https://arxiv.org/abs/1802.05957

    >>> m = rushlight.nn.utils.parametrizations.spectral_norm(rushlight.nn.Linear(3, 2))
    >>> list(m.state_dict())[1]
    'parametrizations.weight.original'
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise value_error(f"Module '{module}' has no parameter or buffer with name '{name}'")
    made = _SpectralNorm(weight, n_power_iterations, rows_of(module) if dim is None else dim, eps)
    return register_parametrization(module, name, made)


# -- orthogonal ------------------------------------------------------------------------------------

algebra: Any = linalg  # Any, because its functions are made from the table of ops
MAPS = ("matrix_exp", "cayley", "householder")


class _Orthogonal(Module):
    """Matrices with orthonormal columns (or rows, if there are fewer rows), from unconstrained matrices.

    `base` (with `use_trivialization`): the value is multiplied by it, so that any orthogonal value can be assigned."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise value_error("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        rows, columns = X._array.shape[-2:]
        x = X.mT if rows < columns else X
        q = reflections(x) if self.orthogonal_map == "householder" else rotation(x, self.orthogonal_map)
        base = self._buffers.get("base")
        q = q if base is None else matmul(base, q)
        return q.mT if rows < columns else q

    def right_inverse(self, Q: Tensor) -> Tensor:
        """The unconstrained value for which forward gives Q; a matrix Q that is not orthogonal is first made
        orthogonal."""
        if Q.shape != self.shape:
            raise value_error(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        rows, columns = Q._array.shape[-2:]
        q = Q.mT if rows < columns else Q
        if "base" not in self._buffers:
            return self._without_base(q, rows < columns)
        if rows == columns:
            self.base = q.clone() if is_orthogonal(q) else made_orthogonal(q)
        else:
            n, k = q._array.shape[-2:]
            more = randn(*q._array.shape[:-2], n, n - k, dtype=q.dtype)
            self.base = made_orthogonal(cat([q, more], -1))
        return from_array(0 - np.broadcast_to(np.eye(rows, columns, dtype=Q._array.dtype), Q._array.shape))

    def _without_base(self, q: Tensor, transposed: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise not_implemented_error(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        packed, tau = np.linalg.qr(q._array, "raw")
        a = np.swapaxes(packed, -1, -2).copy()  # reflections below the diagonal, signs on the diagonal
        i = np.arange(tau.shape[-1])
        a[..., i, i] = np.where(tau == 0, -1, 1) * np.sign(a[..., i, i])
        return from_array(np.swapaxes(a, -1, -2) if transposed else a)


def rotation(x: Tensor, by: str) -> Tensor:
    """exp(A), or Cayley's (1 + A / 2) (1 - A / 2)^-1, of the skew matrix A that the lower triangle of x (n, k)
    gives."""
    n, k = x._array.shape[-2:]
    lower = tril(x)
    if n != k:
        blank = created(from_array(np.zeros((*x._array.shape[:-1], n - k), x._array.dtype)))
        lower = cat([lower, blank], -1)
    skew = e.sub(lower, lower.mH)
    if by == "matrix_exp":
        q = algebra.matrix_exp(skew)
    else:
        one = created(from_array(np.eye(n, dtype=x._array.dtype)))
        half = e.mul(skew, 0.5)
        q = algebra.solve(e.sub(one, half), e.add(one, half))
    return q[..., :k]


def reflections(x: Tensor) -> Tensor:
    """The product of the Householder reflections below the diagonal of x. Each column has the sign of its diagonal
    element."""
    a = tril(x, -1)
    tau = 2.0 / e.add(r.sum(e.mul(a, a), (-2,)), 1)
    signs = from_array(np.diagonal(x._array, axis1=-2, axis2=-1).astype(np.int32).astype(x._array.dtype)[..., None, :])
    return e.mul(algebra.householder_product(a, tau), signs)


def is_orthogonal(q: Tensor) -> bool:
    """Whether q^H q is the identity, to 100 times the dtype's precision."""
    a = q._array
    product = np.swapaxes(a.conj(), -1, -2) @ a
    return np.allclose(product, np.eye(product.shape[-1]), atol=10 * np.finfo(a.dtype).eps * a.shape[-1])


def made_orthogonal(a: Tensor) -> Tensor:
    """Q of a = Q R, with the signs for which R has a positive diagonal."""
    q, triangle = np.linalg.qr(a._array)
    diagonal = np.diagonal(triangle, axis1=-2, axis2=-1)
    return from_array((q * np.sign(diagonal)[..., None, :]).astype(a._array.dtype))


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """weight^T weight = 1 (or weight weight^T, where rows are fewer), for a matrix or batches of them; returns the
    module.

    `orthogonal_map`: 'matrix_exp' (default for square matrices), 'cayley', or 'householder' (default for others): the
    map from unconstrained to orthogonal matrices. `use_trivialization`: multiply by a fixed orthogonal matrix, so that
    the initial value is the orthogonalized weight, and any orthogonal value can be assigned. ValueError for a vector,
    another map, or an unknown name. M. Lezcano, Trivializations for Gradient-Based Optimization on Manifolds,
    https://arxiv.org/abs/1909.09501

    >>> m = rushlight.nn.utils.parametrizations.orthogonal(rushlight.nn.Linear(4, 2))
    >>> rushlight.allclose(m.weight @ m.weight.T, rushlight.eye(2), atol=1e-5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise value_error(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight._array.ndim < 2:
        raise value_error(f"Expected a matrix or batch of matrices. Got a tensor of {weight._array.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight._array.shape[-2] == weight._array.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise value_error(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
