"""Linear algebra by its own stories: what factors are for, equations, gradients of Hermitian and complex matrices, what
is nearly or quite singular, empty, in stacks, and what is refused."""

from __future__ import annotations

import doctest
import io
import math

import numpy as np
import pytest

import rushlight
from rushlight.autograd import grad, gradcheck, gradgradcheck
from rushlight.base import dependencies
from rushlight.fast import policy
from tests.support.programs import Programs, outcome

linalg = rushlight.linalg
RANDOM = np.random.default_rng(5)
KINDS = ["float64", "complex128"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def matrix(*shape, kind="float64"):
    a = np.random.default_rng(sum(shape) + len(shape)).standard_normal((*shape, 2))
    return a[..., 0] + 1j * a[..., 1] if kind == "complex128" else a[..., 0]


def tensor(array, **how):
    return rushlight.tensor(array, **how)


def positive(*shape, kind="float64"):
    a = matrix(*shape, kind=kind)
    return a @ np.swapaxes(a.conj(), -1, -2) + np.eye(shape[-1])


def close(a, b, tol=1e-9):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), tol, tol)


# -- factors multiply to what they are factors of --------------------------------------------------

SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 3), (2, 1, 3, 2), (0, 3), (3, 0), (0, 2, 2)]


@each_kind
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_multiply_to_the_matrix(shape, kind):
    a = tensor(matrix(*shape, kind=kind))
    u, s, vh = linalg.svd(a, full_matrices=False)
    close((u * s.unsqueeze(-2).to(u.dtype)) @ vh, a)
    q, r = linalg.qr(a)
    close(q @ r, a)
    close(q.mH @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])))
    p, lower, upper = linalg.lu(a)
    close(p.to(a.dtype) @ lower @ upper, a)
    close(linalg.householder_product(*rushlight.geqrf(a)) @ r if shape[-2] >= shape[-1] else a, a)


@each_kind
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (0, 0), (0, 2, 2)])
def test_factors_of_square_matrices(shape, kind):
    a, h = (
        tensor(matrix(*shape, kind=kind)),
        tensor(positive(*shape, kind=kind) if 0 not in shape else matrix(*shape)),
    )
    values, vectors = linalg.eig(a)
    close(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))
    values, vectors = linalg.eigh(h)
    close(h @ vectors, vectors * values.unsqueeze(-2).to(vectors.dtype))
    lower, upper = linalg.cholesky(h), linalg.cholesky(h, upper=True)
    close(lower @ lower.mH, h)
    close(upper.mH @ upper, h)
    b = tensor(matrix(*shape[:-1], 2, kind=str(h.dtype).removeprefix("torch.")))
    for hermitian in (False, True) if kind == "float64" or not h.is_complex() else (True,):
        close(h @ linalg.ldl_solve(*linalg.ldl_factor(h, hermitian=hermitian), b, hermitian=hermitian), b)
    close(h @ rushlight.cholesky_solve(b, lower), b)
    close(h @ rushlight.cholesky_inverse(lower), np.broadcast_to(np.eye(shape[-1]), h.shape))


@each_kind
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solves_what_it_says(kind, left, adjoint):
    a, b = tensor(matrix(2, 3, 3, kind=kind)), tensor(matrix(2, 3, 3, kind=kind))
    x = linalg.lu_solve(*linalg.lu_factor(a), b, left=left, adjoint=adjoint)
    close(((a.mH if adjoint else a) @ x) if left else (x @ (a.mH if adjoint else a)), b)


# -- gradients -------------------------------------------------------------------------------------
# of Hermitian matrices, and of what does not depend on the phase of vectors


def hermitian(a):
    return a @ a.mH + rushlight.eye(a.shape[-1], dtype=a.dtype)


def phase_free(vectors):
    return vectors.abs() if not vectors.is_complex() else vectors * vectors.conj()


