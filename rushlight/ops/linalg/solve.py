"""Determinants, inverses and equations, with their derivatives; ops/linalg/solve_api.py has torch's signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.build import build, inner
from rushlight.core.worlds import adopt, shared
from rushlight.kernels import solving as kernels
from rushlight.ops.linalg import decompose as factorizations

if TYPE_CHECKING:  # names in rules, provided by the rule's world (core/worlds.py)
    from rushlight.core.rule_names import (
        adjoint,
        cast,
        cat,
        conj,
        diagonal_matrix,
        diagonal_of,
        is_complex,
        linalg_svd,
        narrow,
        prod,
        real,
        reshape,
        squeeze,
        tril,
        triu,
        unit,
        unsqueeze,
        where,
        zeros,
    )

adopt(kernels)

# fmt: off
linalg_det = inner(lambda x, /: linalg_det(x), x=lambda g, x: as_factor(g) * cofactors(x), batched="matrix")
linalg_slogdet = inner(lambda x, /: linalg_slogdet(x), x=lambda gs, x, sign: slogdet_gradient(gs[0], gs[1], x, sign),
    outputs="sign logabsdet", batched="matrix")
cofactors = inner(lambda x, /: cofactors(x), x=lambda g, x: cofactors_gradient(g, x), batched="matrix")
linalg_inv_ex = inner(lambda x, /: linalg_inv_ex(x), x=lambda gs, inverse: -(inverse.mT @ gs[0] @ inverse.mT),
    outputs="inverse info", batched="matrix")
# X with a X = b
solution = inner(lambda x, b, /: solution(x, b), x=lambda gs, x, result: -(solution(x.mT, gs[0])[0] @ result.mT),
    b=lambda gs, x: solution(x.mT, gs[0])[0], outputs="result info", node="LinalgSolveExBackward0", batched="matrix")
triangular = inner(lambda x, b, /, upper=False, unitriangular=False: triangular(x, b, upper, unitriangular),
    x=lambda g, x, out, upper, unitriangular: triangular_gradient(g, x, out, upper, unitriangular),
    b=lambda g, x, upper, unitriangular: triangular(x.mT, g, not upper, unitriangular),
    node="LinalgSolveTriangularBackward0", batched="matrix")
cholesky_solution = inner(lambda b, factor, /, upper=False: cholesky_solution(b, factor, upper),
    b=lambda g, factor, upper: conj(cholesky_solution(conj(g), factor, upper)),
    factor=lambda g, factor, out, upper: conj(factor_gradient(conj(g), factor, out, upper)),
    node="CholeskySolveBackward0", batched="matrix")
inverse_of_rank = inner(lambda x, atol, rtol, /, hermitian=False: inverse_of_rank(x, atol, rtol, hermitian),
    x=lambda g, x, out: conj(pinv_gradient(conj(g), x, out)), node="LinalgPinvBackward0")
least_squares = inner(lambda x, b, /, rcond, driver: least_squares(x, b, rcond, driver),
    x=lambda gs, x, b: lstsq_gradient(gs[0], x, b), b=lambda gs, x: pinv_of(x).mT @ gs[0],
    outputs="solution rank singular_values", node="LinalgLstsqBackward0", batched="matrix")
linalg_matrix_exp = inner(lambda x, /: linalg_matrix_exp(x), x=lambda g, x: exponential_gradient(g, x),
    batched="matrix")
# fmt: on


@shared
def as_factor(g):
    """(...) as (..., 1, 1)."""
    return reshape(g, tuple(g.shape) + (1, 1))


@shared
def triangular_gradient(g, x, out, upper, unitriangular):
    """-x^-T g out^T, restricted to the triangle that the solver reads."""
    g = -(triangular(x.mT, g, not upper, unitriangular) @ out.mT)
    return triu(g, int(unitriangular)) if upper else tril(g, -int(unitriangular))


@shared
def factor_gradient(g, factor, out, upper):
    """-(Z X^H + X Z^H) L with A Z = g; as in torch, also in the triangle that the solver does not read."""
    one = cholesky_solution(g, factor, upper) @ adjoint(out)
    both = one + adjoint(one)
    return -(factor @ both) if upper else -(both @ factor)


@shared
def slogdet_gradient(g_sign, g_size, x, sign):
    """(g_size + i Im(g_sign sign)) x^-T: the logarithm of det is log |det| + i times the angle of its sign."""
    if is_complex(sign):
        return as_factor(cast(g_size, sign) + (g_sign * sign - conj(g_sign * sign)) / 2) * linalg_inv_ex(x)[0].mT
    return as_factor(g_size) * linalg_inv_ex(x)[0].mT


@shared
def cofactors_gradient(g, x):
    """With x = U S Vh and h = U^H g V: det(U Vh) conj(U) (diag(P diag(h)) - P h^T) conj(Vh), where P_ij is the product
    of all singular values except the i-th and the j-th. There is no division by the determinant, which may be 0.
    """
    u, s, vh = linalg_svd(x, True)
    p = cast(products_without_two(s), u)
    h = adjoint(u) @ g @ adjoint(vh)
    along = p @ unsqueeze(diagonal_of(h), len(s.shape))
    inside = diagonal_matrix(squeeze(along, (len(s.shape),))) - p * h.mT
    return as_factor(linalg_det(u) * linalg_det(vh)) * (conj(u) @ inside @ conj(vh))


@shared
def products_without_two(s):
    """(..., n) -> (..., n, n): the product of all s except the i-th and the j-th; 0 on the diagonal."""
    n = s.shape[-1]
    one = unit(n, s)
    # a mask over s_k, i and j: 1 for k = i or k = j
    all_three = reshape(one, (n, 1, n)) + reshape(one, (1, n, n))
    k = reshape(s, tuple(s.shape[:-1]) + (1, 1, n))
    return prod(where(all_three > 0, 1, k), (len(k.shape) - 1,)) * (1 - one)


@shared
def pinv_gradient(g, x, p):
    """The gradient by x of p = pinv(x) (Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least
    squares problems, 1973).
    """
    h, ph = adjoint(g), adjoint(p)
    if x.shape[-2] <= x.shape[-1]:
        k = h @ p
        kph = k @ ph
        return kph - adjoint(p @ k) - (x @ p) @ kph + (ph @ p) @ (h - k @ x)
    k = p @ h
    phk = ph @ k
    return (h - x @ k) @ p @ ph + phk - adjoint(k @ p) - (phk @ p) @ x


@shared
def pinv_of(x):
    """The pseudo-inverse with the tolerance of least squares."""
    one = zeros((), real(x) if is_complex(x) else x)
    return inverse_of_rank(x, one, one, False)


@shared
def lstsq_gradient(g, x, b):
    """The gradient of x in pinv(x) b."""
    return conj(pinv_gradient(conj(g @ b.mT), x, pinv_of(x)))


@shared
def exponential_gradient(g, x):
    """The upper right block of exp [[x^T, g], [0, x^T]] (Mathias 1996)."""
    n, d = x.shape[-1], len(x.shape)
    top, bottom = cat((x.mT, g), d - 1), cat((zeros(tuple(x.shape), x), x.mT), d - 1)
    return narrow(narrow(linalg_matrix_exp(cat((top, bottom), d - 2)), d - 2, 0, n), d - 1, n, n)


build(globals())
