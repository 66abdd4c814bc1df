"""Compiled loops of pooling give NumPy's results, to the last bit, ties and nan among them."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from rushlight.ops.kernels import pool, pool_loops
from rushlight.ops.kernels.windows import window_counts


@pytest.fixture(autouse=True)
def built():
    for loop in (*(pool_loops.maxima(*how) for how in (((), ()), *pool_loops.FREQUENT)), pool_loops.scatter()):
        if loop.function is None:
            loop.build()
        assert loop.function is not None


@st.composite
def windows(draw):
    n = draw(st.integers(1, 3))
    numbers = lambda low, high: tuple([draw(st.integers(low, high)) for _ in range(n)])
    kernel, stride, dilation = numbers(1, 4), numbers(1, 3), numbers(1, 3)
    if n == 2 and draw(st.booleans()):
        (_, *kernel), (_, *stride), dilation = *draw(st.sampled_from(pool_loops.FREQUENT)), (1, 1)
        kernel, stride = tuple(kernel), tuple(stride)
    padding = tuple([draw(st.integers(0, k // 2)) for k in kernel])
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding)]
    size = tuple([low + draw(st.integers(0, 7)) for low in least])
    out = window_counts(size, kernel, stride, padding, dilation, draw(st.booleans()))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    x = rng.standard_normal((4, *size)).astype(np.float32).round(draw(st.sampled_from([0, 5])))
    x[rng.random(x.shape) < 0.3] = draw(st.sampled_from([np.nan, -np.inf, 0]))
    return x, kernel, stride, padding, dilation, out


@settings(max_examples=100, deadline=None)
@given(windows())
def test_maxima_and_their_gradient(given):
    x, *how, out = given
    try:
        pool.check_reached("max_pool", x.shape[1:], *how, out)
    except RuntimeError:
        assume(False)
    values, indices = pool_loops.max_pool(x, *how, out)
    expected, places = pool.best_of_taps(x, *how, out)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(indices, places)
    volume = x[0].size
    total = np.zeros((len(x), volume), np.float32)
    np.add.at(total, (np.arange(len(x))[:, None], indices.reshape(len(x), -1)), values.reshape(len(x), -1))
    np.testing.assert_array_equal(pool_loops.scatter_spatial(values, indices, volume, len(x)), total.ravel())


def test_what_numpy_does():
    x = np.zeros((2, 4, 4))
    assert pool_loops.max_pool(x, (2, 2), (2, 2), (0, 0), (1, 1), (2, 2)) is None
    assert pool_loops.scatter_spatial(x, np.zeros(x.shape, np.int64), 16, 2) is None
    empty = pool_loops.scatter_spatial(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.int64), 16, 0)
    assert empty.shape == (0,)
