"""What the tests of convolution's ways have in common: problems of all shapes, and the results of im2col in float64."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

from rushlight.fast.conv import conv_of_plan
from rushlight.kernels import conv as reference
from rushlight.kernels.conv import plan, with_bias
from rushlight.kernels.im2col import window_counts
from rushlight.loops import parallel

OPS = "conv", "conv_input_grad", "conv_weight_grad"
im2col = SimpleNamespace(**{op: getattr(reference, f"{op}_im2col") for op in OPS})


def problem(seed, images, channels, filters, groups, size, kernel, stride, padding, dilation):
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.standard_normal(shape, np.float32)
    s = SimpleNamespace(x=normal(images, groups * channels, *size), w=normal(groups * filters, channels, *kernel))
    s.forward, s.back, s.weights = plans(s.x, s.w, stride, padding, dilation, groups)
    s.g, s.bias = normal(images, groups * filters, *s.forward.out), normal(groups * filters)
    return s


def plans(x, w, *how):
    """The plans of the convolution and of its gradients by x and by w."""
    return [plan(op, x.dtype, w.dtype, x.shape, w.shape, *how) for op in OPS]


def chosen(*how, dtype=np.float32):
    """The functions of the ways that suit a convolution with a plan of these numbers, the fastest first."""
    ways, _ = conv_of_plan.suiting(plan("conv", np.dtype(dtype), np.dtype(dtype), *how))
    return [way.compute for way in ways]


def input_grad(way, s):
    """The gradient of the input; compiled ways have one function for it and for the convolution."""
    return getattr(way, "conv_input_grad", way.conv)(s.back, s.g, s.w)


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


def results(way, s):
    """Of a way of convolution: with a bias and without, and the gradients of the weights and of the input."""
    return [
        way.conv(s.forward, s.x, s.w),
        way.conv(s.forward, s.x, s.w, s.bias),
        way.conv_weight_grad(s.weights, s.g, s.x),
        input_grad(way, s),
    ]


def check(way, s, near=near):
    """The results of a way are those of im2col in float64;"""
    x, w, g = (a.astype(np.float64) for a in (s.x, s.w, s.g))
    expected = im2col.conv(s.forward, x, w)
    near(way.conv(s.forward, s.x, s.w), expected)
    near(way.conv(s.forward, s.x, s.w, s.bias), with_bias(expected, s.bias))
    near(way.conv_weight_grad(s.weights, s.g, s.x), im2col.conv_weight_grad(s.weights, g, x))
    near(input_grad(way, s), im2col.conv_input_grad(s.back, g, w))


def on_three_cores(way, s, monkeypatch, near=near):
    """As `check`, and a gradient of the weights that is the same, to the last bit, whichever part ends first."""
    monkeypatch.setattr(parallel, "cores", lambda: 3)
    check(way, s, near)
    made = []
    for turn in (list, lambda calls: list(reversed(calls))):
        monkeypatch.setattr(parallel.pool, "run", lambda part, calls, turn=turn: [part(*c) for c in turn(calls)])
        made.append(way.conv_weight_grad(s.weights, s.g, s.x))
    np.testing.assert_array_equal(*made)
