"""Factors of matrices, with their derivatives; ops/linalg/decompose_api.py has torch's signatures.

The `_gradient` functions are in the convention of the literature and of torch, in which the gradient of a loss l by z =
a + ib is dl/da + i dl/db; `conj` on both sides converts them to the convention of the rules. Sources: M. Giles,
Collected matrix derivative results (2008); S. Walter and L. Lehmann, Algorithmic differentiation of linear algebra
functions (2010); R. Mathias, A chain rule for matrix functions (1996); C. Boeddeker and others, On the computation of
complex valued gradients (2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.base.placeholder import sample_by_sample
from rushlight.core.build import build, inner
from rushlight.core.tensor import Tensor, from_array, numbers
from rushlight.core.worlds import ARRAYS, TENSORS, adopt, shared
from rushlight.kernels import factorizations as kernels
from rushlight.ops.math import special as special  # its `no_derivative` is a name of rules

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import (
        cast,
        cat,
        conj,
        diagonal,
        embed_diagonal,
        exchange,
        is_complex,
        narrow,
        no_derivative,
        real,
        solution,
        triangular,
        tril,
        triu,
        unit,
        unsqueeze,
        where,
    )

adopt(kernels)

# fmt: off
linalg_cholesky_ex = inner(lambda x, /: linalg_cholesky_ex(x), x=lambda gs, L: conj(cholesky_gradient(conj(gs[0]), L)),
    outputs="L info", batched="matrix")
linalg_eigh = inner(lambda x, /, UPLO="L": linalg_eigh(x, UPLO),
    x=lambda gs, eigenvalues, eigenvectors: conj(eigh_gradient(conj(gs[0]), conj(gs[1]), eigenvalues, eigenvectors)),
    outputs="eigenvalues eigenvectors", batched="matrix")
linalg_eigvalsh = inner(lambda x, /, UPLO="L": linalg_eigvalsh(x, UPLO),
    x=lambda g, x, UPLO: spectral(linalg_eigh(x, UPLO)[1], g), batched="matrix", node="LinalgEighBackward0")
linalg_eig = inner(
    lambda x, /: linalg_eig(x), x=lambda gs, x, eigenvalues, eigenvectors: of_kind(
        conj(eig_gradient(conj(gs[0]), conj(gs[1]), eigenvalues, eigenvectors)), x
    ),
    outputs="eigenvalues eigenvectors", batched="matrix")
linalg_eigvals = inner(lambda x, /: linalg_eigvals(x),
    x=lambda g, x: of_kind(similar(linalg_eig(x)[1].mT, diagonal_matrix(g)), x),
    batched="matrix", node="LinalgEigBackward0")
linalg_svd = inner(lambda x, /, full_matrices=True: linalg_svd(x, full_matrices),
    x=lambda gs, U, S, Vh: conj(svd_gradient(conj(gs[0]), conj(gs[1]), conj(gs[2]), U, S, Vh)),
    outputs="U S Vh", batched="matrix")
linalg_svdvals = inner(lambda x, /: linalg_svdvals(x), x=lambda g, x: svdvals_gradient(g, x),
    batched="matrix", node="LinalgSvdBackward0")
linalg_qr = inner(lambda x, /, mode="reduced": linalg_qr(x, mode),
    x=lambda gs, Q, R, mode, x_shape: conj(qr_gradient(conj(gs[0]), conj(gs[1]), Q, R, mode, x_shape)),
    outputs="Q R", batched="matrix")
lu_core = inner(lambda x, /: lu_core(x), x=lambda gs, LU, pivots: exchange(pivots, LU) @ lu_gradient(gs[0], LU),
    outputs="LU pivots info", node="LinalgLuFactorExBackward0", batched="matrix")
geqrf = inner(lambda x, /: geqrf(x), x=lambda gs: no_derivative("geqrf"), outputs="a tau", batched="matrix")
ldl = inner(lambda x, /, hermitian: ldl(x, hermitian), x=lambda gs: no_derivative("linalg.ldl_factor"),
    outputs="LD pivots info", node="LinalgLdlFactorExBackward0", batched="matrix")
ldl_solution = inner(lambda x, pivots, b, /, hermitian: ldl_solution(x, pivots, b, hermitian),
    x=lambda g: no_derivative("linalg.ldl_solve"), b=lambda g: no_derivative("linalg.ldl_solve"))
# fmt: on


@shared
def adjoint(x):
    """The conjugate of the transpose."""
    return conj(x.mT) if is_complex(x) else x.mT


@shared
def diagonal_matrix(d):
    """(..., n) as the diagonal of (..., n, n)."""
    k = len(d.shape)
    return embed_diagonal(d, tuple(d.shape) + (d.shape[-1],), 0, k - 1, k)


@shared
def diagonal_of(x):
    """(..., m, n) -> its diagonal, (..., min(m, n))."""
    return diagonal(x, 0, len(x.shape) - 2, len(x.shape) - 1)


@shared
def of_kind(g, x):
    """The real part if x is real, else g itself."""
    return g if is_complex(x) or not is_complex(g) else real(g)


@shared
def quotient(a, b):
    """a / b, except that 0 / 0 is 0: if the loss does not depend on an eigenvector, equal eigenvalues are harmless."""
    nothing = (a == 0) & (b == 0)
    return where(nothing, 0, a) / where(nothing, 1, b)


@shared
def differences(s):
    """s_j - s_i as a matrix, with 1 on the diagonal."""
    d = unsqueeze(s, len(s.shape) - 1) - unsqueeze(s, len(s.shape))
    return d + unit(s.shape[-1], d)


@shared
def spectral(v, d):
    """v diag(d) v^H."""
    return (v * unsqueeze(d, len(d.shape) - 1)) @ adjoint(v)


@shared
def similar(v, d):
    """v^-1 d v."""
    return solution(v, d @ v)[0]


@shared
def cholesky_gradient(g, L):
    """L^-H tril(L^H g) L^-1 made Hermitian (Murray 2016)."""
    m = tril(adjoint(L) @ g)
    h = (m + adjoint(tril(m, -1))) / 2
    left = triangular(adjoint(L), h, True)
    return adjoint(triangular(adjoint(L), adjoint(left), True))


@shared
def eigh_gradient(gd, gv, d, v):
    """v (diag(gd) + v^H gv / (d_j - d_i)) v^H, made Hermitian."""
    m = adjoint(v) @ gv
    check_phase(diagonal_of(m), "linalg_eigh_backward", "eigenvectors", "e^{i phi}")
    off = m - diagonal_matrix(diagonal_of(m))
    r = v @ (quotient(off, differences(d)) + diagonal_matrix(cast(gd, m))) @ adjoint(v)
    return (r + adjoint(r)) / 2


@shared
def eig_gradient(gd, gv, d, v):
    """v^-H (diag(gd) + (v^H gv - v^H v Re diag(v^H gv)) / conj(d_j - d_i)) v^H: columns of v have length 1."""
    m = adjoint(v) @ gv
    check_phase(diagonal_of(m), "linalg_eig_backward", "eigenvectors", "z for any z in C with |z| = 1")
    along = cast(real(diagonal_of(m)), m)
    m = m - adjoint(v) @ v * unsqueeze(along, len(along.shape) - 1)
    off = m - diagonal_matrix(diagonal_of(m))
    return similar(adjoint(v), quotient(off, conj(differences(d))) + diagonal_matrix(gd))


@shared
def svd_gradient(gu, gs, gvh, u, s, vh):
    """u (skew(u^H gu) / E s + s skew(vh gvh^H) / E + diag(gs)) vh with E_ij = s_j^2 - s_i^2, plus the parts of gu and
    gvh outside the spans of u and vh.
    """
    k, m, n = s.shape[-1], u.shape[-2], vh.shape[-1]
    gu, u = narrow(gu, len(u.shape) - 1, 0, k), narrow(u, len(u.shape) - 1, 0, k)
    gvh, vh = narrow(gvh, len(vh.shape) - 2, 0, k), narrow(vh, len(vh.shape) - 2, 0, k)
    row, column = unsqueeze(cast(s, u), len(s.shape) - 1), unsqueeze(cast(s, u), len(s.shape))
    of_u, of_v = adjoint(u) @ gu, vh @ adjoint(gvh)
    skew_u, skew_v = of_u - adjoint(of_u), of_v - adjoint(of_v)
    check_phase(diagonal_of(skew_u + skew_v) / 2, "svd_backward", "singular vectors", "e^{i phi}")
    e = cast(differences(s * s), u)
    inside = quotient(skew_u, e) * row + column * quotient(skew_v, e) + diagonal_matrix(cast(gs, u))
    if is_complex(u):
        turn = quotient(diagonal_of(skew_u), 2 * cast(s, u))
        inside = inside - diagonal_matrix(diagonal_of(inside)) + diagonal_matrix(cast(gs, u) + turn)
    r = u @ inside @ vh
    if m > k:
        r = r + quotient(gu - u @ of_u, row) @ vh
    if n > k:
        r = r + u @ quotient(gvh - adjoint(of_v) @ vh, column)
    return r


@shared
def svdvals_gradient(g, x):
    """u diag(g) vh."""
    u, _, vh = linalg_svd(x, False)
    return (u * unsqueeze(cast(g, u), len(g.shape) - 1)) @ vh


@shared
def qr_gradient(gq, gr, q, r, mode, shape):
    """(gq + q h) r^-H, where h is Hermitian with the upper triangle of gr r^H - q^H gq. For a wide matrix, r' is the
    part of r on the right: its columns have the gradient q gr', and q r' gr'^H is added to gq.
    """
    m, n = shape[-2:]
    if mode == "r":
        no_derivative_of_r()
    if mode == "complete" and m > n:
        no_derivative_of_complete()
    if m < n:
        d = len(r.shape) - 1
        rest, g_rest = narrow(r, d, m, n - m), narrow(gr, d, m, n - m)
        square = qr_gradient(gq + q @ rest @ adjoint(g_rest), narrow(gr, d, 0, m), q, narrow(r, d, 0, m), mode, (m, m))
        return cat((square, q @ g_rest), d)
    t = gr @ adjoint(r) - adjoint(q) @ gq
    upper = triu(t, 1)
    h = upper + adjoint(upper) + diagonal_matrix(cast(real(diagonal_of(t)) if is_complex(t) else diagonal_of(t), t))
    return adjoint(triangular(r, adjoint(gq + q @ h), True))


@shared
def lu_gradient(g, lu):
    """The gradient of the permuted matrix: L^-T (tril(L^T g_L, -1) + triu(g_U U^T)) U^-T; the rectangular part of a
    wide or tall matrix follows L or U.
    """
    m, n, d = lu.shape[-2], lu.shape[-1], len(lu.shape)
    if m < n:
        main, rest, g_rest = narrow(lu, d - 1, 0, m), narrow(lu, d - 1, m, n - m), narrow(g, d - 1, m, n - m)
        above = triangular(main.mT, g_rest, True, True)
        return cat((lu_gradient(narrow(g, d - 1, 0, m) - tril(above @ rest.mT, -1), main), above), d - 1)
    if m > n:
        main, rest, g_rest = narrow(lu, d - 2, 0, n), narrow(lu, d - 2, n, m - n), narrow(g, d - 2, n, m - n)
        below = triangular(main, g_rest.mT, True).mT
        return cat((lu_gradient(narrow(g, d - 2, 0, n) - triu(rest.mT @ below), main), below), d - 2)
    inside = tril(unit_lower(lu).mT @ tril(g, -1), -1) + triu(triu(g) @ triu(lu).mT)
    right = triangular(lu, inside.mT, True).mT  # inside U^-T
    return triangular(lu.mT, right, True, True)


@shared
def unit_lower(lu):
    """L, from a matrix that holds L and U."""
    return tril(lu, -1) + unit(lu.shape[-1], lu)


def no_derivative_of_r():
    raise runtime_error(
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
        "mode='reduced') if you are going to require gradients"
    )


def no_derivative_of_complete():
    raise runtime_error("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")


def check_phase(diagonal, name, vectors, factor):
    """RuntimeError if a loss depends on the phase of complex vectors, which no decomposition determines."""
    d = numbers(diagonal) if isinstance(diagonal, Tensor) else diagonal
    if d.dtype.kind == "c" and not np.allclose(d.imag, 0, 1e-2, 1e-2):
        raise runtime_error(
            f"{name}: The {vectors} in the complex case are specified up to multiplication by {factor}. The "
            "specified loss function depends on this quantity, so it is ill-defined."
        )


def permutation(pivots, like):
    """The matrix P of an LU decomposition x = P L U."""
    order = kernels.order_of(pivots, like.shape[-2])
    return np.swapaxes(np.eye(like.shape[-2], dtype=like.dtype)[order], -1, -2)


for world in (ARRAYS, TENSORS):
    world.update((f.__name__, f) for f in (no_derivative_of_r, no_derivative_of_complete, check_phase))
ARRAYS["exchange"] = permutation
TENSORS["exchange"] = sample_by_sample(
    lambda pivots, like: from_array(permutation(getattr(pivots, "_array", pivots), like._array))
)
ARRAYS["unit"] = lambda n, like: np.eye(n, dtype=like.dtype)
TENSORS["unit"] = lambda n, like: from_array(np.eye(n, dtype=like._array.dtype))

build(globals())
