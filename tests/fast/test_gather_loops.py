"""Loops that gather, scatter, reverse and add multiples, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight.base.dependencies import has_llvmlite
from rushlight.fast import gather_loops, multiple_loops
from rushlight.fast.reductions import sums

pytestmark = pytest.mark.skipif(not has_llvmlite(), reason="without llvmlite there are no loops")
DTYPES = [np.float32, np.float64, np.int32, np.int64, np.complex64]
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def built(monkeypatch):
    """Loops are built before their first use, not when NumPy has worked for long."""

    def build(loop, elements):
        loop.build()

    monkeypatch.setattr(gather_loops.Loop, "pay", build)


def numbers(shape, dtype):
    return (100 * RNG.standard_normal(shape)).astype(dtype)


def twice(function, *args):
    """The result of the second call: the first builds the loop."""
    function(*args)
    return function(*args)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_and_scatter(dim, dtype):
    x, n = numbers((5, 6, 7), dtype), (5, 6, 7)[dim]
    index = RNG.integers(0, n, [4 if d == dim else k for d, k in enumerate(x.shape)])
    made = twice(gather_loops.gathered_many, x, index, dim)
    np.testing.assert_array_equal(made, np.take_along_axis(x, index, dim), strict=True)
    order = RNG.permuted(np.zeros_like(np.moveaxis(x, dim, -1), int) + np.arange(n), axis=-1)
    index = np.ascontiguousarray(np.moveaxis(order[..., :4], -1, dim))  # each place once
    source, want, r = numbers(index.shape, dtype), x.copy(), x.copy()
    np.put_along_axis(want, index, source, dim)
    assert twice(gather_loops.placed_many, r, index, source, dim) is True
    np.testing.assert_array_equal(r, want, strict=True)


def test_of_two_numbers_at_one_place_the_last_stays():
    r, index = np.zeros((1, 4), np.float32), np.array([[2, 2, 0, 2]])
    twice(gather_loops.placed_many, r, index, np.array([[1, 2, 3, 4]], np.float32), 1)
    np.testing.assert_array_equal(r, [[3, 0, 4, 0]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_slices(dim, dtype):
    x, index = numbers((5, 6, 7), dtype), np.array([[3, 0, 4], [4, 4, 1]], np.int32)
    made = twice(gather_loops.taken, x, index, dim)
    if dim == 0:
        assert made is None  # so many numbers together NumPy copies as fast
    else:
        np.testing.assert_array_equal(made, x.take(index, dim), strict=True)


@pytest.mark.parametrize("bad", [-1, 6])
def test_an_index_that_counts_from_the_end_or_is_not_there_is_left_to_numpy(bad):
    x = numbers((5, 6), np.float32)
    assert twice(gather_loops.taken, x, np.array([0, bad]), 1) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_in_opposite_order(dtype):
    x = numbers((3, 4, 37), dtype)
    np.testing.assert_array_equal(twice(gather_loops.flip, x, (-1,)), x[..., ::-1], strict=True)
    assert gather_loops.flip(x, (0,)) is None
    assert gather_loops.flip(x[..., ::2], (2,)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_multiple_is_added_in_place_to_the_last_bit(dtype):
    a, b = numbers((7, 33), dtype), numbers((7, 33), dtype)
    multiple_loops.loop_of(a.dtype).build()
    want = a + b * dtype(0.3)
    assert multiple_loops.add_multiple(a, b, 0.3) is True
    np.testing.assert_array_equal(a, want, strict=True)
    line = numbers(100, dtype)
    assert multiple_loops.add_multiple(line[1:], line[:-1], 0.3) is None  # the same memory


@pytest.mark.parametrize("large", [False, True])
def test_add_in_place_with_alpha(large):
    shape = (128, 129) if large else (3, 4)
    a, b = numbers(shape, np.float32), numbers(shape, np.float32)
    x = rushlight.tensor(a)
    version = x._version
    assert x.add_(rushlight.tensor(b), alpha=-0.1) is x
    np.testing.assert_array_equal(x.numpy(), a + b * np.float32(-0.1))
    assert x._version == version + 1
    with pytest.raises(RuntimeError):
        rushlight.tensor(a[:1]).expand(shape).add_(rushlight.tensor(b), alpha=2)


@pytest.mark.parametrize("dims", [None, 0, (0, 2), (1, 2), 2])
def test_sums_of_expanded_arrays(dims):
    x = np.broadcast_to(numbers((1, 5, 64), np.float32), (3, 5, 64))
    made = sums(x, dims)
    if dims in ((1, 2), 2):
        assert made is None  # no element is summed twice
    else:
        np.testing.assert_allclose(made, x.sum(dims, np.float64), rtol=1e-5, atol=1e-3)
        assert np.shape(sums(x, dims, True)) == x.sum(dims, keepdims=True).shape


@pytest.mark.parametrize("repeats", [(1, 1), (2, 1), (1, 3), (2, 3), (4, 1, 2), (0, 2)])
def test_the_gradient_of_repeat(repeats):
    x = rushlight.tensor(numbers((3, 5), np.float32), requires_grad=True)
    made = x.repeat(*repeats)
    g = numbers(made.shape, np.float32)
    made.backward(rushlight.tensor(g))
    lead, rows, columns = (1, *repeats)[-3:]
    want = g.reshape(lead, rows, 3, columns, 5).sum((0, 1, 3))
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-5, atol=1e-4)
