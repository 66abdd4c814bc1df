"""Winograd's convolution of float32 against im2col in float64: sizes, paddings, channels that fill no vector,
layouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import conv_problem
from tests.support.conv_problem import check, im2col, innermost, on_three_cores

pytest.importorskip("llvmlite")

from rushlight.fast.conv import winograd
from rushlight.fast.conv.tiling import Inexact
from rushlight.kernels.conv import conv, plan


def problem(seed, images, channels, filters, size, padding):
    return conv_problem.problem(seed, images, channels, filters, 1, size, (3, 3), (1, 1), padding, (1, 1))


def near(ours, theirs):
    """Not further off than a few roundings of the typical number."""
    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max(initial=0) <= 2e-6 * np.abs(theirs).max(initial=1)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_winograd_is_im2col(data):
    draw = lambda low, high: data.draw(st.integers(low, high))
    padding = draw(0, 4), draw(0, 4)
    size = tuple([max(1, 3 - 2 * p) + draw(0, 12) for p in padding])
    s = problem(draw(0, 1000), draw(1, 20), draw(1, 40), draw(1, 70), size, padding)
    if data.draw(st.booleans()):
        s.x, s.g = innermost(s.x), innermost(s.g)
    check(winograd, s, near)


@pytest.mark.parametrize(
    "shape", [(3, 130, 150, (9, 9), (1, 1)), (2, 16, 32, (60, 61), (1, 1)), (300, 64, 16, (4, 4), (1, 1))]
)
def test_large_shapes(shape):
    check(winograd, problem(0, *shape), near)


def test_parts_on_several_cores(monkeypatch):
    on_three_cores(winograd, problem(1, 700, 16, 20, (5, 6), (1, 1)), monkeypatch, near)


def test_results_lie_as_the_images():
    s = problem(2, 4, 16, 16, (8, 8), (1, 1))
    last = lambda a: a.transpose(0, 2, 3, 1).flags.c_contiguous
    assert last(winograd.conv(s.forward, innermost(s.x), s.w))
    assert last(winograd.conv(s.back, innermost(s.g), s.w))
    assert winograd.conv(s.forward, s.x, s.w).flags.c_contiguous
    assert np.array_equal(winograd.conv(s.forward, innermost(s.x), s.w), winograd.conv(s.forward, s.x, s.w))


def inexact(*calls):
    """Each call leaves its operands to other ways."""
    for way, *operands in calls:
        with pytest.raises(Inexact):
            way(*operands)


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e30, 1e6])
def test_numbers_far_above_the_mean_are_for_other_loops(value):
    """Their rounding, or what is not finite, would reach results that never see them."""
    s = problem(3, 8, 16, 16, (16, 16), (1, 1))
    s.x[3, 2, 7, 7] = s.g[3, 2, 7, 7] = value
    inexact(
        (winograd.conv, s.forward, s.x, s.w),
        (winograd.conv, s.back, s.g, s.w),
        (winograd.conv_weight_grad, s.weights, s.g, s.x),
    )
    made, expected = conv(s.x, s.w, (1, 1), (1, 1), (1, 1), 1), im2col.conv(s.forward, s.x, s.w)
    seen = np.zeros((16, 16), bool)
    seen[6:9, 6:9] = True
    np.testing.assert_allclose(made[..., ~seen], expected[..., ~seen], rtol=1e-4, atol=1e-4)


def test_weights_that_are_not_finite():
    s = problem(4, 8, 16, 16, (16, 16), (1, 1))
    s.w[0, 0, 0, 0] = np.inf
    inexact((winograd.conv, s.forward, s.x, s.w), (winograd.conv, s.back, s.g, s.w))


def test_which_go_by_it():
    def suits(images, channels, filters, size, kernel=(3, 3), stride=1, groups=1):
        f4 = np.dtype(np.float32)
        return winograd.suits(
            plan(
                "conv",
                f4,
                f4,
                (images, channels, size, size),
                (filters, channels // groups, *kernel),
                (stride, stride),
                (1, 1),
                (1, 1),
                groups,
            )
        )

    assert suits(8, 64, 64, 16)
    assert suits(8, 64, 64, 7)
    assert not suits(800, 64, 64, 1)  # a quarter of each tile
    assert not suits(8, 3, 64, 16)
    assert not suits(8, 64, 64, 16, stride=2)
    assert not suits(8, 64, 64, 16, kernel=(5, 5))
    assert not suits(8, 64, 64, 16, groups=2)
    assert not suits(8, 512, 512, 4)  # 32 tiles
