"""Names for the tensors of a graph, and formulas of the graph's results in these names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import count
from typing import Any

import numpy as np

from rushlight.core.node import Node, Output
from rushlight.core.table import TABLE, ruled_inputs
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import ARRAYS
from rushlight.introspect.formulas import Formula, formula
from rushlight.ops.math.elementwise import add, mul, pow, sub, where
from rushlight.viz.op_sentences import place_of

MAX_SYMBOLS = 200  # most symbols and operators in a formula; a larger subexpression gets a name
LETTERS = "abchkpqrstuvw"  # names for unnamed results; d, e, f, g, i have other meanings


class Symbols:
    """Formulas of nodes. `order`: the nodes, newest first. `values`: {node: result}, for known results. `known`: {name:
    value} of the names in formulas. `reserved`: names that the user's program uses for other values.
    """

    def __init__(
        self, order: list[Node], values: dict[Node, np.ndarray], names: dict[Node, str], called: dict[int, str],
        reserved: Iterable[str] = (),
    ):  # fmt: skip
        self.values, self.names, self.called = values, names, called
        self.taken = {*names.values(), "e", "g", "i"}
        others = {*reserved, *self.taken, *called.values()}
        self.fresh = (name for name in letters() if name not in others)
        self.known: dict[str, Any] = {}
        self.lettered: dict[str, np.ndarray] = {}  # constants without a name of the program
        for node in reversed(order):
            if node not in names:
                names[node] = f"leaf{len(names)}" if node.leaf else next(self.fresh)
        self.full: dict[Node, Formula] = {}
        self.vague: set[Node] = set()  # nodes whose formula contains an unknown result
        for node in reversed(order):  # oldest first: no recursion through the graph
            self.full[node] = self.in_leaves(node)

    def name(self, node: Node) -> Formula:
        """The node's result as a symbol."""
        self.known[self.names[node]] = self.values.get(node)
        return Formula("name", self.names[node])

    def in_leaves(self, node: Node) -> Formula:
        """The node's result as a formula of leaves; its name if the formula is too large or contains an unknown
        constant.
        """
        made = None if node.leaf else self.forward(node, self.full)
        vague = any(edge in self.vague for edge in node.edges)
        if isinstance(made, Formula) and size(made) <= MAX_SYMBOLS and not (vague and node in self.values):
            self.vague.update((node,) if vague else ())
            return made
        if node not in self.values:
            self.vague.add(node)
        return self.name(node)

    def forward(self, node: Node, inputs: dict[Node, Formula]) -> Any:
        """The op as a formula of its inputs; None if a setting or an input is unknown, or the op has no formula."""
        op = node.op
        if op is None or isinstance(node, Output) or "tensors" in op.inputs:
            return None
        given = self.given(node, inputs)
        if any(given.get(n) is None for n in op.inputs + op.settings):
            return None
        if op is mul.op and any(same(given[n], 0) for n in op.inputs):  # simple() would drop x
            return Formula("*", *sorted((given["x"], given["y"]), key=lambda v: not same(v, 0)))
        return self.applied(op.forward, given)

    def step(self, node: Node) -> str:
        """The op as text, in the names of its inputs; "constant" for a number that was not saved."""
        made = self.forward(node, {})
        if made is not None:
            return str(made)
        inputs = [self.names[edge] if edge is not None else "constant" for edge in node.edges]
        if node.op is not None and node.op.elementwise and not node.op.settings:
            symbols = {name: Formula("name", text) for name, text in zip(ruled_inputs(node.op), inputs)}
            return str(self.applied(node.op.forward, symbols))
        return f"{node.op.called if node.op is not None else node.name()}({', '.join(n for n in inputs if n != 'constant')})"  # noqa: E501

    def local(self, node: Node, slot: int, inputs: dict[Node, Formula], out: Formula) -> Any:
        """d result / d input number `slot` for an elementwise op: its rule with g = 1. None if it has no formula."""
        op = node.op
        if op is None or not op.elementwise or isinstance(node, Output):
            return None
        rule = op.rules[ruled_inputs(op)[slot]]
        return self.applied(rule, {**self.given(node, inputs), "g": 1, "out": out})

    def local_apart(self, node: Node, slot: int) -> Any:
        """`local` for an input that the op uses several times, with the uses told apart: the derivative of x * x by the
        first x is the second x. None for a formula with conditions: their branch depends on the values.
        """
        op, edge = node.op, node.edges[slot]
        if op is None or not op.elementwise or edge is None:
            return None
        given = self.given(node, {})
        for other, name in enumerate(ruled_inputs(op)):
            if node.edges[other] is edge:
                given[name] = Formula("name", f"{place_of(node, other)} {self.names[edge]}")
        made = self.applied(op.rules[ruled_inputs(op)[slot]], {**given, "g": 1, "out": self.name(node)})
        return made if isinstance(made, Formula) and conditions(made) == 0 else None

    def gradient_rule(self, node: Node, slot: int) -> str | None:
        """The rule of an input in the names of the graph, with g for the gradient that arrived."""
        op = node.op
        if op is None or isinstance(node, Output) or op.inputs == ("tensors",):
            return None
        if op.name == "linear" and len(node.shape or ()) != 2 and slot:
            return self.rows_rule(node, slot)
        given = {**self.given(node, {}), "g": Formula("name", "g"), "out": self.name(node)}
        text = self.readable_rule(node, slot, given)
        if text is None:
            return None
        flat = all(len(n.shape or ()) <= 2 for n in (node, *node.edges) if n is not None)
        return text.replace(".mT", ".T") if flat else text

    def rows_rule(self, node: Node, slot: int) -> str:
        """The rule of a linear layer's weight or bias: the gradients as a table of rows."""
        g = f"g.reshape(-1, {(node.shape or (1,))[-1]})"
        x, weight = self.given(node, {})["x"], node.edges[1]
        columns = -1 if weight is None else (weight.shape or (-1,))[-1]
        return f"{g}.sum(0)" if slot == 2 else f"{g}.T @ {x}.reshape(-1, {columns})"

    def readable_rule(self, node: Node, slot: int, given: dict[str, Any]) -> str | None:
        """The rule of an input as text, unless it calls our own helpers."""
        rule = node.op.rules[ruled_inputs(node.op)[slot]]
        made = None if rule is None else self.applied(rule, given)
        if isinstance(made, (int, float)):
            return str(made)
        names = {str(v) for v in given.values() if isinstance(v, Formula) and v.head == "name"}
        known = {"g", *self.names.values(), *self.known, *names}
        return str(made) if isinstance(made, Formula) and readable(made, known) else None

    def applied(self, function: Any, given: dict[str, Any]) -> Any:
        try:
            return simple(formula(function, {k: v for k, v in given.items() if v is not None}), self.truth)
        except (TypeError, ValueError, ArithmeticError):
            return None

    def held(self) -> dict[str, Any]:
        """{name: value} of the names with known values."""
        return {**self.known, **{self.names[node]: value for node, value in self.values.items()}}

    def truth(self, condition: Formula) -> bool | None:
        """Whether a comparison of numbers is true; None if it compares arrays, or a value is unknown."""
        try:
            answer = eval(str(condition), {**ARRAYS, "__builtins__": {}}, self.held())
        except Exception:  # a name without a value, or one that is not an identifier: "0.weight"
            return None
        return bool(answer) if np.size(answer) == 1 else None

    def given(self, node: Node, inputs: dict[Node, Formula]) -> dict[str, Any]:
        """{parameter of a rule: its formula, number or setting}."""
        op = node.op
        saved = dict(zip(op.saves, node.saved or ()))
        found = {name: item for name, item in saved.items() if not isinstance(item, (Tensor, np.ndarray))}
        for name, edge in zip(ruled_inputs(op), node.edges):
            if edge is not None:
                found[name] = inputs.get(edge, Formula("name", self.names[edge]))
            elif isinstance(item := saved.get(name), Tensor):
                found[name] = self.constant(item._array)
            else:
                found[name] = recovered(node, name, self.values)
        return found

    def constant(self, array: np.ndarray) -> Any:
        """A constant of one element as a number; an array gets a name."""
        if array.size == 1:
            return number(array)
        for name, value in self.known.items():
            if value is array:
                return Formula("name", name)
        name = self.called.get(id(array), "")
        if not name or name in self.taken:
            name = self.letter_of(array)
        self.known[name] = array
        return Formula("name", name)

    def letter_of(self, array: np.ndarray) -> str:
        name = next(name for name in self.fresh if name not in self.known)
        self.lettered[name] = array
        return name

    def defined(self, text: str) -> list[str]:
        """A sentence for each letter in the text that stands for a constant."""
        words = set(re.findall(r"\w+", text))
        return [
            f"{name} is a constant of the program, {shaped(array.shape)}."
            for name, array in self.lettered.items()
            if name in words
        ]


