"""Direct convolution of float32 against columns in float64: all strides, paddings, dilations and groups, both gradients."""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from rushlight.compile import parallel
from rushlight.ops.kernels import conv as columns
from rushlight.ops.kernels import direct
from rushlight.ops.kernels.windows import window_counts


def problem(seed, images, channels, filters, groups, size, kernel, stride, padding, dilation):
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.standard_normal(shape, np.float32)
    s = SimpleNamespace(x=normal(images, groups * channels, *size), w=normal(groups * filters, channels, *kernel))
    s.plan = columns.plan(size, s.w.shape, stride, padding, dilation, groups)
    s.g, s.bias = normal(images, groups * filters, *s.plan.out), normal(groups * filters)
    return s


@st.composite
def problems(draw):
    n = draw(st.integers(1, 3))
    numbers = lambda low, high: tuple([draw(st.integers(low, high)) for _ in range(n)])
    kernel, stride, padding, dilation = numbers(1, 5), numbers(1, 3), numbers(0, 3), numbers(1, 3)
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding)]
    size = tuple([low + draw(st.integers(0, 40 if n == 1 else 9)) for low in least])
    assert min(window_counts(size, kernel, stride, padding, dilation)) > 0
    return problem(draw(st.integers(0, 1000)), draw(st.integers(1, 5)), draw(st.integers(1, 3)),
                   draw(st.sampled_from([1, 2, 3, 5, 8, 11])), draw(st.sampled_from([1, 1, 2, 3])),
                   size, kernel, stride, padding, dilation)


def near(ours, theirs, s):
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=2e-5 * (1 + np.abs(theirs).max(initial=0)))


def check(s):
    x, w, g = (a.astype(np.float64) for a in (s.x, s.w, s.g))
    expected = columns.correlate_columns(x, w, s.plan)
    near(direct.correlate(s.x, s.w, s.plan), expected, s)
    near(direct.correlate(s.x, s.w, s.plan, s.bias), columns.with_bias(expected, s.bias), s)
    near(direct.spread(s.g, s.w, s.plan), columns.spread_columns(g, w, s.plan), s)
    near(direct.weigh(s.g, s.x, s.plan), columns.weigh_columns(g, x, s.plan), s)


@settings(max_examples=80, deadline=None)
@given(problems())
def test_direct_is_columns(s):
    check(s)


@pytest.mark.parametrize("shape", [
    (9, 16, 24, 1, (17, 18), (3, 3), (1, 1), (1, 1), (1, 1)),        # several images at a time, the last few fewer
    (3, 3, 64, 1, (40, 41), (7, 7), (2, 2), (3, 3), (1, 1)),
    (2, 8, 13, 1, (70, 70), (3, 3), (1, 1), (2, 2), (2, 2)),         # lines in several parts
    (5, 1, 1, 32, (12, 12), (3, 3), (1, 1), (1, 1), (1, 1)),         # each channel by itself
    (4, 24, 8, 1, (300,), (9,), (4,), (0,), (1,)),
    (2, 4, 6, 1, (6, 9, 10), (3, 3, 3), (2, 1, 1), (1, 1, 1), (1, 1, 1)),
    (300, 40, 40, 1, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
])
def test_shapes_of_nets(shape):
    check(problem(0, *shape))


def test_parts_on_several_cores(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    check(problem(1, 70, 40, 9, 1, (9, 9), (3, 3), (1, 1), (1, 1), (1, 1)))


def test_arrays_of_any_layout():
    s = problem(2, 3, 2, 4, 1, (8, 8), (3, 3), (1, 1), (0, 0), (1, 1))
    s.x = np.ascontiguousarray(s.x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    s.g = np.broadcast_to(np.float32(1), s.g.shape)
    s.w = s.w[:, ::-1]
    check(s)


def test_what_is_not_finite_stays_where_it_is():
    """A place beside the image is not read: an infinity in the last column does not reach taps that never see it."""
    s = problem(3, 2, 1, 1, 1, (6, 6), (1, 3), (1, 1), (0, 0), (1, 1))
    s.x[:, :, :, -1] = np.inf
    assert direct.weigh(s.g, s.x, s.plan) is None
    made = columns.weigh(s.g, s.x, s.plan)
    assert np.isfinite(made[..., :2]).all()
    assert not np.isfinite(made[..., 2]).any()


def test_which_are_direct():
    s = problem(4, 32, 16, 16, 1, (16, 16), (3, 3), (1, 1), (1, 1), (1, 1))
    assert direct.suits(s.x, s.plan)
    assert not direct.suits(s.x.astype(np.float64), s.plan)
    assert not direct.suits(s.x[:1, :, :4, :4], s.plan._replace(out=(4, 4), size=(4, 4)))
