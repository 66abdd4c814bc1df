"""Fused loops give what the kernels give: every elementwise op of the table, every way to broadcast, every sum."""

from __future__ import annotations

import importlib.util
import itertools
import re

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import rushlight as torch
from rushlight.compile import compile, programs, source
from rushlight.compile.lower.loop_text import COSTS, SLOW_COST
from rushlight.core.table import TABLE
from rushlight.fast.rule_text import NotFused, Scalar, expression
from rushlight.loops.parallel import in_parts

EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    1e-3,
    20.0,
    -20.0,
    30.0,
    87.0,
    -87.0,
    1e6,
    -1e6,
    np.inf,
    -np.inf,
    np.nan,
]
POSITIVE = ("log", "log2", "log10", "sqrt", "root_of_squares", "rsqrt", "lgamma", "acosh")


def compiled(f, *args):
    """The results of a program of f, which must be there after three calls."""
    g = compile(f, backend="loops")
    for _ in range(3):
        results = g(*args)
    assert programs(g), g.given_up
    return g, results


def agree(got, want, rtol=2e-6, atol=2e-7):
    for a, b in zip(got, want, strict=True):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=atol)


def fused_ops(count):
    """Names of the table's ops of so many inputs that become part of a loop, with their default settings."""
    for name, op in TABLE.items():
        if not op.elementwise or len(op.inputs) != count or name == "where" or set(op.settings) - set(op.defaults):
            continue
        f32 = np.dtype(np.float32)
        out = np.dtype(bool) if op.result == "bool" else f32
        try:
            expression(op, tuple(Scalar("x", f32) for _ in op.inputs) + tuple(op.defaults[s] for s in op.settings), out)
        except (NotFused, TypeError):
            continue
        yield name


def test_every_op_with_a_function_in_its_text_counts_as_work():
    f32 = np.dtype(np.float32)
    for name in (*fused_ops(1), *fused_ops(2)):
        op = TABLE[name]
        text = expression(
            op,
            tuple(Scalar("x", f32) for _ in op.inputs) + tuple(op.defaults[s] for s in op.settings),
            np.dtype(bool) if op.result == "bool" else f32,
        ).text
        long = [called for called in re.findall(r"\b[a-z]\w*(?=\()", text) if COSTS.get(TABLE.get(called)) == SLOW_COST]
        assert not long or COSTS.get(TABLE[name]) == SLOW_COST, f"{name}: {text}"


def values(dtype):
    rng = np.random.default_rng(0)
    return np.concatenate([EDGES, rng.normal(0, 2, 300), rng.uniform(-1, 1, 100)]).astype(dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_op_of_one_input(dtype):
    names = list(fused_ops(1))
    assert {"exp", "tanh", "gelu", "silu", "relu", "sigmoid", "erf"} - {"gelu"} <= set(names)

    def all_of_them(x):
        return tuple(TABLE[name].call(x) for name in names)

    x = torch.tensor(values(dtype))
    g, got = compiled(all_of_them, x)
    for name, a, b in zip(names, got, all_of_them(x)):
        try:
            agree([a], [b])
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
    assert source(g, full=True).count("\ndef loop_") == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_op_of_two_inputs(dtype):
    names = list(fused_ops(2))
    assert {"add", "div", "pow", "maximum", "eq"} <= set(names)

    def all_of_them(x, y):
        return tuple(TABLE[name].call(x, y) for name in names)

    pairs = np.array(list(itertools.product(EDGES, EDGES)) + np.random.default_rng(1).normal(0, 2, (300, 2)).tolist())
    x, y = (torch.tensor(pairs[:, i].astype(dtype)) for i in (0, 1))
    _, got = compiled(all_of_them, x, y)
    for name, a, b in zip(names, got, all_of_them(x, y)):
        try:
            agree([a], [b], rtol=5e-6)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


def test_numbers_casts_and_choices():
    def f(x, n, mask):
        y = torch.where(mask, x * 2 + 1, -x)
        return (
            y,
            y > 0.5,
            (x > 0).float() * x,
            n * 3 - 1,
            n == 2,
            torch.where(x > 0, x, 0.25),
            x.double() * 0.1,
            x.clamp(-0.5, 0.7),
            1 / (x * x + 1),
            x**2,
            x**3,
            (x * x) ** 0.5,
            2 - x,
            n.float() + x,
        )

    x = torch.tensor(np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6))
    n = torch.tensor(np.arange(24).reshape(4, 6))
    _, got = compiled(f, x, n, n % 2 == 0)
    agree(got, f(x, n, n % 2 == 0))


SHAPES = [
    ((4, 5), (5,)),
    ((4, 5), (4, 1)),
    ((4, 5), ()),
    ((2, 3, 4), (3, 1)),
    ((2, 3, 4), (2, 1, 4)),
    ((3, 1), (1, 4)),
    ((1,), (1,)),
    ((), ()),
    ((2, 1, 3, 1), (4, 1, 5)),
    ((0, 3), (3,)),
    ((6, 7), (6, 7)),
]


def test_broadcasting():
    rng = np.random.default_rng(0)
    tensors = [tuple(torch.tensor(rng.standard_normal(s).astype(np.float32)) for s in pair) for pair in SHAPES]
    flat = [t for pair in tensors for t in pair]

    def f(*ts):
        return tuple((a * b + a).tanh() - b for a, b in zip(ts[::2], ts[1::2]))

    _, got = compiled(f, *flat)
    agree(got, f(*flat), atol=1e-6)


def test_memory_that_is_not_in_order():
    x = torch.tensor(np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32))

    def f(a, b, c):
        return (a + b).exp() * c, a.T * 2, (a.T + 1).sum(0)

    args = x.T, torch.ones(5, 6), torch.ones(5, 12)[:, ::2]
    _, got = compiled(f, *args)
    agree(got, f(*args))


def test_sums_and_extremes():
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((37, 23)).astype(np.float32))
    y = torch.tensor(rng.standard_normal((3, 4, 5)).astype(np.float32))

    def f(x, y):
        s = x * x
        return (
            s.sum(),
            s.sum(0),
            s.sum(1),
            s.sum(1, keepdim=True),
            (s + 1).mean(),
            x.amax(1),
            x.amin((0, 1)),
            (x - x.mean(1, keepdim=True)).sum(0),
            y.exp().sum((0, 1)),
            y.exp().sum((1, 2)),
            y.exp().sum(1),
            y.exp().mean((0, 2)),
            (x / x.abs().sum()).sum(1),
            x.var(1),
            x.std(),
        )

    _, got = compiled(f, x, y)
    agree(got, f(x, y), rtol=1e-5, atol=1e-6)


def test_rows_that_look_again():
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((33, 50)).astype(np.float32) * 10)
    w = torch.tensor(rng.standard_normal(50).astype(np.float32))

    def f(x, w):
        mean = x.mean(-1, keepdim=True)
        d = x - mean
        normal = d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt()
        return (
            normal * w + 1,
            torch.softmax(x, -1),
            torch.log_softmax(x * 2, -1),
            torch.softmax(normal.exp(), -1).sum(0),
            torch.logsumexp(x, 1),
        )

    g, got = compiled(f, x, w)
    agree(got, f(x, w), rtol=1e-5, atol=1e-6)
    assert "keep" in source(g, full=True)


def test_nan_and_infinity_in_rows():
    x = torch.tensor(np.array([[1, np.nan, 3], [np.inf, 1, 2], [-np.inf, 1, 2], [1, 2, 3]], np.float32))

    def f(x):
        return x.amax(1), (x + 1).amin(1), torch.softmax(x, 1), (x * 1).sum(1)

    _, got = compiled(f, x)
    agree(got, f(x), rtol=1e-5)


def test_long_sums_are_as_good_as_numpys():
    x = torch.full((3_000_000,), 0.1)
    _, got = compiled(lambda x: ((x * 1).sum(), (x * x).mean()), x)
    assert float(got[0]) == pytest.approx(300_000, rel=1e-6)
    assert float(got[1]) == pytest.approx(0.01, rel=1e-6)


def test_classes_are_looked_up_in_the_loop():
    x = torch.tensor(np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32), requires_grad=True)
    y = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2])

    def step(y):
        x.grad = None
        loss = -torch.log_softmax(x, 1).gather(1, y.unsqueeze(1)).mean()
        loss.backward()
        return loss.detach(), x.grad * 1

    g, got = compiled(step, y)
    agree(got, step(y), rtol=1e-5, atol=1e-7)
    assert "kernels.gather" not in source(g, full=True)
    for wrong in (5, -1):  # from the loop, or from eager, where there is no gradient yet to replace
        with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)"):
            g(torch.tensor([0, 1, 2, 3, wrong, 0, 1, 2]))


def test_loops_in_parts():
    n = 200_000
    x = torch.tensor(np.random.default_rng(0).standard_normal((n // 10, 10)).astype(np.float32), requires_grad=True)

    def f(x):
        y = x.tanh() * torch.sigmoid(x)
        return y, y.sum(0), y.sum(1), y.exp().sum() * 2

    g, got = compiled(f, x.detach())
    agree(got, f(x.detach()), rtol=1e-5, atol=1e-5)
    assert "in_parts(" in source(g, full=True)


def test_an_error_in_a_part_comes_back(monkeypatch):
    monkeypatch.setattr("rushlight.base.threads.chosen", 2)

    def fails(a):
        if a[0] > 0:
            raise ValueError("in the second part")

    with pytest.raises(ValueError, match="second part"):
        in_parts(fails, (np.arange(100.0),), (1,))


def test_text_that_runs_by_itself(tmp_path):
    """The source, saved as a file, is a module whose `run` computes the same without loops."""
    x = torch.tensor(values(np.float32)[-64:].reshape(8, 8))
    g, got = compiled(lambda x: torch.softmax((x * 1.5).tanh() @ x, 1), x)
    path = tmp_path / "program.py"
    path.write_text(source(g, full=True))
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (result,), _ = module.run([lambda: np.empty((8, 8), np.float32)], x.numpy())
    np.testing.assert_allclose(result, got.numpy(), rtol=2e-6)
