"""Kernels that take large arrays another way than NumPy, against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from rushlight.fast import remainders
from rushlight.kernels import elementwise, index
from rushlight.kernels.elementwise import divided
from rushlight.kernels.index import HERE

HARD = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e38, 3e-39, 7.5], np.float32)


def same_bits(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    bits = f"i{a.dtype.itemsize}"
    assert ((a.view(bits) == b.view(bits)) | (a != a) & (b != b)).all()


def numbers(rng, n, low, high):
    return (rng.standard_normal(n) * 10.0 ** rng.uniform(low, high, n)).astype(np.float32)


KINDS = ["any", "tiny", "whole", "multiples", "hard", "far apart"]


def dividends(kind):
    """x and y, 20,000 of each."""
    rng = np.random.default_rng(3)
    x, y = numbers(rng, 20000, -3, 5), numbers(rng, 20000, -2, 2)
    if kind == "tiny":
        x = numbers(rng, 20000, -38, 0)
    elif kind == "whole":
        x, y = np.rint(x), np.rint(y) + (np.rint(y) == 0)
    elif kind == "multiples":
        x = np.rint(x) * y
    elif kind == "hard":
        x[:500], y[100:600] = rng.choice(HARD, 500), rng.choice(HARD, 500)
    elif kind == "far apart":
        x, y = numbers(rng, 20000, 0, 30), numbers(rng, 20000, -20, 0)
    return x, y


@pytest.mark.parametrize("ufunc", [np.remainder, np.fmod, np.floor_divide])
@pytest.mark.parametrize("kind", KINDS)
def test_divisions_of_float32_are_numpys_to_the_bit(ufunc, kind):
    x, y = dividends(kind)
    with np.errstate(all="ignore"):
        for b in (y, y[7:8].reshape(()), -np.abs(y)):
            same_bits(divided(x, b, ufunc), ufunc(x, b))
        a, b = x.reshape(100, 200), y.reshape(100, 200)
        same_bits(divided(a, b[:1], ufunc), ufunc(a, b[:1]))
        same_bits(divided(a.T, b[:, :1].T, ufunc), ufunc(a.T, b[:, :1].T))


@pytest.mark.faster
@pytest.mark.parametrize("ufunc", [np.remainder, np.fmod])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_of_divisions_gives_the_same_bits_or_none(ufunc, kind):
    pytest.importorskip("llvmlite")
    x, y = dividends(kind)
    for b in (y, y[7:8].reshape(()), -np.abs(y)):
        remainders.loop(ufunc, not b.ndim).build()
        with np.errstate(all="ignore"):
            made, expected = remainders.by_loop(ufunc, x, b), ufunc(x, b)
        if made is not None:
            same_bits(made, expected)
        assert made is not None or kind not in ("whole", "tiny")


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "i8", "u8"])
def test_remainders_of_integers_are_numpys(dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    x, y = (rng.integers(info.min, info.max, 5000, dtype=dtype) for _ in range(2))
    y[y == 0], x[:9] = 1, info.min
    y[:5] = -1 if info.min else 1
    for b in (y, np.asarray(7, dtype), y[:1]):
        found = divided(x, b, np.remainder)
        assert found.dtype == dtype
        assert (found == np.remainder(x, b)).all()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i2", "i4", "i8", "?", "c8"])
def test_where_is_numpys_to_the_bit(dtype):
    rng = np.random.default_rng(1)
    x = np.resize(HARD, (40, 60)) if dtype[0] in "fc" else rng.integers(0, 100, (40, 60))
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    y, mask = x[::-1].copy(), rng.random((40, 60)) > 0.5
    zero, one = np.zeros((), dtype), np.ones((), dtype)
    for a, b in [
        (x, y),
        (x, zero),
        (zero, x),
        (x, one),
        (one, x),
        (x, 0),
        (0, x),
        (x, y[:1]),
        (x[:, :1], y),
        (zero, one),
    ]:
        for c in (mask, mask[0], mask[:1], mask[:, :1], mask[0, :1].reshape(()), mask[1, 1:2].reshape(())):
            found, expected = elementwise.where(c, a, b), np.where(c, a, b)
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
            assert found.tobytes() == expected.tobytes()
    assert (elementwise.where(mask.T, x.T, y.T) == np.where(mask.T, x.T, y.T))[x.T == x.T].all() or dtype[0] == "f"
    if dtype[0] == "f":
        assert np.signbit(elementwise.where(mask, x, -0.0)[~mask]).all()


@pytest.mark.parametrize("exponent", [4, 5, -3, 7, 0, -2, 2.5, np.inf, -np.inf, np.nan])
def test_powers_are_numpys(exponent):
    with np.errstate(all="ignore"):
        for dtype in (np.float32, np.float64):
            x = np.concatenate((HARD, np.linspace(-3, 3, 100))).astype(dtype)
            found, expected = elementwise.pow(x, np.asarray(exponent, dtype)), np.power(x, dtype(exponent))
            np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
            assert (np.signbit(found) == np.signbit(expected))[expected == expected].all()


def test_masks_and_nonzero_of_large_arrays():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((30, 40, 5))
    for mask in (rng.random((30, 40, 5)) > 0.5, rng.random((30, 40)) > 0.9):
        for key in ((HERE,), (HERE, ...)):
            found = index.index(x, [mask], key)
            assert (found == x[mask]).all()
            back = index.index_add_zeros(found, [mask], key, x.shape)
            assert (back[mask] == found).all()
            assert np.count_nonzero(back) == found.size
            written = index.index_put(x, found * 2, [mask], key)
            assert (written[mask] == 2 * found).all()
            assert (written[~mask] == x[~mask]).all()
        for y in (mask, mask.T, x):
            assert all((a == b).all() for a, b in zip(index.nonzero(y), np.nonzero(y), strict=True))


def test_added_at_columns_that_stand_twice():
    rng = np.random.default_rng(4)
    for n in (50, 400):
        at, g = rng.integers(-n, n, 300), rng.standard_normal((n, 300)).astype(np.float32)
        expected = np.zeros((n, n))
        np.add.at(expected, (slice(None), at), g)
        for found in (
            index.index_add_zeros(g, [at], (slice(None), HERE), (n, n)),
            index.index_put(np.zeros((n, n), np.float32), g, [at], (slice(None), HERE), True),
        ):
            np.testing.assert_allclose(found, expected, atol=1e-5)
