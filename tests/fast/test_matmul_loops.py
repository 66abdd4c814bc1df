"""Compiled products of matrices: against float64, for all layouts, beside BLAS's own errors."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.fast import matmul as faster
from rushlight.fast import policy
from rushlight.kernels import matmul

pytest.importorskip("llvmlite")
from rushlight.fast import matmul_loops as loops

LAYOUTS = (
    "rows",
    "columns",
    "part of wider rows",
    "part of longer columns",
    "backward",
    "every second",
    "repeated",
    "read-only",
)


def matrix(rng, m, n, layout):
    """Numbers (m, n) that lie so in memory."""
    if layout in ("columns", "part of longer columns"):
        return matrix(rng, n, m, {"columns": "rows"}.get(layout, "part of wider rows")).T
    if layout == "part of wider rows":
        return rng.standard_normal((m, n + 13), dtype=np.float32)[:, 5 : 5 + n]
    if layout == "backward":
        return rng.standard_normal((m, n), dtype=np.float32)[::-1]
    if layout == "every second":
        return rng.standard_normal((m, 2 * n), dtype=np.float32)[:, ::2]
    if layout == "repeated":
        return np.broadcast_to(rng.standard_normal(n, dtype=np.float32), (m, n))
    x = rng.standard_normal((m, n), dtype=np.float32)
    x.flags.writeable = layout != "read-only"
    return x


@pytest.fixture
def at_once(monkeypatch):
    """Loops from the first product on."""
    monkeypatch.setattr(policy.products, "left", 0)


def check(m, k, n, layout, other, biased, seed):
    """The product of such matrices, written into a part of an array, is as exact as BLAS's."""
    rng = np.random.default_rng(seed)
    x, y, bias = matrix(rng, m, k, layout), matrix(rng, k, n, other), rng.standard_normal(n, dtype=np.float32)
    room = np.full((m, n + 9), np.nan, np.float32)
    loops.product(x, y, room[:, 4 : 4 + n], bias if biased else None)
    wanted = x.astype(float) @ y.astype(float) + bias * biased
    bound = np.abs(x.astype(float)) @ np.abs(y.astype(float)) + np.abs(bias)
    assert np.all(np.abs(room[:, 4 : 4 + n] - wanted) <= 3e-7 * np.sqrt(k) * bound)
    assert np.isnan(room[:, :4]).all()  # nothing beside it is written
    assert np.isnan(room[:, 4 + n :]).all()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(20, 1100),
    st.integers(16, 700),
    st.integers(1, 300),
    st.sampled_from(LAYOUTS),
    st.sampled_from(LAYOUTS),
    st.booleans(),
    st.integers(0, 99),
)
def test_as_exact_as_blas(m, k, n, layout, other, biased, seed):
    check(m, k, n, layout, other, biased, seed)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.integers(20, 70),
    st.integers(16, 80),
    st.integers(1, 140),
    st.sampled_from(LAYOUTS),
    st.sampled_from(LAYOUTS),
    st.integers(1, 3),
    st.integers(0, 99),
)
def test_stacks(lead, m, k, n, layout, other, cores, seed):
    """Many products at once: of matrices side by side, of heads that lie between each other, and of one repeated."""
    rng = np.random.default_rng(seed)
    x = np.moveaxis(np.stack([matrix(rng, m, k, layout) for _ in range(lead[0])], 1), 1, 0)  # rows of all take turns
    x = np.broadcast_to(x if len(lead) == 1 else x.reshape(lead[0], *[1] * (len(lead) - 1), m, k), (*lead, m, k))
    y = np.stack([matrix(rng, k, n, other) for _ in range(int(np.prod(lead)))]).reshape(*lead, k, n)
    y = y if other == "rows" else np.ascontiguousarray(y.swapaxes(-1, -2)).swapaxes(-1, -2)
    out = np.full((*lead, m, n), np.nan, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "cores", lambda: cores)
        patch.setattr(loops, "MATMUL_PARALLEL_PRODUCTS", 0)
        loops.product(x, y, out)
    wanted, bound = x.astype(float) @ y.astype(float), np.abs(x.astype(float)) @ np.abs(y.astype(float))
    assert np.all(np.abs(out - wanted) <= 3e-7 * np.sqrt(k) * bound)


