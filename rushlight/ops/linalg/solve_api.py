"""Determinants, inverses, equations and functions of matrices, with torch's signatures."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import LinAlgError, explain, runtime_error, warn_once
from rushlight.base.return_types import return_type
from rushlight.core.tensor import Tensor, created, from_array
from rushlight.core.views import into
from rushlight.ops.composites import composite, given
from rushlight.ops.linalg import solve as s
from rushlight.ops.linalg.arguments import (
    check_equation,
    check_matrix,
    check_numbers,
    check_same,
    check_square,
    check_tensor,
    first_failure,
    with_names,
)
from rushlight.ops.linalg.matmul_api import matmul
from rushlight.ops.math import elementwise as e
from rushlight.ops.reduce.norms_api import tolerances
from rushlight.ops.reduce.reduce import sum as total
from rushlight.ops.shape.views import narrow, permute, reshape, squeeze, tril, triu, unsqueeze

Inverse = return_type("linalg_inv_ex", ["inverse", "info"])
Solution = return_type("linalg_solve_ex", ["result", "info"])
LeastSquares = return_type("linalg_lstsq", ["solution", "residuals", "rank", "singular_values"])
Triangular = return_type("triangular_solve", ["solution", "cloned_coefficient"])
OldSlogdet = return_type("slogdet", ["sign", "logabsdet"])

# -- determinants and inverses ---------------------------------------------------------------------


@composite("linalg_det")
def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """out = det(A), for square matrices (..., n, n). The gradient, the cofactors, is exact for singular matrices too.

    >>> rushlight.linalg.det(rushlight.tensor([[2., 1.], [0., 3.]]))
    tensor(6.)
    """
    check_square(A, "linalg.det")
    return given(out, s.linalg_det(A))


@composite("linalg_slogdet")
def slogdet(A: Tensor, *, out: Any = None) -> Any:
    """det(A) = sign exp(logabsdet), as (sign, logabsdet): nothing overflows. 0 and -inf for a singular matrix.

    >>> rushlight.linalg.slogdet(rushlight.tensor([[1., 2.], [3., 4.]])).sign
    tensor(-1.)
    """
    check_square(A, "linalg.slogdet")
    return given(out, s.linalg_slogdet(A))


def old_slogdet(input: Tensor, *, out: Any = None) -> Any:
    """det(input) = sign exp(logabsdet), as (sign, logabsdet): see `linalg.slogdet`.

    >>> sign, logabsdet = rushlight.slogdet(rushlight.tensor([[2., 0.], [0., -3.]]))
    >>> sign, logabsdet.exp()
    (tensor(-1.), tensor(6.))
    """
    return given(out, OldSlogdet(slogdet(input)))


@composite()
def logdet(input: Tensor) -> Tensor:
    """log det(input); nan for a negative determinant, -inf for 0.

    >>> rushlight.logdet(rushlight.tensor([[2., 0.], [0., 3.]]))
    tensor(1.7918)
    """
    check_square(input, "logdet")
    sign, size = s.linalg_slogdet(input)
    if input.is_complex():
        return e.add(e.log(sign), size)
    return e.where(sign == -1, float("nan"), size)


@composite("linalg_inv_ex")
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """A^-1, as (inverse, info): `info` is 0, or the position (from 1) of the first pivot that is 0.

    A singular matrix has the inverse inf, or with `check_errors` raises LinAlgError.

    >>> rushlight.linalg.inv_ex(rushlight.tensor([[2., 0.], [0., 0.]])).info
    tensor(2, dtype=torch.int32)
    """
    return given(out, Inverse(inverse_of(A, "linalg.inv_ex", "linalg.inv_ex" if check_errors else None)))


def inverse_of(A: Tensor, name: str, checked: str | None) -> Any:
    check_square(A, name)
    made = s.linalg_inv_ex(A)
    i, where = first_failure(made[1]) if checked else (0, "")
    if i:
        raise LinAlgError(
            explain(
                f"{checked}: {where}The diagonal element {i} is zero, the inversion could not be completed because "
                "the input matrix is singular.",
                "use linalg.pinv",
            )
        )
    return made


@composite("linalg_inv")
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A^-1 with A^-1 A = 1, for square matrices (..., n, n). LinAlgError for a singular matrix.

    To solve equations, `linalg.solve` is faster and more accurate.

    >>> rushlight.linalg.inv(rushlight.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return given(out, inverse_of(A, "linalg.inv", "linalg.inv")[0])


for name, function in (("det", det), ("inverse", inv)):
    composite(name)(with_names(function, name, A="input"))
composite("slogdet")(old_slogdet)

# -- equations -------------------------------------------------------------------------------------


@composite("linalg_solve_ex", tensor=False)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """X with A X = B, as (result, info): see `linalg.solve`; `info` is 0, or the position (from 1) of the first pivot
    that is 0.

    >>> rushlight.linalg.solve_ex(rushlight.tensor([[2., 0.], [0., 4.]]), rushlight.tensor([2., 4.])).result
    tensor([1., 1.])
    """
    return given(out, Solution(solution_of(A, B, left, "linalg.solve_ex", check_errors)))


def solution_of(A: Tensor, B: Tensor, left: bool, name: str, checked: bool) -> tuple[Tensor, Tensor]:
    """X and info. B is a vector, or a stack of vectors, if its shape is A's without the last dimension."""
    check_square(A, name)
    check_same(A, B, name)
    shape = B._array.shape
    vector = len(shape) == 1 or (len(shape) == A._array.ndim - 1 and shape == A._array.shape[:-1])
    if vector:
        if not left:
            raise runtime_error(
                f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case "
                "linalg.solve is equivalent to B / A.squeeze(-1)"
            )
        B = unsqueeze(B, -1)
    check_equation(A, B, left, name)
    a, b = (A, B) if left else (A.mT, B.mT)
    result, info = s.solution(a, b)
    i, where = first_failure(info) if checked else (0, "")
    if i:
        raise LinAlgError(
            explain(f"torch.{name}: {where}The solver failed because the input matrix is singular.", "use linalg.lstsq")
        )
    result = result if left else result.mT
    return squeeze(result, -1) if vector else result, info


