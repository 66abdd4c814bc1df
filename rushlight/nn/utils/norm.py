"""Helpers of weight norm and spectral norm, in their old form and as parametrizations."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.linear import normalize
from rushlight.nn.module import Module
from rushlight.ops.linalg.matmul_api import matmul
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce.reduce_api import norm
from rushlight.ops.shape.views import permute, reshape


def norm_except_dim(v: Tensor, pow: float = 2, dim: int = 0) -> Tensor:
    """|v| over all dimensions but `dim`, which keep size 1; over the whole tensor for -1."""
    if dim == -1:
        return norm(v, pow)
    others = tuple(d for d in range(v._array.ndim) if d != dim)
    return norm(v, pow, others, True) if others else e.abs(v)


def with_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """g v / |v|, with the norm of `norm_except_dim`."""
    return e.mul(v, e.div(g, norm_except_dim(v, 2, dim)))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight as a matrix: `dim` becomes the rows, the other dimensions the columns."""
    n = weight._array.ndim
    moved = permute(weight, (dim, *(d for d in range(n) if d != dim))) if dim else weight
    return reshape(moved, (moved._array.shape[0], -1))


def unit(x: Tensor, eps: float) -> Tensor:
    """x / max(|x|, eps)."""
    return normalize(x, dim=0, eps=eps)


def largest_singular(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """u^H W v: the largest singular value, for its left and right vectors u and v."""
    return matmul(u.conj(), matmul(matrix, v))


def find_hook(module: Module, kind: type[Any], name: str) -> tuple[Any, Any]:
    """(key, hook) of the module's forward pre-hook of this class for the parameter `name`, or (None, None)."""
    hooks: dict[int, Any] = module._forward_pre_hooks
    for key, hook in hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            return key, hook
    return None, None
