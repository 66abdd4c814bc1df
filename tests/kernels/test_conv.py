"""Convolution, pooling, unfold on arrays: against the definition written out, as adjoint pairs, and against torch."""

from __future__ import annotations

import doctest
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rushlight.kernels import conv as conv_kernels
from rushlight.kernels import im2col as window_kernels
from rushlight.kernels import pool as pool_kernels
from rushlight.kernels.conv import conv, conv_input_grad, conv_weight_grad
from rushlight.kernels.im2col import fold, unfold, window_counts
from rushlight.kernels.pool import (
    adaptive_avg_pool,
    adaptive_avg_pool_grad,
    adaptive_max_pool,
    avg_pool,
    avg_pool_grad,
    gather_spatial,
    max_pool,
    scatter_spatial,
)

quick = settings(max_examples=60, deadline=None)
thorough = settings(max_examples=120, deadline=None)


def normal(seed, *shape, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        return (x + 1j * rng.standard_normal(shape)).astype(dtype)
    return (3 * x if np.dtype(dtype).kind in "iu" else x).astype(dtype)


def close(a, b, tolerance=1e-9):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * (1 + np.abs(b).max(initial=0)))


@st.composite
def windows(draw, dims=(1, 2, 3), kernel=4, stride=3, padding=3, dilation=3, half=False):
    """A spatial size with windows that fit it. `half`: padding at most half the kernel, as pools want it."""
    n = draw(st.sampled_from(dims))
    numbers = lambda low, high: tuple(draw(st.integers(low, high)) for _ in range(n))
    s = SimpleNamespace(n=n, kernel=numbers(1, kernel), stride=numbers(1, stride), dilation=numbers(1, dilation))
    s.padding = tuple(draw(st.integers(0, k // 2 if half else padding)) for k in s.kernel)
    least = [max(1, d * (k - 1) + 1 - 2 * p) for k, d, p in zip(s.kernel, s.dilation, s.padding)]
    s.size = tuple(draw(st.integers(low, low + 5)) for low in least)
    s.seed = draw(st.integers(0, 2**32 - 1))
    s.out = window_counts(s.size, s.kernel, s.stride, s.padding, s.dilation)
    return s


@st.composite
def convolutions(draw, **limits):
    s = draw(windows(**limits))
    s.groups = draw(st.sampled_from([1, 1, 2, 3]))
    s.images, s.channels, s.filters = (draw(st.integers(1, 3)) for _ in range(3))
    s.x = normal(s.seed, s.images, s.groups * s.channels, *s.size)
    s.w = normal(s.seed + 1, s.groups * s.filters, s.channels, *s.kernel)
    s.g = normal(s.seed + 2, s.images, s.groups * s.filters, *s.out)
    s.how = (s.stride, s.padding, s.dilation, s.groups)
    return s


def padded(x, padding, value=0):
    return np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)], constant_values=value)


def conv_by_definition(x, w, stride, padding, dilation, groups):
    x = padded(x, padding)
    size = window_counts(x.shape[2:], w.shape[2:], stride, (0,) * len(stride), dilation)
    out = np.zeros((len(x), len(w), *size), x.dtype)
    c, o = w.shape[1], len(w) // groups
    for p, k in product(np.ndindex(size), np.ndindex(w.shape[2:])):
        at = tuple(i * s + j * d for i, s, j, d in zip(p, stride, k, dilation))
        for group in range(groups):
            seen = x[(slice(None), slice(group * c, group * c + c), *at)]
            taken = w[(slice(group * o, group * o + o), slice(None), *k)]
            out[(slice(None), slice(group * o, group * o + o), *p)] += seen @ taken.T
    return out


# Convolution


@quick
@given(convolutions())
def test_conv_is_its_definition(s):
    expected = conv_by_definition(s.x, s.w, *s.how)
    close(conv(s.x, s.w, *s.how), expected)
    close(conv_kernels.conv(s.x, s.w, *s.how), expected)


@quick
@given(convolutions())
def test_faster_ways_are_the_reference(s):
    close(conv_input_grad(s.g, s.w, s.size, *s.how), conv_kernels.conv_input_grad(s.g, s.w, s.size, *s.how))
    close(conv_weight_grad(s.g, s.x, s.kernel, *s.how), conv_kernels.conv_weight_grad(s.g, s.x, s.kernel, *s.how))


