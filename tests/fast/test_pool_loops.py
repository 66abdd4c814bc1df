"""Compiled loops of pooling give NumPy's results, to the last bit, ties and nan among them."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")

from rushlight.fast import pool_loops
from rushlight.kernels import pool
from rushlight.kernels.im2col import window_counts
from rushlight.loops import parallel


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
    if n > 1 and draw(st.booleans()):
        kernel, stride = draw(st.sampled_from(pool_loops.FREQUENT))
        kernel, stride, dilation = kernel[3 - n :], stride[3 - n :], (1,) * n
    elif prod(kernel) <= pool_loops.POOL_OWN_LOOP_TAPS and set(dilation) == {1}:  # of these each has a loop of its own
        dilation = (2, *dilation[1:])
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
    values, indices = pool_loops.best_of_taps(x, *how, out)
    expected, places = pool.best_of_taps(x, *how, out)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(indices, places)
    total = np.zeros((len(x), x[0].size), np.float32)
    np.add.at(total, (np.arange(len(x))[:, None], indices.reshape(len(x), -1)), values.reshape(len(x), -1))
    g, at = values[None], indices[None]
    np.testing.assert_array_equal(pool_loops.scattered(g, at, x.shape[1:]), total.reshape(1, *x.shape))
    at.flat[-1] = x[0].size
    assert pool_loops.scattered(g, at, x.shape[1:]) is None  # which NumPy's way then refuses
    with pytest.raises(IndexError):
        pool.scatter_spatial(g, at, x.shape[1:])


def test_parts_on_several_cores(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    x = np.random.default_rng(0).standard_normal((70, 60, 61), np.float32)
    how = (2, 2), (2, 2), (0, 0), (1, 1)
    values, indices = pool_loops.best_of_taps(x, *how, (30, 30))
    expected, places = pool.best_of_taps(x, *how, (30, 30))
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(indices, places)
    g, at = values.reshape(7, 10, 30, 30), indices.reshape(7, 10, 30, 30)
    sums = np.zeros((70, 60 * 61), np.float32)
    np.put_along_axis(sums, places.reshape(70, -1), expected.reshape(70, -1), 1)  # windows do not overlap
    np.testing.assert_array_equal(pool_loops.scattered(g, at, (60, 61)).reshape(sums.shape), sums)
    at[-1, -1, -1, -1] = 60 * 61
    assert pool_loops.scattered(g, at, (60, 61)) is None


def test_what_numpy_does():
    x = np.zeros((2, 4, 4))
    assert pool_loops.best_of_taps(x, (2, 2), (2, 2), (0, 0), (1, 1), (2, 2)) is None
    assert pool_loops.scattered(x[None], np.zeros((1, *x.shape), np.int64), (4, 4)) is None
    empty = pool_loops.scattered(np.zeros((0, 1, 4), np.float32), np.zeros((0, 1, 4), np.int64), (4, 4))
    assert empty.shape == (0, 1, 4, 4)