# Functions in rules, besides elementwise ones, that users call with the same arguments.
READABLE = {"sum", "mean", "cumsum", "flip", "permute", "transpose", "reshape", "unsqueeze"}
READABLE |= {"tril", "triu", "mv", "zeros_like", "stack"}


def readable(value: Any, known: set[str]) -> bool:
    """True if a formula contains only names in `known` and only functions that users can call."""
    if isinstance(value, (tuple, list)):
        return all(readable(part, known) for part in value)
    if isinstance(value, dict):
        return readable([*value.values()], known)
    if not isinstance(value, Formula):
        return True
    if value.head == "name":
        return value.parts[0] in known
    if value.head == "attribute":
        return readable(value.parts[0], known)
    if value.head != "call":
        return readable(value.parts, known)
    function, *rest = value.parts
    if function.head != "name":
        return readable(value.parts, known)
    op = TABLE.get(function.parts[0])
    public = function.parts[0] in READABLE or (
        op is not None
        and op.elementwise
        and op.called == op.name  # neither special_i1 nor clamp_both
        and op.options.get("function", True)
    )
    return public and readable(rest, known)


def shaped(shape: tuple[int, ...]) -> str:
    return f"shape {tuple(shape)}" if shape else "a single number"


def letters() -> Iterator[str]:
    """a, b, c ... then a1, b1, ..."""
    for round_ in count():
        for letter in LETTERS:
            yield letter + (str(round_) if round_ else "")


