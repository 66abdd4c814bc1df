"""Convolution by a table of indices against im2col: groups, strides, paddings, dtypes, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.fast.conv import index_table
from rushlight.fast.index import TABLE_COLUMNS, TABLE_PLAIN_COLUMNS
from rushlight.kernels.conv import conv
from tests.support.conv_problem import im2col, innermost, problem, windows


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 1000),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
    windows(4, 6, 6),
    st.sampled_from([np.float32, np.float64, np.int64, np.complex64]),
    st.booleans(),
)
def test_is_im2col(seed, images, channels, filters, groups, window, dtype, last):
    s = problem(seed, images, channels, filters, groups, *window)
    x, w, g = ((5 * a).astype(dtype) for a in (innermost(s.x) if last else s.x, s.w, innermost(s.g) if last else s.g))
    for ours, theirs in (
        (index_table.conv(s.forward, x, w), im2col.conv(s.forward, x, w)),
        (index_table.conv_input_grad(s.back, g, w), im2col.conv_input_grad(s.back, g, w)),
        (index_table.conv_weight_grad(s.weights, g, x), im2col.conv_weight_grad(s.weights, g, x)),
    ):
        assert ours.dtype == dtype
        assert ours.flags.c_contiguous
        np.testing.assert_allclose(ours, theirs, atol=1e-4 * (1 + np.abs(theirs).max()), rtol=1e-4)


def test_what_is_small():
    of = lambda images, filters, kernel: problem(
        0, images, 3, filters, 1, (8, 8), (kernel, kernel), (1, 1), (kernel // 2, kernel // 2), (1, 1)
    )
    for filters, kernel, limit, numbers in (
        (4, 3, TABLE_COLUMNS, (1728, 2304)),
        (4, 1, TABLE_PLAIN_COLUMNS, (192, 256)),
    ):
        for plan, each in zip(("forward", "back"), numbers):
            assert index_table.suits(getattr(of(limit // each, filters, kernel), plan))
            assert not index_table.suits(getattr(of(limit // each + 1, filters, kernel), plan))
    assert not index_table.suits(of(1, 100, 3).forward)


def test_infinities_stay_where_they_are():
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, 0, 0] = np.inf
    made = conv(x, np.ones((1, 1, 3, 3), np.float32), (1, 1), (1, 1), (1, 1), 1)
    assert np.isinf(made[0, 0, :2, :2]).all()
    assert not made[0, 0, 2:].any()


@pytest.mark.parametrize("dilation", [1, 4])
def test_kernels_of_two_rows(dilation):
    """Windows that share the input as it is, a row apart, are no windows of one element."""
    x, layer = rushlight.randn(2, 64, 4096, requires_grad=True), rushlight.nn.Conv1d(64, 64, 2, dilation=dilation)
    made = layer(x)
    expected = (
        sum(
            layer.weight[:, :, k].double() @ x.double()[:, :, k * dilation : 4096 - dilation + k * dilation]
            for k in (0, 1)
        )
        + layer.bias.double()[:, None]
    )
    assert rushlight.allclose(made.double(), expected, atol=1e-4)
    made.sum().backward()
    assert rushlight.allclose(x.grad[0, :, 10].double(), layer.weight.double().sum((0, 2)), atol=1e-4)
