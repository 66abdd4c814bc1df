"""Elementwise ops in a native function (compile/native/elements.py): every op of the table that a fused loop may
contain, beside eager."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import rushlight as torch
from rushlight.compile import compile, programs
from rushlight.core.table import TABLE
from tests.compile.lower.test_loop_text import EDGES, SHAPES, agree, fused_ops, values

DTYPES = [np.float32, np.float64]


def native(f, *args):
    """The results of the native function of f."""
    g = compile(f)
    for _ in range(3):
        results = g(*args)
    (program,) = programs(g)
    assert program.native is not None, program.native_reason
    return results


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*fused_ops(1)])
def test_every_op_of_one_input(name, dtype):
    if (name, dtype) == ("erfinv", np.float64):
        pytest.skip("SciPy's function, which has no formula")
    x, op = torch.tensor(values(dtype)), TABLE[name].call
    agree([native(op, x)], [op(x)], rtol=4e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*fused_ops(2)])
def test_every_op_of_two_inputs(name, dtype):
    pairs = np.array(list(itertools.product(EDGES, EDGES)) + np.random.default_rng(1).normal(0, 2, (300, 2)).tolist())
    x, y = (torch.tensor(pairs[:, i].astype(dtype)) for i in (0, 1))
    op = TABLE[name].call
    agree([native(op, x, y)], [op(x, y)], rtol=5e-6)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(shapes):
    rng = np.random.default_rng(0)
    a, b = (torch.tensor(rng.standard_normal(s).astype(np.float32)) for s in shapes)

    def f(a, b):
        return (a * b + a).tanh() - b

    agree([native(f, a, b)], [f(a, b)], atol=1e-6)


@pytest.mark.parametrize("n", [1, 3, 15, 16, 17, 33, 1000])
def test_lengths(n):
    x = torch.linspace(-3, 3, n)
    agree([native(lambda x: x.exp() * x, x)], [x.exp() * x])


def views(x):
    return {
        "transposed": x.T,
        "steps": x[:, ::2],
        "column": x[:, 3],
        "part": x[2:5, 1:4],
        "expanded": x[0].expand(4, 6),
        "permuted": x.reshape(2, 3, 6).permute(2, 0, 1),
    }


@pytest.mark.parametrize("kind", [*views(torch.zeros(6, 6))])
def test_memory_that_is_not_in_order(kind):
    x = torch.tensor(np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32))
    a = views(x)[kind]
    got, right = native(lambda a: a * 2 + a.sigmoid(), a), a * 2 + a.sigmoid()
    agree([got], [right])
    assert got.stride() == right.stride()


def test_views_inside():
    x = torch.tensor(np.random.default_rng(0).standard_normal((4, 6, 5)).astype(np.float32))

    def f(x):
        y = x.exp().transpose(0, 2)
        return (y[1:] * y[:-1]).reshape(4, -1)[:, ::3] + 1

    agree([native(f, x)], [f(x)])


def test_numbers_casts_and_choices():
    x = torch.tensor(np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6))
    n = torch.tensor(np.arange(24).reshape(4, 6))

    def f(x, n, mask):
        kept = torch.where(mask, x * 2 + 1, -x)
        return kept, kept > 0.5, (x > 0).float() * x, n * 3 - 1, n == 2, x.double() * 0.1, n.float() + x, ~mask

    args = x, n, n % 2 == 0
    agree(native(f, *args), f(*args))


@pytest.mark.parametrize("f", [lambda x: x**1.0, lambda x: 2.0**x, lambda x: torch.hypot(x, x * 0 + 3)], ids="abc")
def test_functions_of_the_c_library_with_a_number(f):
    """A number beside a vector is one argument for all its elements."""
    x = torch.tensor(np.random.default_rng(0).random(5) + 0.5)
    g = compile(f)
    for _ in range(3):
        np.testing.assert_allclose(g(x).numpy(), f(x).numpy(), rtol=1e-14)
    (program,) = programs(g)
    assert program.native is not None, program.native_reason
