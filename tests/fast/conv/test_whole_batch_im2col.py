"""Convolutions that are products of matrices, of all images and of each, against im2col: both gradients, all dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.fast import policy
from rushlight.fast.conv import one_by_one, whole_batch_im2col
from rushlight.fast.index import PRICE_PRODUCTS
from rushlight.kernels.conv import plan, with_bias
from tests.support.conv_problem import im2col, innermost, plans, windows


def problem(seed, images, channels, filters, size, kernel, stride, padding, dilation):
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((images, channels, *size)), rng.standard_normal((filters, channels, *kernel))
    made = plans(x, w, stride, padding, dilation, 1)
    return x, w, rng.standard_normal((images, filters, *made[0].out)), made


@st.composite
def problems(draw):
    return problem(
        draw(st.integers(0, 1000)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
        *draw(windows(widest=4, room=6, length=6)),
    )


@settings(max_examples=100, deadline=None)
@given(problems())
def test_whole_batch_is_im2col(given):
    x, w, g, plans = given
    x = innermost(x)  # of any layout
    for p, *operands in zip(plans, (x, g, g), (w, w, x)):
        made, expected = [getattr(way, p.op)(p, *operands) for way in (whole_batch_im2col, im2col)]
        np.testing.assert_allclose(made, expected, atol=1e-12)
    assert whole_batch_im2col.conv(plans[0], x, w).flags.carray


@pytest.mark.parametrize(
    "shape", [(8, 512, 4, 3, 1, 1), (2, 256, 14, 3, 2, 1), (3, 512, 7, 1, 1, 0), (9, 20, 4, 4, 1, 0)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_last_layers_of_nets(shape, dtype):
    """That these go this way, bias and layout are kept, and float32 is as near to double precision as sums of it
    are."""
    images, channels, size, kernel, stride, padding = shape
    x, w, g, (p, back, weights) = problem(
        0, images, channels, channels, (size,) * 2, (kernel,) * 2, (stride,) * 2, (padding,) * 2, (1, 1)
    )
    assert whole_batch_im2col.suits(p)
    bias = np.arange(channels) / channels
    expected = (im2col.conv(p, x, w, bias), im2col.conv_input_grad(back, g, w), im2col.conv_weight_grad(weights, g, x))
    given = [rushlight.tensor(a.astype(dtype), requires_grad=True) for a in (x, w, bias)]
    made = rushlight.nn.functional.conv2d(*given, stride=stride, padding=padding)
    made.backward(rushlight.tensor(g.astype(dtype)))
    for ours, theirs in zip((made.detach(), given[0].grad, given[1].grad), expected):
        assert ours.numpy().dtype == dtype
        near = 2e-6 if dtype == np.float32 else 1e-14
        np.testing.assert_allclose(ours.numpy(), theirs, atol=near * np.abs(theirs).max())


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 4),
    st.sampled_from([3, 64, 100]),
    st.sampled_from([32, 90]),
    st.sampled_from([(500,), (16, 33), (4, 8, 16)]),
    st.integers(0, 100),
    st.booleans(),
    st.booleans(),
)
def test_one_tap_is_im2col(images, channels, filters, size, seed, last, paid):
    """By BLAS and by loops, which products that were paid for go by."""
    ones = (1,) * len(size)
    x, w, g, (p, back, weights) = problem(seed, images, channels, filters, size, ones, ones, (0,) * len(size), ones)
    a, b, c = (innermost(v) if last else v for v in (v.astype(np.float32) for v in (x, w, g)))
    bias = np.arange(filters, dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy.products, "left", 0 if paid else PRICE_PRODUCTS)
        made = (
            one_by_one.conv(p, a, b, bias),
            one_by_one.conv(p, a, b),
            one_by_one.conv_input_grad(back, c, b),
            one_by_one.conv_weight_grad(weights, c, a),
        )
    expected = im2col.conv(p, x, w)
    for ours, theirs in zip(
        made,
        (
            with_bias(expected.copy(), bias),
            expected,
            im2col.conv_input_grad(back, g, w),
            im2col.conv_weight_grad(weights, g, x),
        ),
    ):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=2e-6 * np.abs(theirs).max())


def test_layer_of_one_tap():
    """That these go this way, with the layout kept."""
    x = rushlight.randn(2, 64, 20, 30, requires_grad=True)
    layer = rushlight.nn.Conv2d(64, 32, 1)
    f4 = np.dtype(np.float32)
    assert one_by_one.suits(plan("conv", f4, f4, x.shape, (32, 64, 1, 1), (1, 1), (0, 0), (1, 1), 1))
    expected = layer.weight.double().reshape(32, 64) @ x.double().flatten(2) + layer.bias.double()[:, None]
    assert rushlight.allclose(layer(x).double().flatten(2), expected, atol=1e-5)
    last = layer(x.contiguous(memory_format=rushlight.channels_last))
    assert rushlight.allclose(last, layer(x), atol=1e-6)  # another call of BLAS
    assert last.is_contiguous(memory_format=rushlight.channels_last)