FREE = {
    "cholesky": lambda a: linalg.cholesky(hermitian(a)),
    "cholesky upper": lambda a: linalg.cholesky(hermitian(a), upper=True),
    "eigh": lambda a: (lambda w, v: (w, phase_free(v)))(*linalg.eigh(hermitian(a))),
    "eigvalsh": lambda a: linalg.eigvalsh(hermitian(a)),
    "eig": lambda a: (lambda w, v: (w, v * v.conj()))(*linalg.eig(a)),
    "eigvals": lambda a: linalg.eigvals(a),
    "svd": lambda a: (lambda u, s, vh: (phase_free(u), s, phase_free(vh)))(*linalg.svd(a)),
    "svdvals": lambda a: linalg.svdvals(a),
    "qr": lambda a: tuple(linalg.qr(a)),
    "lu": lambda a: tuple(linalg.lu(a))[1:],
    "det": lambda a: linalg.det(a),
    "slogdet": lambda a: tuple(linalg.slogdet(a)),
    "inv": lambda a: linalg.inv(a),
    "pinv": lambda a: linalg.pinv(a),
    "matrix_exp": lambda a: linalg.matrix_exp(a),
    "solve": lambda a: linalg.solve(a, a[..., :1] * 2),
    "triangular": lambda a: linalg.solve_triangular(a, a.mH, upper=True),
    "nuclear norm": lambda a: linalg.matrix_norm(a, "nuc"),
    "condition": lambda a: linalg.cond(a),
    "least squares": lambda a: linalg.lstsq(a[..., :2], a).solution,
}


@each_kind
@pytest.mark.parametrize("name", FREE)
def test_derivatives_of_real_and_complex_matrices(name, kind):
    a = tensor(matrix(3, 3, kind=kind), requires_grad=True)
    assert gradcheck(FREE[name], (a,))
    check_second(FREE[name], a)


def check_second(function, x):
    """AssertionError unless the second derivative along a random direction is what finite differences say."""
    outs = [t for t in as_tuple(function(x)) if t.requires_grad]
    seeds = [tensor(matrix(*t.shape, kind=str(t.dtype)[6:])) for t in outs]
    direction = matrix(*x.shape, 1, kind=str(x.dtype)[6:])[..., 0]

    def gradient(a):
        t = tensor(a, requires_grad=True)
        found = [o for o in as_tuple(function(t)) if o.requires_grad]
        return t, grad(found, t, seeds, create_graph=True)[0]

    t, g = gradient(x.detach().numpy())
    found = np.vdot(grad(g, t, tensor(direction))[0].numpy(), direction).real
    ends = [gradient(x.detach().numpy() + step * direction)[1].detach().numpy() for step in (1e-5, -1e-5)]
    slope = np.vdot(ends[0] - ends[1], direction).real / 2e-5
    assert np.isclose(found, slope, 1e-4, 1e-4), f"the derivative is {found}, finite differences say {slope}"


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


@each_kind
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)])
@pytest.mark.parametrize("name", ["svd", "svdvals", "qr", "lu", "pinv", "nuclear norm"])
def test_derivatives_of_matrices_that_are_not_square(name, kind, shape):
    def function(a):
        return (
            FREE[name](a)
            if name != "svd"
            else (lambda u, s, vh: (phase_free(u), s, phase_free(vh)))(*linalg.svd(a, full_matrices=False))
        )

    assert gradcheck(function, (tensor(matrix(*shape, kind=kind), requires_grad=True),))


def test_a_loss_that_depends_on_the_phase_is_refused(oracle):
    """Eigenvectors times any number of size 1 are eigenvectors."""
    a = tensor(matrix(3, 3, kind="complex128"), requires_grad=True)
    for loss in (
        lambda: linalg.eigh(hermitian(a))[1].imag.sum(),
        lambda: linalg.svd(a)[0].imag.sum(),
        lambda: linalg.eig(a)[1].imag.sum(),
    ):
        with pytest.raises(RuntimeError, match="specified up to multiplication"):
            loss().backward()


def test_equal_singular_values_have_a_gradient_where_it_exists():
    x = rushlight.eye(3, dtype=rushlight.float64).requires_grad_()
    linalg.svd(x)[1].sum().backward()
    close(x.grad, np.eye(3))
    x.grad = None
    linalg.eigh(x)[0].sum().backward()
    close(x.grad, np.eye(3))
    x.grad = None
    linalg.matrix_norm(x, "nuc").backward()
    close(x.grad, np.eye(3))


# -- singular, or nearly ---------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_the_determinant_of_a_singular_matrix_has_derivatives(rank):
    """Its gradient is the matrix of cofactors; at rank 1 of 3 that is 0, and only the second derivative is not."""
    a = (matrix(3, rank) @ matrix(rank, 3)) if rank else np.zeros((3, 3))
    x = tensor(a, requires_grad=True)
    (g,) = grad(linalg.det(x), x, create_graph=True)
    minors = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)] for i in range(3)
    ]
    close(g.detach(), minors)
    assert gradgradcheck(lambda x: linalg.det(x), (x,))


