"""Copies between orders of memory in native functions."""

import pytest

import rushlight
from tests.compile.native.native_case import assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")
SIZES = [(1, 3), (7, 17), (16, 16), (33, 5), (40, 32)]


@pytest.mark.faster
@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_matrices(rows, columns):
    x = normal(rows, columns)
    assert_same(lambda x: x.t().contiguous() + 1, x)
    assert_same(lambda x: (x * 2).t().contiguous() + 1, x)
    x = normal(2, rows, 3, columns)
    assert_same(lambda x: x.transpose(1, 3).contiguous() - x.mean(), x)
    assert_same(lambda x: x.permute(3, 0, 2, 1).reshape(columns, -1).relu(), x)


@pytest.mark.faster
@pytest.mark.parametrize(("filters", "size"), SIZES)
@pytest.mark.parametrize("batch", [1, 3])
def test_results_of_convolutions_in_c_order(filters, size, batch):
    rushlight.manual_seed(0)
    layer = rushlight.nn.Conv2d(3, filters, 3, padding=1)
    assert_same(lambda x: layer(x).relu(), normal(batch, 3, 2, size), tolerance=2e-6)


@pytest.mark.faster
def test_copies_on_two_cores(monkeypatch):
    assert_same_on_cores(monkeypatch, lambda x: x.t().contiguous() + 1, normal(40, 55))
    assert_same_on_cores(monkeypatch, lambda x: x.transpose(1, 2).contiguous() + 1, normal(3, 40, 55))
