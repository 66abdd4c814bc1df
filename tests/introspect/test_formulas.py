"""Formulas: what a rule prints is what it computes, with no bracket too many; and every rule of the table prints."""
# ruff: noqa: F821  (names in rules are symbols)

from __future__ import annotations

import ast
import dis
import math
import operator
import re
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight.nn.functional  # noqa: F401  (fills the table)
from rushlight.base import lazy
from rushlight.core.table import TABLE, parameters
from rushlight.core.worlds import ARRAYS, TENSORS
from rushlight.introspect.formulas import Formula, formula

lazy.complete()  # and the library's tables

PRINTED = {
    "g * cos(x)": lambda g, x: g * cos(x),
    "-g * x / (x * x + y * y)": lambda g, x, y: -g * x / (x * x + y * y),
    "g * where(y == 0, 0, y * x ** (y - 1))": lambda g, x, y: g * where(y == 0, 0, y * x ** (y - 1)),
    "x - (y - g)": lambda g, x, y: x - (y - g),
    "x * (y * g)": lambda g, x, y: x * (y * g),
    "2 ** -x ** y": lambda x, y: 2 ** (-(x**y)),
    "(-x) ** 2": lambda x: (-x) ** 2,
    "(x ** y) ** g": lambda g, x, y: (x**y) ** g,
    "x ** y ** g": lambda g, x, y: x**y**g,
    "g * -0.5": lambda g: g * -0.5,
    "(-0.5) ** g": lambda g: (-0.5) ** g,
    "-0.5 * g": lambda g: -0.5 * g,
    "g * ~((x >= y) | isnan(y))": lambda g, x, y: g * ~((x >= y) | isnan(y)),
    "(x < y) == g": lambda g, x, y: (x < y) == g,
    "x & y | x ^ y": lambda x, y: x & y | x ^ y,
    "x << y >> 1": lambda x, y: x << y >> 1,
    "x // y % 2": lambda x, y: x // y % 2,
    "g @ (x + y).mT": lambda g, x, y: g @ (x + y).mT,
    "x.shape[0] * x[..., 1:, None]": lambda x: x.shape[0] * x[..., 1:, None],
    "sum(g, (0,), True)": lambda g: sum(g, (0,), True),
    "cat([x, x[::2]], dim=-1)": lambda x: cat([x, x[::2]], dim=-1),
    "x * log(2) / pi": lambda x: x * 0.6931471805599453 / 3.141592653589793,
    "x * (pi / 180)": lambda x: x * 0.017453292519943295,
    "g if accumulate else clear(g, key)": lambda g, key, accumulate: g if accumulate else clear(g, key),
    "g * 1j / conj(x) if is_complex(x) else 0": lambda g, x: g * 1j / conj(x) if is_complex(x) else 0,
    "x if a else y if b else g": lambda g, x, y, a, b: x if a else y if b else g,
    "x + 1 if a else y + 1": lambda x, y, a: (x if a else y) + 1,
    "len(x.shape)": lambda x: len(x.shape),
    "cos(x)[:, y:2]": lambda x, y: cos(x)[:, y:2],
}


@pytest.mark.parametrize("text", PRINTED)
def test_a_rule_prints_itself(text):
    assert str(formula(PRINTED[text])) == text


LATEX = {
    r"\frac{-g \, x}{x^{2} + y^{2}}": lambda g, x, y: -g * x / (x * x + y * y),
    r"g \, \cos\left(x\right)": lambda g, x: g * cos(x),
    r"\sqrt{x} \cdot 2": lambda x: sqrt(x) * 2,
    r"e^{-x^{2}}": lambda x: exp(-x * x),
    r"\left(x + 1\right)^{n}": lambda x, n: (x + 1) ** n,
    r"\alpha \, \mathrm{out}^{3}": lambda alpha, out: alpha * out * out * out,
    r"g \, y^\top": lambda g, y: g @ y.mT,
    (
        r"\begin{cases} g & \text{if } x > 0 \\ 0 & \text{if } x = 0 \\ -g & \text{otherwise} "
        r"\end{cases}"
    ): lambda g, x: where(x > 0, g, where(x == 0, 0, -g)),
    r"\frac{x}{y} \, \left\lfloor \frac{x}{y} \right\rfloor": lambda x, y: x / y * floor(x / y),
    r"\left(\frac{x}{y}\right)^{2}": lambda x, y: (x / y) ** 2,
    r"\operatorname{zeros\_like}\left(g\right)": lambda g: zeros_like(g),
    r"x \cdot \left(-1\right)": lambda x: x * (-1),
    r"i \, g": lambda g: 1j * g,
}


@pytest.mark.parametrize("latex", LATEX)
def test_a_rule_prints_as_latex(latex):
    assert formula(LATEX[latex]).latex == latex


# -- text and tree are the same expression

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "//": operator.floordiv,
    "%": operator.mod,
    "@": operator.matmul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
UNARY = [operator.neg, operator.invert, lambda f: f.mT, lambda f: f[0], lambda f: f(1, key=f)]
LEAVES = st.one_of(
    st.sampled_from([Formula("name", name) for name in ("x", "y", "out")]),
    st.sampled_from([-2, 0, 1, 3, -0.5, 2.5, 1e-05]),
)


def larger(parts):
    formulas = parts.filter(lambda f: isinstance(f, Formula))
    return st.one_of(
        st.builds(lambda make, a, b: make(a, b), st.sampled_from([*BINARY.values()]), formulas, parts),
        st.builds(lambda make, a, b: make(a, b), st.sampled_from([*BINARY.values()]), parts, formulas),
        st.builds(lambda make, a: make(a), st.sampled_from(UNARY), formulas),
        st.builds(lambda yes, test, no: Formula("if", yes, test, no), parts, formulas, parts),
    )


