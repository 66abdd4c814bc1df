"""rushlight.docs: what the library knows of a function, as text and as mathematics."""

import doctest
import re

import pytest

import rushlight
from rushlight.introspect.op_docs import Doc, functions


def test_mul_shows_its_formula_and_rules():
    mul = rushlight.docs.mul
    assert mul.formula == "input * other"
    assert mul.rules == {"input": "g * other", "other": "g * input"}
    lines = repr(mul).splitlines()
    assert lines[0] == "mul(input, other, *, out=None)"
    assert "out = input * other" in lines
    assert "    d input: g * other" in lines
    assert "lambda x, y, /: x * y" in repr(mul)
    assert re.search(r"ops/math/elementwise\.py:\d+", repr(mul))


def test_a_notebook_shows_mathematics():
    tanh = rushlight.docs.tanh
    assert tanh.latex.startswith(r"\begin{aligned} \mathrm{out} &= \tanh")
    assert r"\bar{\mathrm{input}} &= g" in tanh.latex
    assert "aligned" in tanh._repr_html_()
    assert "<pre>" in rushlight.docs.std._repr_html_()


def test_functions_made_of_ops_show_their_code():
    text = repr(rushlight.docs.std)
    assert "Made of ops, whose gradients are its own, in " in text
    assert "spread(" in text.split("Made of ops")[1]
    assert rushlight.docs.std.formula is None
    assert rushlight.docs.std.rules == {}


def test_namespaces_and_layers():
    assert rushlight.docs.linalg.det.name == "det"
    assert "det" in dir(rushlight.docs.linalg)
    assert "linalg" in repr(rushlight.docs.linalg)
    assert "conv2d" in repr(rushlight.docs.conv2d)


def test_completion_and_misspelt_names():
    assert {"mul", "std", "zeros", "cross_entropy", "linalg", "backward"} <= {*dir(rushlight.docs)}
    with pytest.raises(AttributeError, match="did you mean mul"):
        rushlight.docs.mull
    with pytest.raises(AttributeError):
        rushlight.docs.linalg.nothing_like_it


def test_all_of_them_can_be_read():
    for name, function in functions().items():
        doc = Doc(name, function)
        assert doc.text.startswith(f"{name}(")
        assert doc.latex.count("{") == doc.latex.count("}")
        if doc.op is not None and doc.formula is not None:
            assert doc.equations
            assert len(doc.rules) == sum(rule is not None for rule in doc.op.rules.values())


def test_the_example_in_the_module():
    import rushlight.introspect.op_docs as module

    assert doctest.testmod(module, extraglobs={"rushlight": rushlight}).failed == 0


def test_call_shows_the_text_of_a_call_and_its_backward():
    call = rushlight.docs.where.call
    assert call.startswith("def call_where(kernel, args, kwargs, out):\n")
    assert "x_array = None if x is None else x._array\n" in call
    assert "\n\n\n# rule_x: " in call
    assert "\ndef backward_where(node, g):\n" in call
    assert "grad_x = rule_x(g, saved[0]._array)\n" in call
    assert "register(tensor, x, again" in rushlight.docs.reshape.call, "a view is noted"
    assert rushlight.docs.mul.call.startswith("def call(input: Any, other: Any, *"), "the function of its family"
    assert "".join(rushlight.docs.sum.call.split()).startswith("defcall(input:Tensor,dim:Any=None,")
    assert "def backward" not in rushlight.docs.argmax.call, "nothing to differentiate"
    assert rushlight.docs.linear.call.startswith("def call_linear"), "a function of nn"
    assert rushlight.docs.std.call == "", "made of ops"
