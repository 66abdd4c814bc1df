"""The world of formulas: run on symbols, a rule returns its own formula.

>>> from rushlight.introspect.formulas import formula
>>> dy = formula(lambda g, x, y: -g * x / (x * x + y * y))
>>> print(dy)
-g * x / (x * x + y * y)
>>> print(dy.latex)
\\frac{-g \\, x}{x^{2} + y^{2}}
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from itertools import groupby
from math import log, pi, sqrt
from typing import Any

from rushlight.base.errors import type_error
from rushlight.core.table import OWN_NAMES, parameters
from rushlight.core.worlds import rebind

# Operators by precedence, as in Python, the loosest first; other expressions need no brackets.
LEVELS = "if", "== != < <= > >=", "|", "^", "&", "<< >>", "+ -", "* / // % @", "negative ~", "**"
STRENGTH = {head: strength for strength, heads in enumerate(LEVELS) for head in heads.split()}
UNARY, POWER, ATOM = 8, 9, 10


class Formula:
    """An expression: `head` is its kind, `parts` are its operands. Operators and calls make larger expressions.

    `str()` gives Python text with as few brackets as possible; `.latex` gives LaTeX.
    """

    __slots__ = ("head", "parts")

    def __init__(self, head: str, *parts: Any):
        self.head, self.parts = head, parts

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        return f"<formula {self}>"

    @property
    def latex(self) -> str:
        """The formula in LaTeX's mathematics."""
        return latex(self)

    def __getattr__(self, name: str) -> Formula:
        if name.startswith("_"):
            raise AttributeError(name)  # Python and NumPy look for these attributes internally
        if self.head == "matrix" and name == "mT":
            name = "T"
        return Formula("attribute", self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Formula:
        return Formula("call", self, args, kwargs)

    def __getitem__(self, key: Any) -> Formula:
        return Formula("item", self, key)

    def __iter__(self) -> Iterator:
        raise type_error(f"{self} is a formula: it has no elements to loop over")

    def __bool__(self) -> bool:
        """The branch of an `if`: chosen by the walk through the branches (see `branches`)."""
        way = next(WAYS.get(), None)
        if way is None:
            raise Fork(self)
        return way

    __hash__ = object.__hash__


def operator(head: str) -> Callable:
    return lambda self, *others: Formula(head, self, *others)


def reflected(head: str) -> Callable:
    return lambda self, other: Formula(head, other, self)


TWO_SIDED = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "matmul": "@", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
ONE_SIDED = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "neg": "negative", "invert": "~",
}  # fmt: skip
for _name, _head in (TWO_SIDED | ONE_SIDED).items():
    setattr(Formula, f"__{_name}__", operator(_head))
for _name, _head in TWO_SIDED.items():
    setattr(Formula, f"__r{_name}__", reflected(_head))


# -- from a rule to its formula --------------------------------------------------------------------


class World(dict):
    """Every name is a symbol, except the Python functions that rules use."""

    def __missing__(self, name: str) -> Formula:
        return Formula("name", OWN_NAMES.get(name, name))


def total(x: Any, dim: Any, *keepdim: Any) -> Formula:
    """`sum` in a rule. The text of a sum over one dimension is `x.sum(0)`."""
    if isinstance(dim, tuple) and len(dim) == 1 and not keepdim:
        return Formula("call", Formula("attribute", x, "sum"), dim, {})
    return Formula("call", Formula("name", "sum"), (x, dim, *keepdim), {})


# A world: functions in rules that have a shorter text (name -> meaning). `rows` merges all leading
# dimensions, and `unrows` restores them. A formula shows the two-dimensional case, in which neither changes anything.
SHORT: dict[str, Callable[..., Any]] = {
    "mm": lambda x, y: x @ y,
    "rows": lambda x: Formula("matrix", x),
    "unrows": lambda y, x: y,
    "sum": total,
}
FORMULAS: dict[str, Any] = World(
    {"__builtins__": builtins}
    | SHORT
    | {name: getattr(builtins, name) for name in ("enumerate", "list", "range", "slice", "tuple", "zip")}
)


