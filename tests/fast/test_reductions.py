"""Reductions, scans and transposed copies of large arrays: loops and squares give what NumPy gives."""

import numpy as np
import pytest

import rushlight
from rushlight.fast import reductions
from rushlight.kernels import reduce
from rushlight.kernels.layout import copied

SHAPES = [(300, 1000), (7, 60, 300), (1, 200_000), (100_001,), (5000, 33)]
REDUCTIONS = {
    "sums": np.sum,
    "norms": lambda x, **how: np.sqrt(np.sum(x * x, **how)),
    "largest": np.max,
    "smallest": np.min,
}


def by_loop(name, x, dims, keepdim):
    if name == "norms":
        return reductions.reduced(x, dims, keepdim, lambda: reductions.loops().norms)
    return getattr(reductions, name)(x, dims, keepdim)


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_rows(name, shape):
    pytest.importorskip("llvmlite")
    x = normal(*shape)
    for kept in range(len(shape)):
        dims = tuple(range(kept - len(shape), 0))
        for keepdim in (False, True):
            expected = REDUCTIONS[name](x.astype(float), axis=dims, keepdims=keepdim)
            made = by_loop(name, x, dims, keepdim)
            assert made.shape == expected.shape
            np.testing.assert_allclose(made, expected, rtol=2e-6, atol=2e-4 if name == "sums" else 0)
    np.testing.assert_array_equal(by_loop(name, x, -1, True), by_loop(name, x, (len(shape) - 1,), True))
    whole = by_loop(name, x, None, False)
    np.testing.assert_allclose(whole, REDUCTIONS[name](x.astype(float)), rtol=2e-6, atol=2e-3)


@pytest.mark.parametrize("shape", [(300, 1003), (70, 32, 33)])
def test_products(shape):
    pytest.importorskip("llvmlite")
    x = 1 + normal(*shape) / 100
    np.testing.assert_allclose(reductions.products(x, (-1,), False), np.prod(x.astype(float), -1), rtol=2e-5)
    x[0, ..., 5], x[1, ..., 6], x[2, ..., 7] = np.nan, 0, np.inf
    np.testing.assert_allclose(reduce.prod(x, (-1,)), np.prod(x.astype(float), -1), rtol=2e-5)


def test_nansum_where_infinities_meet():
    x = normal(3, 70_000)
    x[0, 7], x[1, 1], x[1, 2] = np.nan, np.inf, -np.inf
    np.testing.assert_allclose(reduce.nansum(x, (1,)), np.nansum(x.astype(float), 1), rtol=1e-4)
    assert np.isnan(reduce.nansum(x))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_nan_and_infinities(name):
    pytest.importorskip("llvmlite")
    x = normal(4, 40_000)
    x[0, 5], x[1, 7], x[2, 9], x[3] = np.nan, np.inf, -np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(by_loop(name, x, (1,), False), REDUCTIONS[name](x, axis=1), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "ufunc"), [("running_sums", np.add), ("running_products", np.multiply)])
def test_running_sums_and_products_to_the_last_bit(shape, name, ufunc):
    pytest.importorskip("llvmlite")
    x = normal(*shape)
    for dim in range(-len(shape), len(shape)):
        np.testing.assert_array_equal(reductions.running(name, x, dim), reduce.accumulated(ufunc, x, dim))


def test_what_is_left_to_numpy():
    x = normal(300, 1000)
    for given, dims in ((x.T, (1,)), (x.astype(float), (1,)), (x, (0,)), (x.reshape(-1, 4), (1,))):
        assert reductions.sums(given, dims, False) is None
    assert reductions.running("running_sums", x[:, ::2], 1) is None


def test_errors_stay():
    x = rushlight.from_numpy(normal(300, 1000))
    for call in (lambda: x.sum(2), lambda: x.amax((0, 0)), lambda: x.cumsum(2), lambda: x.norm(dim=5)):
        with pytest.raises((IndexError, RuntimeError)):
            call()


@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((300, 700), (1, 0)),
        ((3, 300, 257), (0, 2, 1)),
        ((300, 3, 257), (2, 1, 0)),
        ((257, 300, 2), (1, 0, 2)),
        ((300, 257), (0, 1)),
        ((10, 300), (1, 0)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.complex64])
def test_transposed_copies(shape, order, dtype):
    x = (normal(*shape) * 9).astype(dtype).transpose(order)
    made = copied(x)
    assert made.flags.c_contiguous
    assert not np.shares_memory(made, x)
    np.testing.assert_array_equal(made, x)
    every = copied(x[:, ::2])
    np.testing.assert_array_equal(every, x[:, ::2])
