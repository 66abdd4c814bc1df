"""What the tests of convolution's ways have in common: problems of all shapes, and the answers of columns in float64."""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

from rushlight.compile import parallel
from rushlight.ops.kernels import conv as columns
from rushlight.ops.kernels.windows import window_counts


def problem(seed, images, channels, filters, groups, size, kernel, stride, padding, dilation):
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.standard_normal(shape, np.float32)
    s = SimpleNamespace(x=normal(images, groups * channels, *size), w=normal(groups * filters, channels, *kernel))
    s.plan = columns.plan(size, s.w.shape, stride, padding, dilation, groups)
    s.g, s.bias = normal(images, groups * filters, *s.plan.out), normal(groups * filters)
    return s


@st.composite
def windows(draw, widest=5, room=9, length=9):
    """size, kernel, stride, padding, dilation of 1 to 3 dimensions, of which at least one window fits."""
    n = draw(st.integers(1, 3))
    numbers = lambda low, high: tuple([draw(st.integers(low, high)) for _ in range(n)])
    kernel, stride, padding, dilation = numbers(1, widest), numbers(1, 3), numbers(0, 3), numbers(1, 3)
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding)]
    size = tuple([low + draw(st.integers(0, length if n == 1 else room)) for low in least])
    assert min(window_counts(size, kernel, stride, padding, dilation)) > 0
    return size, kernel, stride, padding, dilation


def innermost(a):
    """The same numbers with channels last in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)


def near(ours, theirs, far=2e-5):
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=far / 2, atol=far * (1 + np.abs(theirs).max(initial=0)))


def check(way, s, near=near):
    """The results of a way of convolution, with a bias and without, and both gradients; no gradient where it has none."""
    x, w, g = (a.astype(np.float64) for a in (s.x, s.w, s.g))
    expected = columns.correlate_columns(x, w, s.plan)
    near(way.correlate(s.x, s.w, s.plan), expected)
    near(way.correlate(s.x, s.w, s.plan, s.bias), columns.with_bias(expected, s.bias))
    near(way.weigh(s.g, s.x, s.plan), columns.weigh_columns(g, x, s.plan))
    made = way.spread(s.g, s.w, s.plan)
    if made is not None:
        near(made, columns.spread_columns(g, w, s.plan))
    return made is not None


def on_three_cores(way, s, monkeypatch, near=near):
    """As `check`, and a gradient of the weights that is the same, to the last bit, whichever part ends first."""
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    found, made = check(way, s, near), []
    for turn in (list, lambda calls: list(reversed(calls))):
        monkeypatch.setattr(parallel.pool, "run", lambda part, calls, turn=turn: [part(*c) for c in turn(calls)])
        made.append(way.weigh(s.g, s.x, s.plan))
    np.testing.assert_array_equal(*made)
    return found