def test_nothing_is_read_beyond_an_array():
    """The last numbers of y, at the end of a page behind which there is none; what few rows read where it lies."""
    if sys.platform == "win32":
        pytest.skip("no mprotect")
    page = mmap.PAGESIZE
    for n in (16, 24, 100):
        numbers = np.frombuffer(mmap.mmap(-1, 9 * page), np.float32)
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(numbers.ctypes.data + 8 * page), page, 0) == 0
        y = numbers[8 * page // 4 - 32 * n : 8 * page // 4].reshape(32, n)
        out = np.empty((32, n), np.float32)
        loops.product(np.ones((32, 32), np.float32), y, out)
        assert not out.any()


def test_errors_are_no_larger_than_those_of_blas(at_once):
    """In the mean, up to 1.27 times those of OpenBLAS's kernels for AVX2; the largest is chance."""
    rng = np.random.default_rng(0)
    for m, k, n in ((768, 128, 384), (128, 768, 512), (64, 784, 128), (500, 1100, 300)):
        x, y = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((n, k), dtype=np.float32).T
        exact = x.astype(float) @ y.astype(float)
        assert np.linalg.norm(matmul.mm(x, y) - exact) <= 1.5 * np.linalg.norm(np.dot(x, y) - exact)


def test_each_place_meets_its_own_numbers():
    """A number that is not finite reaches its own row and column, and no others."""
    rng = np.random.default_rng(1)
    for turned in (False, True):
        x, y = rng.standard_normal((101, 300), dtype=np.float32), rng.standard_normal((300, 83), dtype=np.float32)
        x[57, 120], y[290, 82] = np.inf, np.nan
        if turned:
            x, y = np.asfortranarray(x), np.asfortranarray(y)
        out = np.empty((101, 83), np.float32)
        loops.product(x, y, out)
        with np.errstate(invalid="ignore"):
            wanted = x.astype(float) @ y.astype(float)
        np.testing.assert_array_equal(np.isnan(out), np.isnan(wanted))
        np.testing.assert_array_equal(np.isinf(out), np.isinf(wanted))


def test_all_cores_give_the_same_numbers(monkeypatch):
    rng = np.random.default_rng(2)
    for m, k, n in ((900, 200, 130), (100, 300, 900)):
        x, y = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
        bias, results = rng.standard_normal(n, dtype=np.float32), []
        for cores in (1, 3, 1, 3):
            monkeypatch.setattr(loops, "cores", lambda cores=cores: cores)
            results.append(np.empty((m, n), np.float32))
            loops.product(x, y, results[-1], bias)
        assert all(np.array_equal(results[0], r) for r in results)


def test_loops_begin_when_enough_has_been_multiplied(monkeypatch):
    """By the work alone: a program repeated gives the same numbers."""
    used = []
    monkeypatch.setattr(faster, "compiled", lambda: used.append(True))
    monkeypatch.setattr(policy.products, "left", 2 * 128**3)
    x = np.ones((128, 128), np.float32)
    for expected in (0, 1, 2, 3):  # from that on with which it is enough
        matmul.mm(x, x.T)
        assert len(used) == expected


def test_what_loops_leave_to_blas(monkeypatch):
    monkeypatch.setattr(faster, "cores", lambda: 1)
    f, small = np.ones((256, 256), np.float32), np.ones((64, 64), np.float32)
    for x, y in ((f, f), (f, f.T), (f[:, :64], f[:64]), (f, f[:, :20]), (small, small.T), (f.T, f)):
        assert faster.suits(x, y)
        assert faster.suits(np.stack([x] * 3), np.stack([y] * 3)) or x.strides[1] != 4 or y.strides[1] != 4
    for x, y in (
        (f.astype(float), f.astype(float)),
        (f, f.astype(float)),
        (f[:15], f),
        (f[:, :15], f[:15]),
        (f, f[0]),
        (f, f[:255]),
        (small, small),
        (small.T, small.T),
        (small, small.T[:, :10]),
        (f.T, f[:, :65]),
        (np.stack([f] * 2), np.stack([f] * 3)),
        (f, np.stack([f] * 3)),
    ):
        assert not faster.suits(x, y)
    monkeypatch.setattr(faster, "cores", lambda: 2)  # then nothing that is large, for threads of BLAS spin
    assert faster.suits(f.T, f[:, :65])
    assert not faster.suits(f.T, f[:, :60])


@pytest.mark.usefixtures("at_once")
def test_tensors_through_the_loops():
    """Layers, their gradients, stacks of matrices and errors."""
    rushlight.manual_seed(0)
    layer, x = rushlight.nn.Linear(256, 384), rushlight.randn(4, 64, 256)

    def results(dtype):
        weight, bias, given = (t.detach().to(dtype).requires_grad_() for t in (layer.weight, layer.bias, x))
        y = rushlight.nn.functional.linear(given, weight, bias)
        y.square().sum().backward()
        return [y, given @ weight.T, given.grad, weight.grad, bias.grad]

    heads = rushlight.randn(2, 32, 3, 40).swapaxes(1, 2)
    many = (heads @ heads.mT) @ heads
    assert (many - (heads.double() @ heads.double().mT) @ heads.double()).abs().max() <= 2e-6 * many.abs().max()
    for got, wanted in zip(results(rushlight.float32), results(rushlight.float64), strict=True):
        assert (got - wanted).abs().max() <= 2e-6 * wanted.abs().max()
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        rushlight.randn(512, 512) @ rushlight.randn(511, 512)
    assert (rushlight.randn(512, 0) @ rushlight.randn(0, 512)).abs().sum() == 0


@pytest.mark.usefixtures("at_once")
def test_compiled_programs_multiply_stacks_by_the_loops(monkeypatch):
    used, product = [], faster.compiled()
    if product is None:
        pytest.skip("registers are narrow")
    monkeypatch.setattr(faster, "compiled", lambda: lambda *given: used.append(given[0].shape) or product(*given))

    def scores(q, k):
        return q @ k.mT

    q, k = rushlight.randn(2, 64, 3, 48).swapaxes(1, 2), rushlight.randn(2, 3, 64, 48)
    eager = scores(q, k)
    program = rushlight.compile(scores)
    for _ in range(3):
        assert (program(q, k) == eager).all()
    assert used.count((2, 3, 64, 48)) >= 4


def test_few_rows_times_a_long_vector():
    x, y = rushlight.randn(8, 300), rushlight.randn(300)
    assert rushlight.allclose(x @ y, (x.double() @ y.double()).float(), atol=1e-4)


@pytest.mark.parametrize("rows", [2, 3, 8, 19, 39, 40])
@pytest.mark.parametrize("columns", [65, 1300])
def test_few_rows_times_a_transpose(rows, columns):
    """Computed the other way round: the same product, laid out as any other."""
    x, w = (np.random.default_rng(n).standard_normal((n, 70)).astype(np.float32) for n in (rows, columns))
    for rows_of in (x, x[:, ::-1], np.asfortranarray(x)):
        out = np.empty((rows, columns), np.float32)
        matmul.into(rows_of, w.T, out)
        for made in (matmul.mm(rows_of, w.T), out):
            assert made.flags.c_contiguous
            np.testing.assert_allclose(made, rows_of.astype(float) @ w.T.astype(float), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [8, 19, 39])
def test_few_rows_times_a_vector(at_once, rows):
    """Is no product for loops (it failed in processes that had them)."""
    x, v = (np.random.default_rng(n).standard_normal(n * 70).astype(np.float32) for n in (rows, 1))
    x = x.reshape(rows, 70)
    np.testing.assert_allclose(matmul.mm(x, v), x.astype(float) @ v.astype(float), rtol=1e-5, atol=1e-5)


def test_batches_of_vmap_are_no_arrays_to_loops(at_once):
    """Loops read an array's memory by its address: what only looks like an array ended the process."""
    x, y = rushlight.randn(2, 256, 32), rushlight.randn(2, 32, 256)
    found = rushlight.vmap(rushlight.matmul)(x, y)
    assert np.allclose(found, x.numpy() @ y.numpy(), atol=1e-4)
    shared = rushlight.vmap(rushlight.matmul, in_dims=(None, 0))(x[0], y)
    assert np.allclose(shared, x[0].numpy() @ y.numpy(), atol=1e-4)