@thorough
@given(convolutions())
def test_conv_and_its_gradients_are_adjoint(s):
    """<conv(x, w), g> = <x, input_grad(g, w)> = <w, weight_grad(g, x)>: each is the derivative of the others."""
    y = conv(s.x, s.w, *s.how)
    gx = conv_input_grad(s.g, s.w, s.size, *s.how)
    gw = conv_weight_grad(s.g, s.x, s.kernel, *s.how)
    assert (y.shape, gx.shape, gw.shape) == (s.g.shape, s.x.shape, s.w.shape)
    scale = np.linalg.norm(s.x) * np.linalg.norm(s.w) * np.linalg.norm(s.g)
    for pair in ((s.x, gx), (s.w, gw)):
        assert abs(np.vdot(y, s.g) - np.vdot(*pair)) <= 1e-12 * (1 + scale)


@thorough
@given(convolutions())
def test_conv_equals_torch(torch, s):
    x, w, g = (torch.tensor(a, requires_grad=True) for a in (s.x, s.w, s.g))
    y = getattr(torch.nn.functional, f"conv{s.n}d")(x, w, None, *s.how)
    gx, gw = torch.autograd.grad(y, (x, w), g)
    close(conv(s.x, s.w, *s.how), y.detach())
    close(conv_input_grad(s.g, s.w, s.size, *s.how), gx)
    close(conv_weight_grad(s.g, s.x, s.kernel, *s.how), gw)


@pytest.mark.parametrize("shape", [(60, 10, 14, 14), (2, 64, 48, 48)], ids=["many images", "many rows"])
@pytest.mark.parametrize("filters", [2, 70])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 3])
def test_conv_over_several_blocks(shape, filters, stride, padding):
    """More columns than one block holds; few filters and many take different ways."""
    x, w = normal(0, *shape, dtype=np.float32), normal(1, filters, shape[1], 3, 3, dtype=np.float32)
    how = ((stride, stride), (padding, padding), (1, 1), 1)
    assert len(list(conv_kernels.blocks(conv_kernels.plan("conv", x.dtype, w.dtype, x.shape, w.shape, *how), 4))) > 1
    y = conv_by_definition(x.astype(np.float64), w, *how)
    close(conv(x, w, *how), y, 1e-4)
    g = normal(2, *y.shape, dtype=np.float32)
    inner = np.vdot(y, g.astype(np.float64))
    assert abs(np.vdot(x, conv_input_grad(g, w, shape[2:], *how)) - inner) < 1e-2 * np.sqrt(y.size)
    assert abs(np.vdot(w, conv_weight_grad(g, x, (3, 3), *how)) - inner) < 1e-2 * np.sqrt(y.size)


@pytest.mark.parametrize(("kernel", "stride"), [((3, 3), (1, 1)), ((3, 2), (2, 1)), ((1, 1), (1, 1)), ((5, 5), (2, 2))])
@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise(kernel, stride, multiplier):
    x = normal(0, 2, 150, 6, 7)
    w = normal(1, 150 * multiplier, 1, *kernel)
    how = (stride, (2, 2), (1, 1), 150)
    y = conv(x, w, *how)
    close(y, conv_by_definition(x, w, *how))
    g = normal(2, *y.shape)
    assert np.vdot(y, g) == pytest.approx(np.vdot(x, conv_input_grad(g, w, (6, 7), *how)))
    assert np.vdot(y, g) == pytest.approx(np.vdot(w, conv_weight_grad(g, x, kernel, *how)))


def test_strided_weight_gradient_has_the_kernels_shape():
    """A gradient made by convolving with a dilated g is too large where the stride leaves a rest (babygrad's fault)."""
    how = ((2, 2), (1, 1), (1, 1), 1)
    x, w = normal(0, 1, 2, 6, 6), normal(1, 3, 2, 3, 3)
    g = np.ones_like(conv(x, w, *how))
    assert conv_weight_grad(g, x, (3, 3), *how).shape == (3, 2, 3, 3)
    assert conv_input_grad(g, w, (6, 6), *how).shape == x.shape


