"""Columns of all images in one product against those of each: strides, paddings, dilations, both gradients, all dtypes."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.ops.kernels import conv as columns
from rushlight.ops.kernels import joined, matmul, pointwise
from tests.support.conv_problem import innermost, windows


def problem(seed, images, channels, filters, size, kernel, stride, padding, dilation):
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((images, channels, *size)), rng.standard_normal((filters, channels, *kernel))
    p = columns.plan(size, w.shape, stride, padding, dilation, 1)
    return x, w, rng.standard_normal((images, filters, *p.out)), p


@st.composite
def problems(draw):
    return problem(draw(st.integers(0, 1000)), draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 4)),
                   *draw(windows(widest=4, room=6, length=6)))


@settings(max_examples=100, deadline=None)
@given(problems())
def test_joined_is_columns(given):
    x, w, g, p = given
    x = innermost(x)                              # of any layout
    np.testing.assert_allclose(joined.correlate(x, w, p), columns.correlate_columns(x, w, p), atol=1e-12)
    np.testing.assert_allclose(joined.spread(g, w, p), columns.spread_columns(g, w, p), atol=1e-12)
    np.testing.assert_allclose(joined.weigh(g, x, p), columns.weigh_columns(g, x, p), atol=1e-12)
    assert joined.correlate(x, w, p).flags.carray


@pytest.mark.parametrize("shape", [(8, 512, 4, 3, 1, 1), (2, 256, 14, 3, 2, 1), (3, 512, 7, 1, 1, 0), (9, 20, 4, 4, 1, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_last_layers_of_nets(shape, dtype):
    """That these go this way, bias and layout are kept, and float32 is as near to double precision as sums of it are."""
    images, channels, size, kernel, stride, padding = shape
    x, w, g, p = problem(0, images, channels, channels, (size,) * 2, (kernel,) * 2, (stride,) * 2, (padding,) * 2, (1, 1))
    assert joined.suits(p, images)
    bias = np.arange(channels) / channels
    expected = (columns.with_bias(columns.correlate_columns(x, w, p), bias), columns.spread_columns(g, w, p),
                columns.weigh_columns(g, x, p))
    given = [rushlight.tensor(a.astype(dtype), requires_grad=True) for a in (x, w, bias)]
    made = rushlight.nn.functional.conv2d(*given, stride=stride, padding=padding)
    made.backward(rushlight.tensor(g.astype(dtype)))
    for ours, theirs in zip((made.detach(), given[0].grad, given[1].grad), expected):
        assert ours.numpy().dtype == dtype
        near = 2e-6 if dtype == np.float32 else 1e-14
        np.testing.assert_allclose(ours.numpy(), theirs, atol=near * np.abs(theirs).max())


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.sampled_from([3, 64, 100]), st.sampled_from([32, 90]),
       st.sampled_from([(500,), (16, 33), (4, 8, 16)]), st.integers(0, 100), st.booleans(), st.booleans())
def test_one_tap_is_columns(images, channels, filters, size, seed, last, paid):
    """By BLAS and by loops, which products that were paid for go by."""
    ones = (1,) * len(size)
    x, w, g, p = problem(seed, images, channels, filters, size, ones, ones, (0,) * len(size), ones)
    a, b, c = (innermost(v) if last else v for v in (v.astype(np.float32) for v in (x, w, g)))
    bias = np.arange(filters, dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matmul.spent, "left", 0 if paid else matmul.PAID)
        made = (pointwise.correlate(a, b, p, bias), pointwise.correlate(a, b, p), pointwise.spread(c, b, p),
                pointwise.weigh(c, a, p))
    expected = columns.correlate_columns(x, w, p)
    for ours, theirs in zip(made, (columns.with_bias(expected.copy(), bias), expected, columns.spread_columns(g, w, p),
                                   columns.weigh_columns(g, x, p))):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=2e-6 * np.abs(theirs).max())


def test_layer_of_one_tap():
    """That these go this way, with the layout kept."""
    x = rushlight.randn(2, 64, 20, 30, requires_grad=True)
    layer = rushlight.nn.Conv2d(64, 32, 1)
    assert pointwise.suits(x.numpy(force=True), columns.plan((20, 30), (32, 64, 1, 1), (1, 1), (0, 0), (1, 1), 1))
    expected = layer.weight.double().reshape(32, 64) @ x.double().flatten(2) + layer.bias.double()[:, None]
    assert rushlight.allclose(layer(x).double().flatten(2), expected, atol=1e-5)
    last = layer(x.contiguous(memory_format=rushlight.channels_last))
    assert rushlight.equal(last, layer(x))
    assert last.is_contiguous(memory_format=rushlight.channels_last)