def test_a_nearly_singular_system_is_solved_as_well_as_it_can_be():
    """Hilbert's matrix of order 8, of condition 1.5e10, against exact fractions."""
    sympy = pytest.importorskip("sympy")
    n = 8
    exact = sympy.Matrix(n, n, lambda i, j: sympy.Rational(1, i + j + 1))
    h = tensor(np.array(exact.tolist(), np.float64))
    close(linalg.inv(h), np.array(exact.inv().tolist(), np.float64), 1e-5)
    assert abs(float(linalg.det(h)) / float(exact.det()) - 1) < 1e-6
    assert abs(float(linalg.slogdet(h).logabsdet) - float(sympy.log(exact.det()))) < 1e-6
    x = tensor(np.arange(1.0, n + 1))
    close(linalg.solve(h, h @ x), x, 1e-5)


def test_the_exponential_of_a_matrix_that_is_known():
    """Of a Jordan block e^a (1, t, t^2/2, ...), and of a rotation."""
    block = np.eye(4, k=1) + 0.3 * np.eye(4)
    powers = [[1 / float(np.prod(range(1, j - i + 1))) if j >= i else 0.0 for j in range(4)] for i in range(4)]
    close(linalg.matrix_exp(tensor(block)), np.exp(0.3) * np.array(powers))
    turn = rushlight.tensor([[0.0, -2.0], [2.0, 0.0]], dtype=rushlight.float64)
    close(linalg.matrix_exp(turn), [[np.cos(2), -np.sin(2)], [np.sin(2), np.cos(2)]])


def test_singular_matrices_in_a_stack_are_told_apart():
    stack = tensor(np.stack([np.eye(2), np.ones((2, 2)), 2 * np.eye(2)]))
    inverse, info = linalg.inv_ex(stack)
    assert info.tolist() == [0, 2, 0]
    close(inverse[0], np.eye(2))
    close(inverse[2], np.eye(2) / 2)
    factor, info = linalg.cholesky_ex(stack)
    assert info.tolist() == [0, 2, 0]
    close(factor[2], np.eye(2) * 2**0.5)
    assert linalg.solve_ex(stack, rushlight.ones(3, 2, 1, dtype=rushlight.float64)).info.tolist() == [0, 2, 0]
    assert linalg.matrix_rank(stack).tolist() == [2, 1, 2]


# -- what is refused -------------------------------------------------------------------------------

