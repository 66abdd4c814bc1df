"""Factors of matrices, or of stacks of matrices (..., m, n), by NumPy or by SciPy's LAPACK.

`info` is LAPACK's code for each matrix: 0 for success, otherwise the 1-based step that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import scipy_part
from rushlight.base.errors import LinAlgError
from rushlight.base.faster import site

INT32 = np.int32


def lapack(name: str, x: ndarray) -> Callable:
    """LAPACK's function of this name for the dtype of x."""
    found: Callable = scipy_part("linalg", "this factorization needs").get_lapack_funcs((name,), dtype=x.dtype)[0]
    return found


def codes(x: ndarray) -> ndarray:
    """A zero for each matrix."""
    return np.zeros(x.shape[:-2], INT32)


def adjoint(x: ndarray) -> ndarray:
    return x.mT.conj() if x.dtype.kind == "c" else x.mT


@cache
def notices_failures() -> bool:
    """True if NumPy raises LinAlgError. NumPy reads the processor's floating-point flags, which WebAssembly lacks;
    there a failed matrix is nan.
    """
    try:
        np.linalg.inv(np.zeros((1, 1)))
    except np.linalg.LinAlgError:
        return True
    return False


def checked(r: ndarray, *given: ndarray) -> ndarray:
    """r, NumPy's result for the given arrays. Raises LinAlgError if NumPy should have raised it."""
    if not notices_failures() and np.isnan(r).any() and all(np.isfinite(g).all() for g in given):
        raise np.linalg.LinAlgError("Singular matrix")
    return r


def first_lost(x: ndarray) -> int:
    """The order of the first leading minor of a matrix that has no Cholesky factor, by NumPy alone."""
    orders = range(1, len(x) + 1)
    return next((k for k in orders if np.isnan(np.linalg.cholesky(x[:k, :k])).any()), 0)


@site
def linalg_cholesky_ex(x: ndarray) -> tuple[ndarray, ndarray]:
    """L, lower triangular, with L L^H = x (only the lower triangle of x is read); and info."""
    try:
        factor, info = np.linalg.cholesky(x), codes(x)
    # at least one matrix failed; LAPACK reports the failed step of each
    except np.linalg.LinAlgError:
        potrf, factor, info = lapack("potrf", x), np.tril(x), codes(x)
        for i in np.ndindex(info.shape):
            factor[i], info[i] = potrf(x[i], lower=True, clean=True)
    lost = np.isnan(np.diagonal(factor, axis1=-2, axis2=-1))
    if lost.any() and not notices_failures():
        for i in map(tuple, np.argwhere(lost.any(-1))):
            info[i] = first_lost(x[i])
    elif lost.any():  # nan is not positive, but OpenBLAS continues
        info[...] = np.where((info == 0) & lost.any(-1), lost.argmax(-1) + 1, info)
    return factor, info


Triangle = Literal["L", "U"]


def linalg_eigh(x: ndarray, UPLO: Triangle = "L") -> tuple[ndarray, ndarray]:
    """Eigenvalues in ascending order, and eigenvectors as columns, of a Hermitian matrix; only one triangle is read."""
    if not x.size:
        return np.zeros(x.shape[:-1], x.real.dtype), x.copy()
    with converging("linalg.eigh"):
        values, vectors = np.linalg.eigh(x, UPLO)
        return values, vectors


def linalg_eigvalsh(x: ndarray, UPLO: Triangle = "L") -> ndarray:
    if not x.size:
        return np.zeros(x.shape[:-1], x.real.dtype)
    with converging("linalg.eigh"):
        return np.linalg.eigvalsh(x, UPLO)


def linalg_eig(x: ndarray) -> tuple[ndarray, ndarray]:
    """Eigenvalues and eigenvectors as columns; complex even for a real matrix."""
    kind = np.result_type(x.dtype, np.complex64)
    if not x.size:
        return np.zeros(x.shape[:-1], kind), x.astype(kind)
    check_finite(x, "torch.linalg.eig")
    with converging("linalg.eig"):
        values, vectors = np.linalg.eig(x)
    return values.astype(kind, copy=False), vectors.astype(kind, copy=False)


def linalg_eigvals(x: ndarray) -> ndarray:
    kind = np.result_type(x.dtype, np.complex64)
    if not x.size:
        return np.zeros(x.shape[:-1], kind)
    check_finite(x, "torch.linalg.eig")
    with converging("linalg.eig"):
        return np.linalg.eigvals(x).astype(kind, copy=False)


def check_finite(x: ndarray, name: str) -> None:
    if not np.isfinite(x).all():
        raise RuntimeError(f"{name}: input tensor should not contain infs or NaNs.")