@composite("linalg_solve", tensor=False)
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """X with A X = B, or X A = B if not `left`.

    A: (..., n, n); B: (..., n, k), or (..., n) or (n) for vectors; leading dimensions broadcast. LinAlgError for a
    singular matrix.

    >>> rushlight.linalg.solve(rushlight.tensor([[2., 0.], [0., 4.]]), rushlight.tensor([2., 4.]))
    tensor([1., 1.])
    """
    return given(out, solution_of(A, B, left, "linalg.solve", True)[0])


@composite("linalg_solve_triangular", tensor=False)
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Tensor | None = None
) -> Tensor:
    """X with A X = B for a triangular A, or X A = B if not `left`; the other triangle of A is not read.

    A: (..., n, n), its diagonal taken as 1 if `unitriangular`; B: (..., n, k). Leading dimensions broadcast. Singular
    matrices give inf and nan.

    >>> A, B = rushlight.tensor([[2., 0.], [2., 4.]]), rushlight.tensor([[2.], [6.]])
    >>> rushlight.linalg.solve_triangular(A, B, upper=False)
    tensor([[1.],
            [1.]])
    """
    name = "linalg.solve_triangular"
    check_square(A, name)
    check_same(A, B, name)
    check_matrix(B, name, "B")
    check_equation(A, B, left, name)
    if left:
        return given(out, s.triangular(A, B, bool(upper), bool(unitriangular)))
    return given(out, s.triangular(A.mT, B.mT, not upper, bool(unitriangular)).mT)


@composite()
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out: Any = None
) -> Any:
    """X with A X = b for a triangular A (A^T if `transpose`), as (solution, cloned_coefficient).

    >>> rushlight.triangular_solve(rushlight.tensor([[2.], [4.]]), rushlight.tensor([[2., 0.], [0., 4.]])).solution
    tensor([[1.],
            [1.]])
    """
    name = "triangular_solve"
    check_tensor(b, name, "b")
    check_square(A, name)
    check_same(A, b, name)
    check_matrix(b, name, "b")
    check_equation(A, b, True, name)
    warn_once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular and will be removed in a "
        "future PyTorch release. torch.linalg.solve_triangular has its arguments reversed and does not return a copy "
        "of one of the inputs. X = torch.triangular_solve(B, A).solution should be replaced with X = "
        "torch.linalg.solve_triangular(A, B)."
    )
    a, side = (A.mT, not upper) if transpose else (A, upper)
    x = s.triangular(a, b, bool(side), bool(unitriangular))
    return given(out, Triangular((x, A.clone())))


