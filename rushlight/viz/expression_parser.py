"""Formulas as text, such as "x**3 + sin(x)", turned into functions of tensors: parsed with `ast`, never evaluated as
Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from operator import add, floordiv, mod, mul, neg, pos, pow, sub, truediv
from typing import Any

from rushlight.base.dtypes import float64
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import full

MAX_LETTERS, MAX_DEPTH = 500, 200  # most characters of a formula; most nested brackets and operators
OPERATORS: dict[type, Callable] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.Div: truediv,
    ast.Pow: pow,
    ast.Mod: mod,
    ast.FloorDiv: floordiv,
    ast.UAdd: pos,
    ast.USub: neg,
}
SIGNS = {
    ast.BitXor: "^ (a power is **)",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.Not: "not",
    ast.Invert: "~",
}
NUMBERS = {"pi": 3.141592653589793, "e": 2.718281828459045}
ONE = [
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "exp2",
    "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "square", "abs", "sign", "floor", "ceil", "round",
    "sigmoid", "relu", "erf", "erfc", "lgamma", "digamma", "sinc",
]  # fmt: skip
TWO = ["minimum", "maximum", "atan2", "hypot"]


def read(text: str) -> Callable[[Tensor], Tensor]:
    """A function of x from its formula: numbers, x, pi, e, + - * / // % **, brackets, and functions such as sin.

    Raises `ValueError` with the position for anything else; other code is never run.

    >>> from rushlight.viz.expression_parser import read
    >>> read("x**3 + x")(rushlight.tensor([2.]))
    tensor([10.], dtype=torch.float64)
    """
    if len(text) > MAX_LETTERS:
        raise ValueError(f"the formula has {len(text)} letters; at most {MAX_LETTERS} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        made = meant(tree, text.strip(), 0)
    except SyntaxError as error:
        raise ValueError(f"cannot read {text!r}: {error.msg} at letter {error.offset}; write 2*x for 2x") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"cannot read {text[:30]!r}...: too deeply nested") from None

    def function(x: Tensor) -> Tensor:
        x = x.to(float64)
        return made(x) + 0 * x  # gives a constant the shape of x

    return function


def meant(node: ast.expr, text: str, depth: int) -> Callable[[Tensor], Any]:
    """The function of x for a part of the formula."""
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return constant(node.value)
    if isinstance(node, ast.Name):
        return name(node.id)
    if isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
        return combined(OPERATORS[type(node.op)], meant(node.operand, text, depth + 1))
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return combined(OPERATORS[type(node.op)], meant(node.left, text, depth + 1), meant(node.right, text, depth + 1))
    if isinstance(node, ast.Call):
        return call(node, text, depth + 1)
    sign = next((told for kind, told in SIGNS.items() if isinstance(getattr(node, "op", None), kind)), None)
    part = ast.get_source_segment(text, node) or text
    raise ValueError(
        f"cannot read {sign or repr(part)}: a formula has numbers, x, pi, e, + - * / // % **, brackets and functions"
    )


def constant(value: float) -> Callable[[Tensor], Tensor]:
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("a number is too large for float64") from None
    return lambda x: full((), number, dtype=float64)


def name(word: str) -> Callable[[Tensor], Any]:
    if word == "x":
        return lambda x: x
    if word in NUMBERS:
        return constant(NUMBERS[word])
    kind = "needs brackets: " + word + "(x)" if word in ONE else "is unknown; the variable is x" + nearest(word)
    raise ValueError(f"{word!r} {kind}")


def call(node: ast.Call, text: str, depth: int) -> Callable[[Tensor], Any]:
    word = node.func.id if isinstance(node.func, ast.Name) else ast.get_source_segment(text, node.func) or "this"
    if word not in ONE + TWO:
        raise ValueError(f"{word!r} is not a function that can be plotted{nearest(word)}")
    wanted = 1 if word in ONE else 2
    if len(node.args) != wanted or node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        given = len(node.args) + len(node.keywords)
        raise ValueError(f"{word} takes {wanted} argument{'s' if wanted > 1 else ''}, not {given}")
    return combined(partial(called, word), *[meant(arg, text, depth) for arg in node.args])


def called(word: str, *values: Tensor) -> Tensor:
    return getattr(values[0], word)(*values[1:])


def combined(operation: Callable, *parts: Callable) -> Callable[[Tensor], Any]:
    return lambda x: operation(*[part(x) for part in parts])


def nearest(word: str) -> str:
    found = get_close_matches(word, [*ONE, *TWO, *NUMBERS], 1)
    return f"; did you mean {found[0]}?" if found else "; functions: " + ", ".join(ONE[:12]) + ", ..."
