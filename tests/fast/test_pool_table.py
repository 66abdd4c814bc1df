"""Maxima by tables of places are those of the passes tap by tap, ties, nan and signed zeros among them."""

from __future__ import annotations

import numpy as np
import pytest

from rushlight.fast import pool_table
from rushlight.kernels import pool


def cases():
    rng = np.random.default_rng(0)
    for i in range(300):
        n = 1 + i % 3
        numbers = lambda low, high, n=n: tuple([int(v) for v in rng.integers(low, high, n)])
        kernel, stride, dilation = numbers(1, 5), numbers(1, 5), numbers(1, 3)
        padding = tuple([int(rng.integers(0, k // 2 + 1)) for k in kernel])
        dtype = [np.float32, np.float64, np.float16, np.int64][i % 4]
        x = (3 * rng.standard_normal((2, int(rng.integers(1, 4)), *numbers(4, 9)))).round(i % 2).astype(dtype)
        if dtype != np.int64 and i % 5 == 0:
            x[rng.random(x.shape) < 0.3] = [np.nan, -np.inf, np.inf][i % 3]
        yield x, (kernel, stride, padding, dilation, bool(i % 7 == 0)), numbers(1, 5)


def found(work):
    """The arrays, or the error where no window fits."""
    try:
        return work()
    except RuntimeError as error:
        return (np.array(str(error)),)


def test_maxima(monkeypatch):
    checked = 0
    for x, how, out in cases():
        for work in (lambda: pool.max_pool(x, *how), lambda: pool.adaptive_max_pool(x, out)):  # noqa: B023
            made = found(work)
            with monkeypatch.context() as m:
                m.setattr(pool_table, "POOL_TABLE_ELEMENTS", 0)
                expected = found(work)
            assert len(made) == len(expected)
            for a, b in zip(made, expected):
                assert a.dtype == b.dtype
                assert a.strides == b.strides
                np.testing.assert_array_equal(a, b)
            checked += len(made) == 2
    assert checked > 400


def test_the_value_is_that_of_the_place():
    x = np.array([[[0.0, -0.0, -0.0, 0.0]]], np.float32)  # equal numbers: the first is taken, with its sign
    values, indices = pool.max_pool(x, (2,), (2,), (0,), (1,), False)
    assert indices.tolist() == [[[0, 2]]]
    assert np.signbit(values).tolist() == [[[False, True]]]


@pytest.mark.parametrize("value", [1.0, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_few_windows_are_those_of_many(dtype, value):
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 8)).astype(dtype)
    x[1, 2, 3, 4] = value
    many = np.concatenate([x] * 64)  # too many for a product
    for pooled in (
        lambda a: pool.adaptive_avg_pool(a, (3, 5)),
        lambda a: pool.avg_pool(a, (3, 2), (2, 1), (1, 0), False, False, None),
    ):
        np.testing.assert_allclose(pooled(x), pooled(many)[:2], rtol=1e-6, atol=1e-6)
    g = x[:, :, :4, :5].copy()
    np.testing.assert_allclose(
        pool.adaptive_avg_pool_grad(g, (7, 8)),
        pool.adaptive_avg_pool_grad(np.concatenate([g] * 128), (7, 8))[:2],
        rtol=1e-6,
        atol=1e-6,
    )
    assert pool.adaptive_avg_pool(x[:0], (3, 5)).shape == (0, 3, 3, 5)


def test_few_windows_take_a_product():
    x = np.ones((2, 3, 8, 8), np.float32)
    assert pool_table.sums(x, (8, 8), (3, 3), pool.adaptive_pairs, (8, 8), (3, 3)) is not None
    x[0, 0, 0, 0] = np.inf
    assert pool_table.sums(x, (8, 8), (3, 3), pool.adaptive_pairs, (8, 8), (3, 3)) is None