def test_rows_past_the_end_are_not_read():
    """Stride 2 leaves half a set of rows at the end: memory after the input's must not matter."""
    memory = np.full(10_000, np.nan)
    x = memory[: 2 * 8 * 7 * 9].reshape(2, 8, 7, 9)
    x[...] = normal(0, *x.shape)
    w = normal(1, 4, 8, 3, 3)
    how = ((2, 2), (0, 0), (1, 1), 1)
    close(conv(x, w, *how), conv_by_definition(x, w, *how))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128, np.int32, np.int64, np.uint8, np.float16])
def test_dtypes(dtype):
    x, w = normal(0, 2, 4, 6, 6, dtype=dtype), normal(1, 6, 2, 3, 3, dtype=dtype)
    how = ((1, 2), (1, 1), (1, 1), 2)
    wide = np.float32 if dtype is np.float16 else dtype
    expected = conv_by_definition(x.astype(wide), w.astype(wide), *how).astype(dtype)
    y = conv(x, w, *how)
    assert y.dtype == dtype
    if np.dtype(dtype).kind in "iu":
        assert np.array_equal(y, expected)
    else:
        close(y, expected, {np.float16: 2e-3, np.complex128: 1e-12}.get(dtype, 1e-5))
    assert conv_input_grad(y, w, (6, 6), *how).dtype == conv_weight_grad(y, x, (3, 3), *how).dtype == dtype


def test_bfloat16():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x, w = normal(0, 2, 3, 5).astype(bfloat16), normal(1, 4, 3, 3).astype(bfloat16)
    how = ((1,), (1,), (1,), 1)
    y = conv(x, w, *how)
    assert y.dtype == bfloat16
    close(y.astype(np.float32), conv_by_definition(x.astype(np.float32), w.astype(np.float32), *how), 1e-2)
    values, _ = max_pool(x, (2,), (2,), (0,), (1,), False)
    assert values.dtype == avg_pool(x, (2,), (2,), (0,), False, True, None).dtype == bfloat16


def test_any_strides_and_inputs_untouched():
    x, w = normal(0, 7, 5, 4, 3).T[:, :, ::-1], normal(1, 3, 3, 4, 2).transpose(3, 2, 0, 1)[::-1]
    keep = x.copy(), w.copy()
    how = ((1, 1), (1, 0), (1, 1), 1)
    y = conv(x, w, *how)
    close(y, conv_by_definition(x, w, *how))
    g = np.broadcast_to(np.float64(2), y.shape)
    close(conv_input_grad(g, w, x.shape[2:], *how), conv_input_grad(g.copy(), w.copy(), x.shape[2:], *how))
    close(conv_weight_grad(g, x, (3, 3), *how), conv_weight_grad(g.copy(), x.copy(), (3, 3), *how))
    assert np.array_equal(x, keep[0])
    assert np.array_equal(w, keep[1])


@pytest.mark.parametrize(("x", "w"), [((0, 2, 5, 5), (3, 2, 3, 3)), ((1, 0, 5, 5), (3, 0, 3, 3))])
def test_empty_batch_and_channels(x, w):
    how = ((1, 1), (0, 0), (1, 1), 1)
    y = conv(np.ones(x), np.ones(w), *how)
    assert y.shape == (x[0], 3, 3, 3)
    assert not y.any()
    assert conv_input_grad(y, np.ones(w), x[2:], *how).shape == x
    assert not conv_weight_grad(y, np.ones(x), w[2:], *how).any()


def test_infinity_stays_in_its_windows():
    x = np.zeros((1, 2, 6, 6))
    x[0, 0, 0, 0] = np.inf
    y = conv(x, np.ones((1, 2, 3, 3)), (1, 1), (0, 0), (1, 1), 1)
    assert np.isinf(y).sum() == 1
    assert not np.isnan(y).any()