@composite()
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """X with A X = B, where A = L L^H (L^H L if `upper`): two triangular equations.

    >>> rushlight.cholesky_solve(rushlight.tensor([[8.]]), rushlight.tensor([[2.]]))
    tensor([[2.]])
    """
    for t, name in ((B, "b"), (L, "u")):
        if t._array.ndim < 2:
            raise runtime_error(f"{name} should have at least 2 dimensions, but has {t._array.ndim} dimensions instead")
    check_square(L, "cholesky_solve")
    check_same(L, B, "cholesky_solve")
    check_equation(L, B, True, "cholesky_solve")
    return given(out, s.cholesky_solution(B, L, upper))


@composite()
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """A^-1, where A = L L^H for the input L (L^H L if `upper`).

    >>> rushlight.cholesky_inverse(rushlight.tensor([[2., 0.], [0., 1.]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    check_square(input, "cholesky_inverse")
    unit = np.broadcast_to(np.eye(input._array.shape[-1], dtype=input._array.dtype), input._array.shape).copy()
    factor = triu(input) if upper else tril(input)
    return cholesky_solve(created(from_array(unit)).to(input.device), factor, upper, out=out)


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@composite("linalg_lstsq", tensor=False, looks=True)
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None, out: Any = None) -> Any:
    """The shortest X that minimizes |A X - B|, as (solution, residuals, rank, singular_values).

    A: (..., m, n); B: (..., m, k), or (..., m). `residuals`: sums of squares if m > n and A has full rank, otherwise
    empty (always empty for 'gelsy'); driver 'gels' does not compute `rank`, and only 'gelsd' and 'gelss' compute
    `singular_values`. Singular values below `rcond` times the largest count as 0 (default: the dtype's eps times max(m,
    n)). `driver`: LAPACK's, 'gelsy' by default; 'gels' needs full rank. The gradient is the gradient of pinv(A) B.

    >>> A, B = rushlight.tensor([[1., 0.], [1., 1.], [1., 2.]]), rushlight.tensor([[1.], [3.], [5.]])
    >>> rushlight.linalg.lstsq(A, B).solution.round(decimals=3)
    tensor([[1.],
            [2.]])
    """
    b, vector = least_squares_operands(A, B, driver)
    m, n = A._array.shape[-2:]
    driver = driver or "gelsy"
    if rcond is None:
        rcond = float(np.finfo(A._array.dtype).eps) * max(m, n)
    x, rank, values = s.least_squares(A, b, float(rcond), driver)
    values = from_array(values._array)  # outside the graph, as in torch
    if m > n and driver != "gelsy" and (driver == "gels" or bool((rank._array == n).all())):
        left = e.abs(e.sub(matmul(A, x), b))
        residuals = total(e.mul(left, left), -2)
        residuals = squeeze(residuals, -1) if vector else residuals
    else:
        residuals = e.abs(narrow(reshape(x, (-1,)), 0, 0, 0))  # zero, but part of the graph
    made = squeeze(x, -1) if vector else x, residuals, rank, values
    return LeastSquares(made if out is None else [into(o, r) for o, r in zip(out, made)])


def least_squares_operands(A: Tensor, B: Tensor, driver: str | None) -> tuple[Tensor, bool]:
    """B as matrices, and whether B was a vector or a stack of vectors."""
    name = "torch.linalg.lstsq"
    check_tensor(A, name)
    check_tensor(B, name, "B", 2)
    if A._array.ndim < 2:
        raise runtime_error(f"{name}: input must have at least 2 dimensions.")
    check_numbers(A, name)
    if B._array.ndim < 1:
        raise runtime_error(f"{name}: other must have at least 1 dimension.")
    if A._array.dtype != B._array.dtype:
        raise runtime_error(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{A.dtype.scalar_type} and other's dtype {B.dtype.scalar_type}"
        )
    if driver is not None and driver not in DRIVERS:
        raise runtime_error(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    vector = B._array.ndim == 1 or (A._array.ndim - 1 == B._array.ndim and B._array.shape == A._array.shape[:-1])
    b = unsqueeze(B, -1) if vector else B
    if A._array.shape[-2] != b._array.shape[-2]:
        raise runtime_error(f"{name}: input.size(-2) should match other.size({-1 if vector else -2})")
    return b, vector


# -- inverses of any matrix, and of tensors --------------------------------------------------------


@composite("linalg_pinv", tensor=False, looks=True)
def pinv(
    A: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The Moore-Penrose inverse V diag(1/s) U^H, for A = U diag(s) V^H; singular values that count as 0 stay 0.

    Singular values of at most max(atol, rtol * the largest) count as 0. `rtol`, also called `rcond`, is by default
    max(m, n) times the dtype's eps. `hermitian=True`: A is Hermitian, and its eigenvalues are used. A: (..., m, n) ->
    (..., n, m). The gradient assumes that the rank does not change.

    >>> rushlight.linalg.pinv(rushlight.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    check_tensor(A, "linalg.pinv")
    if A._array.ndim < 2 or A.dtype.category < dtypes.FLOATING:
        raise runtime_error(
            f"linalg.pinv({A.dtype.scalar_type}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions "
            "of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square(A, "linalg.pinv")
    absolute, relative = tolerances(A, atol, rcond if rtol is None else rtol)
    known = created if not any(isinstance(x, Tensor) for x in (atol, rtol, rcond)) else lambda t: t
    return given(out, s.inverse_of_rank(A, *[known(from_array(x)) for x in (absolute, relative)], bool(hermitian)))


@composite()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The Moore-Penrose inverse; singular values below `rcond` times the largest count as 0. See `linalg.pinv`.

    >>> rushlight.pinverse(rushlight.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    return pinv(input, rtol=rcond)


@composite("linalg_tensorinv", tensor=False)
def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """X with tensordot(X, A, ind) = 1: the inverse of A as a linear map from its dimensions after the first `ind` to
    its first `ind`.

    >>> rushlight.linalg.tensorinv(rushlight.eye(6).reshape(2, 3, 6)).shape
    torch.Size([6, 2, 3])
    """
    check_tensor(A, "linalg.tensorinv")
    if ind <= 0:
        raise runtime_error(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, last = A._array.shape[:ind], A._array.shape[ind:]
    if prod(first) != prod(last):
        raise runtime_error(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{prod(last)} != {prod(first)}"
        )
    inverse = inverse_of(reshape(A, (prod(first), prod(last))), "linalg.tensorinv", "inv")[0]
    return given(out, reshape(inverse, (*last, *first)))


@composite("linalg_tensorsolve", tensor=False)
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None, *, out: Tensor | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; the dimensions `dims` of A are moved to its end first.

    >>> rushlight.linalg.tensorsolve(rushlight.eye(6).reshape(2, 3, 6), rushlight.ones(2, 3)).shape
    torch.Size([6])
    """
    check_tensor(A, "linalg.tensorsolve")
    if dims is not None:
        moved = [d % A._array.ndim for d in dims]
        A = permute(A, (*[d for d in range(A._array.ndim) if d not in moved], *moved))
    shape = A._array.shape[B._array.ndim :]
    first = A._array.shape[: B._array.ndim]
    if prod(shape) != prod(first):
        raise runtime_error(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {prod(shape)} != {prod(first)}"
        )
    x = solve(reshape(A, (prod(first), prod(shape))), reshape(B, (-1,)))
    return given(out, reshape(x, shape))


@composite("linalg_matrix_exp", tensor=False)
def matrix_exp(A: Tensor) -> Tensor:
    """exp(A) = 1 + A + A A / 2! + ..., for square matrices (..., n, n).

    By scaling and squaring with a Pade approximant (Al-Mohy and Higham 2009).

    >>> rushlight.linalg.matrix_exp(rushlight.tensor([[0., 1.], [0., 0.]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    check_square(A, "linalg.matrix_exp")
    return s.linalg_matrix_exp(A)


composite("matrix_exp")(with_names(matrix_exp, "matrix_exp", A="input"))
