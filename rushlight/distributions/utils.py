"""torch.distributions.utils: probabilities and logits, triangles as vectors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import rushlight
from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.distributions.distribution import broadcast_all, clamp_probs, logits_to_probs, probs_to_logits
from rushlight.distributions.transform import sum_last as _sum_rightmost  # noqa: F401  # torch's private name
from rushlight.distributions.vector_transforms import in_triangle, of_triangle
from rushlight.ops.grad_mode import enable_grad


class lazy_property(cached_property):
    """self.name = func(self), computed on first access and cached; recorded in the graph even inside no_grad.

    >>> class Circle:
    ...     @rushlight.distributions.utils.lazy_property
    ...     def area(self):
    ...         print("computes")
    ...         return rushlight.tensor(3.14)
    >>> c = Circle()
    >>> c.area, c.area
    computes
    (tensor(3.1400), tensor(3.1400))
    """

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        with enable_grad():
            return super().__get__(instance, owner)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """(m_00, m_10, m_11, m_20, ...): the lower triangle of (n, n) matrices, row by row, up to diagonal `diag`.

    >>> rushlight.distributions.utils.tril_matrix_to_vec(rushlight.tensor([[1., 0.], [2., 3.]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise value_error(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return of_triangle(mat, diag)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Any:
    """m_00, m_10, m_11, m_20, ... = v: (n, n) matrices with these numbers in their lower triangle, row by row.

    >>> rushlight.distributions.utils.vec_to_tril_matrix(rushlight.tensor([1., 2., 3.]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    return in_triangle(vec, diag)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Normal numbers. Libraries of distributions import this private function of torch."""
    return rushlight.normal(
        rushlight.zeros(shape, dtype=dtype, device=device), rushlight.ones(shape, dtype=dtype, device=device)
    )


__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip
