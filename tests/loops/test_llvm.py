"""The language of LLVM IR (loops/llvm.py): loops, lanes, masks, types, and functions of the scalars world."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("llvmlite")
pytest.importorskip("scipy")

from scipy import special

from rushlight.loops import llvm
from rushlight.loops.llvm import BOOL, DOUBLE, FLOAT, INT32, INT64, Function, Module, callable_of, host
from rushlight.loops.llvm_math import functions


def run(build, *arrays, integers=()):
    """build(f, pointers..., integers...) as machine code, called with the arrays."""
    names = [f"a{k}" for k in range(len(arrays))] + [f"n{k}" for k in range(len(integers))]
    module = Module(host())
    f = Function(module, "f", " ".join(names), " ".join(names[len(arrays) :]))
    build(f, *f.args.values())
    f.end()
    callable_of(module.compiled(), "f", len(arrays), len(integers))(*[a.ctypes.data for a in arrays], *integers)


@pytest.mark.parametrize("n", [0, 1, 5, 100])
def test_a_loop_with_a_sum(n):
    x, out = np.arange(n, dtype=np.float64) + 1, np.zeros(1)

    def build(f, x, out, n):
        (s,) = f.loop(0, n, 1, lambda i, s: [s + f.load(x, i, DOUBLE)], [f.number(DOUBLE, 0)])
        f.store(s, out, 0)

    run(build, x, out, integers=[n])
    assert out[0] == x.sum()


def test_nested_loops_and_conditions():
    out = np.zeros((4, 6), np.int64)

    def build(f, out):
        def row(i):
            f.loop(0, 6, 1, lambda j: f.when((i + j) % 2 == 0, lambda: f.store(i * 10 + j, out, i * 6 + j)))

        f.loop(0, 4, 1, row)

    run(build, out)
    i, j = np.indices((4, 6))
    np.testing.assert_array_equal(out, np.where((i + j) % 2 == 0, i * 10 + j, 0))


@pytest.mark.parametrize("valid", [1, 7, 15, 16])
def test_lanes_that_do_not_exist_are_neither_read_nor_written(valid):
    x, out = np.arange(16, dtype=np.float32) + 1, np.full(16, -1, np.float32)

    def build(f, x, out):
        v = f.load(x, 0, FLOAT, 16, valid)
        f.store(v, out, 0, valid)
        f.store(llvm.total(v), out, 15)

    run(build, x, out)
    np.testing.assert_array_equal(out[: min(valid, 15)], x[: min(valid, 15)])
    assert out[15] == x[:valid].sum()
    assert (out[valid:15] == -1).all()


@pytest.mark.parametrize(
    ("kind", "dtype"), [(FLOAT, np.float32), (DOUBLE, np.float64), (INT32, np.int32), (INT64, np.int64)]
)
def test_operators(kind, dtype):
    x, y = np.array([3, -7, 5, 12], dtype), np.array([2, 5, -5, 4], dtype)
    out = np.zeros((5, 4), dtype)

    def build(f, x, y, out):
        a, b = f.load(x, 0, kind, 4), f.load(y, 0, kind, 4)
        for k, v in enumerate((a + b, 2 - a, a * b, -a, llvm.select(a > b, a, b))):
            f.store(v, out, 4 * k)

    run(build, x, y, out)
    np.testing.assert_array_equal(out, [x + y, 2 - x, x * y, -x, np.maximum(x, y)])


def test_types():
    x, out = np.array([1.75, -2.5, 0.0, 300.0]), np.zeros((2, 4))

    def build(f, x, out):
        v = f.load(x, 0, DOUBLE, 4)
        f.store(llvm.converted(llvm.converted(v, INT64), DOUBLE), out, 0)
        f.store(llvm.converted(llvm.converted(v, BOOL), DOUBLE), out, 4)

    run(build, x, out)
    np.testing.assert_array_equal(out, [np.trunc(x), x != 0])


def test_bits_and_places():
    x, out = np.array([1, -2, 3, -4], np.float32), np.zeros(8, np.float32)

    def build(f, x, out):
        v = f.load(x, 0, FLOAT, 4)
        f.store(llvm.as_bits(llvm.as_bits(v, INT32) & 0x7FFFFFFF, FLOAT), out, 0)
        f.store(llvm.picked(v, (3, 1, 2, 0)), out, 4)

    run(build, x, out)
    assert out.tolist() == [1, 2, 3, 4, -4, -2, 3, 1]


EXACT = {
    "exp": np.exp, "tanh": np.tanh, "sigmoid": special.expit, "log": np.log, "log1p": np.log1p, "sin": np.sin,
    "erf": special.erf, "lgamma": special.gammaln, "sinh": np.sinh, "round": np.rint,
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(("kind", "dtype"), [(FLOAT, np.float32), (DOUBLE, np.float64)])
def test_functions_of_the_scalars_world(name, kind, dtype):
    x = np.concatenate([np.linspace(-5.3, 80, 60), [0, -0.0, np.inf, np.nan]]).astype(dtype)
    out = np.zeros_like(x)
    run(lambda f, x, out: f.store(functions(np.dtype(dtype).name)[name](f.load(x, 0, kind, 64)), out, 0), x, out)
    with np.errstate(all="ignore"):
        right = EXACT[name](x.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(out, right, rtol=2e-6 if dtype is np.float32 else 1e-13)
