"""Ways that are taken for what is large, or many: they give what the ordinary way gives, beside the threshold and across."""
from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.ops.kernels import solving


@pytest.mark.parametrize("batch", [(63,), (64,), (8, 8), (1, 70)])
@pytest.mark.parametrize(("n", "k"), [(16, 3), (16, 16), (3, 1), (1, 1), (1, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("unitriangular", [False, True])
def test_triangles_side_by_side(batch, n, k, dtype, unitriangular):
    rng = np.random.default_rng(0)
    a = (rng.standard_normal((*batch, n, n)) / n + 2 * np.eye(n)).astype(dtype)
    b = rng.standard_normal((*batch, n, k)).astype(dtype)
    kept = a.copy(), b.copy()
    for upper in (False, True):
        x = solving.triangular(a, b, upper, unitriangular)
        one = np.stack([solving.triangular(p, q, upper, unitriangular)                 # alone: by LAPACK
                        for p, q in zip(a.reshape(-1, n, n), b.reshape(-1, n, k))]).reshape(b.shape)
        assert x.dtype == dtype
        assert x.flags.c_contiguous
        np.testing.assert_allclose(x, one, rtol=1e-4, atol=1e-5)
        spread = solving.triangular(a[..., :1, :, :], b, upper, unitriangular)
        np.testing.assert_allclose(spread.reshape(-1, n, k)[0], one.reshape(-1, n, k)[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(a, kept[0])
    np.testing.assert_array_equal(b, kept[1])


def test_a_zero_on_a_diagonal_spoils_its_own_triangle():
    a = np.broadcast_to(np.float32([[2, 0], [1, 0]]), (9, 2, 2)).copy()
    a[1:, 1, 1] = 1
    x = solving.triangular(a, np.ones((9, 2, 1), np.float32))
    assert np.isinf(x[0, 1, 0])
    np.testing.assert_array_equal(x[1:, :, 0], np.full((8, 2), 0.5, np.float32))


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3)])
@pytest.mark.parametrize("singular", [0, 1, 6])
def test_gradients_of_determinants_of_which_some_are_0(batch, singular):
    """The gradient is the matrix of cofactors, of each matrix for itself."""
    a = np.random.default_rng(1).standard_normal((*batch, 3, 3))
    a.reshape(-1, 3, 3)[:singular, 2] = a.reshape(-1, 3, 3)[:singular, 1]
    x = rushlight.tensor(a, requires_grad=True)
    rushlight.linalg.det(x).sum().backward()
    for m, g in zip(a.reshape(-1, 3, 3), x.grad.numpy().reshape(-1, 3, 3)):
        minors = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(m, i, 0), j, 1)) for j in range(3)] for i in range(3)]
        np.testing.assert_allclose(g, minors, rtol=1e-6, atol=1e-9)
