"""Matrix products."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

from .table import operator


@operator("Gemm")
def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Tensor:
    """alpha * a @ b + beta * c."""
    if transB and not transA and alpha == beta == 1 and a.is_floating_point() and (c is None or c.ndim == 1):
        return F.linear(a, b, c)
    y = (a.T if transA else a) @ (b.T if transB else b)
    y = y if alpha == 1 else y * alpha
    if not y.is_floating_point():
        y = y.to(a.dtype)
    if c is None:
        return y
    return y + (c if beta == 1 else c * beta)


@operator("Einsum")
def einsum(*xs: Tensor, equation: str) -> Tensor:
    """Sums of products in Einstein's notation."""
    return torch.einsum(equation, *xs)


@operator("Det")
def det(x: Tensor) -> Tensor:
    """The determinant of each matrix."""
    return torch.linalg.det(x)
