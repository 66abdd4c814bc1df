"""Parametrizations that weights often get: of unit length, of unit spectral norm, orthogonal."""
from __future__ import annotations

from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.nn.module import Module
from rushlight.nn.utils.norm import as_matrix, largest_singular, norm_except_dim, unit, with_norm
from rushlight.nn.utils.parametrize import register_parametrization
from rushlight.nn.utils.spectral_norm import rows_of
from rushlight.ops import elementwise as e
from rushlight.ops.products import matmul
from rushlight.tensor import Tensor


class _WeightNorm(Module):
    """g v / |v|."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return with_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The length, and the weight itself as direction."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """weight = g v / |v|: length and direction of each slice along `dim` apart (None: of the whole); returns the module.

    g and v are `parametrizations.weight.original0` and `original1`; states of the older form, `weight_g` and `weight_v`,
    load too. T. Salimans, D. Kingma, Weight Normalization, https://arxiv.org/abs/1602.07868

    >>> m = rushlight.nn.utils.parametrizations.weight_norm(rushlight.nn.Linear(3, 2))
    >>> m.parametrizations.weight.original0.shape
    torch.Size([2, 1])
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(OldKeys(name))
    return module


class OldKeys:
    """The hook that takes states with `weight_g` and `weight_v` too."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, state: dict, prefix: str, *others: Any) -> None:
        for i, end in enumerate(("_g", "_v")):
            if prefix + self.name + end in state:
                state[f"{prefix}parametrizations.{self.name}.original{i}"] = state.pop(prefix + self.name + end)


class _SpectralNorm(Module):
    """weight / its largest singular value; the singular vectors are buffers, of a vector there are none."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        ndim = weight.array.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % ndim, eps, n_power_iterations
        if ndim > 1:
            with no_grad():
                matrix = as_matrix(weight, self.dim)
                height, width = matrix.array.shape
                self.register_buffer("_u", unit(matrix.new_empty(height).normal_(0, 1), eps))
                self.register_buffer("_v", unit(matrix.new_empty(width).normal_(0, 1), eps))
                self._step(matrix, 15)

    def _step(self, matrix: Tensor, times: int) -> None:
        """Bring the singular vectors nearer, in place."""
        for _ in range(times):
            self._u.copy_(unit(matmul(matrix, self._v), self.eps))
            self._v.copy_(unit(matmul(matrix.T, self._u), self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.array.ndim == 1:
            return unit(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            with no_grad():
                self._step(matrix, self.n_power_iterations)
        return e.div(weight, largest_singular(matrix, self._u.clone(), self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself."""
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """weight / its largest singular value, the weight seen as a matrix with `dim` as rows (1 for ConvTranspose, else
    0); returns the module. The value comes nearer by `n_power_iterations` steps whenever the weight is read in training.
    ValueError for a name that is none. T. Miyato and others, Spectral Normalization, https://arxiv.org/abs/1802.05957

    >>> m = rushlight.nn.utils.parametrizations.spectral_norm(rushlight.nn.Linear(3, 2))
    >>> list(m.state_dict())[1:]
    ['parametrizations.weight.original', 'parametrizations.weight.0._u', 'parametrizations.weight.0._v']
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    made = _SpectralNorm(weight, n_power_iterations, rows_of(module) if dim is None else dim, eps)
    return register_parametrization(module, name, made)
