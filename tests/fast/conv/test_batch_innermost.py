"""Convolution with the batch innermost against im2col in float64: strides, paddings, dilations, groups, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.conv_problem import check, chosen, innermost, near, on_three_cores, problem, results, windows

pytest.importorskip("llvmlite")

from rushlight.fast.conv import batch_innermost
from rushlight.fast.conv.tiling import lanes

LANES = lanes()


@st.composite
def problems(draw):
    groups, images = draw(st.sampled_from([1, 1, 2, 3])), draw(st.sampled_from([1, 3, LANES, LANES + 1, 2 * LANES]))
    channels, filters = draw(st.sampled_from([1, 2, 3, 5])), draw(st.sampled_from([1, 2, 3, 4, 6, 8, 13]))
    return problem(draw(st.integers(0, 1000)), images, channels, filters, groups, *draw(windows(length=40, room=5)))


@settings(max_examples=80, deadline=None)
@given(problems())
def test_batch_innermost_is_im2col(s):
    check(batch_innermost, s)


@pytest.mark.parametrize(
    "shape",
    [
        (64, 1, 6, 1, (28, 28), (5, 5), (1, 1), (0, 0), (1, 1)),
        (40, 6, 16, 1, (12, 12), (5, 5), (1, 1), (0, 0), (1, 1)),
        (20, 1, 1, 24, (14, 14), (3, 3), (2, 2), (1, 1), (1, 1)),  # depthwise
        (16, 1, 2, 6, (9, 31), (5, 3), (1, 2), (2, 0), (1, 2)),
        (300, 3, 8, 1, (4, 4), (1, 1), (2, 2), (0, 0), (1, 1)),  # places that no tap reaches get the bias
        (33, 4, 5, 1, (300,), (9,), (4,), (0,), (1,)),
        (18, 2, 3, 1, (6, 9, 10), (3, 3, 3), (2, 1, 1), (1, 1, 1), (1, 1, 1)),
    ],
)
def test_shapes_of_nets(shape):
    check(batch_innermost, problem(0, *shape))


def test_parts_on_several_cores(monkeypatch):
    on_three_cores(
        batch_innermost, problem(1, 6 * LANES + 3, 3, 6, 2, (9, 9), (3, 3), (2, 2), (1, 1), (1, 1)), monkeypatch
    )


def test_nothing_is_left_of_earlier_calls():
    """Workspaces are used again: what a larger problem left there, not finite, is no part of a smaller one's
    results."""
    s = problem(2, LANES + 2, 2, 4, 1, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1))
    before = problem(3, 2 * LANES, 3, 6, 1, (11, 11), (3, 3), (1, 1), (1, 1), (1, 1))
    for a in (before.x, before.g, before.w):
        a[...] = np.nan
    results(batch_innermost, before)
    check(batch_innermost, s)


def test_images_that_are_not_finite_stay_alone():
    """A vector holds a number of each image: none meets another."""
    s = problem(4, LANES, 3, 4, 1, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1))
    found = batch_innermost.conv(s.forward, s.x, s.w)
    s.x[1] = np.inf
    again = batch_innermost.conv(s.forward, s.x, s.w)
    assert not np.isfinite(again[1]).any()
    np.testing.assert_array_equal(np.delete(again, 1, 0), np.delete(found, 1, 0))


def test_others_than_flat_arrays():
    s = problem(5, LANES, 3, 4, 2, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1))
    expected = results(batch_innermost, s)
    s.x, s.g, s.w = innermost(s.x), innermost(s.g), np.asfortranarray(s.w)
    for ours, theirs in zip(results(batch_innermost, s), expected):
        near(ours, theirs)


def test_which_go_by_it():
    of = lambda images, channels, filters, groups=1, size=(12, 12): chosen(
        (images, groups * channels, *size), (groups * filters, channels, 3, 3), (1, 1), (1, 1), (1, 1), groups
    )[0]
    assert (of(4 * LANES, 6, 16) == batch_innermost.conv) == (LANES > 4)
    assert (of(LANES, 1, 1, 32) == batch_innermost.conv) == (LANES > 4)
    assert of(LANES - 1, 6, 16) != batch_innermost.conv  # lanes would be empty
    assert of(LANES, 32, 32) != batch_innermost.conv
    assert of(LANES, 3, 8, size=(120, 120)) != batch_innermost.conv  # no core's cache holds them
