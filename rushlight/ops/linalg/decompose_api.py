"""Decompositions with torch's signatures: torch.linalg's, and torch's own older names for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.base.errors import LinAlgError, explain, runtime_error, warn_once
from rushlight.base.return_types import return_type
from rushlight.core.arguments import check_dtypes, check_same_dtype
from rushlight.core.build import recorded
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import eye
from rushlight.kernels.factorizations import reflected
from rushlight.ops.composites import composite, given
from rushlight.ops.linalg import decompose as f
from rushlight.ops.linalg.arguments import check_matrix, check_same, check_square, check_tensor, first_failure
from rushlight.ops.linalg.matmul_api import conjugate_transpose, matmul
from rushlight.ops.math.complex import conj
from rushlight.ops.math.elementwise import mul
from rushlight.ops.shape.views import narrow, overwrite, tril, unsqueeze

Cholesky = return_type("linalg_cholesky_ex", ["L", "info"])
QR, OldQR = (return_type(name, ["Q", "R"]) for name in ("linalg_qr", "qr"))
OldSVD = return_type("svd", ["U", "S", "V"])

# -- of Hermitian matrices -------------------------------------------------------------------------


@composite("linalg_cholesky_ex")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """A = L L^H, as (L, info): `info` is 0, or the order of the first leading minor that is not positive-definite.

    `check_errors=True` raises LinAlgError for a failure, as `linalg.cholesky` does. See `linalg.cholesky`.

    >>> rushlight.linalg.cholesky_ex(rushlight.tensor([[4., 2.], [2., 5.]])).L
    tensor([[2., 0.],
            [1., 2.]])
    """
    return given(out, cholesky_of(A, "linalg.cholesky_ex", "linalg.cholesky_ex" if check_errors else None, upper))


def cholesky_of(A: Tensor, name: str, checked: str | None, upper: bool) -> Any:
    """The factor and info. If `checked` is a name: LinAlgError with this name if a factor does not exist."""
    check_square(A, name)
    factor, info = f.linalg_cholesky_ex(conjugate_transpose(A) if upper else A)
    order, where = first_failure(info) if checked else (0, "")
    if order:
        raise LinAlgError(
            explain(
                f"{checked}: {where}The factorization could not be completed because the input is not "
                f"positive-definite (the leading minor of order {order} is not positive-definite).",
                "add a small multiple of the identity",
            )
        )
    return Cholesky((conjugate_transpose(factor) if upper else factor, info))


@composite("linalg_cholesky")
def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """A = L L^H with L lower triangular and with a positive diagonal, for Hermitian positive-definite A; or A = U^H U.

    A: (..., n, n), of which only the lower triangle is read (the upper one if `upper`). LinAlgError if the matrix is
    not positive-definite. The gradient is Hermitian.

    >>> rushlight.linalg.cholesky(rushlight.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return given(out, cholesky_of(A, "linalg.cholesky", "linalg.cholesky", upper)[0])


@composite()
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """input = L L^H with L lower triangular, or U^H U if `upper`: see `linalg.cholesky`.

    >>> rushlight.cholesky(rushlight.tensor([[4., 2.], [2., 5.]]), upper=True)
    tensor([[2., 1.],
            [0., 2.]])
    """
    warn_once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release. L = torch.cholesky(A) should be replaced with L = torch.linalg.cholesky(A) and U = "
        "torch.cholesky(A, upper=True) should be replaced with U = torch.linalg.cholesky(A).mH"
    )
    return given(out, cholesky_of(input, "cholesky", "cholesky", upper)[0])


@composite("linalg_eigh")
def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """A = V diag(w) V^H, as (eigenvalues, eigenvectors), for Hermitian A: w real and ascending, V unitary.

    A: (..., n, n), of which only the lower triangle is read, or the upper one (`UPLO="U"`). Eigenvectors are determined
    up to a factor of size 1, and gradients exist only for losses that do not depend on this factor, and only for
    distinct eigenvalues.

    >>> rushlight.linalg.eigh(rushlight.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """
    check_square(A, "linalg.eigh")
    return given(out, f.linalg_eigh(A, triangle_name(UPLO)))


