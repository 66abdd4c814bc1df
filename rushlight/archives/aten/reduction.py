"""Reductions whose arguments differ from the public functions'."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight.core.tensor import Tensor

from .table import dtype_of, operator


@operator("sort")
def sort(x: Tensor, *args: Any, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    """sort(dim, descending), or sort(stable, dim, descending) with `stable` in front."""
    if args and isinstance(args[0], bool) or args and args[0] is None:
        args = args[1:]
    dim = args[0] if args else dim
    descending = args[1] if len(args) > 1 else descending
    return torch.sort(x, dim, descending, stable=bool(stable))


@operator("argsort")
def argsort(x: Tensor, *args: Any, stable: bool = False, dim: int = -1, descending: bool = False) -> Tensor:
    return sort(x, *args, stable=stable, dim=dim, descending=descending)[1]


@operator("mean")
def mean(x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return (
        torch.mean(x, dim, keepdim, dtype=dtype_of(dtype)) if dim is not None else torch.mean(x, dtype=dtype_of(dtype))
    )


@operator("sum")
def total(x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return torch.sum(x, dim, keepdim, dtype=dtype_of(dtype)) if dim is not None else torch.sum(x, dtype=dtype_of(dtype))


@operator("norm")
def norm(x: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return torch.norm(x, 2 if p is None else p, dim, keepdim, dtype=dtype_of(dtype))


@operator("frobenius_norm")
def frobenius_norm(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return torch.norm(x, 2, dim, keepdim)


@operator("linalg_vector_norm")
def vector_norm(x: Tensor, order: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return torch.linalg.vector_norm(x, order, dim, keepdim, dtype=dtype_of(dtype))


operator("Bool")(lambda x: bool(x))
operator("Int", "IntImplicit")(lambda x: int(x))
operator("Float", "FloatImplicit")(lambda x: float(x))
operator("item", "_local_scalar_dense", "ScalarImplicit", "Scalar")(lambda x: x.item())
operator("is_nonzero")(lambda x: bool(x))
operator("equal")(lambda x, y: torch.equal(x, y))
operator("allclose")(lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: torch.allclose(x, y, rtol, atol, equal_nan))