def formula(rule: Callable, symbols: Mapping[str, Any] = {}) -> Formula:
    """The formula of a rule, or of an op's forward. Parameters are symbols with their own names, or the objects in
    `symbols`.

    For a conditional expression that tests a setting, both branches are shown. TypeError for code that needs numbers,
    such as a loop over a tensor. Helpers marked `@shared` print as calls.
    """
    given = [symbols.get(name, Formula("name", name)) for name in parameters(rule)]
    inside = rebind(rule, FORMULAS)
    return branches(lambda: inside(*given), ())


class Fork(TypeError):
    """An `if` tests a symbol outside of a walk through the branches."""

    def __init__(self, condition: Formula):
        super().__init__(f"a formula is neither true nor false: {condition}")
        self.condition = condition


WAYS: ContextVar[Iterator[bool]] = ContextVar("ways", default=iter(()))  # noqa: B039  (the empty iterator stays empty)


def branches(run: Callable[[], Any], ways: tuple[bool, ...]) -> Any:
    """The formula of a run in which the first `if`s took the branches `ways`, and each later `if` took both."""
    token = WAYS.set(iter(ways))
    try:
        return run()
    except Fork as fork:
        condition = fork.condition
    finally:
        WAYS.reset(token)
    return Formula("if", branches(run, (*ways, True)), condition, branches(run, (*ways, False)))


# Numbers with a familiar name, recognised by the digits that do not depend on rounding.
NUMBERS: list[Callable[[Any, Any, Any], Any]] = [
    lambda pi, log, sqrt: pi,
    lambda pi, log, sqrt: pi / 180,
    lambda pi, log, sqrt: 180 / pi,
    lambda pi, log, sqrt: log(2),
    lambda pi, log, sqrt: log(10),
    lambda pi, log, sqrt: 2 / sqrt(pi),
    lambda pi, log, sqrt: sqrt(pi) / 2,
    lambda pi, log, sqrt: 1 / sqrt(2),
    lambda pi, log, sqrt: 1 / sqrt(2 * pi),
    lambda pi, log, sqrt: sqrt(2 / pi),
]
CONSTANTS = {
    f"{number(pi, log, sqrt):.14g}": number(*[Formula("name", name) for name in ("pi", "log", "sqrt")])
    for number in NUMBERS
}


def known(value: Any) -> Any:
    """A number as a formula, if it is one of `CONSTANTS`."""
    return CONSTANTS.get(f"{value:.14g}", value) if value.__class__ is float else value


# -- Python's text ---------------------------------------------------------------------------------


def text(value: Any, least: int = 0) -> str:
    """The text of a formula or a plain value; in brackets if it binds less tightly than `least`."""
    value = known(value)
    written, strength = pieces(value) if isinstance(value, Formula) else plain(value)
    return f"({written})" if strength < least else written


def pieces(f: Formula) -> tuple[str, int]:
    """A formula's text, and its precedence."""
    head, parts = f.head, f.parts
    strength = STRENGTH.get(head, ATOM)
    if head == "name":
        return parts[0], ATOM
    if head == "matrix":
        return pieces(parts[0])
    if head == "call":
        function, args, kwargs = parts
        inner = [*map(text, args), *(f"{name}={text(value)}" for name, value in kwargs.items())]
        return f"{text(function, ATOM)}({', '.join(inner)})", ATOM
    if head == "attribute":
        return f"{text(parts[0], ATOM)}.{parts[1]}", ATOM
    if head == "item":
        key = parts[1]
        inside = ", ".join(map(text, key)) if isinstance(key, tuple) and len(key) > 1 else text(key)
        return f"{text(parts[0], ATOM)}[{inside}]", ATOM
    if head == "if":
        yes, condition, no = parts
        return f"{text(yes, 1)} if {text(condition, 1)} else {text(no)}", strength
    if len(parts) == 1:
        return ("-" if head == "negative" else head) + text(parts[0], strength), strength
    left, right = sides(head, strength)
    return f"{text(parts[0], left)} {head} {text(parts[1], right)}", strength