@composite("linalg_eigvalsh")
def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """w with A = V diag(w) V^H: the eigenvalues of a Hermitian matrix, real and ascending; only the triangle `UPLO` is
    read.

    >>> rushlight.linalg.eigvalsh(rushlight.tensor([[2., 0.], [0., 1.]]))
    tensor([1., 2.])
    """
    check_square(A, "linalg.eigvalsh")
    return given(out, f.linalg_eigvalsh(A, triangle_name(UPLO)))


def triangle_name(UPLO: str) -> str:
    if str(UPLO).upper() not in ("L", "U"):
        raise runtime_error(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


# -- eigenvalues and singular values ---------------------------------------------------------------


@composite("linalg_eig")
def eig(A: Tensor, *, out: Any = None) -> Any:
    """A V = V diag(w), as (eigenvalues, eigenvectors), complex; the columns of V have length 1.

    A: (..., n, n). The order of eigenvalues is not defined. RuntimeError for inf and nan. Gradients exist only for
    losses that do not depend on the phase of eigenvectors, and only for distinct eigenvalues.

    >>> rushlight.linalg.eig(rushlight.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([2.+0.j, 1.+0.j])
    """
    check_square(A, "linalg.eig")
    return given(out, f.linalg_eig(A))


@composite("linalg_eigvals")
def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """w with A v = w v for some v: the eigenvalues of a square matrix, complex, in no defined order.

    >>> rushlight.linalg.eigvals(rushlight.tensor([[2., 0.], [0., 1.]]))
    tensor([2.+0.j, 1.+0.j])
    """
    check_square(A, "linalg.eigvals")
    return given(out, f.linalg_eigvals(A))


@composite("linalg_svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """A = U diag(S) Vh, as (U, S, Vh): U and Vh with orthonormal columns and rows, S real, falling, not negative.

    A: (..., m, n) gives U (..., m, m) and Vh (..., n, n), or if not `full_matrices` (..., m, k) and (..., k, n) with k
    = min(m, n). LinAlgError for inf and nan. Gradients by U and Vh exist for distinct singular values, and for losses
    that do not depend on the signs (phases) of singular vectors.

    >>> rushlight.linalg.svd(rushlight.tensor([[3., 0.], [0., 2.]])).S
    tensor([3., 2.])
    """
    check_matrix(A, "linalg.svd")
    only_cpu(driver, "linalg.svd")
    return given(out, f.linalg_svd(A, bool(full_matrices)))


@composite("linalg_svdvals")
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """S with A = U diag(S) V^H, falling: (..., m, n) -> (..., min(m, n)); differentiable even if some are equal.

    >>> rushlight.linalg.svdvals(rushlight.tensor([[3., 0.], [0., 2.]]))
    tensor([3., 2.])
    """
    check_matrix(A, "linalg.svdvals")
    only_cpu(driver, "linalg.svdvals")
    return given(out, f.linalg_svdvals(A))


def only_cpu(driver: str | None, name: str) -> None:
    if driver is not None:
        raise runtime_error(
            f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.",
            "omit driver=",
        )


@composite()
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """input = U diag(S) V^H, as (U, S, V): see `linalg.svd`, which gives V^H.

    >>> rushlight.svd(rushlight.tensor([[3., 0.], [0., 2.]])).S
    tensor([3., 2.])
    """
    check_matrix(input, "linalg.svd")
    if compute_uv:
        u, s, vh = f.linalg_svd(input, not some)
        return given(out, OldSVD((u, s, conjugate_transpose(vh))))
    *batch, m, n = input._array.shape
    zeros = [from_array(np.zeros((*batch, k, k), input._array.dtype)) for k in (m, n)]
    return given(out, OldSVD((zeros[0], f.linalg_svdvals(input), zeros[1])))


# -- orthogonal factors ----------------------------------------------------------------------------


@composite("linalg_qr")
def linalg_qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """A = Q R, as (Q, R): Q with orthonormal columns, R upper triangular.

    A: (..., m, n). `mode`: 'reduced', Q (..., m, k) and R (..., k, n) with k = min(m, n); 'complete', Q (..., m, m) and
    R (..., m, n); 'r', an empty Q. Gradients exist if the first k columns are independent, in mode 'reduced', or
    'complete' for m <= n.

    >>> rushlight.linalg.qr(rushlight.tensor([[3., 1.], [4., 2.]])).R.abs()
    tensor([[5.0000, 2.2000],
            [0.0000, 0.4000]])
    """
    check_matrix(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise runtime_error(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return given(out, f.linalg_qr(A, mode))


@composite()
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """input = Q R, as (Q, R): see `linalg.qr`; `some=False` is its mode 'complete'.

    >>> rushlight.qr(rushlight.tensor([[3., 1.], [4., 2.]])).R.shape
    torch.Size([2, 2])
    """
    warn_once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release. The "
        "boolean parameter 'some' has been replaced with a string parameter 'mode'. Q, R = torch.qr(A, some) should "
        "be replaced with Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    )
    return given(out, OldQR(linalg_qr(input, "reduced" if some else "complete")))


@composite()
def geqrf(input: Tensor, *, out: Any = None) -> Any:
    """LAPACK's form of input = Q R, as (a, tau): R on and above the diagonal of a, Householder's vectors below it.

    `linalg.householder_product(a, tau)` gives Q. It has no derivative: see `linalg.qr`.

    >>> rushlight.geqrf(rushlight.tensor([[3., 1.], [4., 2.]])).tau
    tensor([1.6000, 0.0000])
    """
    check_matrix(input, "geqrf", "input")
    return given(out, f.geqrf(input))


@composite("linalg_householder_product", looks=True)
def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of H_1 H_2 ... H_k with H_i = I - tau_i v_i v_i^H; v_i is column i of A below A_ii, taken as
    1.

    A: (..., m, n), m >= n; tau: (..., k), k <= n. RuntimeError for other shapes.

    >>> a, tau = rushlight.geqrf(rushlight.eye(2))
    >>> rushlight.linalg.householder_product(a, tau).shape
    torch.Size([2, 2])
    """
    name = "torch.linalg.householder_product"
    check_matrix(A, name, "input")
    check_same(A, tau, name, ("input", "tau"))
    m, n = A._array.shape[-2:]
    if m < n:
        raise runtime_error(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < tau._array.shape[-1]:
        raise runtime_error(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if tau._array.shape[:-1] != A._array.shape[:-2]:
        raise runtime_error(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(tau._array.shape[:-1])}"
        )
    if recorded(A, (tau,)):
        return given(out, reflect(A, tau, overwrite(A, eye(m, n, dtype=A.dtype))))
    return given(out, from_array(reflected(A._array, tau._array)))


composite("orgqr", looks=True)(householder_product)


def reflect(A: Tensor, tau: Tensor, x: Tensor, adjoint: bool = False) -> Tensor:
    """H_1 ... H_k x, or the product with the adjoint. One reflection at a time, by differentiable ops."""
    order = range(tau._array.shape[-1])
    for i in order if adjoint else reversed(order):
        v = tril(narrow(A, -1, i, 1), -i - 1)  # (..., m, 1)
        v = v + eye(A._array.shape[-2], A._array.shape[-1], dtype=A.dtype)[:, i : i + 1]
        scale = unsqueeze(narrow(tau, -1, i, 1), -1)
        along = matmul(conjugate_transpose(v), x)  # (..., 1, columns)
        x = x - matmul(mul(v, conj(scale) if adjoint else scale), along)
    return x


@composite()
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Q other, or other Q if not `left`, with the square Q of Householder's reflections; with Q^H if `transpose`.

    input: (..., m, k) and tau: (..., k), as `geqrf` gives them; other has m rows (columns if not `left`).

    >>> a, tau = rushlight.geqrf(rushlight.eye(2))
    >>> rushlight.ormqr(a, tau, rushlight.ones(2, 1)).shape
    torch.Size([2, 1])
    """
    check_reflections(input, tau, other, left)
    check_dtypes("ormqr", "fc", input)
    check_same_dtype(TABLE["dot"], (input, tau, other))
    if left:
        return given(out, reflect(input, tau, other, transpose))
    return given(out, conjugate_transpose(reflect(input, tau, conjugate_transpose(other), not transpose)))


def check_reflections(input: Tensor, tau: Tensor, other: Tensor, left: bool) -> None:
    for t, name in ((input, "input"), (other, "other")):
        check_tensor(t, "ormqr", name)
        if t._array.ndim < 2:
            raise runtime_error(f"torch.ormqr: {name} must have at least 2 dimensions.")
    side = -2 if left else -1
    m, k = other._array.shape[side], tau._array.shape[-1]
    if k != min(m, input._array.shape[-1]):
        raise runtime_error(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if m != input._array.shape[-2]:
        raise runtime_error(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