ONES, EYE, VECTOR, WIDE = (
    (lambda t: t.ones(2, 2)),
    (lambda t: t.eye(2)),
    (lambda t: t.ones(2)),
    (lambda t: t.ones(2, 3)),
)
STACK = lambda t: t.stack([t.eye(2), t.ones(2, 2)])
REFUSED = {
    "inv singular": lambda t: t.linalg.inv(ONES(t)),
    "inv of a stack": lambda t: t.linalg.inv(STACK(t)),
    "inverse": lambda t: t.inverse(STACK(t)),
    "inv not square": lambda t: t.linalg.inv(WIDE(t)),
    "inv of a vector": lambda t: t.linalg.inv(VECTOR(t)),
    "inv of integers": lambda t: t.linalg.inv(EYE(t).long()),
    "inv of halves": lambda t: t.linalg.inv(EYE(t).half()),
    "det": lambda t: t.linalg.det(WIDE(t)),
    "logdet": lambda t: t.logdet(WIDE(t)),
    "solve singular": lambda t: t.linalg.solve(ONES(t), VECTOR(t)),
    "solve of a stack": lambda t: t.linalg.solve(STACK(t), t.ones(2, 2, 1)),
    "solve shapes": lambda t: t.linalg.solve(EYE(t), t.ones(3, 1)),
    "solve dtypes": lambda t: t.linalg.solve(EYE(t), VECTOR(t).double()),
    "cholesky": lambda t: t.linalg.cholesky(-EYE(t)),
    "cholesky of a stack": lambda t: t.linalg.cholesky(STACK(t)),
    "old cholesky": lambda t: t.cholesky(STACK(t)),
    "eigh": lambda t: t.linalg.eigh(WIDE(t)),
    "eigh UPLO": lambda t: t.linalg.eigh(EYE(t), "X"),
    "eig nan": lambda t: t.linalg.eig(EYE(t) * float("nan")),
    "svd nan": lambda t: t.linalg.svd(EYE(t) * float("nan")),
    "qr mode": lambda t: t.linalg.qr(EYE(t), "x"),
    "lu_factor": lambda t: t.linalg.lu_factor(STACK(t)),
    "matrix_norm order": lambda t: t.linalg.matrix_norm(EYE(t), 3),
    "matrix_norm of a vector": lambda t: t.linalg.matrix_norm(VECTOR(t)),
    "norm of three dimensions": lambda t: t.linalg.norm(t.ones(2, 2, 2), 2),
    "vector_norm of nothing": lambda t: t.linalg.vector_norm(t.ones(0), float("inf")),
    "vector_norm of integers": lambda t: t.linalg.vector_norm(VECTOR(t).long()),
    "matrix_power": lambda t: t.linalg.matrix_power(WIDE(t), 2),
    "cond": lambda t: t.linalg.cond(WIDE(t), "fro"),
    "cond order": lambda t: t.linalg.cond(EYE(t), 7),
    "lstsq shapes": lambda t: t.linalg.lstsq(EYE(t), t.ones(3, 1)),
    "lstsq driver": lambda t: t.linalg.lstsq(EYE(t), EYE(t), driver="foo"),
    "tensorinv": lambda t: t.linalg.tensorinv(t.ones(2, 3, 4)),
    "tensorsolve": lambda t: t.linalg.tensorsolve(t.ones(2, 3, 4), t.ones(2, 3)),
    "solve_triangular": lambda t: t.linalg.solve_triangular(EYE(t), t.ones(3, 2), upper=True),
    "householder_product": lambda t: t.linalg.householder_product(WIDE(t), VECTOR(t)),
    "vander": lambda t: t.linalg.vander(VECTOR(t), N=1),
    "cross": lambda t: t.linalg.cross(EYE(t), EYE(t)),
    "multi_dot": lambda t: t.linalg.multi_dot([EYE(t), t.ones(3, 2)]),
    "cdist": lambda t: t.cdist(t.ones(3, 2), t.ones(2, 3)),
    "cdist p": lambda t: t.cdist(EYE(t), EYE(t), p=-1),
    "renorm": lambda t: t.renorm(VECTOR(t), 2, 0, 1.0),
    "trace": lambda t: t.trace(VECTOR(t)),
    "inner": lambda t: t.inner(WIDE(t), EYE(t)),
    "tensordot": lambda t: t.tensordot(t.ones(2, 3), t.ones(2, 3), 1),
    "addr": lambda t: t.addr(VECTOR(t), EYE(t), VECTOR(t)),
    "cov": lambda t: t.cov(t.ones(2, 2, 2)),
}


def refusal(call, module):
    try:
        call(module)
    except RuntimeError as error:
        return [type(error).__name__.removeprefix("_"), str(error).partition("\n")[0]]
    return ["nothing", ""]


def test_matrix_exp_in_single_precision_is_exact_to_the_last_place():
    x = np.random.default_rng(0).standard_normal((50, 8, 8)) * np.logspace(-2, 0.5, 50)[:, None, None]
    for dtype, wide in (("float32", "float64"), ("complex64", "complex128")):
        a = rushlight.tensor(x).to(getattr(rushlight, dtype)) * (1 if dtype == "float32" else 1 + 0.5j)
        exact = rushlight.linalg.matrix_exp(a.to(getattr(rushlight, wide)))
        error = (rushlight.linalg.matrix_exp(a) - exact).abs().amax((-1, -2)) / exact.abs().amax((-1, -2))
        assert error.max() < 1e-7


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_vander_has_torchs_bits_dtypes_and_strides(oracle, dtype):
    def made(torch):
        x = torch.tensor([-1.7, 0.0, 0.3, 3.0, -2.0]).to(getattr(torch, dtype))
        all_of_them = [torch.vander(x, n, increasing=rise) for n in (0, 1, 2, 9, None) for rise in (True, False)]
        return [[str(y.dtype).split(".")[1], list(y.shape), list(y.stride()), str(y.tolist())] for y in all_of_them]

    assert made(rushlight) == oracle(made)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused_in_its_words(oracle, name):
    expected = oracle(lambda torch: refusal(REFUSED[name], torch))
    kind, text = refusal(REFUSED[name], rushlight)
    if kind != "LinAlgError" and expected[0] == "LinAlgError":
        pytest.fail(f"{kind}, not LinAlgError")
    assert (
        kind == "LinAlgError"
        if expected[0] == "LinAlgError"
        else issubclass(getattr(linalg, kind, RuntimeError), RuntimeError)
    )
    assert text == expected[1]