@pytest.mark.parametrize(
    ("x", "w", "how", "words"),
    [
        ((1, 1, 2, 2), (1, 1, 3, 3), {}, r"padded input size per channel: \(2 x 2\). Kernel size: \(3 x 3\)"),
        ((1, 1, 6, 6), (1, 1, 3, 3), {"dilation": (3, 3)}, r"Kernel size: \(7 x 7\)"),
        ((1, 2, 5, 5), (1, 1, 3, 3), {}, "to have 1 channels, but got 2 channels instead"),
        ((1, 2, 5, 5), (3, 1, 3, 3), {"groups": 2}, "divisible by 2 at dimension 0"),
        ((1, 2, 5, 5), (0, 2, 3, 3), {}, "at least 1 at dimension 0"),
        ((1, 2, 5, 5), (3, 2, 3, 3), {"groups": 0}, "non-positive groups is not supported"),
        ((1, 2, 5, 5), (3, 2, 3, 3), {"stride": (0, 1)}, "stride should be greater than zero"),
        ((1, 2, 5, 5), (3, 2, 3, 3), {"padding": (-1, 0)}, "padding should not be negative"),
        ((1, 2, 5, 5), (3, 2, 3, 3), {"stride": (1,)}, "stride has 1 values for 2 spatial dimensions"),
        ((1, 2, 0, 5), (3, 2, 1, 1), {"padding": (2, 2)}, "Only zero batch or zero channel inputs"),
        ((1, 2, 5), (3, 2, 3, 3), {}, "expected 4 dimensions"),
    ],
)
def test_conv_errors(x, w, how, words):
    how = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1} | how
    with pytest.raises(RuntimeError, match=words):
        conv(np.ones(x), np.ones(w), *how.values())


def test_errors_of_gradients_and_dtypes():
    how = ((1, 1), (0, 0), (1, 1), 1)
    with pytest.raises(RuntimeError, match=r"gradient has shape \[1, 1, 2, 2\].*give \[1, 1, 3, 3\]"):
        conv_input_grad(np.ones((1, 1, 2, 2)), np.ones((1, 1, 3, 3)), (5, 5), *how)
    with pytest.raises(RuntimeError, match="gradient has shape"):
        conv_weight_grad(np.ones((1, 1, 2, 2)), np.ones((1, 1, 5, 5)), (3, 3), *how)
    with pytest.raises(RuntimeError, match=r"input is float32 and the weight float64"):
        conv(np.ones((1, 1, 5, 5), np.float32), np.ones((1, 1, 3, 3)), *how)


# Maxima


@st.composite
def pools(draw):
    s = draw(windows(kernel=5, dilation=2, half=True))
    s.ceil = draw(st.booleans())
    s.out = window_counts(s.size, s.kernel, s.stride, s.padding, s.dilation, s.ceil)
    x = normal(s.seed, draw(st.integers(1, 2)), draw(st.integers(1, 3)), *s.size)
    kind = draw(st.sampled_from(["plain", "ties", "nan", "-inf"]))
    some = np.random.default_rng(s.seed).random(x.shape) < 0.4
    s.x = {"plain": x, "ties": x.round(), "nan": np.where(some, np.nan, x), "-inf": np.where(some, x, -np.inf)}[kind]
    s.how = (s.kernel, s.stride, s.padding, s.dilation, s.ceil)
    return s


def reaches(s):
    """Each window holds an element of the input: torch's index is out of range where one does not."""
    return all(
        any(0 <= start + j * d < size for j in range(k))
        for size, k, t, p, d, o in zip(s.size, s.kernel, s.stride, s.padding, s.dilation, s.out)
        for start in range(-p, o * t - p, t)
    )


def max_by_definition(x, kernel, stride, padding, dilation, out):
    values, indices = np.empty((*x.shape[:2], *out)), np.empty((*x.shape[:2], *out), np.int64)
    flat = np.arange(x[0, 0].size).reshape(x.shape[2:])
    for n, c, *p in np.ndindex(values.shape):
        best, where = -np.inf, None
        for k in np.ndindex(kernel):
            at = tuple(i * s - q + j * d for i, s, q, j, d in zip(p, stride, padding, k, dilation))
            if all(0 <= i < size for i, size in zip(at, x.shape[2:])):
                value = x[(n, c, *at)]
                if where is None or value > best or np.isnan(value):
                    best, where = value, flat[at]
        values[(n, c, *p)], indices[(n, c, *p)] = best, where
    return values, indices


@quick
@given(pools())
def test_max_pool_is_its_definition(s):
    if not reaches(s):
        with pytest.raises(RuntimeError, match="only padding"):
            max_pool(s.x, *s.how)
        return
    values, indices = max_pool(s.x, *s.how)
    expected, places = max_by_definition(s.x, s.kernel, s.stride, s.padding, s.dilation, s.out)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(indices, places)
    np.testing.assert_array_equal(gather_spatial(s.x, indices), values)


