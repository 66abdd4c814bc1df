"""L U and L D L^T, and equations solved with them, with torch's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import LinAlgError, explain, runtime_error, warn_once
from rushlight.base.return_types import return_type
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import eye
from rushlight.kernels.factorizations import order_of
from rushlight.ops.composites import composite, given
from rushlight.ops.index.along_dim import gather
from rushlight.ops.linalg import decompose as f
from rushlight.ops.linalg.arguments import check_equation, check_matrix, check_same, check_square, first_failure
from rushlight.ops.linalg.matmul_api import conjugate_transpose
from rushlight.ops.linalg.solve import triangular
from rushlight.ops.shape.views import narrow, tril, triu

LU, Unpacked = (return_type(name, ["P", "L", "U"]) for name in ("linalg_lu", "lu_unpack"))
LUWithInfo = return_type("_lu_with_info", ["LU", "pivots", "info"])
LUFactor = return_type("linalg_lu_factor", ["LU", "pivots"])
LUFactorEx = return_type("linalg_lu_factor_ex", ["LU", "pivots", "info"])
LDLFactor = return_type("linalg_ldl_factor", ["LD", "pivots"])
LDLFactorEx = return_type("linalg_ldl_factor_ex", ["LD", "pivots", "info"])


def check_pivots(pivots: Tensor, packed: Tensor, name: str, factor: str) -> None:
    if pivots._array.shape != packed._array.shape[:-1]:
        raise runtime_error(
            f"{name}: Expected {factor}.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )


def check_pivot(pivot: bool, name: str) -> None:
    if not pivot:
        raise runtime_error(f"{name}: LU without pivoting is not implemented on the CPU", "pivot=True")


@composite("linalg_lu_factor_ex")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """A = P L U packed, as (LU, pivots, info): see `linalg.lu_factor`; `info` is 0, or the position (from 1) of the
    first 0 on U's diagonal, which raises LinAlgError only with `check_errors`.

    >>> rushlight.linalg.lu_factor_ex(rushlight.tensor([[1., 2.], [2., 4.]])).info
    tensor(2, dtype=torch.int32)
    """
    return given(out, LUFactorEx(lu_of(A, pivot, check_errors)))


def lu_of(A: Tensor, pivot: bool, check_errors: bool) -> Any:
    check_matrix(A, "torch.linalg.lu_factor")
    check_pivot(pivot, "linalg.lu_factor")
    made = f.lu_core(A)
    i, where = first_failure(made[2]) if check_errors else (0, "")
    if i:
        raise LinAlgError(
            explain(
                f"torch.linalg.lu_factor: {where}U[{i},{i}] is zero and using it on lu_solve would result in a "
                "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, "
                "pivot) or linalg.lu_factor_ex(A, pivot)"
            )
        )
    return made


@composite("linalg_lu_factor")
def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """A = P L U, packed as (LU, pivots): U on and above the diagonal, L below the diagonal. L's diagonal is 1 and is
    not stored.

    A: (..., m, n); pivots: (..., min(m, n)), int32: row i was exchanged with row pivots[i], counted from 1. LinAlgError
    if U has a 0 on its diagonal. `linalg.lu_solve` solves equations with it.

    >>> rushlight.linalg.lu_factor(rushlight.tensor([[1., 2.], [4., 4.]])).LU
    tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]])
    """
    return given(out, LUFactor(lu_of(A, pivot, True)[:2]))


@composite("lu")
def old_lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """A = P L U packed, as (LU, pivots), or (LU, pivots, infos): see `linalg.lu_factor`.

    >>> rushlight.lu(rushlight.tensor([[1., 2.], [4., 4.]]))[1]
    tensor([2, 2], dtype=torch.int32)
    """
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in "
        "a future PyTorch release. LU, pivots = torch.lu(A, compute_pivots) should be replaced with LU, pivots = "
        "torch.linalg.lu_factor(A, compute_pivots)"
    )
    made = lu_of(A, pivot, False)
    return given(out, LUWithInfo(made) if get_infos else tuple(made[:2]))


@composite("linalg_lu", looks=True)
def linalg_lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """A = P L U, as (P, L, U): P a permutation, L lower triangular with 1 on its diagonal, U upper triangular.

    A: (..., m, n) gives L (..., m, k) and U (..., k, n), k = min(m, n). P has no gradient.

    >>> rushlight.linalg.lu(rushlight.tensor([[1., 2.], [4., 4.]])).U
    tensor([[4., 4.],
            [0., 1.]])
    """
    check_matrix(A, "linalg.lu")
    check_pivot(pivot, "linalg.lu")
    return given(out, LU(unpack(*f.lu_core(A)[:2])))


@composite(tensor=False, looks=True)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """(P, L, U) of a result of `linalg.lu_factor`. L and U are empty tensors without `unpack_data`, P without
    `unpack_pivots`.

    >>> rushlight.lu_unpack(*rushlight.linalg.lu_factor(rushlight.tensor([[1., 2.], [4., 4.]]))).L
    tensor([[1.0000, 0.0000],
            [0.2500, 1.0000]])
    """
    if unpack_pivots and LU_pivots._array.dtype != np.int32:
        raise runtime_error(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.",
            "use the pivots that lu_factor returned",
        )
    empty = from_array(np.zeros(0, LU_data._array.dtype))
    parts = unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)
    return given(out, Unpacked(empty if part is None else part for part in parts))


def unpack(packed: Tensor, pivots: Tensor, data: bool = True, order: bool = True) -> tuple:
    m, n = packed._array.shape[-2:]
    k = min(m, n)
    p = from_array(f.permutation(pivots._array, packed._array)) if order else None
    if not data:
        return p, None, None
    lower = tril(narrow(packed, -1, 0, k), -1) + eye(m, k, dtype=packed.dtype)
    return p, lower, triu(narrow(packed, -2, 0, k))


def in_order(b: Tensor, pivots: Tensor, back: bool = False) -> Tensor:
    """The rows of b in the order of the pivots' exchanges; with `back`, the exchanges undone."""
    order = order_of(pivots._array, b._array.shape[-2])
    order = np.argsort(order, -1) if back else order
    batch = np.broadcast_shapes(order.shape[:-1], b._array.shape[:-2])
    shape = (*batch, *b._array.shape[-2:])
    index = np.broadcast_to(order[..., None], shape)
    return gather(b.expand(shape), -2, from_array(index.copy()))