@pytest.mark.parametrize("call", [linalg.inv, linalg.det, linalg.svd, rushlight.trace, linalg.vector_norm, linalg.cond])
def test_what_is_no_tensor_is_a_type_error(call):
    with pytest.raises((TypeError, AttributeError)):
        call("seven")


def test_an_error_is_a_linalg_error_and_names_the_line():
    with pytest.raises(linalg.LinAlgError, match="(?s)singular.*at: .*test_linalg.py.*hint"):
        linalg.inv(rushlight.zeros(2, 2))


# -- names, fields, choices ------------------------------------------------------------------------


def test_the_namespace_is_torchs(oracle):
    names = oracle(
        lambda torch: [
            n for n in dir(torch.linalg) if n.islower() and not n.startswith("_") and callable(getattr(torch.linalg, n))
        ]
    )
    assert not [name for name in names if not hasattr(linalg, name)]


SHOWN = sorted(
    {
        f
        for f in [
            *vars(linalg).values(),
            rushlight.kron,
            rushlight.cov,
            rushlight.cdist,
            rushlight.vdot,
            rushlight.svd_lowrank,
            rushlight.cholesky_solve,
            rushlight.renorm,
            rushlight.addbmm,
        ]
        if callable(f) and ">>>" in (f.__doc__ or "")
    },
    key=lambda f: f.__name__,
)


@pytest.mark.parametrize("function", SHOWN, ids=lambda f: f.__name__)
def test_the_examples_are_true(function):
    test = doctest.DocTestParser().get_doctest(function.__doc__, {"rushlight": rushlight}, function.__name__, None, 0)
    out = io.StringIO()
    assert doctest.DocTestRunner(verbose=False).run(test, out=out.write).failed == 0, out.getvalue()


