"""The leading singular vectors and values of large matrices, by random projections."""

from __future__ import annotations

from typing import Any

from rushlight.base.device import strided
from rushlight.base.errors import value_error
from rushlight.base.public_function import MORE
from rushlight.core.tensor import Tensor
from rushlight.ops.composites import composite
from rushlight.ops.linalg.arguments import check_matrix
from rushlight.ops.linalg.decompose import linalg_eigh, linalg_qr, linalg_svd
from rushlight.ops.linalg.decompose_api import cholesky
from rushlight.ops.linalg.matmul_api import conjugate_transpose, matmul
from rushlight.ops.linalg.solve_api import solve_triangular
from rushlight.ops.reduce.reduce import mean
from rushlight.ops.tensor.random_tensors import randn


@composite(tensor=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple:
    """A - M is nearly U diag(S) V^H, with U (..., m, q), S (..., q), V (..., n, q): the q largest singular values.

    A times a random matrix, followed by `niter` products with A^H and A, spans nearly the space of A's leading singular
    vectors. The projection of A to this space is decomposed instead of A: Halko, Martinsson and Tropp, Finding
    structure with randomness (2009), algorithms 4.4 and 5.1.

    >>> [t.shape for t in rushlight.svd_lowrank(rushlight.ones(5, 4), 2)]
    [torch.Size([5, 2]), torch.Size([2]), torch.Size([4, 2])]
    """
    A = A if A.layout is strided else A.to_dense(masked_grad=False)
    check_matrix(A, "svd_lowrank")
    x = A if M is None else A - M
    wide = x.shape[-2] < x.shape[-1]
    x = conjugate_transpose(x) if wide else x
    basis = sharpened(x, 6 if q is None else q, 2 if niter is None else niter)
    left, values, right = linalg_svd(matmul(conjugate_transpose(basis), x), False)
    u, v = matmul(basis, left), conjugate_transpose(right)
    return (v, values, u) if wide else (u, values, v)


def sharpened(x: Tensor, q: int, rounds: int) -> Tensor:
    """q orthonormal columns that approximate the span of x's q largest left singular vectors."""
    basis = linalg_qr(matmul(x, randn(x.shape[-1], q, dtype=x.dtype)))[0]
    for _ in range(rounds):
        back = linalg_qr(matmul(conjugate_transpose(x), basis))[0]
        basis = linalg_qr(matmul(x, back))[0]
    return basis


@composite(tensor=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple:
    """(U, S, V) of the centred rows of A, (..., m, n): the columns of V are the q principal directions.

    `q` is min(6, m, n) by default; `center=False` does not subtract the mean. See `svd_lowrank`. ValueError for a `q`
    that is negative or greater than min(m, n).

    >>> rushlight.pca_lowrank(rushlight.tensor([[1., 1.], [2., 2.], [3., 3.]]), 1)[2].abs()
    tensor([[0.7071],
            [0.7071]])
    """
    A = A if A.layout is strided else A.to_dense(masked_grad=False)
    check_matrix(A, "pca_lowrank")
    most = min(A.shape[-2:])
    if q is None:
        q = min(6, most)
    elif not 0 <= q <= most:
        raise value_error(f"q(={q}) must be non-negative integer and not greater than min(m, n)={most}")
    if niter < 0:
        raise value_error(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - mean(A, (-2,), True) if center else A, q, niter)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict | None = None,
    ortho_fparams: dict | None = None,
    ortho_bparams: dict | None = None,
) -> tuple[Tensor, Tensor]:
    """(E, X): the k largest eigenvalues of A x = e B x, or the smallest if `largest` is false, and their vectors.

    A (..., m, m) symmetric, B (m, m) positive-definite or None for the identity. `k` is by default the number of
    columns of `X`, or 1. All eigenvalues are computed at once, exactly: `X`, `iK`, `niter`, `tol`, `method` and the
    other arguments that control torch's iteration are accepted and ignored. ValueError if m < 3 k, as in torch.

    >>> values, vectors = rushlight.lobpcg(rushlight.diag(rushlight.tensor([1., 5., 3.])))
    >>> values
    tensor([5.])
    """
    matrix = A.to_dense() if A.is_sparse else A
    check_matrix(matrix, "lobpcg")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    m = matrix.shape[-1]
    if k < 1:
        raise value_error(f"lobpcg: k, the number of requested eigenpairs, is at least 1, not {k}")
    if m < 3 * k:
        raise value_error(
            f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number "
            f"of requested eigenpairs (={k})",
            "use linalg.eigh, which computes all eigenpairs",
        )
    half = None if B is None else cholesky(B.to_dense() if B.is_sparse else B)
    if half is not None:  # with B = L L^T: L^-1 A L^-T has the same eigenvalues, with the vectors L^T x
        left = solve_triangular(half, matrix, upper=False)
        matrix = solve_triangular(half, conjugate_transpose(left), upper=False)
    values, vectors = linalg_eigh(matrix)
    if largest is None or largest:
        values, vectors = values[..., -k:].flip(-1), vectors[..., -k:].flip(-1)
    else:
        values, vectors = values[..., :k], vectors[..., :k]
    return values, vectors if half is None else solve_triangular(conjugate_transpose(half), vectors, upper=True)


MORE["lobpcg"] = lobpcg  # tests do not compare its numbers with torch's, which start from random vectors
