"""Products of two computed matrices in native functions."""

import pytest

import rushlight
import rushlight.nn.functional as F
from tests.compile.native.native_case import assert_same, assert_same_on_cores, normal

pytest.importorskip("llvmlite")


@pytest.mark.faster
@pytest.mark.parametrize(
    ("x", "y"),
    [((3, 5), (5, 7)), ((2, 3, 33, 17), (2, 3, 17, 40)), ((64, 64), (64, 256)), ((3, 1, 9, 4), (2, 4, 5)),
     ((1, 70), (70, 130)), ((2, 40, 33), (2, 33, 1)), ((5, 1), (1, 6)), ((1, 30), (30, 1))],
)  # fmt: skip
def test_columns_that_are_neighbours(x, y):
    assert_same(lambda a, b: (a @ b).relu() + 1, normal(*x), normal(*y), tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize(
    ("x", "y"),
    [((3, 5), (7, 5)), ((2, 3, 33, 17), (2, 3, 40, 17)), ((1, 2, 64, 64), (1, 2, 64, 64)), ((3, 1, 9, 4), (2, 5, 4)),
     ((1, 70), (130, 70)), ((2, 1, 33), (2, 40, 33)), ((2, 40, 33), (2, 1, 33))],
)  # fmt: skip
def test_rows_that_are_neighbours(x, y):
    assert_same(lambda a, b: a @ b.transpose(-1, -2) * 0.5 + 1, normal(*x), normal(*y), tolerance=2e-6)


@pytest.mark.faster
def test_strides_of_all_kinds():
    x, y = normal(2, 17, 3, 20), normal(2, 17, 3, 20)
    assert_same(lambda a, b: a.transpose(1, 2) @ b.permute(0, 2, 3, 1), x, y, tolerance=2e-6)
    assert_same(lambda a, b: a.permute(0, 2, 3, 1) @ b.transpose(1, 2), x, y, tolerance=2e-6)
    assert_same(lambda a, b: a[..., ::2] @ b[..., ::2].transpose(-1, -2), x, y, tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize("batch", [1, 3])
def test_attention_of_ops(batch):
    """Scores with a mask, softmax, and values, of strided views, and heads side by side in the result."""

    def attention(x, mask):
        q, k, v = (part.reshape(batch, 20, 2, 12).transpose(1, 2) for part in x.split(24, -1))
        weights = (q @ k.transpose(-1, -2) / 12**0.5 + mask).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(batch, 20, 24) + 1

    assert_same(attention, normal(batch, 20, 72), normal(batch, 1, 1, 20), tolerance=2e-6)


@pytest.mark.faster
def test_rows_at_multiples_of_a_kilobyte_are_packed():
    assert_same(lambda a, b: a @ b[:, :50], normal(100, 40), normal(40, 256), tolerance=2e-6)


@pytest.mark.faster
def test_empty_matrices_stay_as_they_are():
    with rushlight.no_grad():
        compiled = rushlight.compile(lambda a, b: a @ b + 1)
        assert compiled(rushlight.ones(2, 0), rushlight.ones(0, 3)).tolist() == [[1.0] * 3] * 2


@pytest.mark.faster
def test_equal_rows_and_equal_columns():
    x, y = normal(5, 9), normal(1, 20)
    assert_same(lambda a, b: a @ b.expand(9, 20) + 1, x, y, tolerance=2e-6)
    assert_same(lambda a, b: a @ b.expand(20, 20)[:, :9].T + 1, x, y, tolerance=2e-6)


@pytest.mark.faster
@pytest.mark.parametrize("shape", [(3, 20, 33), (1, 100, 33), (2, 33), (1, 33)])
def test_products_on_two_cores(monkeypatch, shape):
    x, y = normal(*shape), normal(40, 33)
    assert_same_on_cores(monkeypatch, lambda a, b: a @ b.T + 1, x, y, tolerance=2e-6)


@pytest.mark.faster
def test_layers_with_computed_weights():
    assert_same(
        lambda x, w, b: F.linear(x, w * 2, b).relu(), normal(3, 5, 20), normal(33, 20), normal(33), tolerance=2e-6
    )
    assert_same(lambda x, w: F.linear(x, w) + 1, normal(1, 20), normal(33, 20), tolerance=2e-6)