def sides(head: str, strength: int) -> tuple[int, int]:
    """The least precedences of an operator's operands: operators group from the left, powers from the right."""
    if head == "**":
        return POWER + 1, UNARY
    return strength + (strength == STRENGTH["=="]), strength + 1


def plain(value: Any) -> tuple[str, int]:
    """The text of a plain value: numbers, None, slices, tuples and lists."""
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(text, value))
        if isinstance(value, list):
            return f"[{inside}]", ATOM
        return (f"({inside},)" if len(value) == 1 else f"({inside})"), ATOM
    if isinstance(value, slice):
        ends = ["" if v is None else text(v) for v in (value.start, value.stop)]
        return ":".join(ends if value.step is None else [*ends, text(value.step)]), ATOM
    if value is Ellipsis:
        return "...", ATOM
    written = repr(value)
    return written, UNARY if written.startswith("-") else ATOM


# -- LaTeX -----------------------------------------------------------------------------------------

GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "lambda", "mu", "pi", "sigma", "tau"}
# A world: names in formulas -> LaTeX.
NAMED = {name: f"\\{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "log", "min", "max")} | {
    "asin": "\\arcsin",
    "acos": "\\arccos",
    "atan": "\\arctan",
    "maximum": "\\max",
    "minimum": "\\min",
    "sigmoid": "\\sigma",
    "log2": "\\log_2",
    "log10": "\\log_{10}",
    "digamma": "\\psi",
}
# A world: functions with a special notation in LaTeX.
NOTATION: dict[str, Callable[..., str]] = {
    "exp": lambda x: f"e^{{{latex(x)}}}",
    "exp2": lambda x: f"2^{{{latex(x)}}}",
    "sqrt": lambda x: f"\\sqrt{{{latex(x)}}}",
    "rsqrt": lambda x: f"\\frac{{1}}{{\\sqrt{{{latex(x)}}}}}",
    "reciprocal": lambda x: f"\\frac{{1}}{{{latex(x)}}}",
    "square": lambda x: f"{latex(x, ATOM)}^{{2}}",
    "abs": lambda x: f"\\left|{latex(x)}\\right|",
    "floor": lambda x: f"\\left\\lfloor {latex(x)} \\right\\rfloor",
    "ceil": lambda x: f"\\left\\lceil {latex(x)} \\right\\rceil",
    "conj": lambda x: f"\\overline{{{latex(x)}}}",
    "where": lambda condition, yes, no: f"\\begin{{cases}} {cases(yes, condition, no)} \\end{{cases}}",
}
SIGNS = {
    "==": "=", "!=": "\\neq", "<=": "\\leq", ">=": "\\geq", "&": "\\land", "|": "\\lor", "^": "\\oplus", "@": "\\,",
    "%": "\\bmod", "<<": "\\ll", ">>": "\\gg",
}  # fmt: skip
PREFIX = {"negative": "-", "~": "\\lnot "}
WRAPPED = {"/": ("\\frac{{{}}}{{{}}}", POWER), "//": ("\\left\\lfloor \\frac{{{}}}{{{}}} \\right\\rfloor", ATOM)}


def latex(value: Any, least: int = 0) -> str:
    """The LaTeX of a formula or a plain value; in brackets if it binds less tightly than `least`."""
    value = known(value)
    written, strength = latex_pieces(value) if isinstance(value, Formula) else latex_plain(value)
    return f"\\left({written}\\right)" if strength < least else written


def latex_pieces(f: Formula) -> tuple[str, int]:
    """A formula in LaTeX, and its precedence."""
    head, parts = f.head, f.parts
    strength = STRENGTH.get(head, ATOM)
    if head == "name":
        return latex_name(parts[0]), ATOM
    if head == "matrix":
        return latex_pieces(parts[0])
    if head == "call":
        return latex_call(*parts)
    if head == "attribute":
        return latex_attribute(*parts), ATOM
    if head == "item":
        return f"{latex(parts[0], ATOM)}_{{{latex(parts[1])}}}", ATOM
    if head == "if":
        return NOTATION["where"](parts[1], parts[0], parts[2]), POWER
    if head in PREFIX:
        return PREFIX[head] + latex(parts[0], strength), strength
    if head in WRAPPED:
        form, strength = WRAPPED[head]
        return form.format(*map(latex, parts)), strength
    if head == "**":
        return f"{latex(parts[0], ATOM)}^{{{latex(parts[1])}}}", POWER
    if head == "*":
        return latex_product(f), strength
    left, right = sides(head, strength)
    return f"{latex(parts[0], left)} {SIGNS.get(head, head)} {unsigned(latex(parts[1], right))}", strength