def number(array: np.ndarray) -> Any:
    """An array of one element as the shortest Python number that equals it."""
    value = array.reshape(-1)[0]
    if isinstance(value, np.bool_) or np.issubdtype(array.dtype, np.complexfloating):
        return value.item()
    short = float(str(value))
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def recovered(node: Node, name: str, values: dict[Node, np.ndarray]) -> Any:
    """The constant of an addition or subtraction, which no node saves: the shortest decimal that gives the known
    result. None if input or result are unknown."""
    op, known = node.op, [values.get(edge) if edge is not None else None for edge in node.edges]
    out, other = values.get(node), next((k for k in known if k is not None), None)
    if op not in (add.op, sub.op) or out is None or other is None or out.size != 1 or out.dtype.kind != "f":
        return None
    guess = float(out.item()) - float(other.item())
    if op is sub.op:
        guess = -guess if name == "y" else float(out.item()) + float(other.item())
    for digits in range(1, 18):
        c = np.asarray(float(f"{guess:.{digits}g}"), out.dtype)
        if np.array_equal(op.kernel(*((other, c) if name == "y" else (c, other))).reshape(-1), out.reshape(-1)):
            return number(c)
    return None


def is_partial(node: Node) -> bool:
    """True if a derivative of the step by one input holds other inputs fixed: for `a * x` and `x * x`."""
    return sum(edge is not None for edge in node.edges) > 1


# -- simpler formulas ------------------------------------------------------------------------------


def size(value: Any) -> int:
    """Symbols and operators of a formula."""
    if isinstance(value, (tuple, list)):
        return sum(map(size, value))
    return 1 + sum(map(size, value.parts)) if isinstance(value, Formula) else 1


COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def conditions(value: Any) -> int:
    """The number of conditionals and comparisons in a formula."""
    if isinstance(value, (tuple, list)):
        return sum(map(conditions, value))
    if not isinstance(value, Formula):
        return 0
    own = value.head == "if" or value.head in COMPARISONS or (value.head == "call" and str(value.parts[0]) == "where")
    return own + conditions(value.parts)