@thorough
@given(pools().filter(reaches))
def test_max_pool_equals_torch(torch, s):
    x = torch.tensor(s.x, requires_grad=True)
    pool = getattr(torch.nn.functional, f"max_pool{s.n}d")
    expected, places = pool(x, *s.how, return_indices=True)
    values, indices = max_pool(s.x, *s.how)
    np.testing.assert_array_equal(values, expected.detach())
    np.testing.assert_array_equal(indices, places)
    g = normal(s.seed + 1, *values.shape)
    close(scatter_spatial(g, indices, s.size), torch.autograd.grad(expected, x, torch.tensor(g))[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8])
def test_max_pool_dtypes(dtype):
    x = (10 * normal(0, 2, 3, 6, 6)).round().astype(dtype)
    values, indices = max_pool(x, (3, 3), (1, 1), (1, 1), (1, 1), False)
    assert (values.dtype, indices.dtype) == (dtype, np.int64)
    expected, places = max_by_definition(x.astype(np.float64), (3, 3), (1, 1), (1, 1), (1, 1), (6, 6))
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(indices, places)


def test_max_pool_of_the_least_integer_and_of_many_taps():
    least = np.full((1, 1, 4, 4), np.iinfo(np.int64).min)
    assert max_pool(least, (3, 3), (1, 1), (1, 1), (1, 1), False)[1][0, 0, 0].tolist() == [0, 0, 1, 2]
    x = normal(0, 2, 2, 40, 40)
    values, indices = max_pool(x, (17, 17), (1, 1), (0, 0), (1, 1), False)  # 289 taps: more than a byte counts
    assert np.array_equal(values[..., 3, 5], x[..., 3:20, 5:22].max((2, 3)))
    assert np.array_equal(gather_spatial(x, indices), values)


def test_max_pool_over_several_blocks():
    x = normal(0, 30, 20, 16, 16, dtype=np.float32)
    values, indices = max_pool(x, (2, 2), (2, 2), (0, 0), (1, 1), False)
    assert np.array_equal(values, x.reshape(30, 20, 8, 2, 8, 2).max((3, 5)))
    assert np.array_equal(gather_spatial(x, indices), values)


@quick
@given(windows(kernel=1), st.data())
def test_scatter_and_gather_are_adjoint(s, data):
    x = normal(s.seed, 2, 3, *s.size)
    shape = (2, 3, *data.draw(st.sampled_from([(4,), (2, 5)])))
    indices = np.random.default_rng(s.seed).integers(0, np.prod(s.size), shape)
    g = normal(s.seed + 1, *indices.shape)
    assert np.vdot(gather_spatial(x, indices), g) == pytest.approx(np.vdot(x, scatter_spatial(g, indices, s.size)))


def test_scatter_adds_up_in_any_dtype():
    indices = np.zeros((1, 1, 3000), np.int64)
    for dtype in (np.float16, np.float32, np.complex64, np.int32):
        out = scatter_spatial(np.ones((1, 1, 3000), dtype), indices, (2,))
        assert out.dtype == dtype
        assert out.ravel().tolist() == [3000, 0]


@pytest.mark.parametrize("index", [-1, 4])
def test_an_index_outside_is_refused(index):
    indices = np.array([[[0, index]]], np.int64)
    with pytest.raises(IndexError, match="positions 0 to 3"):
        scatter_spatial(np.ones((1, 1, 2)), indices, (2, 2))
    with pytest.raises(IndexError, match="positions 0 to 3"):
        gather_spatial(np.ones((1, 1, 2, 2)), indices)


# Averages


@st.composite
def averages(draw):
    s = draw(windows(kernel=5, dilation=1, half=True))
    s.ceil, s.include, s.divisor = (
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from([None, None, 3, -2])),
    )
    s.out = window_counts(s.size, s.kernel, s.stride, s.padding, s.dilation, s.ceil)
    s.x, s.g = normal(s.seed, 2, 3, *s.size), normal(s.seed + 1, 2, 3, *s.out)
    s.how = (s.kernel, s.stride, s.padding, s.ceil, s.include, s.divisor)
    return s


