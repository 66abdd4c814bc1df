"""Samples of linear algebra: matrices of full rank, positive-definite ones, factors of them."""

from __future__ import annotations

import numpy as np

from tests.table.samples.by_hand import Data, Sample, exactly, scalar, x

SPD = exactly([[4.0, 1.0, 0.5], [1.0, 3.0, -0.7], [0.5, -0.7, 2.0]])
SPD_PAIR = exactly([[[4.0, 1.0], [1.0, 3.0]], [[2.0, -0.5], [-0.5, 5.0]]])
FACTOR = exactly([[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [-0.7, 0.3, 1.2]])
A = exactly([[2.0, 0.3, -0.4], [0.5, 1.6, 0.2], [-0.7, 0.35, 1.2]])
WIDE = exactly([[0.6, -1.3, 0.7], [1.1, 0.2, -1.6]])
PAIR = exactly([[[2.0, 0.3], [0.5, 1.5]], [[1.0, -0.4], [0.6, 3.0]]])
NONE = Data(0, 0, dtype="float64")
EMPTY = [Sample(Data(*shape, dtype="float64", constant=True)) for shape in ((0, 3), (3, 0), (0, 2, 2))]
ANY = [Sample(x(3, 3)), Sample(x(2, 3, 2)), Sample(x(2, 3)), *EMPTY]
SQUARE = [Sample(A), Sample(PAIR), Sample(exactly([[2.0]])), Sample(NONE), EMPTY[-1]]
SINGULAR = exactly([[1.0, 2.0], [2.0, 4.0]])


def fixed(*shape, **how):
    """A matrix by which nothing is differentiated: where torch does not, or only what has no sign or phase."""
    return Data(*shape, constant=True, **how)


def hermitian(sample):
    """torch's gradient takes the matrix for Hermitian, and so is not the slope along a change that is not."""
    return Sample(*sample.args, smooth=False, slopes=True, **sample.kwargs)


OF_SPD = [hermitian(Sample(SPD)), hermitian(Sample(SPD_PAIR)), Sample(NONE), EMPTY[-1]]
UPPER = [*OF_SPD, hermitian(Sample(SPD, upper=True))]
SOLVED = [
    Sample(A, x(3)),
    Sample(A, x(3, 2)),
    Sample(PAIR, x(2, 2)),
    Sample(PAIR, x(2, 2, 1)),
    Sample(PAIR, x(2)),
    Sample(A, x(2, 3), left=False),
    Sample(NONE, x(0, 2)),
    Sample(PAIR, x(2, 1, 2, 3)),
]
TRIANGULAR = [
    Sample(A, x(3, 2), upper=True),
    Sample(A, x(3, 2), upper=False),
    Sample(PAIR, x(2, 1), upper=True),
    Sample(A, x(3, 2), upper=False, unitriangular=True),
    Sample(A, x(2, 3), upper=True, left=False),
]
TALL = exactly([[2.0, 0.3], [0.5, 1.5], [-0.7, 0.3]])
REFLECTIONS = exactly([[1.0, 0.4], [0.3, 1.0], [0.2, -0.5]])
SCALES = exactly([1.2, 0.9])
DECOMPOSED = exactly([[3.0, 1.0, 0.5], [0.4, 2.0, 0.7], [0.2, 0.5, 1.5]])
SYMMETRIC = fixed(values=SPD.values)
ORDER = Data(values=[1, 2, 3], dtype="int32")
PIVOTS = Data(values=[2, 3, 3], dtype="int32")
NORMS = [
    Sample(x(3, 3)),
    Sample(WIDE, "nuc"),
    Sample(WIDE, 2),
    Sample(WIDE, -2),
    Sample(WIDE, 1),
    Sample(WIDE, -1),
    Sample(WIDE, float("inf")),
    Sample(WIDE, -float("inf"), keepdim=True),
]
POINTS = [
    Sample(x(3, 2), x(4, 2)),
    Sample(x(2, 3, 2), x(1, 4, 2)),
    Sample(x(3, 2), x(4, 2), 1),
    Sample(x(3, 2), x(4, 2), 3),
    Sample(x(3, 2), x(4, 2), float("inf")),
    Sample(x(0, 2), x(4, 2)),
    Sample(x(3, 0), x(4, 0)),
    Sample(exactly([[0.0, 1.0], [1.0, 2.0]]), exactly([[0.0, 1.0]]), smooth=False),
]
ONE = Data(values=1e-12, constant=True, dtype="float64")

HAND = {
    # products
    "vdot": [Sample(x(3), x(3)), Sample(x(0), x(0))],
    "linalg_vecdot": [Sample(x(2, 3), x(2, 3)), Sample(x(2, 3), x(3)), Sample(x(2, 3), x(2, 3), dim=0)],
    "linalg_matmul": [Sample(x(2, 3), x(3, 2)), Sample(x(3), x(3))],
    "inner": [Sample(x(3), x(3)), Sample(x(2, 3), x(4, 3)), Sample(x(2, 3), scalar()), Sample(x(2, 0), x(3, 0))],
    "tensordot": [
        Sample(x(2, 3), x(3, 2), 1),
        Sample(x(2, 3, 4), x(3, 4, 2)),
        Sample(x(2, 3), x(3, 2), ([1, 0], [0, 1])),
        Sample(x(2, 3), x(4), 0),
        Sample(x(2, 1), x(3, 2), ([1], [0])),
    ],
    "kron": [Sample(x(2), x(3)), Sample(x(2, 2), x(1, 3)), Sample(x(2, 2), x(3)), Sample(scalar(), x(2))],
    "trace": [Sample(x(3, 3)), Sample(x(2, 3)), Sample(x(0, 3))],
    "addbmm": [Sample(x(2, 2), x(2, 2, 3), x(2, 3, 2)), Sample(x(2), x(2, 2, 3), x(2, 3, 2), beta=2, alpha=3)],
    "addr": [Sample(x(2, 3), x(2), x(3)), Sample(x(3), x(2), x(3), beta=2, alpha=3), Sample(x(3), x(2), x(3), beta=0)],
    "linalg_multi_dot": [
        Sample([x(2, 3), x(3, 4)]),
        Sample([x(2, 3), x(3, 4), x(4, 2)]),
        Sample([x(3), x(3, 4), x(4)]),
        Sample([x(2, 3), x(3, 5), x(5, 2), x(2, 2)]),
    ],
    "chain_matmul": [Sample(x(2, 3), x(3, 4)), Sample(x(2, 3), x(3, 4), x(4, 2))],
    "linalg_cross": [
        Sample(x(3), x(3)),
        Sample(x(2, 3), x(2, 3)),
        Sample(x(3, 2), x(3, 2), dim=0),
        Sample(x(1, 3), x(2, 3)),
    ],
    "crossed": [Sample(x(2, 3), x(2, 3), 0), Sample(x(3, 2), x(1, 3, 1), 1)],
    "cross": [Sample(x(3, 2), x(3, 2), 0), Sample(x(2, 3), x(2, 3), dim=-1)],
    "matrix_power": [Sample(x(2, 2), 0), Sample(x(2, 2), 1), Sample(x(2, 2, 2), 3), Sample(A, 4), Sample(A, -2)],
    "linalg_vander": [Sample(x(3)), Sample(x(2, 3)), Sample(x(3), N=2), Sample(x(2, 2), N=4)],
    "vander": [Sample(x(3)), Sample(x(3), 2), Sample(x(3), increasing=True)],
    # norms and distances
    "vector_norm": [Sample(x(2, 3), 2.0, None), Sample(x(2, 3), 3.0, (1,), True), Sample(x(2, 3), 2.0, (0,))],
    "nonzeros": [Sample(x(2, 3), None), Sample(x(2, 3), (1,), True)],
    "linalg_vector_norm": [
        Sample(x(2, 3)),
        Sample(x(2, 3), 3, 1),
        Sample(x(2, 3), 0.5, 0),
        Sample(x(2, 3), 1, (0, 1)),
        Sample(x(2, 3), float("inf"), 1, True),
        Sample(x(2, 3), -float("inf"), 1),
        Sample(x(2, 3), 0, 1),
        Sample(x(2, 3), -1),
        Sample(x(0, 3), 2, 0),
        Sample(x(0, 3), 1),
        *[
            Sample(exactly([[0.0, 0.0], [2.0, -2.0]]), p, 1, smooth=False, slopes=True)
            for p in (0.5, 1, 1.5, 2, 3, float("inf"), -float("inf"))
        ],
    ],
    "linalg_matrix_norm": [
        *NORMS,
        Sample(x(2, 3, 4), "nuc", (0, 2)),
        Sample(x(2, 3, 4), 1, (2, 0), True),
        Sample(fixed(0, 3), 2),
        Sample(fixed(0, 3), float("inf")),
    ],
    "linalg_norm": [
        *NORMS,
        Sample(x(2, 3)),
        Sample(x(3), 3),
        Sample(x(2, 3, 2), 1, 1),
        Sample(x(2, 3, 2), 2, (0, 2)),
        Sample(x(2, 3, 2)),
    ],
    "linalg_cond": [
        Sample(A),
        *[Sample(A, p) for p in (2, -2, "fro", "nuc", 1, -1, float("inf"), -float("inf"))],
        Sample(x(2, 3)),
        Sample(PAIR),
    ],
    "linalg_matrix_rank": [
        Sample(x(3, 3)),
        Sample(SINGULAR),
        Sample(SPD, hermitian=True),
        Sample(A, atol=1.6),
        Sample(A, rtol=0.9),
        Sample(x(2, 0)),
        Sample(PAIR, tol=0.1),
    ],
    "dist": [
        Sample(x(2, 3), x(2, 3)),
        Sample(x(2, 3), x(3), 1),
        Sample(x(2, 3), x(2, 3), 3),
        Sample(exactly([1.0, 2.0]), exactly([0.5, -0.3]), float("inf")),
    ],
    "cdist": POINTS,
    "apart": [Sample(x(4, 2), Data(values=[1, 2, 3, 6, 7, 11], dtype="int64"))],
    "euclidean": [Sample(x(3, 2), x(4, 2)), Sample(x(2, 3, 2), x(1, 4, 2))],
    "farthest": [Sample(x(4, 3)), Sample(x(2, 2, 3))],
    "renorm": [Sample(x(2, 3), 2, 0, 1.0), Sample(x(2, 3, 2), 1, -1, 0.5), Sample(x(2, 3), 3, 1, 100.0)],
    "cov": [
        Sample(x(2, 4)),
        Sample(x(4)),
        Sample(x(2, 4), correction=0),
        Sample(x(2, 4), aweights=x(4, signed=False)),
        Sample(x(2, 4), fweights=Data(values=[1, 2, 0, 3], dtype="int64")),
        Sample(x(2, 4), fweights=Data(values=[1, 2, 1, 3], dtype="int64"), aweights=x(4, signed=False)),
    ],
    "corrcoef": [Sample(x(2, 4)), Sample(x(3, 5)), Sample(x(4), smooth=False)],
    # determinants, inverses, equations
    "linalg_det": [*SQUARE, Sample(SINGULAR, smooth=False), Sample(exactly(np.ones((3, 3))))],
    "linalg_slogdet": SQUARE[:4],
    "logdet": [Sample(A), Sample(PAIR), Sample(exactly([[0.0, 1.0], [1.0, 0.0]]), smooth=False)],
    "cofactors": [Sample(A), Sample(PAIR), Sample(SINGULAR)],
    "linalg_inv": SQUARE,
    "linalg_inv_ex": SQUARE,
    "linalg_solve": SOLVED,
    "linalg_solve_ex": SOLVED,
    "solution": [Sample(A, x(3, 2)), Sample(PAIR, x(2, 1))],
    "linalg_solve_triangular": TRIANGULAR,
    "triangular": [Sample(A, x(3, 2), True, False), Sample(PAIR, x(2, 1), False, True)],
    "triangular_solve": [
        Sample(x(3, 2), A),
        Sample(x(3, 2), A, False),
        Sample(x(3, 2), A, True, True),
        Sample(x(2, 1), PAIR, True, False, True),
    ],
    # the factor is fixed: torch's gradient is of both triangles, and the solver reads one
    "cholesky_solve": [Sample(x(3, 2), fixed(values=FACTOR.values)), Sample(x(3, 2), fixed(values=A.values), True)],
    "cholesky_solution": [
        Sample(x(3, 2), fixed(values=FACTOR.values), False),
        Sample(x(3, 2), fixed(values=A.values), True),
    ],
    "cholesky_inverse": [Sample(FACTOR), Sample(A, True)],
    "linalg_lstsq": [
        Sample(TALL, x(3, 2)),
        Sample(TALL, x(3)),
        Sample(x(2, 3), x(2, 1)),
        Sample(A, x(3, 2)),
        Sample(TALL, x(3, 2), driver="gelsd"),
        Sample(TALL, x(3, 2), driver="gelss"),
        Sample(TALL, x(3, 2), driver="gels"),
    ],
    "least_squares": [Sample(TALL, x(3, 2), 1e-12, "gelsy")],
    "linalg_pinv": [
        Sample(TALL),
        Sample(x(2, 3)),
        Sample(A),
        Sample(PAIR),
        Sample(SINGULAR, smooth=False, slopes=True),
        hermitian(Sample(SPD, hermitian=True)),
        Sample(x(0, 3)),
        Sample(A, atol=0.01),
        Sample(A, rtol=0.01),
    ],
    "pinverse": [Sample(TALL), Sample(x(2, 3))],
    "inverse_of_rank": [Sample(TALL, ONE, ONE, False)],
    "linalg_tensorinv": [Sample(x(4, 2, 2), 1), Sample(x(2, 3, 6))],
    "linalg_tensorsolve": [Sample(x(2, 3, 6), x(2, 3)), Sample(x(6, 2, 3), x(2, 3), (0,))],
    "matrix_exp": [Sample(A), Sample(PAIR), Sample(NONE), Sample(exactly(np.zeros((2, 2))))],
    # decompositions
    "linalg_cholesky": UPPER,
    "linalg_cholesky_ex": UPPER,
    "cholesky": UPPER,
    "linalg_eigh": [
        Sample(SPD, smooth=False),
        Sample(SPD_PAIR, smooth=False),
        Sample(SPD, "U", smooth=False),
        *EMPTY[2:],
    ],
    "linalg_eigvalsh": [*OF_SPD, hermitian(Sample(SPD, UPLO="U"))],
    "linalg_eig": [Sample(fixed(values=s.args[0].values)) for s in SQUARE[:2]],
    "linalg_eigvals": SQUARE,
    "linalg_svd": [
        Sample(WIDE, smooth=False),
        Sample(x(2, 3, 2), smooth=False),
        *EMPTY,
        Sample(A, slopes=False),
        Sample(A, False, slopes=False),
        Sample(WIDE, full_matrices=False, slopes=False),
    ],
    "linalg_svdvals": [*ANY, Sample(exactly(np.eye(3)), smooth=False, slopes=True)],
    "svd": [
        Sample(A, slopes=False),
        Sample(WIDE, slopes=False),
        Sample(x(3, 2), False, smooth=False),
        Sample(x(3, 2), compute_uv=False),
    ],
    "linalg_qr": [*ANY, Sample(x(2, 3), "complete"), Sample(fixed(3, 2), "complete"), Sample(fixed(3, 2), "r")],
    "qr": [Sample(x(3, 2)), Sample(x(2, 3)), Sample(x(2, 3), False)],
    "geqrf": [Sample(fixed(3, 2)), Sample(fixed(2, 2, 3))],
    "linalg_householder_product": [
        Sample(REFLECTIONS, SCALES),
        Sample(REFLECTIONS, exactly([1.2])),
        Sample(REFLECTIONS, x(0)),
    ],
    "ormqr": [
        Sample(REFLECTIONS, SCALES, x(3, 2)),
        Sample(REFLECTIONS, SCALES, x(2, 3), False),
        Sample(REFLECTIONS, SCALES, x(3, 2), True, True),
    ],
    "linalg_lu": ANY,
    "linalg_lu_factor": [Sample(A), Sample(PAIR), Sample(x(2, 3)), Sample(x(3, 2))],
    "linalg_lu_factor_ex": ANY,
    "lu": [Sample(A), Sample(x(2, 3)), Sample(x(3, 2), get_infos=True)],
    "lu_core": ANY,
    "lu_unpack": [
        Sample(DECOMPOSED, PIVOTS),
        Sample(DECOMPOSED, PIVOTS, unpack_data=False),
        Sample(DECOMPOSED, PIVOTS, unpack_pivots=False),
    ],
    "linalg_lu_solve": [
        Sample(DECOMPOSED, PIVOTS, x(3, 2)),
        Sample(DECOMPOSED, PIVOTS, x(2, 3), left=False),
        Sample(DECOMPOSED, PIVOTS, x(3, 2), adjoint=True),
        Sample(DECOMPOSED, PIVOTS, x(2, 3, 1)),
    ],
    "lu_solve": [Sample(x(3, 2), DECOMPOSED, PIVOTS)],
    "linalg_ldl_factor": [Sample(SYMMETRIC), Sample(SYMMETRIC, hermitian=True)],
    "linalg_ldl_factor_ex": [Sample(SYMMETRIC)],
    "linalg_ldl_solve": [Sample(fixed(values=DECOMPOSED.values), ORDER, fixed(3, 2))],
    "ldl": [Sample(SYMMETRIC, False)],
    "ldl_solution": [Sample(fixed(values=DECOMPOSED.values), ORDER, fixed(3, 2), False)],
    "svd_lowrank": [Sample(fixed(4, 3), 0), Sample(fixed(3, 5), 0)],
    "pca_lowrank": [Sample(fixed(4, 3), 0)],
}
SAME = {
    "det": "linalg_det",
    "inverse": "linalg_inv",
    "slogdet": "linalg_slogdet",
    "orgqr": "linalg_householder_product",
    "linalg_matrix_power": "matrix_power",
    "linalg_matrix_exp": "matrix_exp",
}
HAND |= {name: HAND[other] for name, other in SAME.items()}