@composite("linalg_lu_solve", looks=True)
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None
) -> Tensor:
    """X with A X = B, for A as `linalg.lu_factor` has packed it; X A = B if not `left`, A^H for A if `adjoint`.

    >>> A, B = rushlight.tensor([[1., 2.], [4., 4.]]), rushlight.tensor([[3.], [8.]])
    >>> rushlight.linalg.lu_solve(*rushlight.linalg.lu_factor(A), B)
    tensor([[1.],
            [1.]])
    """
    name = "linalg.lu_solve"
    check_square(LU, name, "LU")
    check_same(LU, B, name, ("LU", "B"))
    check_matrix(B, name, "B")
    check_equation(LU, B, left, name)
    check_pivots(pivots, LU, name, "LU")
    if pivots._array.dtype != np.int32:
        raise runtime_error(f"{name}: pivots should be a Tensor of scalar type torch.int32", dtype=pivots.dtype)
    if not left:
        turned = linalg_lu_solve(LU, pivots, conjugate_transpose(B), adjoint=not adjoint)
        return given(out, conjugate_transpose(turned))
    if adjoint:
        factor = conjugate_transpose(LU)
        return given(out, in_order(triangular(factor, triangular(factor, B), True, True), pivots, back=True))
    return given(out, triangular(LU, triangular(LU, in_order(B, pivots), False, True), True))


@composite("lu_solve")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """X with A X = input, for A as `linalg.lu_factor` has packed it: see `linalg.lu_solve`.

    >>> A, B = rushlight.tensor([[1., 2.], [4., 4.]]), rushlight.tensor([[3.], [8.]])
    >>> rushlight.lu_solve(B, *rushlight.linalg.lu_factor(A))
    tensor([[1.],
            [1.]])
    """
    warn_once(
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solve and will be removed in a future PyTorch "
        "release. Note that torch.linalg.lu_solve has its arguments reversed. X = torch.lu_solve(B, LU, pivots) "
        "should be replaced with X = torch.linalg.lu_solve(LU, pivots, B)"
    )
    return linalg_lu_solve(LU_data, LU_pivots, input, out=out)


# -- L D L^T ---------------------------------------------------------------------------------------


@composite("linalg_ldl_factor_ex")
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """A = L D L^T packed, as (LD, pivots, info), for symmetric A; L D L^H if `hermitian`. LAPACK's sytrf and hetrf.

    `info` is 0, or the position of a 0 in D. It has no derivative.

    >>> rushlight.linalg.ldl_factor_ex(rushlight.tensor([[4., 2.], [2., 5.]])).info
    tensor(0, dtype=torch.int32)
    """
    return given(out, LDLFactorEx(ldl_of(A, hermitian, check_errors)))


def ldl_of(A: Tensor, hermitian: bool, check_errors: bool) -> Any:
    check_square(A, "torch.linalg.ldl_factor")
    made = f.ldl(A, hermitian)
    i, where = first_failure(made[2]) if check_errors else (0, "")
    if i:
        raise LinAlgError(
            explain(
                f"torch.linalg.ldl_factor: {where}D[{i},{i}] is zero, and using it to solve equations would divide by "
                "zero"
            )
        )
    return made


@composite("linalg_ldl_factor")
def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """A = L D L^T packed, as (LD, pivots), for symmetric A; L D L^H if `hermitian`. `linalg.ldl_solve` uses it.

    >>> rushlight.linalg.ldl_factor(rushlight.tensor([[4., 2.], [2., 5.]])).LD.tril()
    tensor([[4.0000, 0.0000],
            [0.5000, 4.0000]])
    """
    return given(out, LDLFactor(ldl_of(A, hermitian, True)[:2]))


@composite("linalg_ldl_solve")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """X with A X = B, for A as `linalg.ldl_factor` has packed it.

    >>> A, B = rushlight.tensor([[4., 2.], [2., 5.]]), rushlight.tensor([[6.], [7.]])
    >>> rushlight.linalg.ldl_solve(*rushlight.linalg.ldl_factor(A), B)
    tensor([[1.],
            [1.]])
    """
    name = "torch.linalg.ldl_solve"
    check_square(LD, name, "LD")
    check_same(LD, B, name, ("LD", "B"))
    check_matrix(B, name, "B")
    if LD._array.shape[-1] != B._array.shape[-2]:
        sizes = (" by ".join(map(str, LD._array.shape[-2:])), " by ".join(map(str, B._array.shape[-2:])))
        raise runtime_error(
            f"Incompatible matrix sizes for {name}: each A matrix is {sizes[0]} but each b matrix is {sizes[1]}"
        )
    check_pivots(pivots, LD, name, "LD")
    return given(out, f.ldl_solution(LD, pivots, B, hermitian))