def average_by_definition(x, out, kernel, stride, padding, ceil, include, divisor):
    result = np.zeros((*x.shape[:2], *out))
    for p in np.ndindex(out):
        starts = [i * s - q for i, s, q in zip(p, stride, padding)]
        ends = [min(a + k, n + q) for a, k, n, q in zip(starts, kernel, x.shape[2:], padding)]
        seen = tuple(slice(max(a, 0), min(b, n)) for a, b, n in zip(starts, ends, x.shape[2:]))
        window = x[(..., *seen)]
        count = np.prod([b - a for a, b in zip(starts, ends)]) if include else window[0, 0].size
        result[(..., *p)] = window.sum(tuple(range(2, x.ndim))) / (divisor or count)
    return result


@quick
@given(averages())
def test_avg_pool_is_its_definition_and_its_gradient_the_transpose(s):
    y, gx = avg_pool(s.x, *s.how), avg_pool_grad(s.g, s.size, *s.how)
    close(y, average_by_definition(s.x, s.out, *s.how))
    assert gx.shape == s.x.shape
    assert np.vdot(y, s.g) == pytest.approx(np.vdot(s.x, gx), abs=1e-9)


@thorough
@given(averages())
def test_avg_pool_equals_torch(torch, s):
    x = torch.tensor(s.x, requires_grad=True)
    how = s.how if s.n > 1 else s.how[:-1]
    if s.n == 1 and s.divisor or s.n == 3 and any(a < k for a, k in zip(s.size, s.kernel)):
        return  # torch has no divisor in 1-d, and in 3-d wants unpadded windows
    y = getattr(torch.nn.functional, f"avg_pool{s.n}d")(x, *how)
    close(avg_pool(s.x, *s.how), y.detach())
    close(avg_pool_grad(s.g, s.size, *s.how), torch.autograd.grad(y, x, torch.tensor(s.g))[0])


def test_avg_pool_of_integers_cuts_off():
    x = np.array([[[-3, -4, 3, 4]]])
    assert avg_pool(x, (2,), (2,), (0,), False, True, None).tolist() == [[[-3, 3]]]
    assert avg_pool(x.astype(np.float16), (2,), (2,), (0,), False, True, None).dtype == np.float16


