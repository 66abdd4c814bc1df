"""Functions specialised for what is known: each rule of base/specialise.py."""

import ast
import inspect
import traceback
from math import sin

import numpy as np
import pytest

import rushlight
from rushlight.base.specialise import specialise, specialised
from rushlight.core import backward_call, call, families
from rushlight.core.table import TABLE
from rushlight.core.worlds import AS_ARRAYS, AS_TENSORS


def total(op, values):
    """Not in the result."""
    grad: dict = {}
    for i, name in enumerate(op.inputs):
        grad[name] = values[i] if op.linear else op.rule(values[i])
    return tuple([grad[name] for name in op.inputs])


def chosen(op, x):
    if op.linear and x > 0:
        return x
    elif op.names == ("a",) or not op.linear:
        return -x
    return None


def conditions(op, x):
    return any(x[i] > 0 for i in op.places), all(x[i] > 0 for i in op.places if i != 1), len(op.places), op.left


def doubled(op, x):
    return x + x if op.linear else x


def inlined(op, x):
    return doubled(op, x[0])


def fails(op, x):
    y = x + 1
    return y / op.zero


def text(function, facts, **how):
    return ast.unparse(specialised(function, facts, locals={"grad": "grad_{}"}, **how))


FACTS = {"inputs": ("x", "y"), "linear": False, "rule": sin, "names": (), "places": (0, 2), "zero": 0}


def test_loops_unroll_and_functions_become_globals():
    assert text(total, FACTS).splitlines() == [
        "def total(values):",
        "    grad_x = rule(values[0])",
        "    grad_y = rule(values[1])",
        "    return (grad_x, grad_y)",
    ]
    made = specialise(total, FACTS, locals={"grad": "grad_{}"}, scope={})
    assert made([0.0, 1.0]) == (0.0, sin(1.0))


def test_branches_that_cannot_run_are_dropped():
    assert text(chosen, FACTS).splitlines() == ["def chosen(x):", "    return -x", "    return None"]
    kept = text(chosen, FACTS | {"linear": True})
    assert kept.splitlines()[1:] == ["    if x > 0:", "        return x", "    return None"]


def test_any_and_all_become_conditions():
    assert text(conditions, FACTS).splitlines()[1] == (
        "    return (x[0] > 0 or x[2] > 0, x[0] > 0 and x[2] > 0, 2, op.left)"
    )
    assert text(conditions, FACTS | {"places": ()}).splitlines()[1] == "    return (False, True, 0, op.left)"


def test_a_variable_never_has_a_name_of_the_function():
    made = text(total, FACTS | {"inputs": ("values", "i")}, name="other")
    assert "grad_values" in made
    assert made.startswith("def other(values):")
    clash = ast.unparse(specialised(total, FACTS | {"inputs": ("values",)}, locals={"grad": "{}"}))
    assert "values_ = rule(values[0])" in clash


def test_helpers_are_replaced_by_their_expressions():
    assert text(inlined, FACTS | {"linear": True}, inlined=[doubled]).splitlines()[1] == "    return x[0] + x[0]"
    assert text(inlined, FACTS, inlined=[doubled]).splitlines()[1] == "    return x[0]"


def test_tracebacks_show_the_plain_function():
    made = specialise(fails, FACTS, locals={}, scope={}, name="fails_at")
    with pytest.raises(ZeroDivisionError) as raised:
        made(1)
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (last.name, last.filename, last.line) == ("fails_at", __file__, "return y / op.zero")
    assert inspect.getsource(made).startswith("def fails(op, x):")


def test_without_its_source_file(tmp_path):
    """As in a bundle that has only .pyc files."""
    scope = {}
    exec(compile("def gone(op, x):\n    return x\n", str(tmp_path / "gone.py"), "exec"), scope)
    with pytest.raises(RuntimeError, match="rushlight needs its source files"):
        specialised(scope["gone"], {}, locals={})


CALLED = [op for op in TABLE.values() if op.family in (families.general, families.view)]


@pytest.mark.parametrize("op", CALLED, ids=lambda op: op.name)
def test_calls_of_ops(op):
    """Nothing that is known of the op is decided at a call."""
    tree = ast.parse(call.source(op))
    known = call.facts(op)
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "op"}
    assert not read & known.keys()
    assert not any(isinstance(node.test, ast.Constant) for node in ast.walk(tree) if isinstance(node, ast.If))
    assert not any(isinstance(node, ast.For) for node in ast.walk(tree))


@pytest.mark.parametrize("world", [AS_ARRAYS, AS_TENSORS], ids=["arrays", "tensors"])
def test_backwards_of_ops(world):
    for op in TABLE.values():
        if any(op.rules.values()):
            how = getattr(op.make_node, "keywords", {})
            tree = ast.parse(backward_call.source(op, world, **how))
            assert not any(isinstance(node, ast.For) for node in ast.walk(tree)), op.name


def test_arguments_named_like_variables_of_the_call():
    """`kernel` is a setting of pools, and a variable of the call."""
    assert "kernel_" in call.source(TABLE["avg_pool"])
    x = rushlight.arange(16.0).reshape(1, 1, 4, 4)
    assert rushlight.nn.functional.avg_pool2d(x, 2).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    assert np.array_equal(rushlight.where(x > 3, x, 0.0).numpy(), np.where(x.numpy() > 3, x.numpy(), 0))
