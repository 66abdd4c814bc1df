"""What weight norm and spectral norm compute, for their old form and their parametrizations alike."""
from __future__ import annotations

from rushlight.nn.functional.linear import normalize
from rushlight.ops import elementwise as e
from rushlight.ops.products import matmul
from rushlight.ops.reductions import norm
from rushlight.ops.shape import permute, reshape
from rushlight.tensor import Tensor


def norm_except_dim(v: Tensor, pow: float = 2, dim: int = 0) -> Tensor:
    """|v| along all dimensions but `dim`, which are kept as 1; of the whole tensor for -1."""
    if dim == -1:
        return norm(v, pow)
    others = tuple(d for d in range(v.array.ndim) if d != dim)
    return norm(v, pow, others, True) if others else e.abs(v)


def with_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """g v / |v|, the length taken as by `norm_except_dim`."""
    return e.mul(v, e.div(g, norm_except_dim(v, 2, dim)))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight with `dim` as rows and all else as columns."""
    n = weight.array.ndim
    moved = permute(weight, (dim, *(d for d in range(n) if d != dim))) if dim else weight
    return reshape(moved, (moved.array.shape[0], -1))


def unit(x: Tensor, eps: float) -> Tensor:
    """The vector with length 1."""
    return normalize(x, dim=0, eps=eps)


def largest_singular(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """u^H W v: the largest singular value, for its left and right vectors u and v."""
    return matmul(u.conj(), matmul(matrix, v))