@quick
@given(windows(kernel=1), st.data())
def test_adaptive_pools(s, data):
    out = tuple(data.draw(st.integers(1, 7)) for _ in s.size)
    x, g = normal(s.seed, 2, 3, *s.size), normal(s.seed + 1, 2, 3, *out)
    y, (values, indices) = adaptive_avg_pool(x, out), adaptive_max_pool(x, out)
    for p in np.ndindex(out):
        parts = tuple(slice(i * n // o, -(-(i + 1) * n // o)) for i, n, o in zip(p, s.size, out))
        window = x[(..., *parts)]
        close(y[(..., *p)], window.mean(tuple(range(2, x.ndim))))
        assert np.array_equal(values[(..., *p)], window.max(tuple(range(2, x.ndim))))
    assert np.array_equal(gather_spatial(x, indices), values)
    assert np.vdot(y, g) == pytest.approx(np.vdot(x, adaptive_avg_pool_grad(g, s.size)), abs=1e-9)


@quick
@given(windows(kernel=1), st.data())
def test_adaptive_pools_equal_torch(torch, s, data):
    out = tuple(data.draw(st.integers(0, 7)) for _ in s.size)
    a = normal(s.seed, 2, 3, *s.size).round(0 if s.seed % 2 else 5)
    x = torch.tensor(a, requires_grad=True)
    y = getattr(torch.nn.functional, f"adaptive_avg_pool{s.n}d")(x, out)
    close(adaptive_avg_pool(a, out), y.detach())
    if all(out):  # torch refuses empty gradients
        g = normal(s.seed + 1, *y.shape)
        close(adaptive_avg_pool_grad(g, s.size), torch.autograd.grad(y, x, torch.tensor(g))[0])
    a[np.random.default_rng(s.seed).random(a.shape) < 0.1] = np.nan
    expected = getattr(torch.nn.functional, f"adaptive_max_pool{s.n}d")(torch.tensor(a), out, return_indices=True)
    for ours, theirs in zip(adaptive_max_pool(a, out), expected):
        np.testing.assert_array_equal(ours, theirs)


def test_empty_batches_of_pools():
    x = np.ones((0, 2, 4, 4))
    values, indices = max_pool(x, (2, 2), (2, 2), (0, 0), (1, 1), False)
    assert values.shape == indices.shape == (0, 2, 2, 2)
    assert scatter_spatial(values, indices, (4, 4)).shape == x.shape
    assert gather_spatial(x, indices).shape == values.shape
    assert avg_pool(x, (2, 2), (2, 2), (0, 0), False, True, None).shape == (0, 2, 2, 2)
    assert adaptive_avg_pool(x, (1, 1)).shape == adaptive_max_pool(x, (1, 1))[0].shape == (0, 2, 1, 1)
    assert adaptive_max_pool(x, (3, 3))[1].shape == (0, 2, 3, 3)


def test_pool_errors():
    x = np.ones((1, 1, 2, 2))
    with pytest.raises(RuntimeError, match=r"input size: \(1x2x2\). Calculated output size: \(1x0x0\). Output"):
        max_pool(x, (3, 3), (3, 3), (0, 0), (1, 1), False)
    with pytest.raises(RuntimeError, match="pad should be at most half of effective kernel size, but got pad=2"):
        avg_pool(x, (3, 3), (3, 3), (2, 2), False, True, None)
    with pytest.raises(RuntimeError, match="divisor must be not zero"):
        avg_pool(x, (2, 2), (2, 2), (0, 0), False, True, 0)
    with pytest.raises(RuntimeError, match="gradient has shape"):
        avg_pool_grad(x, (8, 8), (2, 2), (2, 2), (0, 0), False, True, None)
    with pytest.raises(RuntimeError, match="stride should be greater than zero"):
        max_pool(x, (2, 2), (0, 0), (0, 0), (1, 1), False)
    with pytest.raises(RuntimeError, match="Expected 3D or 4D"):
        max_pool(np.ones((1, 0, 4, 4)), (2, 2), (2, 2), (0, 0), (1, 1), False)
    with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
        adaptive_avg_pool(np.ones((1, 1, 0, 5)), (1, 2))
    with pytest.raises(RuntimeError, match="greater than or equal to 0"):
        adaptive_max_pool(x, (-1, 2))


# Unfold and fold


@quick
@given(windows(dims=(2,)))
def test_unfold_and_fold(s):
    x = normal(s.seed, 2, 3, *s.size)
    how = (s.kernel, s.dilation, s.padding, s.stride)
    columns = unfold(x, *how)
    w = normal(s.seed + 1, 4, 3, *s.kernel)
    by_columns = (w.reshape(4, -1) @ columns).reshape(2, 4, *s.out)
    close(by_columns, conv_by_definition(x, w, s.stride, s.padding, s.dilation, 1))
    g = normal(s.seed + 2, *columns.shape)
    assert np.vdot(columns, g) == pytest.approx(np.vdot(x, fold(g, s.size, *how)), abs=1e-9)


@quick
@given(windows(dims=(2,)))
def test_unfold_and_fold_equal_torch(torch, s):
    x, how = normal(s.seed, 2, 3, *s.size), (s.kernel, s.dilation, s.padding, s.stride)
    columns = torch.nn.functional.unfold(torch.tensor(x), *how)
    assert np.array_equal(unfold(x, *how), columns)
    g = normal(s.seed + 1, *columns.shape)
    close(fold(g, s.size, *how), torch.nn.functional.fold(torch.tensor(g), s.size, *how))


def test_unfold_errors():
    how = ((3, 3), (1, 1), (0, 0), (1, 1))
    with pytest.raises(RuntimeError, match=r"spatial size \(2, 2\).*sliding blocks as \(0, 0\)"):
        unfold(np.ones((1, 1, 2, 2)), *how)
    with pytest.raises(RuntimeError, match="divisible by the product of kernel_size"):
        fold(np.ones((1, 8, 9)), (5, 5), *how)
    with pytest.raises(RuntimeError, match=r"3 \* 3 = 9, but got input.size\(2\)=8"):
        fold(np.ones((1, 9, 8)), (5, 5), *how)
    assert unfold(np.ones((0, 1, 5, 5)), *how).shape == (0, 9, 9)
    assert fold(np.ones((0, 9, 9)), (5, 5), *how).shape == (0, 1, 5, 5)


@pytest.mark.parametrize("module", [conv_kernels, pool_kernels, window_kernels])
def test_examples(module):
    result = doctest.testmod(module, extraglobs={"np": np})
    assert result.attempted
    assert not result.failed