def same(a, b):
    """Whether two expressions are built alike."""
    if isinstance(a, Formula) and isinstance(b, Formula):
        return a.head == b.head and same(a.parts, b.parts)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same([*a.items()], [*b.items()])
    return type(a) is type(b) and repr(a) == repr(b)


SYMBOLS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.USub: "negative",
    ast.Invert: "~",
}


def read(node):
    """The formula that Python's parser sees in a text."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return Formula("name", node.id)
    if isinstance(node, ast.UnaryOp):
        one = read(node.operand)
        return Formula(SYMBOLS[type(node.op)], one) if isinstance(one, Formula) else -one
    if isinstance(node, ast.BinOp):
        return Formula(SYMBOLS[type(node.op)], read(node.left), read(node.right))
    if isinstance(node, ast.Compare):
        ((sign, right),) = zip(node.ops, node.comparators)
        return Formula(SYMBOLS[type(sign)], read(node.left), read(right))
    if isinstance(node, ast.IfExp):
        return Formula("if", read(node.body), read(node.test), read(node.orelse))
    if isinstance(node, ast.Call):
        return read(node.func)(*map(read, node.args), **{k.arg: read(k.value) for k in node.keywords})
    if isinstance(node, ast.Attribute):
        return Formula("attribute", read(node.value), node.attr)
    return Formula("item", read(node.value), read(node.slice))


FORMULAS = st.recursive(LEAVES, larger, max_leaves=8).filter(lambda f: isinstance(f, Formula))


@settings(deadline=None)
@given(FORMULAS)
def test_the_text_reads_as_the_formula(f):
    assert same(read(ast.parse(str(f), mode="eval").body), f)


@settings(deadline=None)
@given(FORMULAS)
def test_latex_is_balanced(f):
    latex = f.latex.replace("\\{", "").replace("\\}", "")
    assert latex.count("{") == latex.count("}")
    assert latex.count("\\left") == latex.count("\\right")
    assert latex.count("\\begin") == latex.count("\\end")
    assert not re.search(r"[-+] -", latex)


@pytest.mark.parametrize("name", TABLE)
def test_every_entry_prints(name):
    op = TABLE[name]
    for function in (op.forward, *filter(None, op.rules.values())):
        made = formula(function)
        assert isinstance(made, Formula)
        assert made.latex
        ast.parse(str(made), mode="eval")


NUMBERS = {"g": 1.25, "x": 0.3, "y": 0.7, "out": 0.45, "weight": 0.6, "condition": True}


@pytest.mark.parametrize("name", [n for n, op in TABLE.items() if op.elementwise and n not in ("tril", "triu")])
def test_the_text_of_a_rule_computes_what_the_rule_does(name):
    op = TABLE[name]
    for rule in filter(None, op.rules.values()):
        if "no_derivative" in rule.__code__.co_names:
            continue  # it only raises
        given = {p: np.asarray(NUMBERS[p]) if p in NUMBERS else op.defaults.get(p, 1) for p in parameters(rule)}
        with np.errstate(invalid="ignore"):
            expected = types.FunctionType(rule.__code__, ARRAYS)(**given)
            printed = eval(str(formula(rule)), {"pi": math.pi, **ARRAYS}, given)
        np.testing.assert_allclose(printed, expected, rtol=1e-13)


# -- names

# What helpers may use of Python itself.
PLAIN = {"slice", "tuple", "len", "range", "float", "int", "enumerate", "NotImplementedError", "RuntimeError"}


def globals_of(code):
    """The global names that a function's code looks up, with those of the functions inside it."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return found.union(*(globals_of(c) for c in code.co_consts if isinstance(c, types.CodeType)))


def helpers():
    """Functions marked `@shared`: there in both worlds with the same code, which looks names up in them."""
    return {
        name: f
        for name, f in ARRAYS.items()
        if isinstance(f, types.FunctionType)
        and f.__globals__ is ARRAYS
        and getattr(TENSORS.get(name), "__code__", None) is f.__code__
    }


RULES = {f"{name}: d {x}": rule for name, op in TABLE.items() for x, rule in op.rules.items() if rule} | helpers()


@pytest.mark.parametrize("world", [ARRAYS, TENSORS], ids=["arrays", "tensors"])
def test_the_names_in_rules_are_known(world):
    known = {*world} | PLAIN
    unknown = {place: names for place, rule in RULES.items() if (names := globals_of(rule.__code__) - known)}
    assert unknown == {}


# -- what formulas refuse


def test_a_loop_over_a_symbol_is_an_error():
    with pytest.raises(TypeError, match="x is a formula"):
        formula(lambda x: [n for n in x])  # noqa: C416


def test_a_symbol_outside_a_rule_is_neither_true_nor_false():
    with pytest.raises(TypeError, match=r"neither true nor false: x == 0"):
        bool(Formula("name", "x") == 0)


def test_a_formula_shows_itself():
    assert repr(formula(lambda x: x + 1)) == "<formula x + 1>"


def test_gradients_of_a_linear_layer_read_as_in_a_book():
    rules = TABLE["linear"].rules
    assert {name: str(formula(rules[name])) for name in ("x", "weight", "bias")} == {
        "x": "g @ weight",
        "weight": "g.T @ x",
        "bias": "g.sum(0)",
    }
    assert formula(rules["bias"]).latex == r"g.\operatorname{sum}\left(0\right)"
