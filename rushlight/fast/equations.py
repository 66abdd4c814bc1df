"""Equations, inverses, determinants and Cholesky factors of large float32 matrices by SciPy's LAPACK.

NumPy calls LAPACK's gesv, which solves with triangles on the left: 20 ms for 384 x 384. A matrix in C order is the
transposed matrix in Fortran order, so the triangles can be on the right: 5 ms. Singular matrices are left to NumPy,
which raises the error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import scipy_part
from rushlight.fast.index import EQUATION_ROWS, SCIPY_SECONDS
from rushlight.kernels.factorizations import codes

FLOAT = np.dtype(np.float32)
MULTIPLICATION = 1e-10  # NumPy's seconds for one of the n^3 multiplications for a matrix of n rows


class Account:
    """NumPy's seconds spent on matrices while SciPy was not loaded."""

    spent = 0.0


def fits(x: ndarray) -> bool:
    """True if SciPy should compute with x: x is large, and either SciPy is loaded, or NumPy has worked for as long as
    loading it takes.
    """
    if x.dtype is not FLOAT or x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return False
    n = x.shape[-1]
    if n < EQUATION_ROWS or not x.size:
        return False
    if "scipy.linalg" not in sys.modules:
        Account.spent += MULTIPLICATION * n * x.size
    return Account.spent >= SCIPY_SECONDS or "scipy.linalg" in sys.modules


@cache
def calls() -> Any:
    """The functions getrf, trsm and potrf of float32; None without SciPy."""
    try:
        linalg: Any = scipy_part("linalg", "large equations need")
    except ImportError:
        return None
    getrf, potrf = linalg.get_lapack_funcs(("getrf", "potrf"), dtype=FLOAT)
    return getrf, linalg.get_blas_funcs("trsm", dtype=FLOAT), potrf


def matrices(*stacks: ndarray) -> Iterator[tuple[ndarray, ...]]:
    """The matrices of stacks of equal sizes, in pairs."""
    flat = [a.reshape(-1, *a.shape[-2:]) for a in stacks]
    return zip(*flat)


def triangles(a: ndarray) -> tuple[ndarray, list[int]] | None:
    """LU and the row order of a's transpose: a.T[order] = L U. None for a singular matrix."""
    lu, pivots, info = calls()[0](a.T)
    order = list(range(len(a)))
    for i, k in enumerate(pivots.tolist()):
        order[i], order[k] = order[k], order[i]
    return None if info else (lu, order)


def solution(a: ndarray, b: ndarray) -> tuple[ndarray, ndarray] | None:
    """X with a X = b; None if NumPy should do it."""
    if b.dtype is not FLOAT or not b.size or not fits(a):
        return None
    return solved(a, b)


def solved(a: ndarray, b: ndarray) -> tuple[ndarray, ndarray] | None:
    """X with a X = b, from X^T P L U = b^T where a^T = P L U; None without SciPy or if a is singular."""
    if calls() is None:
        return None
    batch, trsm = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), calls()[1]
    a, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    r = np.empty(b.shape, FLOAT)
    for one, right, out in matrices(a, b, r):
        found = triangles(one)
        if found is None:
            return None
        lu, order = found
        y = trsm(1.0, lu, right.T, side=1)
        out[order] = trsm(1.0, lu, y, side=1, lower=1, diag=1, overwrite_b=1).T
    return r, codes(a)


def linalg_inv_ex(x: ndarray) -> tuple[ndarray, ndarray] | None:
    return solved(x, np.eye(x.shape[-1], dtype=FLOAT)) if fits(x) else None


def linalg_det(x: ndarray) -> ndarray | None:
    """The product of U's diagonal, by logarithms, since partial products may overflow."""
    if not fits(x) or calls() is None:
        return None
    r = np.empty(prod(x.shape[:-2]), FLOAT)
    for i, (one,) in enumerate(matrices(x)):
        lu, pivots, info = calls()[0](one.T)
        if info:
            return None
        diagonal = np.diagonal(lu).astype(np.float64)
        swaps = np.count_nonzero(pivots != np.arange(len(pivots))) + np.count_nonzero(diagonal < 0)
        r[i] = (-1) ** swaps * np.exp(np.log(np.abs(diagonal)).sum())
    return r.reshape(x.shape[:-2])


def linalg_cholesky_ex(x: ndarray) -> tuple[ndarray, ndarray] | None:
    if not fits(x) or calls() is None:
        return None
    r = np.empty(x.shape, FLOAT)
    for one, out in matrices(x, r):
        upper, info = calls()[2](one.T, lower=0, clean=1)
        if info or np.isnan(np.diagonal(upper)).any():
            return None
        out[...] = upper.T
    return r, codes(x)