def unsigned(written: str) -> str:
    """In brackets if it begins with a minus: two signs must not follow each other."""
    return f"\\left({written}\\right)" if written.startswith("-") else written


def latex_product(f: Formula) -> str:
    """Factors side by side, equal factors as a power. A dot precedes numbers and brackets that do not come first: x (y)
    would read as a call.
    """
    first, factors = f.parts[0], [f.parts[1]]
    while isinstance(first, Formula) and first.head == "*":
        first, factor = first.parts
        factors.append(factor)
    negative = isinstance(first, Formula) and first.head == "negative"
    factors.append(first.parts[0] if negative else first)  # -x * x is -(x^2)
    written = ""
    for _, same in groupby(reversed(factors), text):
        one, *more = same
        count = 1 + len(more)
        shown = latex(one, POWER if written else STRENGTH["*"]) if count == 1 else f"{latex(one, ATOM)}^{{{count}}}"
        shown = unsigned(shown) if written else shown
        dot = "\\cdot" if shown[0].isdigit() or shown.startswith("\\left(") else "\\,"
        written = f"{written} {dot} {shown}" if written else shown
    return "-" + unsigned(written) if negative else written


def latex_name(name: str) -> str:
    if name in GREEK:
        return f"\\{name}"
    return name if len(name) == 1 else f"\\mathrm{{{escaped(name)}}}"


def latex_call(function: Formula, args: tuple, kwargs: dict) -> tuple[str, int]:
    name = function.parts[0] if function.head == "name" else ""
    if name in NOTATION and not kwargs:
        return NOTATION[name](*args), POWER
    inside = [*map(latex, args), *(f"{latex_name(key)} = {latex(value)}" for key, value in kwargs.items())]
    written = NAMED.get(name) or (f"\\operatorname{{{escaped(name)}}}" if name else latex(function, ATOM))
    if function.head == "attribute":
        value, method = function.parts
        written = f"{latex(value, ATOM)}.\\operatorname{{{escaped(method)}}}"
    return f"{written}\\left({', '.join(inside)}\\right)", ATOM


def latex_attribute(value: Any, name: str) -> str:
    if name in ("T", "mT"):
        return f"{latex(value, ATOM)}^\\top"
    return f"\\operatorname{{{escaped(name)}}}\\left({latex(value)}\\right)"


def cases(yes: Any, condition: Any, no: Any) -> str:
    """The rows of a case distinction; a nested one in its last row adds further rows."""
    row, last = f"{latex(yes)} & \\text{{if }} {latex(condition)} \\\\ ", no
    if isinstance(no, Formula) and no.head == "if":
        return row + cases(*no.parts)
    if isinstance(no, Formula) and no.head == "call" and str(no.parts[0]) == "where":
        inner, yes, last = no.parts[1]
        return row + cases(yes, inner, last)
    return f"{row}{latex(last)} & \\text{{otherwise}}"


def latex_plain(value: Any) -> tuple[str, int]:
    if isinstance(value, (tuple, list)):
        return f"\\left({', '.join(map(latex, value))}\\right)", ATOM
    if value is Ellipsis:
        return "\\ldots", ATOM
    if isinstance(value, float) and "e" in repr(value):
        digits, power = repr(value).split("e")
        return f"{digits} \\cdot 10^{{{int(power)}}}", STRENGTH["*"]
    if isinstance(value, complex):
        return "i" if value == 1j else repr(value).replace("j", "i"), ATOM
    if value is None or isinstance(value, (bool, str, slice)):
        return f"\\mathrm{{{escaped(text(value))}}}", ATOM
    return plain(value)


def escaped(name: str) -> str:
    return name.replace("_", "\\_")
