"""Products of few rows, few columns, or few numbers to add up: against float64, for all layouts."""

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

pytest.importorskip("llvmlite")
from rushlight.fast import matmul_loops as loops
from rushlight.loops.llvm import machine
from tests.fast.test_matmul_loops import LAYOUTS, check


@settings(max_examples=80, deadline=None)
@given(
    st.integers(2, 19),
    st.integers(2, 700),
    st.integers(16, 300),
    st.sampled_from(LAYOUTS),
    st.sampled_from(LAYOUTS),
    st.booleans(),
    st.integers(0, 99),
)
def test_few_rows(m, k, n, layout, other, biased, seed):
    check(m, k, n, layout, other, biased, seed)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(2, 40),
    st.integers(2, 700),
    st.integers(16, 300),
    st.sampled_from(LAYOUTS[:4]),
    st.sampled_from(("columns", "part of longer columns")),
    st.booleans(),
    st.integers(0, 99),
)
def test_few_rows_by_a_transpose(m, k, n, layout, other, biased, seed):
    check(m, k, n, layout, other, biased, seed)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(20, 500),
    st.integers(2, 300),
    st.integers(2, 19),
    st.sampled_from(LAYOUTS),
    st.sampled_from(LAYOUTS),
    st.booleans(),
    st.integers(0, 99),
)
def test_few_columns(m, k, n, layout, other, biased, seed):
    check(m, k, n, layout, other, biased, seed)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(20, 500),
    st.integers(2, 15),
    st.integers(1, 300),
    st.sampled_from(LAYOUTS),
    st.sampled_from(LAYOUTS),
    st.booleans(),
    st.integers(0, 99),
)
def test_few_numbers_to_add_up(m, k, n, layout, other, biased, seed):
    check(m, k, n, layout, other, biased, seed)


@pytest.mark.parametrize("m", [7, 11, 27])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("k", "n"), [(33, 16), (16, 17), (47, 100)])
def test_nothing_is_read_beyond_an_array(turned, k, n, m):
    """y ends with a page behind which there is none."""
    if sys.platform == "win32":
        pytest.skip("no mprotect")
    page = mmap.PAGESIZE
    numbers = np.frombuffer(mmap.mmap(-1, 9 * page), np.float32)
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(numbers.ctypes.data + 8 * page), page, 0) == 0
    y = numbers[8 * page // 4 - k * n : 8 * page // 4].reshape((n, k) if turned else (k, n))
    out = np.full((m, n), np.nan, np.float32)
    loops.product(np.ones((m, k), np.float32), y.T if turned else y, out)
    assert not out.any()


@pytest.mark.parametrize("turned", [False, True])
def test_each_place_meets_its_own_numbers(turned):
    """A number that is not finite reaches its own row and column, and no others."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((11, 77), dtype=np.float32), rng.standard_normal((77, 83), dtype=np.float32)
    x[9, 76], y[70, 82] = np.inf, np.nan
    out = np.empty((11, 83), np.float32)
    loops.product(x, np.asfortranarray(y) if turned else y, out)
    with np.errstate(invalid="ignore"):
        wanted = x.astype(float) @ y.astype(float)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(out), np.isinf(wanted))


@pytest.mark.parametrize("m", [7, 27])
@pytest.mark.parametrize("turned", [False, True])
def test_all_cores_give_the_same_numbers(monkeypatch, turned, m):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((m, 300), dtype=np.float32), rng.standard_normal((300, 1000), dtype=np.float32)
    y, results = np.asfortranarray(y) if turned else y, []
    monkeypatch.setattr(loops, "MATMUL_PARALLEL_PRODUCTS", 0)
    for cores in (1, 3, 1, 3):
        monkeypatch.setattr(loops, "cores", lambda cores=cores: cores)
        results.append(np.empty((m, 1000), np.float32))
        loops.product(x, y, results[-1])
    assert all(np.array_equal(results[0], r) for r in results)


def test_which_products_the_loops_take(monkeypatch):
    monkeypatch.setattr(faster, "cores", lambda: 1)
    f = np.ones((512, 512), np.float32)
    for x, y in (
        (f[:8], f),
        (f[:8], f.T),
        (f[:8, :128], f[:384, :128].T),
        (f[:8].T.copy().T, f),
        (f[:4], f),
        (f.T, f[:, :8]),
        (f[:, :10], f[:10]),
        (f.T[:, :10], f[:10]),
    ):
        assert faster.suits(x, y)
    for x, y in (
        (f[:8, :128], f[:128]),
        (f[:1], f),
        (f[:1], f.T),
        (f[:2], f.T),
        (f.T, f[:, :1]),
        (f[:8], f[:100].T),
        (f[:100, :10], f[:10]),
        (np.stack([f[:8]] * 2), np.stack([f] * 2)),
    ):
        assert not faster.suits(x, y)


def test_a_layer_of_few_rows(monkeypatch):
    """Through tensors, with the gradients, eager and compiled, which use the same loops."""
    monkeypatch.setattr(policy.products, "left", 0)
    rushlight.manual_seed(0)
    layer, x = rushlight.nn.Linear(1100, 1024), rushlight.randn(10, 1100)

    def results(x, weight, bias):
        weight, bias, x = (t.detach().requires_grad_() for t in (weight, bias, x))
        y = rushlight.nn.functional.linear(x, weight, bias)
        return [y, *rushlight.autograd.grad(y.square().sum(), [x, weight, bias])]

    made = results(x, layer.weight, layer.bias)
    for got, wanted in zip(made, results(x.double(), layer.weight.double(), layer.bias.double()), strict=True):
        assert (got - wanted).abs().max() <= 2e-6 * wanted.abs().max()
    program = rushlight.compile(lambda x: rushlight.nn.functional.linear(x, layer.weight, layer.bias), backend="loops")
    with rushlight.no_grad():
        for _ in range(3):
            assert (program(x) == made[0]).all()


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 256, 16), (2, 200, 21), (7, 100, 43), (8, 128, 128), (30, 17, 241), (3, 15, 300), (3, 30, 30), (40, 64, 64)],
)
def test_small_products_of_compiled_programs(m, k, n):
    """Rows, of a register or more, meet rows where y is a transpose of enough numbers."""
    x, w = rushlight.randn(m, k), rushlight.randn(n, k)
    program = rushlight.compile(lambda x, w: rushlight.nn.functional.linear(x, w).relu() * 2, backend="loops")
    for _ in range(3):
        got = program(x, w)
    wanted = (x.double() @ w.double().T).relu() * 2
    assert (got - wanted).abs().max() <= 1e-5 * k**0.5
    made = next(iter(program.programs.values()))[-1]
    text = "".join(made.forward.parts.loops.values())
    assert ("dots(" in text) == (k >= machine()[0] and w.numel() >= 4096 and m <= 32)


def test_a_program_that_stands_alone_multiplies(tmp_path):
    x, w = rushlight.randn(7, 100), rushlight.randn(43, 100)
    program = rushlight.compile(lambda x, w: rushlight.nn.functional.linear(x, w).relu() * 2, backend="loops")
    for _ in range(3):
        wanted = program(x, w)
    made = next(iter(program.programs.values()))[-1]
    names = {"__name__": "alone"}
    exec(compile(made.source, "<alone>", "exec"), names)
    (got,), _ = names["call"](*(v.numpy() for v in ((x, w) if "arg0: float32[7, 100]" in made.source else (w, x))))
    np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-5, atol=1e-5)
