"""Gathered convolution of float32 against columns in float64: strides, paddings, dilations, both gradients, layouts."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_conv_direct import near, problem

pytest.importorskip("numba")

from rushlight.compile import parallel
from rushlight.ops.kernels import conv as columns
from rushlight.ops.kernels import gathered


@st.composite
def problems(draw):
    n = draw(st.integers(1, 3))
    numbers = lambda low, high: tuple([draw(st.integers(low, high)) for _ in range(n)])
    kernel, stride, padding, dilation = numbers(1, 5), numbers(1, 3), numbers(0, 3), numbers(1, 3)
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(kernel, dilation, padding)]
    size = tuple([low + draw(st.integers(0, 40 if n == 1 else 9)) for low in least])
    channels, filters = draw(st.sampled_from([1, 3, 16, 20])), draw(st.sampled_from([16, 30, 48, 64, 80]))
    s = problem(draw(st.integers(0, 1000)), draw(st.integers(1, 5)), channels, filters, 1, size, kernel, stride, padding,
                dilation)
    if draw(st.booleans()):
        s.x, s.g = innermost(s.x), innermost(s.g)
    return s


def innermost(a):
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 1, -1)), -1, 1)


def check(s):
    x, w, g = (a.astype(np.float64) for a in (s.x, s.w, s.g))
    expected = columns.correlate_columns(x, w, s.plan)
    near(gathered.correlate(s.x, s.w, s.plan), expected, s)
    near(gathered.correlate(s.x, s.w, s.plan, s.bias), columns.with_bias(expected, s.bias), s)
    near(gathered.weigh(s.g, s.x, s.plan), columns.weigh_columns(g, x, s.plan), s)
    made = gathered.spread(s.g, s.w, s.plan)
    if gathered.suits(s.plan, s.plan.channels):
        near(made, columns.spread_columns(g, w, s.plan), s)
    else:
        assert made is None


@settings(max_examples=80, deadline=None)
@given(problems())
def test_gathered_is_columns(s):
    check(s)


@pytest.mark.parametrize("shape", [
    (9, 16, 16, 1, (17, 18), (3, 3), (1, 1), (1, 1), (1, 1)),        # several images at a time, the last few fewer
    (3, 3, 64, 1, (40, 41), (7, 7), (2, 2), (3, 3), (1, 1)),
    (2, 64, 128, 1, (14, 14), (3, 3), (2, 2), (1, 1), (1, 1)),
    (300, 32, 32, 1, (4, 4), (1, 1), (2, 2), (0, 0), (1, 1)),        # places that no tap reaches get the bias
    (4, 24, 16, 1, (300,), (9,), (4,), (0,), (1,)),
    (2, 16, 16, 1, (6, 9, 10), (3, 3, 3), (2, 1, 1), (1, 1, 1), (1, 1, 1)),
])
def test_shapes_of_nets(shape):
    check(problem(0, *shape))


def test_parts_on_several_cores(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    check(problem(1, 700, 16, 30, 1, (9, 9), (3, 3), (2, 2), (1, 1), (1, 1)))


def test_results_lie_as_the_images():
    s = problem(2, 4, 16, 16, 1, (8, 8), (3, 3), (2, 2), (1, 1), (1, 1))
    last = lambda a: a.transpose(0, 2, 3, 1).flags.c_contiguous
    assert last(gathered.correlate(innermost(s.x), s.w, s.plan))
    assert last(gathered.spread(innermost(s.g), s.w, s.plan))
    assert gathered.correlate(s.x, s.w, s.plan).flags.c_contiguous


def test_which_are_gathered():
    of = lambda channels, filters, groups=1: problem(
        0, 1, channels, filters, groups, (8, 8), (3, 3), (2, 2), (1, 1), (1, 1)).plan
    assert gathered.suits(of(3, 64), 64)
    assert not gathered.suits(of(3, 64), 3)
    assert not gathered.suits(of(3, 17), 17)                     # half of the second vector would be empty
    assert not gathered.suits(of(16, 16, 2), 16)


def test_gradient_of_a_bias():
    g = np.random.default_rng(0).standard_normal((64, 6, 24, 24), np.float32)
    near(columns.conv_bias_grad(g), g.sum((0, 2, 3), np.float64), None)
    assert columns.conv_bias_grad(g[:, :, :2]) is None
    assert columns.conv_bias_grad(g.astype(np.float64)) is None
