"""Softmax and norms in native functions."""

import numpy as np
import pytest

import rushlight
import rushlight.nn.functional as F
from tests.compile.native.native_case import assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")


@pytest.mark.faster
@pytest.mark.parametrize("shape", [(3, 1), (2, 3, 17), (1, 64), (3, 300), (2, 2, 1033)])
def test_softmax_of_neighbours(shape):
    assert_same(lambda x: F.softmax(x, -1) * 2, normal(*shape))
    assert_same(lambda x: F.log_softmax(x, -1), normal(*shape))


@pytest.mark.faster
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax_with_rows_in_the_lanes(dim):
    assert_same(lambda x: F.softmax(x, dim) + x, normal(5, 7, 33))
    assert_same(lambda x: F.softmax(x.transpose(0, 2), dim), normal(50, 3, 33))


@pytest.mark.faster
def test_softmax_of_huge_numbers_infinities_and_nan():
    x = normal(6, 20) * 300
    x[1, 3], x[2, 4], x[3], x[4, 7] = np.nan, np.inf, -np.inf, -np.inf
    assert_same(lambda x: F.softmax(x, 1), x)
    assert_same(lambda x: x.logsumexp(1), x)


@pytest.mark.faster
@pytest.mark.parametrize(
    ("shape", "dims"), [((3, 5, 64), 1), ((3, 33), 1), ((2, 1033), 1), ((3, 5, 7), 2), ((3, 1), 1)]
)
def test_layer_norm(shape, dims):
    sizes = shape[-dims:]
    weight, bias = normal(*sizes), normal(*sizes)
    assert_same(lambda x, w, b: F.layer_norm(x, sizes, w, b).relu(), normal(*shape), weight, bias)
    assert_same(lambda x: F.layer_norm(x * 2 + 100, sizes), normal(*shape), tolerance=1e-4)  # mean 100 times std


@pytest.mark.faster
def test_layer_norm_behind_a_layer_with_a_residual_sum():
    layer = rushlight.nn.Linear(20, 20)
    assert_same(lambda x: F.layer_norm(x + layer(x), (20,)), normal(3, 5, 20), tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize("shape", [(3, 6, 33), (2, 6, 5, 7), (1, 6, 50, 70), (3, 6)])
@pytest.mark.parametrize("groups", [1, 3])
def test_group_norm(shape, groups):
    assert_same(lambda x, w, b: F.group_norm(x, groups, w, b) + x, normal(*shape), normal(6), normal(6))


@pytest.mark.faster
def test_rms_norm():
    assert_same(lambda x, w: F.rms_norm(x, (48,), w), normal(4, 3, 48), normal(48))


@pytest.mark.faster
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_rows_on_two_cores(monkeypatch, dim):
    assert_same_on_cores(monkeypatch, lambda x: F.softmax(x, dim) + 1, normal(3, 17, 300))
    assert_same_on_cores(monkeypatch, lambda x: x.sum(dim), normal(3, 17, 300), tolerance=1e-5)
    assert_same_on_cores(monkeypatch, lambda x: x.amax((0, 1)), normal(3, 17, 300), tolerance=0)


@pytest.mark.faster
@pytest.mark.parametrize("columns", [20, 300, 2000])
def test_steps_before_the_rows_run_while_rows_are_read(columns):
    x, y = normal(3, 4, columns), normal(4, columns)
    assert_same(lambda x, y: F.softmax(x * 0.5 + y, -1) + 1, x, y)
    assert_same(lambda x, y: F.layer_norm(x * y, (columns,)), x, y, tolerance=2e-6)
    assert_same(lambda x, y: ((x - y) ** 2).mean(-1), x, y)
    assert_same(lambda x, y: (x.relu() + y).amax(0), x, y, tolerance=0)
    assert_same(lambda x, y: F.softmax((x > 0) * y, 1), x, y)


@pytest.mark.faster
@pytest.mark.parametrize("groups", [1, 4, 8])
def test_group_norm_between_convolutions(groups):
    """Channels are neighbours in memory there; with one channel in each group, groups are in the lanes."""
    first, last = rushlight.nn.Conv2d(3, 8, 3, padding=1), rushlight.nn.Conv2d(8, 5, 3, padding=1)
    x, weight, bias = normal(2, 3, 7, 9), normal(8), normal(8)
    assert_same(lambda x, w, b: last(F.group_norm(first(x), groups, w, b).relu()), x, weight, bias, tolerance=3e-6)
    assert_same(
        lambda x, w, b: F.group_norm(first(x), groups, w, b) * w[:, None, None], x, weight, bias, tolerance=3e-6
    )
