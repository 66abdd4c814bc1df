"""Pooling in native functions."""

import pytest

import rushlight
from tests.compile.native.native_case import assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")
F = rushlight.nn.functional


@pytest.mark.faster
@pytest.mark.parametrize("shape", [(1, 3, 7, 9), (2, 17, 8, 8)])
@pytest.mark.parametrize(
    "how",
    [
        {"kernel_size": 2},
        {"kernel_size": 3, "stride": 1, "padding": 1},
        {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        {"kernel_size": (2, 3), "stride": 2, "padding": (0, 1), "ceil_mode": True, "count_include_pad": False},
        {"kernel_size": 2, "padding": 1, "divisor_override": 3},
    ],
)
def test_means(shape, how):
    assert_same(lambda x: F.avg_pool2d(x, **how).relu() + 1, normal(*shape))


@pytest.mark.faster
@pytest.mark.parametrize("size", [1, (1, 4), (4, 4), (3, 5), (7, 2)])
def test_means_of_windows_of_several_sizes(size):
    assert_same(lambda x: F.adaptive_avg_pool2d(x, size) * 2, normal(2, 17, 8, 8))


@pytest.mark.faster
def test_rows():
    assert_same(lambda x: F.avg_pool1d(x, 3, 2, 1) + 1, normal(2, 5, 9))
    assert_same(lambda x: F.adaptive_avg_pool1d(x, 4) + 1, normal(2, 5, 9))
    assert_same(lambda x: F.max_pool1d(x, 3, 2, 1) + 1, normal(2, 5, 9))


@pytest.mark.faster
@pytest.mark.parametrize("how", [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}])
def test_maxima(how):
    assert_same(lambda x: F.max_pool2d(x, **how).relu() + 1, normal(2, 17, 7, 9))


@pytest.mark.faster
def test_means_on_two_cores(monkeypatch):
    assert_same_on_cores(monkeypatch, lambda x: F.avg_pool2d(x, 3, 1, 1).exp(), normal(3, 17, 6, 5))
