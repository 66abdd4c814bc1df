"""Formulas as steps (fast/formula.py), and the parts that entries name."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight  # noqa: F401
from rushlight.core.table import TABLE
from rushlight.core.worlds import ARRAYS, rebind
from rushlight.fast.formula import Step, inputs, needed, on_steps


def names(results):
    return [step.name for step in needed(results)]


def test_a_formula_is_recorded_step_by_step():
    x = Step("input", ("x",), {})
    made = on_steps(TABLE["softmax"].options["parts"])(x, 1)
    assert names(made) == ["amax", "sub", "exp", "sum", "div"]
    assert made.args[0].args[0].args[1].args == (x, 1, True)


def test_equal_steps_are_one():
    x, y = inputs(("x", "y"))
    assert (x * y) is (x * y)
    assert x * y is not y * x
    assert names((x - y) * (x - y) + 2) == ["sub", "mul", "add"]


def test_a_gradient_that_is_known_to_be_zero_falls_away():
    g, x, mu, var = inputs(("g", "x", "mu", "var"))
    rule = on_steps(TABLE["layer_norm"].rules["x"])
    made = names(rule([g, 0, 0], x, None, mu, var, (0,), 1e-5))
    given = names(rule([g, mu, var], x, None, mu, var, (0,), 1e-5))
    assert "count" not in made
    assert len(made) < len(given)


def test_helpers_and_ops_of_other_ops_are_written_out():
    g, x, y, mu = inputs(("g", "x", "y", "mu"))
    assert names(on_steps(lambda x, y, mu: batch_dots(x, y, mu, (0,)))(x, y, mu)) == [  # noqa: F821
        "sub",
        "mul",
        "sum",
    ]


@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if "parts" in op.options])
def test_parts_give_what_the_kernel_gives(name):
    x = np.random.default_rng(0).standard_normal((3, 4, 8))
    weight, bias = np.random.default_rng(1).standard_normal((2, 4, 1))
    flat = weight.reshape(-1), bias.reshape(-1)
    whole = np.broadcast_to(weight, (4, 8)), np.broadcast_to(bias, (4, 8))
    # arguments of the kernel, and of the parts where these are of one group
    given = {
        "softmax": [(x, 1)] * 2,
        "log_softmax": [(x, 2)] * 2,
        "logsumexp": [(x, (1,), True)] * 2,
        "var_core": [(x, (1,), 1)] * 2,
        "layer_norm": [(x, *whole, (1, 2), 1e-5)] * 2,
        "batch_norm": [(x, *flat, (0, 2), 1e-5), (x, weight, bias, (0, 2), 1e-5)],
        "group_norm": [(x, *flat, 1, 1e-5), (x, weight, bias, (1, 2), 1e-5)],
    }
    kernel_given, parts_given = given[name]
    expected = TABLE[name].kernel(*kernel_given)
    made = rebind(TABLE[name].options["parts"], ARRAYS)(*parts_given)
    if not isinstance(made, tuple):
        made, expected = (made,), (expected,)
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_allclose(a, b.reshape(a.shape), rtol=1e-12, atol=1e-12)
