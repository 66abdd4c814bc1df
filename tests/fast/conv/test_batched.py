"""Convolution of images abreast, of float32, against columns in float64: strides, paddings, dilations, groups, gradients."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.conv_problem import check, innermost, near, on_three_cores, problem, windows

pytest.importorskip("numba")

from rushlight.ops.kernels import abreast
from rushlight.ops.kernels import conv as columns

LANES, SUITS = abreast.lanes(), abreast.suits


@pytest.fixture(autouse=True, scope="module")
def for_all():
    """These loops give the result of any problem, not only where they are the fastest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(abreast, "suits", lambda *args: True)
        yield


@st.composite
def problems(draw):
    groups, images = draw(st.sampled_from([1, 1, 2, 3])), draw(st.sampled_from([1, 3, LANES, LANES + 1, 2 * LANES]))
    channels, filters = draw(st.sampled_from([1, 2, 3, 5])), draw(st.sampled_from([1, 2, 3, 4, 6, 8, 13]))
    return problem(draw(st.integers(0, 1000)), images, channels, filters, groups, *draw(windows(length=40, room=5)))


@settings(max_examples=80, deadline=None)
@given(problems())
def test_abreast_is_columns(s):
    assert check(abreast, s)


@pytest.mark.parametrize("shape", [
    (64, 1, 6, 1, (28, 28), (5, 5), (1, 1), (0, 0), (1, 1)),
    (40, 6, 16, 1, (12, 12), (5, 5), (1, 1), (0, 0), (1, 1)),
    (20, 1, 1, 24, (14, 14), (3, 3), (2, 2), (1, 1), (1, 1)),        # depthwise
    (16, 1, 2, 6, (9, 31), (5, 3), (1, 2), (2, 0), (1, 2)),
    (300, 3, 8, 1, (4, 4), (1, 1), (2, 2), (0, 0), (1, 1)),          # places that no tap reaches get the bias
    (33, 4, 5, 1, (300,), (9,), (4,), (0,), (1,)),
    (18, 2, 3, 1, (6, 9, 10), (3, 3, 3), (2, 1, 1), (1, 1, 1), (1, 1, 1)),
])
def test_shapes_of_nets(shape):
    assert check(abreast, problem(0, *shape))


def test_parts_on_several_cores(monkeypatch):
    assert on_three_cores(abreast, problem(1, 6 * LANES + 3, 3, 6, 2, (9, 9), (3, 3), (2, 2), (1, 1), (1, 1)), monkeypatch)


def test_nothing_is_left_of_earlier_calls():
    """Rooms are used again: what a larger problem left there, not finite, is no part of a smaller one's results."""
    s = problem(2, LANES + 2, 2, 4, 1, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1))
    before = problem(3, 2 * LANES, 3, 6, 1, (11, 11), (3, 3), (1, 1), (1, 1), (1, 1))
    for a in (before.x, before.g, before.w):
        a[...] = np.nan
    abreast.correlate(before.x, before.w, before.plan)
    abreast.spread(before.g, before.w, before.plan)
    abreast.weigh(before.g, before.x, before.plan)
    assert check(abreast, s)


def test_images_that_are_not_finite_stay_alone():
    """A vector holds a number of each image: none meets another."""
    s = problem(4, LANES, 3, 4, 1, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1))
    found = abreast.correlate(s.x, s.w, s.plan)
    s.x[1] = np.inf
    again = abreast.correlate(s.x, s.w, s.plan)
    assert not np.isfinite(again[1]).any()
    np.testing.assert_array_equal(np.delete(again, 1, 0), np.delete(found, 1, 0))


def test_others_than_flat_arrays():
    s = problem(5, LANES, 3, 4, 2, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1))
    expected = abreast.correlate(s.x, s.w, s.plan), abreast.spread(s.g, s.w, s.plan), abreast.weigh(s.g, s.x, s.plan)
    x, g, w = innermost(s.x), innermost(s.g), np.asfortranarray(s.w)
    for ours, theirs in zip((abreast.correlate(x, w, s.plan), abreast.spread(g, w, s.plan), abreast.weigh(g, x, s.plan)),
                            expected):
        near(ours, theirs)


def test_which_go_abreast(monkeypatch):
    monkeypatch.setattr(abreast, "suits", SUITS)
    of = lambda images, channels, filters, groups=1, size=(12, 12): abreast.correlate(*(lambda s: (s.x, s.w, s.plan))(
        problem(0, images, channels, filters, groups, size, (3, 3), (1, 1), (1, 1), (1, 1)))) is not None
    assert of(4 * LANES, 6, 16) == (LANES > 4)
    assert of(LANES, 1, 1, 32) == (LANES > 4)
    assert not of(LANES - 1, 6, 16)               # lanes would be empty
    assert not of(LANES, 32, 32)
    assert not of(LANES, 3, 8, size=(120, 120))   # no core's cache holds them


def test_conv_asks_them(monkeypatch):
    asked = []
    monkeypatch.setattr(abreast, "slid", lambda x, w, p, back, bias=None: asked.append(back))
    s = problem(6, 4 * LANES, 6, 16, 1, (14, 14), (5, 5), (1, 1), (0, 0), (1, 1))
    columns.looped((lambda *a: None, abreast.correlate, lambda *a: None, lambda *a: None), s.x, s.w, s.plan)
    columns.looped((lambda *a: None, abreast.spread, lambda *a: None, lambda *a: None), s.g, s.w, s.plan)
    assert asked == [False, True]