def simple(value: Any, truth: Callable[[Formula], bool | None]) -> Any:
    """The formula without factors 1 and terms 0, and with each conditional replaced by the branch that was taken."""
    if isinstance(value, (tuple, list)):
        return type(value)([simple(part, truth) for part in value])
    if not isinstance(value, Formula):
        return value
    head, parts = value.head, [simple(part, truth) for part in value.parts]
    if head in COMPARISONS:
        answer = truth(Formula(head, *parts))
        return Formula(head, *parts) if answer is None else answer
    if head == "call":
        return simple_call(*parts)
    elif head == "if" and isinstance(parts[1], bool):
        return parts[0] if parts[1] else parts[2]
    elif head == "~" and isinstance(parts[0], bool):
        return not parts[0]
    elif head == "negative":
        return negated(parts[0])
    elif len(parts) == 2 and head in REDUCED:
        return REDUCED[head](*parts)
    return Formula(head, *parts)


def simple_call(function: Any, arguments: tuple, *rest: Any) -> Any:
    """The call in a simpler form: `where` as its branch, `pow` as a power, `shared_by` as a quotient."""
    name = function.parts[0] if function.head == "name" else ""
    if name == where.op.name and isinstance(arguments[0], bool):
        return arguments[1 if arguments[0] else 2]
    if name == pow.op.name:
        return power(*arguments)
    if name == "unpermute" and not any(isinstance(dim, Formula) for dim in arguments[1]):
        x, dims = arguments
        order = tuple(sorted(range(len(dims)), key=lambda i: dims[i] % len(dims)))
        return Formula("call", Formula("name", "permute"), (x, order), *rest)
    if name == "shared_by":  # the rule of mean: g / n
        total, n = arguments
        return over(total, int(n) if isinstance(n, float) and n.is_integer() else n)
    return Formula("call", function, arguments, *rest)


def negated(value: Any) -> Any:
    if isinstance(value, Formula):
        return value.parts[0] if value.head == "negative" else Formula("negative", value)
    return -value


def same(value: Any, what: int) -> bool:
    """True if `value` is the number `what`, and neither a formula nor a bool."""
    return not isinstance(value, (Formula, bool)) and isinstance(value, (int, float)) and value == what


def plus(a: Any, b: Any) -> Any:
    if same(a, 0):
        return b
    if same(b, 0):
        return a
    return a - negated(b) if isinstance(b, Formula) and b.head == "negative" else a + b


def minus(a: Any, b: Any) -> Any:
    return negated(b) if same(a, 0) else a if same(b, 0) else a - b


def times(a: Any, b: Any) -> Any:
    """The product a b, with a number first, and a minus in front."""
    a, b = (int(v) if isinstance(v, bool) else v for v in (a, b))
    if same(a, 0) or same(b, 0):
        return 0
    if same(a, 1) or same(b, 1):
        return b if same(a, 1) else a
    if same(a, -1) or same(b, -1):
        return negated(b if same(a, -1) else a)
    if isinstance(a, Formula) and a.head == "negative":
        return negated(times(a.parts[0], b))
    if isinstance(b, Formula) and b.head == "negative":
        return negated(times(a, b.parts[0]))
    return b * a if isinstance(a, Formula) and not isinstance(b, Formula) else a * b


def over(a: Any, b: Any) -> Any:
    if isinstance(a, Formula) and a.head == "negative":
        return negated(over(a.parts[0], b))
    return 0 if same(a, 0) else a if same(b, 1) else Formula("/", a, b)


def power(a: Any, b: Any) -> Any:
    return a if same(b, 1) else 1 if same(b, 0) else Formula("**", a, b)


def both(a: Any, b: Any) -> Any:
    """`a & b`, simplified if an operand is a bool."""
    if isinstance(a, bool) or isinstance(b, bool):
        known, other = (a, b) if isinstance(a, bool) else (b, a)
        return other if known else False
    return Formula("&", a, b)


def either(a: Any, b: Any) -> Any:
    """`a | b`, simplified if an operand is a bool."""
    if isinstance(a, bool) or isinstance(b, bool):
        known, other = (a, b) if isinstance(a, bool) else (b, a)
        return True if known else other
    return Formula("|", a, b)


REDUCED = {"&": both, "|": either, "+": plus, "-": minus, "*": times, "/": over, "**": power}


def product(factors: list[Any]) -> Any:
    """The factors multiplied, without ones."""
    return reduce(times, factors, 1)


def total(terms: list[Any]) -> Any:
    """The terms added."""
    return reduce(plus, terms, 0)
