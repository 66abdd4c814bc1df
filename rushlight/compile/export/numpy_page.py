"""A recorded graph as a short page of NumPy: one line for each step, and the functions that the steps need.

Functions of frequent layers come from numpy_functions.py; other ops are copied from the op table (module_text.py), so a
page may need long definitions for rare ops. A page for any number of samples is made of two graphs, of 2 and of 3
samples: a size that differs is a multiple of the number of samples."""

from __future__ import annotations

import builtins
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from keyword import iskeyword
from typing import Any

import numpy as np

from rushlight.base.errors import value_error
from rushlight.compile.export import numpy_functions
from rushlight.compile.export.module_text import Module, array_text
from rushlight.compile.export.numpy_expressions import HERE, Written, expression, flat
from rushlight.compile.graph import Call, Graph, Store, Value, is_random, values_in
from rushlight.core.table import TABLE
from rushlight.kernels import index as kernels_index

MAX_LITERAL = 16  # constants with more elements are stored among the weights
SAMPLES = "samples"
FIXED = "export it without `dynamic`, once for each number of samples"


def has_page(graph: Graph) -> bool:
    """Whether a page can compute the graph: it writes to no buffers, draws no numbers and checks nothing."""
    return not graph.grads and all(
        isinstance(s, Call) and s.outs and not is_random(s) and not any(v.dtype.itemsize == 2 for v in s.outs)
        for s in graph.steps
    )


class Page:
    """Writes the lines of a graph. `twin`: the graph of 3 samples, if `graph` is of 2 and the page for any number.

    `names`: {id of an array: name among the weights}. `paths`: the variables of the arguments (`parameters`). `store`:
    gets the arrays that the page reads."""

    def __init__(self, graph: Graph, twin: Graph | None, names: dict[int, str], paths: Sequence[str], store: dict):
        self.first = paths[0]  # the argument whose first size is the number of samples
        self.graph, self.twin, self.names, self.paths, self.store = graph, twin or graph, names, paths, store
        if twin is not None and [s.op for s in graph.steps] != [s.op for s in twin.steps]:
            raise value_error("export: the model computes differently for another number of samples", FIXED)
        self.dynamic = twin is not None
        self.of: dict[Value, str] = {}  # value -> its expression
        self.taken = {*paths}
        self.kernels = Module("", ("in_single",))  # without an effect on float32 and float64
        self.kernels.owner |= dict.fromkeys([*dir(numpy_functions), "W", "model"], "reserved")
        self.used = {v for s in graph.steps for v in values_in(s.args)} | {*graph.results}
        self.lines: list[str] = []

    # -- expressions --

    def text(self, a: Any, other: Any) -> Any:
        """The expression for an argument; a list of expressions for a tuple or list. `other`: the twin's."""
        if isinstance(a, Value):
            return self.value(a, other)
        if isinstance(a, (tuple, list)):
            if len(a) != len(other):
                raise value_error("export: a size depends on the number of samples", FIXED)
            return [self.text(x, y) for x, y in zip(a, other)]
        if type(a) is int and a != other:
            return self.size(a, other)
        if a is kernels_index.HERE:
            return HERE
        if isinstance(a, slice):
            return f"slice({', '.join([str(self.text(*p)) for p in zip(ends(a), ends(other))])})"
        return self.kernels.constant(a)

    def size(self, a: int, other: int) -> str:
        """A size that is `a` for 2 samples and `other` for 3."""
        if a == other:
            return str(a)
        slope = other - a
        rest = a - 2 * slope
        text = SAMPLES if slope == 1 else f"{slope} * {SAMPLES}"
        return text if not rest else f"{text} {'+' if rest > 0 else '-'} {abs(rest)}"

    def shape(self, v: Value, other: Value) -> str:
        return flat([self.size(a, b) for a, b in zip(v.shape, other.shape)])

    def value(self, v: Value, other: Value) -> str:
        if v in self.of:
            return self.of[v]
        if v.kind == "input":
            kind, what = v.source
            if kind == "argument":
                self.of[v] = self.paths[what]
            else:
                name = self.names.get(id(what._array), "") or f"tensor_{len(self.store)}"
                self.of[v] = self.stored(name, what._array)
        elif v.kind == "constant":
            self.of[v] = self.constant(np.asarray(v._array), np.asarray(other._array))
        return self.of[v]

    def stored(self, name: str, array: np.ndarray) -> str:
        self.store[name] = np.asarray(array, order="C")
        return f"W[{json.dumps(name)}]"

    def constant(self, a: np.ndarray, other: np.ndarray) -> str:
        """A constant: a number, an array of equal numbers, or an array among the weights."""
        if a.size and a.tobytes() == a.ravel()[:1].tobytes() * a.size and (a.size > 1 or a.shape != other.shape):
            number = a.ravel()[:1]
            if other.tobytes() == number.tobytes() * other.size:
                sizes = flat([self.size(n, m) for n, m in zip(a.shape, other.shape)])
                return f"np.full({sizes}, {self.kernels.constant(number[0])})"
        if a.shape != other.shape or a.tobytes() != other.tobytes():
            raise value_error("export: a constant depends on the number of samples", FIXED)
        if not a.shape:
            return self.kernels.constant(a[()])
        return array_text(a) if a.size <= MAX_LITERAL else self.stored(f"constant_{len(self.store)}", a)

    # -- lines --

    def write(self) -> None:
        """The lines of all steps."""
        for step, twin in zip(self.graph.steps, self.twin.steps):
            assert not isinstance(step, Store)
            assert not isinstance(twin, Store)
            texts = [short(step, a) or self.text(a, b) for a, b in zip(step.args, twin.args)]
            used = [v in self.used for v in step.outs]
            shape = self.shape(step.outs[0], twin.outs[0])
            written = Written(step.op, tuple(step.args), texts, shape, step.outs[0].dtype, used)
            found = expression(written)
            several = len(step.outs) > 1
            if found is None:
                found = written.function(self.kernels.kernel(step.op))
            elif several and not any(used[1:]) and not RETURNS_ALL.match(found):
                several = False
            outs = [self.named(step.op, v, u) for v, u in zip(step.outs, used)]
            self.lines.append(f"{unpacked(outs) if several else outs[0]} = {found}")

    def named(self, op: str, v: Value, used: bool) -> str:
        """A variable for a result: the op's name and a number, unlike any function's name."""
        if not used:
            return "_"
        name, number = op if op.isidentifier() else "value", 1
        while f"{name}{number}" in self.taken:
            number += 1
        self.of[v] = f"{name}{number}"
        self.taken.add(self.of[v])
        return self.of[v]

    def functions(self) -> Iterator[str]:
        """The texts of the functions of numpy_functions.py that the page calls."""
        texts = {n: f for n, f in vars(numpy_functions).items() if inspect.isfunction(f)}
        needed = called("\n".join(self.lines), texts)
        more = needed
        while more:
            more = {m for n in more for m in called(inspect.getsource(texts[n]), texts)} - needed
            needed |= more
        for name, function in texts.items():
            if name in needed:
                yield inspect.getsource(function).rstrip()