RETURNED = {
    "eigh": lambda t: t.linalg.eigh(t.eye(2)),
    "eig": lambda t: t.linalg.eig(t.eye(2)),
    "svd": lambda t: t.linalg.svd(t.eye(2)),
    "qr": lambda t: t.linalg.qr(t.eye(2)),
    "lu": lambda t: t.linalg.lu(t.eye(2)),
    "slogdet": lambda t: t.linalg.slogdet(t.eye(2)),
    "old slogdet": lambda t: t.slogdet(t.eye(2)),
    "inv_ex": lambda t: t.linalg.inv_ex(t.eye(2)),
    "solve_ex": lambda t: t.linalg.solve_ex(t.eye(2), t.ones(2)),
    "cholesky_ex": lambda t: t.linalg.cholesky_ex(t.eye(2)),
    "lstsq": lambda t: t.linalg.lstsq(t.eye(2), t.eye(2)),
    "lu_factor": lambda t: t.linalg.lu_factor(t.eye(2)),
    "ldl_factor": lambda t: t.linalg.ldl_factor(t.eye(2)),
    "lu_factor_ex": lambda t: t.linalg.lu_factor_ex(t.eye(2)),
    "old svd": lambda t: t.svd(t.eye(2)),
    "ldl_factor_ex": lambda t: t.linalg.ldl_factor_ex(t.eye(2)),
    "old qr": lambda t: t.qr(t.eye(2)),
    "geqrf": lambda t: t.geqrf(t.eye(2)),
    "triangular_solve": lambda t: t.triangular_solve(t.eye(2), t.eye(2)),
    "lu_unpack": lambda t: t.lu_unpack(*t.linalg.lu_factor(t.eye(2))),
    "old lu": lambda t: t.lu(t.eye(2), get_infos=True),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", RETURNED)
def test_fields_have_torchs_names(oracle, name):
    def told(module):
        made = RETURNED[name](module)
        return [
            type(made).__name__,
            repr(made).partition("(")[0],
            *[p.strip().partition("=")[0] for p in repr(made).splitlines()[1:] if "=" in p.partition("(")[0]],
        ]

    ours, theirs = told(rushlight), oracle(told)
    assert ours[0] == theirs[0].rpartition(".")[2]
    assert ours[1:] == theirs[1:]


def test_a_pseudo_inverse_is_what_penrose_says():
    a = tensor(matrix(4, 2) @ matrix(2, 3))
    p = linalg.pinv(a)
    close(a @ p @ a, a)
    close(p @ a @ p, p)
    close((a @ p).mT, a @ p)
    assert linalg.matrix_rank(a) == linalg.matrix_rank(p) == 2
    close(linalg.pinv(tensor(np.diag([1.0, 1e-3])), atol=0.01), np.diag([1.0, 0.0]))
    close(linalg.pinv(tensor(np.diag([1.0, 1e-3])), rtol=tensor(0.01)), np.diag([1.0, 0.0]))


def test_a_chain_is_multiplied_in_the_cheapest_order():
    from rushlight.ops.linalg.products_api import splits

    best = splits([30, 35, 15, 5, 10, 20, 25])  # the example of Cormen et al., 15.2
    assert (best[0, 5], best[0, 2], best[3, 5]) == (2, 0, 4)


def test_random_projections_find_what_is_there():
    a = tensor(matrix(30, 3) @ matrix(3, 20))
    u, s, v = rushlight.svd_lowrank(a, 3)
    close(u @ rushlight.diag(s) @ v.mT, a)
    close(s, linalg.svdvals(a)[:3])
    u, s, v = rushlight.pca_lowrank(a, 3)
    close(u @ rushlight.diag(s) @ v.mT, a - a.mean(0))
    x = tensor(matrix(30, 3) @ matrix(3, 20), requires_grad=True)
    rushlight.svd_lowrank(x, 3)[1].sum().backward()
    y = tensor(x.detach().numpy(), requires_grad=True)
    linalg.matrix_norm(y, "nuc").backward()
    close(x.grad, linalg.svd(y, False)[0].detach()[:, :3] @ linalg.svd(y, False)[2].detach()[:3])


def test_distances_of_near_points_are_exact():
    """Products of matrices would lose them: 1e8 and 1e8 + 1 are 1 apart."""
    a = rushlight.tensor([[1e8, 0.0]], dtype=rushlight.float64)
    assert rushlight.cdist(a, a + 1).tolist() == [[2**0.5]]


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize(("offset", "scale"), [(0, 1), (100, 1), (1e4, 1), (0, 1e-3)])
@pytest.mark.parametrize(
    ("x", "y"), [((200, 128), (60, 128)), ((3, 1, 40, 100), (2, 50, 100)), ((4, 10, 70), (40, 70))]
)
def test_distances_of_wide_points_keep_their_digits(x, y, offset, scale, loops, monkeypatch):
    """Of points far from 0, of points beside each other, and of those that are the same."""
    monkeypatch.setattr(policy.large_arrays, "left", 0.0 if loops and dependencies.has_llvmlite() else np.inf)
    a, b = (rushlight.randn(shape) * scale + offset for shape in (x, y))
    b[..., :20, :] = a.reshape(-1, x[-1])[:20]
    b[..., 10:20, :] *= 1 + 1e-5
    expected = np.linalg.norm(a.double().numpy()[..., :, None, :] - b.double().numpy()[..., None, :, :], axis=-1)
    assert np.allclose(rushlight.cdist(a, b), expected, 1e-6, 0)
    a.reshape(-1)[5], b.reshape(-1)[-7] = np.inf, np.nan
    expected = np.linalg.norm(a.double().numpy()[..., :, None, :] - b.double().numpy()[..., None, :, :], axis=-1)
    assert np.allclose(rushlight.cdist(a, b), expected, 1e-6, 0, equal_nan=True)


def test_distances_of_many_points_take_little_memory():
    a, b = (rushlight.rand(300, 40), rushlight.rand(200, 40))  # more differences than are held at a time
    close(rushlight.cdist(a, b), np.linalg.norm(a.numpy()[:, None] - b.numpy(), axis=-1), 1e-5)


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 0), (6, 4), (301, 30)])
def test_distances_of_pairs_are_those_above_the_diagonal(shape):
    x = rushlight.rand(*shape, dtype=rushlight.float64, requires_grad=True)
    made = rushlight.nn.functional.pdist(x)
    between = x.detach().numpy()[:, None] - x.detach().numpy()
    close(made.detach(), np.linalg.norm(between, axis=-1)[np.triu_indices(shape[0], 1)], 1e-12)
    assert made.grad_fn.name() == "PdistBackward0"
    if shape == (6, 4):  # the distances on the diagonal, which have no slope, have no part in it
        assert gradcheck(rushlight.nn.functional.pdist, (x,))
        assert gradgradcheck(rushlight.nn.functional.pdist, (x,))


