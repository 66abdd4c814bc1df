"""Convolution by a table of places against blocks of columns: groups, strides, paddings, dtypes, layouts."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.ops.kernels import conv as columns
from rushlight.ops.kernels import small_conv
from tests.support.conv_problem import innermost, problem, windows


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), windows(4, 6, 6),
       st.sampled_from([np.float32, np.float64, np.int64, np.complex64]), st.booleans())
def test_is_columns(seed, images, channels, filters, groups, window, dtype, last):
    s = problem(seed, images, channels, filters, groups, *window)
    x, w, g = ((5 * a).astype(dtype) for a in (innermost(s.x) if last else s.x, s.w, innermost(s.g) if last else s.g))
    for ours, theirs in ((small_conv.correlate(x, w, s.plan), columns.correlate_columns(x, w, s.plan)),
                         (small_conv.spread(g, w, s.plan), columns.spread_columns(g, w, s.plan)),
                         (small_conv.weigh(g, x, s.plan), columns.weigh_columns(g, x, s.plan))):
        assert ours.dtype == dtype
        assert ours.flags.c_contiguous
        np.testing.assert_allclose(ours, theirs, atol=1e-4 * (1 + np.abs(theirs).max()), rtol=1e-4)


def test_what_is_small():
    plan = columns.plan((8, 8), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1)
    assert plan.few == (small_conv.FEW // 1728, small_conv.FEW // 2304)
    assert columns.plan((8, 8), (4, 3, 1, 1), (1, 1), (0, 0), (1, 1), 1).few == (4 * small_conv.FEW // 192, 256)
    assert columns.plan((8, 8), (100, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1).few == (0, 0)


def test_infinities_stay_where_they_are():
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, 0, 0] = np.inf
    made = columns.conv(x, np.ones((1, 1, 3, 3), np.float32), (1, 1), (1, 1), (1, 1), 1)
    assert np.isinf(made[0, 0, :2, :2]).all()
    assert not made[0, 0, 2:].any()


@pytest.mark.parametrize("dilation", [1, 4])
def test_kernels_of_two_rows(dilation):
    """Windows that share the input as it is, a row apart, are no windows of one element."""
    x, layer = rushlight.randn(2, 64, 4096, requires_grad=True), rushlight.nn.Conv1d(64, 64, 2, dilation=dilation)
    made = layer(x)
    expected = sum(layer.weight[:, :, k].double() @ x.double()[:, :, k * dilation:4096 - dilation + k * dilation]
                   for k in (0, 1)) + layer.bias.double()[:, None]
    assert rushlight.allclose(made.double(), expected, atol=1e-4)
    made.sum().backward()
    assert rushlight.allclose(x.grad[0, :, 10].double(), layer.weight.double().sum((0, 2)), atol=1e-4)
