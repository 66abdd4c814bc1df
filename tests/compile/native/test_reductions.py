"""Reductions in native functions: sums, extremes and their places, norms, variances, products with vectors."""

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F
from tests.compile.native.native_case import assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")


@pytest.mark.faster
@pytest.mark.parametrize("dim", [0, -1, (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(dim, keepdim):
    x = normal(3, 17, 33) + 1  # no sum is near 0
    assert_same(lambda x: x.sum(dim, keepdim) * 2 + 1, x)
    assert_same(lambda x: x.transpose(0, 1).amax(dim, keepdim), x, tolerance=0)


@pytest.mark.faster
def test_reductions_of_all_numbers():
    x = normal(3, 1000)
    assert_same(lambda x: x.mean() + 1, x)
    assert_same(lambda x: (x * 0.1 + 1).prod(), normal(20), tolerance=1e-5)
    x[1, 5] = np.nan
    assert_same(lambda x: x.amin(1), x, tolerance=0)
    assert_same(lambda x: x.mean((2, 3)), normal(2, 32, 8, 8))


@pytest.mark.faster
def test_rows_of_no_numbers_stay_as_they_are():
    with rushlight.no_grad():
        compiled = rushlight.compile(lambda x: x.sum(1) + 1)
        assert compiled(rushlight.ones(3, 0)).tolist() == [1, 1, 1]


@pytest.mark.faster
@pytest.mark.parametrize("columns", [128, 300])
def test_columns_in_blocks(monkeypatch, columns):
    x = normal(2, 50, columns)
    assert_same(lambda x: x.mean(1) + 1, x)
    assert_same(lambda x: x.amin(1), x, tolerance=0)
    assert_same_on_cores(monkeypatch, lambda x: x.mean((0, 1)) + 1, x)


@pytest.mark.faster
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("size", [1, 5, 33, 300])
def test_places_of_extremes(dim, keepdim, size):
    """The first of equal numbers, or the first nan."""
    x = np.round(normal(3, size, 20) * 3)
    x[1, size // 2, 7] = np.nan
    assert_same(lambda x: x.argmax(dim, keepdim), x, tolerance=0)
    assert_same(lambda x: x.max(dim, keepdim)[0] * 2, x, tolerance=0)
    assert_same(lambda x: x.min(dim, keepdim)[1], x, tolerance=0)


@pytest.mark.faster
def test_both_results_of_an_extreme():
    def both(x):
        values, places = x.transpose(0, 1).max(1)
        return values * 2 + places

    assert_same(both, normal(17, 33))
    assert_same(lambda x: x.argmin(), normal(3, 17), tolerance=0)


@pytest.mark.faster
@pytest.mark.parametrize("dim", [0, -1, (0, 2), None])
def test_variances(dim):
    x = normal(3, 17, 33)
    assert_same(lambda x: x.var(dim), x, tolerance=2e-6)
    assert_same(lambda x: x.std(dim, correction=0) + 1, x * 1e-3 + 1000, tolerance=2e-6)  # as if in double precision
    assert_same(lambda x: x.std(dim), np.full((3, 17, 33), 0.1, np.float32), tolerance=0)


@pytest.mark.faster
@pytest.mark.parametrize("order", [1, 2, float("inf")])
@pytest.mark.parametrize("dim", [0, (1, 2), None])
def test_norms(order, dim):
    assert_same(lambda x: x.norm(order, dim) + 1, normal(3, 17, 33))


@pytest.mark.faster
def test_normalize_and_similarity():
    assert_same(lambda x: F.normalize(x, dim=-1), normal(5, 33))
    assert_same(lambda x, y: F.cosine_similarity(x, y, dim=-1), normal(5, 300), normal(5, 300))


@pytest.mark.faster
@pytest.mark.parametrize("size", [1, 20, 300])
def test_products_with_a_vector(size):
    assert_same(lambda x, y: (x @ y).relu(), normal(5, size), normal(size), tolerance=2e-6)
    assert_same(lambda x, y: x.T @ y + 1, normal(size, 17), normal(size), tolerance=2e-6)
    assert_same(lambda x, y: x @ y + 1, normal(size) + 2, normal(size) + 2)


@pytest.mark.faster
def test_sums_that_leave_out_nan():
    x = normal(5, 33)
    x[:, ::3] = np.nan
    assert_same(lambda x: x.nansum(1), x)
