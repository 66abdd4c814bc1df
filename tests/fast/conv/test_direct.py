"""Direct convolution of float32 against im2col in float64: all strides, paddings, dilations and groups, both
gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.conv_problem import check, chosen, im2col, on_three_cores, problem, windows

pytest.importorskip("llvmlite")

from rushlight.fast.conv import conv_weight_grad_of_plan, direct
from rushlight.fast.conv.tiling import Inexact


@st.composite
def problems(draw):
    return problem(
        draw(st.integers(0, 1000)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1, 2, 3, 5, 8, 11])),
        draw(st.sampled_from([1, 1, 2, 3])),
        *draw(windows(length=40)),
    )


@settings(max_examples=80, deadline=None)
@given(problems())
def test_direct_is_im2col(s):
    check(direct, s)


@pytest.mark.parametrize(
    "shape",
    [
        (9, 16, 24, 1, (17, 18), (3, 3), (1, 1), (1, 1), (1, 1)),  # several images at a time, the last few fewer
        (3, 3, 64, 1, (40, 41), (7, 7), (2, 2), (3, 3), (1, 1)),
        (2, 8, 13, 1, (70, 70), (3, 3), (1, 1), (2, 2), (2, 2)),  # lines in several parts
        (5, 1, 1, 32, (12, 12), (3, 3), (1, 1), (1, 1), (1, 1)),  # each channel by itself
        (4, 24, 8, 1, (300,), (9,), (4,), (0,), (1,)),
        (2, 4, 6, 1, (6, 9, 10), (3, 3, 3), (2, 1, 1), (1, 1, 1), (1, 1, 1)),
        (300, 40, 40, 1, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
    ],
)
def test_shapes_of_nets(shape):
    check(direct, problem(0, *shape))


def test_parts_on_several_cores(monkeypatch):
    on_three_cores(direct, problem(1, 70, 40, 9, 1, (9, 9), (3, 3), (1, 1), (1, 1), (1, 1)), monkeypatch)


def test_arrays_of_any_layout():
    s = problem(2, 3, 2, 4, 1, (8, 8), (3, 3), (1, 1), (0, 0), (1, 1))
    s.x = np.ascontiguousarray(s.x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    s.g = np.broadcast_to(np.float32(1), s.g.shape)
    s.w = s.w[:, ::-1]
    check(direct, s)


def test_what_is_not_finite_stays_where_it_is():
    """A place beside the image is not read: an infinity in the last column does not reach taps that never see it."""
    s = problem(3, 2, 1, 1, 1, (6, 6), (1, 3), (1, 1), (0, 0), (1, 1))
    s.x[:, :, :, -1] = np.inf
    with pytest.raises(Inexact):
        direct.conv_weight_grad(s.weights, s.g, s.x)
    made = conv_weight_grad_of_plan(s.weights, s.g, s.x)
    assert np.isfinite(made[..., :2]).all()
    assert not np.isfinite(made[..., 2]).any()


def test_which_go_by_loops():
    of = lambda images, size, dtype=np.float32: chosen(
        (images, 16, size, size), (16, 16, 3, 3), (1, 1), (1, 1), (1, 1), 1, dtype=dtype
    )
    assert of(32, 16)[-2:] == [direct.conv, im2col.conv]
    assert of(32, 16, np.float64) == [im2col.conv]
    assert direct.conv not in of(1, 4)