class converging:
    """A context that translates NumPy's LinAlgError into torch's message."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, np.linalg.LinAlgError):
            raise LinAlgError(
                f"{self.name}: The algorithm failed to converge because the input matrix is ill-conditioned or has "
                "too many repeated eigenvalues."
            ) from None


def check_singular(x: ndarray) -> None:
    """LinAlgError for matrices on which a singular value decomposition would not converge."""
    if not np.isfinite(x).all():
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        )


def linalg_svd(x: ndarray, full_matrices: bool = True) -> tuple[ndarray, ndarray, ndarray]:
    """U, S, Vh with U diag(S) Vh = x, singular values in descending order; U and Vh are square if `full_matrices`."""
    *batch, m, n = x.shape
    k = min(m, n)
    if not x.size:
        p, q = (m, n) if full_matrices else (k, k)
        unit = [
            np.broadcast_to(np.eye(rows, columns, dtype=x.dtype), (*batch, rows, columns)).copy()
            for rows, columns in ((m, p), (q, n))
        ]
        return unit[0], np.zeros((*batch, k), x.real.dtype), unit[1]
    check_singular(x)
    with converging("linalg.svd"):
        return tuple(np.linalg.svd(x, full_matrices))  # type: ignore[return-value]


def linalg_svdvals(x: ndarray) -> ndarray:
    if not x.size:
        return np.zeros((*x.shape[:-2], min(x.shape[-2:])), x.real.dtype)
    check_singular(x)
    with converging("linalg.svd"):
        return np.linalg.svd(x, compute_uv=False)


def linalg_qr(x: ndarray, mode: str = "reduced") -> tuple[ndarray, ndarray]:
    """Q with orthonormal columns and R upper triangular, Q R = x; no Q in mode 'r'."""
    if mode == "r":
        r: Any = np.linalg.qr(x, "r")
        return np.zeros(0, x.dtype), r
    return tuple(np.linalg.qr(x, mode))  # type: ignore[call-overload]


def geqrf(x: ndarray) -> tuple[ndarray, ndarray]:
    """R above the diagonal, the Householder vectors below it; and their factors tau."""
    h, tau = np.linalg.qr(x, "raw")
    return h.mT, tau


def reflected(x: ndarray, tau: ndarray) -> ndarray:
    """The first columns of the product of Householder's reflections I - tau_i v_i v_i^H; v_i is below x_ii = 1."""
    form, r = lapack("ungqr" if x.dtype.kind == "c" else "orgqr", x), x.copy()
    if x.size and not tau.shape[-1]:
        r[...] = np.eye(*x.shape[-2:])
    elif x.size:
        for i in np.ndindex(x.shape[:-2]):
            r[i] = form(x[i], tau[i])[0]
    return r


def lu_core(x: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """L below the diagonal (with a diagonal of ones) and U above; the exchanged rows, counted from 1; info."""
    getrf, factor, info = lapack("getrf", x), x.copy(), codes(x)
    pivots = np.zeros((*info.shape, min(x.shape[-2:])), INT32)
    if x.size:
        for i in np.ndindex(info.shape):
            factor[i], pivots[i], info[i] = getrf(x[i])
    return factor, pivots + INT32(1), info


def order_of(pivots: ndarray, n: int) -> ndarray:
    """The order of rows that exchanging row i with row pivots[i] gives, for i = 0, 1, ...: x[order] = L U."""
    if pivots.size and not 1 <= pivots.min() <= pivots.max() <= n:
        raise RuntimeError(
            "pivots must all be greater or equal to 1 and smaller or equal to LU.size(-2): between 1 and "
            f"LU.size(-2). They are {pivots.min()} to {pivots.max()}, for {n} rows; hint: pass the pivots of lu_factor"
        )
    order = np.broadcast_to(np.arange(n), (*pivots.shape[:-1], n)).copy()
    for i in range(pivots.shape[-1]):
        there = pivots[..., i : i + 1].astype(np.int64) - 1
        one, other = order[..., i : i + 1].copy(), np.take_along_axis(order, there, -1)
        np.put_along_axis(order, there, one, -1)
        order[..., i : i + 1] = other
    return order


def ldl(x: ndarray, hermitian: bool) -> tuple[ndarray, ndarray, ndarray]:
    """L and D, packed as LAPACK does; the exchanged rows, negative for 2 x 2 blocks; info."""
    factorize = lapack("hetrf" if hermitian and x.dtype.kind == "c" else "sytrf", x)
    factor, info = x.copy(), codes(x)
    pivots = np.zeros(x.shape[:-1], INT32)
    if x.size:
        for i in np.ndindex(info.shape):
            factor[i], pivots[i], info[i] = factorize(x[i], lower=True)
    return np.tril(factor), pivots, info


def ldl_solution(factor: ndarray, pivots: ndarray, b: ndarray, hermitian: bool) -> ndarray:
    """X with L D L^T X = b (L^H if hermitian)."""
    solve = lapack("hetrs" if hermitian and factor.dtype.kind == "c" else "sytrs", factor)
    batch = np.broadcast_shapes(factor.shape[:-2], b.shape[:-2])
    factor, b = (np.broadcast_to(t, (*batch, *t.shape[-2:])) for t in (factor, b))
    pivots, r = np.broadcast_to(pivots, (*batch, pivots.shape[-1])), b.copy()
    if r.size:
        for i in np.ndindex(batch):
            r[i] = solve(factor[i], pivots[i], b[i], lower=True)[0]
    return r
