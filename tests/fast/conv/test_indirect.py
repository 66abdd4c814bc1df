"""Indirect convolution of float32 against im2col in float64: strides, paddings, dilations, both gradients, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.conv_problem import check, innermost, input_grad, near, on_three_cores, problem, windows

pytest.importorskip("llvmlite")

from rushlight.fast import conv
from rushlight.fast.conv import indirect


@st.composite
def problems(draw):
    channels, filters = draw(st.sampled_from([1, 3, 16, 20])), draw(st.sampled_from([16, 30, 48, 64, 80]))
    s = problem(draw(st.integers(0, 1000)), draw(st.integers(1, 5)), channels, filters, 1, *draw(windows(length=40)))
    if draw(st.booleans()):
        s.x, s.g = innermost(s.x), innermost(s.g)
    return s


@settings(max_examples=80, deadline=None)
@given(problems())
def test_indirect_is_im2col(s):
    check(indirect, s)


@pytest.mark.parametrize(
    "shape",
    [
        (9, 16, 16, 1, (17, 18), (3, 3), (1, 1), (1, 1), (1, 1)),  # several images at a time, the last few fewer
        (3, 3, 64, 1, (40, 41), (7, 7), (2, 2), (3, 3), (1, 1)),
        (2, 64, 128, 1, (14, 14), (3, 3), (2, 2), (1, 1), (1, 1)),
        (300, 32, 32, 1, (4, 4), (1, 1), (2, 2), (0, 0), (1, 1)),  # places that no tap reaches get the bias
        (4, 24, 16, 1, (300,), (9,), (4,), (0,), (1,)),
        (2, 16, 16, 1, (6, 9, 10), (3, 3, 3), (2, 1, 1), (1, 1, 1), (1, 1, 1)),
    ],
)
def test_shapes_of_nets(shape):
    check(indirect, problem(0, *shape))


def test_parts_on_several_cores(monkeypatch):
    s = problem(1, 700, 16, 30, 1, (9, 9), (3, 3), (2, 2), (1, 1), (1, 1))
    on_three_cores(indirect, s, monkeypatch)


def test_results_lie_as_the_images():
    s = problem(2, 4, 16, 16, 1, (8, 8), (3, 3), (2, 2), (1, 1), (1, 1))
    last = lambda a: a.transpose(0, 2, 3, 1).flags.c_contiguous
    assert last(indirect.conv(s.forward, innermost(s.x), s.w))
    s.g = innermost(s.g)
    assert last(input_grad(indirect, s))
    assert indirect.conv(s.forward, s.x, s.w).flags.c_contiguous


def test_which_go_by_it():
    of = lambda channels, filters, groups=1: problem(
        0, 1, channels, filters, groups, (8, 8), (3, 3), (2, 2), (1, 1), (1, 1)
    )
    assert indirect.suits(of(3, 64).forward)
    assert indirect.suits(of(3, 64).weights)
    assert not indirect.suits(of(3, 64).back)
    assert not indirect.suits(of(3, 17).forward)  # half of the second vector would be empty
    assert not indirect.suits(of(16, 16, 2).forward)


def test_gradient_of_a_bias():
    g = np.random.default_rng(0).standard_normal((64, 6, 24, 24), np.float32)
    near(conv.conv_bias_grad(g), g.sum((0, 2, 3), np.float64))
    assert conv.conv_bias_grad(g[:, :, :2]) is None
    assert conv.conv_bias_grad(g.astype(np.float64)) is None