def unpacked(names: list[str]) -> str:
    """The targets of several results: `*_` for the last ones, if they are not read."""
    count = max([k + 1 for k, name in enumerate(names) if name != "_"], default=0)
    return ", ".join([*names[:count], *["*_"] * (count < len(names))])


RETURNS_ALL = re.compile(r"(lstm|gru|rnn)\(|np\.(split|moveaxis)\(|\w+$")


def called(text: str, names: Any) -> set[str]:
    """The functions that a text calls."""
    return {*re.findall(r"(?<![\w.])(\w+)\(", text)} & {*names}


def short(step: Call, a: Any) -> str:
    """A number beside an array of its dtype, for NumPy's own functions: `2.0` in place of `np.float32(2.0)`."""
    if not isinstance(a, Value) or a.kind != "constant" or a.shape or not np.isfinite(a._array):
        return ""
    if not isinstance(TABLE[step.op].kernel, np.ufunc) or a.dtype.kind not in "fi":
        return ""
    return str(a._array) if any([v.dtype == a.dtype and v.shape for v in values_in(step.args)]) else ""


def ends(s: slice) -> tuple:
    return s.start, s.stop, s.step


def wrapped(line: str, width: int = 116) -> str:
    """A statement of at most `width` characters a line, if its brackets allow."""
    from rushlight.compile.export.program_page import wrapped as wrap

    return line if len(line) <= width else wrap(line)


def parameters(paths: Sequence[str]) -> list[str]:
    """A variable for each argument: `x`, `pair_0`; unlike the names of functions and modules."""
    taken = {"W", SAMPLES, *dir(numpy_functions), *dir(builtins)} - {"input"}
    names = ["_".join(re.findall(r"\w+", path)) for path in paths]
    return [f"{name}_" if name in taken or iskeyword(name) else name for name in names]


def page(made: Page, title: str, doc: str, result: str) -> str:
    """The text of program.py, after `made.write()`. `result`: the expression for the model's result."""
    samples = []
    if made.dynamic and SAMPLES in "\n".join(made.lines):
        samples = [f"{SAMPLES} = len({made.first})"]
    lines = [*samples, *made.lines, f"return {result}"]
    body = [textwrap.indent(wrapped(line), "    ") for line in lines]
    functions = [*made.functions(), *made.kernels.texts]
    text = "\n".join([*functions, *body])
    imports = {"import numpy as np": None, **made.kernels.imports}
    imports |= {"import math": None} if "math." in text else {}
    imports |= {"from itertools import product": None} if "product(" in text else {}
    imports |= {"from functools import reduce": None} if "reduce(" in text else {}
    future = ["from __future__ import annotations", ""] if made.kernels.texts else []
    ordered = sorted(imports, key=lambda s: (s.startswith("from"), s))
    head = [f'"""{title}"""', "", *future, *ordered, "", "from . import W"]
    main = [f"def model({', '.join(made.paths)}):", f'    """{doc}"""', *body]
    return "\n".join([*head, *(f"\n\n{f}" for f in functions), "\n", *main, ""])
