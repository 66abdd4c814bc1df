"""Sums in float32: the rounding error stays at a few units in the last place, however many rows are added."""

import numpy as np
import pytest

import rushlight
from rushlight.kernels.normalization import layer_norm
from rushlight.kernels.summation import added

SHAPES = [
    ((100_000, 10), (0,)),
    ((513, 64), (0,)),
    ((8, 1030, 16), (1,)),
    ((40, 50, 16), (0, 1)),
    ((7, 5, 600, 4), (1, 2)),
    ((1000, 1000), (1,)),
    ((64, 100, 3), (0, 2)),
    ((4096, 1), (0,)),
    ((3, 2), (0,)),
    ((0, 5000), (0,)),
    ((4096, 3), 0),
    ((4096, 3), -2),
    ((10, 10), 1),
    ((5, 6, 256), -1),
    ((5, 6, 512), (2,)),
    ((300, 257), (1,)),
    ((0, 5), 1),
    ((5, 0), 1),
    ((40, 1000), (1,)),
    ((30, 1025), 1),
    ((7, 2048), 1),
    ((3, 40, 500), (0, 2)),
    ((4096,), 0),
    ((5000,), (0,)),
    ((5000,), (-1,)),
    ((70, 100), (0, 1)),
    ((70, 100), (1, 0)),
    ((3, 40, 500), (0, 1, 2)),
]


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
@pytest.mark.parametrize("keepdim", [False, True])
def test_added_is_exact_to_a_few_places(shape, dims, keepdim):
    x = np.random.default_rng(0).random(shape, np.float32)
    expected = np.add.reduce(x.astype(np.float64), dims, keepdims=keepdim)
    result = added(x, dims, keepdim)
    assert result.dtype == np.float32
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=6e-7)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "norm"])
def test_reductions_over_many_rows(name):
    x = rushlight.from_numpy(np.random.default_rng(0).random((60_000, 4), np.float32))
    np.testing.assert_allclose(getattr(x, name)(dim=0), getattr(x.double(), name)(dim=0), rtol=6e-7)


def test_scans_do_not_drift():
    x = rushlight.from_numpy(np.random.default_rng(0).random((200_000,), np.float32))
    np.testing.assert_allclose(x.cumsum(0), x.double().cumsum(0), rtol=2e-7)
    assert x.cumsum(0).dtype == rushlight.float32


def test_the_gradient_of_a_broadcast_input():
    x = rushlight.from_numpy(np.random.default_rng(0).random((60_000, 4), np.float32))
    bias = rushlight.zeros(4, requires_grad=True)
    (x + bias).square().sum().backward()
    np.testing.assert_allclose(bias.grad, 2 * x.double().sum(0), rtol=6e-7)


@pytest.mark.parametrize("n", [8, 60, 128, 131, 400, 784, 1024, 1025])
def test_a_rows_sum_is_the_same_in_any_number_of_rows(n):
    x = np.random.default_rng(0).standard_normal((50, n), np.float32)
    expected = added(x, (1,))
    for i in range(0, 49, 7):
        assert added(x[i : i + 1], (1,)) == expected[i]
        assert (added(x[i : i + 3], -1, True)[:, 0] == expected[i : i + 3]).all()
        assert (added(x[i : i + 2].reshape(2, 1, n), (2, 1)) == expected[i : i + 2]).all()


@pytest.mark.parametrize("n", [5, 8, 16, 100, 400, 1024, 1500])
def test_a_row_is_normalized_the_same_among_any_number_of_rows(n):
    x = np.random.default_rng(0).standard_normal((400, n), np.float32)
    expected = layer_norm(x, None, None, (1,), 1e-5)
    for rows in (1, 3, 50):
        for few, many in zip(layer_norm(x[:rows], None, None, (1,), 1e-5), expected):
            assert (few == many[:rows]).all()


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_many_short_rows_have_the_bits_of_few(n):
    x = np.random.default_rng(n).standard_normal((6000, n)).astype(np.float32)
    for whole in (x, np.asfortranarray(x)):
        np.testing.assert_array_equal(added(whole, (1,)), np.add.reduce(x, 1))