def test_common_functions_need_no_scipy():
    import subprocess
    import sys

    program = (
        "import sys; sys.modules['scipy'] = None; import rushlight as t; x = t.eye(3) * 2; l = t.linalg;[f(x) "
        "for f in (l.inv, l.det, l.slogdet, l.svd, l.eigh, l.eig, l.qr, l.cholesky, l.norm, l.pinv, "
        "l.cond,l.matrix_rank, t.trace, t.logdet)]; l.solve(x, x); t.cdist(x, x); l.matrix_norm(x, 'nuc')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@each_kind
def test_out_is_filled(kind):
    a = tensor(positive(3, 3, kind=kind))
    out = rushlight.zeros(3, 3, dtype=a.dtype)
    assert linalg.inv(a, out=out) is out
    close(out @ a, np.eye(3))
    pair = rushlight.zeros(3, dtype=rushlight.float64), rushlight.zeros(3, 3, dtype=a.dtype)
    back = linalg.eigh(a, out=pair)
    assert back.eigenvalues is pair[0]
    assert back.eigenvectors is pair[1]


INF, NAN = math.inf, math.nan


@pytest.mark.origin("edge cases")
def test_determinants_of_what_is_not_finite():
    good = [[2.0, 1.0], [1.0, 3.0]]
    matrices = [[[NAN, 2.0], [3.0, 4.0]], good, [[1.0, 2.0], [2.0, 4.0]], [[INF, 1.0], [1.0, 1.0]]]
    x = rushlight.tensor(matrices, requires_grad=True)
    made = rushlight.linalg.det(x)
    made.sum().backward()
    assert made[0].isnan()
    assert x.grad[0].isnan().all()
    np.testing.assert_allclose(x.grad[1:3].numpy(), [[[3, -1], [-1, 2]], [[4, -2], [-2, 1]]], rtol=1e-5)


program = Programs()


@program.found_in("torch tests")
def what_linear_algebra_refuses(torch):
    a = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 2.0]])
    return [
        outcome(torch.linalg.vector_norm, a, "fro"),
        outcome(torch.linalg.matrix_power, a[:, :2], 1.5),
        outcome(torch.tensordot, a, a, ([0], [5])),
        torch.tensordot(a, a, ([-1], [-1])),
    ]


@pytest.mark.origin("tutorials")
def test_which_of_several_has_no_cholesky_factor(oracle):
    def infos(t):
        matrices = t.tensor([[[1.0, 0.0], [NAN, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]])
        return t.linalg.cholesky_ex(matrices).info

    assert infos(rushlight).tolist() == oracle(infos).tolist() == [2, 0, 2]


test_program = program.test()


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("upper", [False, True])
def test_the_factor_of_cholesky_solve_has_torchs_gradient(oracle, kind, upper):
    # of both triangles: libraries give the factor as a full matrix
    def gradients(torch):
        dtype = getattr(torch, kind)
        factor = torch.arange(9.0).reshape(3, 3).to(dtype) / 9 + 2 * torch.eye(3, dtype=dtype)
        b = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(3, 2).to(dtype)
        factor.requires_grad_()
        b.requires_grad_()
        x = torch.cholesky_solve(b, factor * (1 + (1j if dtype.is_complex else 0)), upper=upper)
        first = torch.autograd.grad((x * x.conj()).real.sum(), (factor, b), create_graph=True)
        second = torch.autograd.grad(sum((g * g.conj()).real.sum() for g in first), (factor, b))
        return [x.detach(), *(g.detach() for g in (*first, *second))]

    for ours, theirs in zip(gradients(rushlight), oracle(gradients)):
        rushlight.testing.assert_close(ours, rushlight.as_tensor(theirs))
