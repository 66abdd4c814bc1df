"""Documentation of a function as text: `rushlight.docs.mul` shows its formula and the rule of each gradient.

`print`, or just the name at the prompt, shows text; a notebook shows typeset formulas.

>>> rushlight.docs.tanh.formula, rushlight.docs.tanh.rules
('tanh(input)', {'input': 'g * (1 - out * out)'})

`call` is the code of an eager call, then the code of the op's backward (base/specialise.py):

>>> print(*rushlight.docs.where.call.splitlines()[:5], sep="\\n")
def call_where(kernel, args, kwargs, out):
    try:
        if kwargs or len(args) != 3:
            args, kwargs = (bind(args, kwargs), {})
        condition, x, y = values = args
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from html import escape
from types import CodeType
from typing import Any

from rushlight.base import lazy
from rushlight.base.errors import meant
from rushlight.base.public_function import private
from rushlight.core import backward_call, families
from rushlight.core.build import elementwise, is_general
from rushlight.core.call import source
from rushlight.core.table import NAMESPACES, TABLE, Op
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import AS_ARRAYS
from rushlight.creation import factories
from rushlight.introspect.formulas import Formula
from rushlight.introspect.op_docstrings import expression, public
from rushlight.nn import functional
from rushlight.ops.composites import offered

MAX_CODE_LINES = 30  # most lines of code that are shown


class Doc:
    """One function. `formula`: its formula as text, None if it has no plain formula. `rules`: {input: its gradient},
    with g for the output's gradient. `latex`: all as equations. `source`: its entry in the table, or its code. `text`:
    all of these.
    """

    def __init__(self, name: str, function: Callable):
        self.name, self.function = name, function
        self.op: Op | None = getattr(function, "op", None)

    @property
    def equations(self) -> dict[str, Any]:
        """{'out' or an input: formula}; for an input, the rule of its gradient. If there is no plain formula, a
        sentence instead.
        """
        if self.op is None:
            return {}
        ruled = {public(self.op, name): rule for name, rule in self.op.rules.items() if rule is not None}
        return {"out": expression(self.op, self.op.forward)} | {
            n: expression(self.op, rule) for n, rule in ruled.items()
        }

    @property
    def formula(self) -> str | None:
        made = self.equations.get("out")
        return str(made) if isinstance(made, Formula) else None

    @property
    def rules(self) -> dict[str, str]:
        return {name: str(made) for name, made in self.equations.items() if name != "out"}

    @property
    def latex(self) -> str:
        """The formula and the rules, one equation per line."""
        lines = [
            (r"\mathrm{out}" if name == "out" else rf"\bar{{{Formula('name', name).latex}}}", made)
            for name, made in self.equations.items()
            if isinstance(made, Formula)
        ]
        rows = r" \\ ".join(f"{left} &= {made.latex}" for left, made in lines)
        return rf"\begin{{aligned}} {rows} \end{{aligned}}" if rows else ""

    @property
    def source(self) -> str:
        """The entry in the table, or the code of a function composed of ops; '' for anything else."""
        with suppress(OSError, TypeError):  # functions made in a loop have no source
            return inspect.cleandoc("\n" + inspect.getsource(inspect.unwrap(self.function))).rstrip()
        return ""

    @property
    def call(self) -> str:
        """The text of an eager call of the op, then the text of its backward on arrays; '' if the function is not an
        op.

        Elementwise ops of one or two inputs, and reductions, share their family's function.
        """
        op = self.op or TABLE.get(self.name)
        if op is None:
            return ""
        texts = [call_text(op)]
        if any(op.rules.values()):
            how = {"reduces": False, "several": False, **getattr(op.make_node, "keywords", {})}
            rules = {name: str(expression(op, rule)) for name, rule in op.rules.items() if rule is not None}
            comments = [f"# rule_{name}: {text.splitlines()[0]}" for name, text in rules.items()]
            texts.append("\n".join([*comments, backward_call.source(op, AS_ARRAYS, **how)]))
        return "\n\n".join(texts)

    @property
    def place(self) -> str:
        """`file:line` of the source."""
        inner = inspect.unwrap(self.function)
        return f"{inspect.getsourcefile(inner)}:{inspect.getsourcelines(inner)[1]}"

    @property
    def text(self) -> str:
        """Call, documentation, and source."""
        parts = [f"{self.name}{inspect.signature(self.function)}", (inspect.getdoc(self.function) or "").rstrip()]
        source = self.source
        if source and self.op is not None:
            parts.append(f"Its entry in the table, {self.place}:\n\n{indented(source)}")
        elif source:
            parts.append(f"Made of ops, whose gradients are its own, in {self.place}:\n\n{indented(shortened(source))}")
        return "\n\n".join(filter(None, parts))

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        shown = f"$$\\displaystyle {escape(self.latex)}$$" if self.latex else ""
        return f"<div><b><code>{escape(self.name)}</code></b>{shown}<pre>{escape(self.text)}</pre></div>"


def shortened(source: str) -> str:
    """Code without the docstring, which is shown above, and cut off after a few lines."""
    quote = '"""'
    head, _, rest = source.partition(quote)
    lines = (head.rstrip() + rest.partition(quote)[2] if rest else source).splitlines()
    return "\n".join(lines if len(lines) <= MAX_CODE_LINES else [*lines[:MAX_CODE_LINES], "    ..."])


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def call_text(op: Op) -> str:
    """The text of the eager call: written out for this op, or the function that its family makes."""
    family = op.family
    if family is elementwise and is_general(op):
        family = families.general
    elif family is elementwise:
        family = families.unary if len(op.inputs) == 1 else families.binary
    if family in (families.general, families.view):
        return source(op)
    call = next(c for c in family.__code__.co_consts if isinstance(c, CodeType) and c.co_name == "call")
    return inspect.cleandoc("\n" + inspect.getsource(call)) + "\n"


class Space:
    """The functions of one namespace: `docs.linalg.det`."""

    def __init__(self, name: str, known: dict[str, Callable]):
        self.name, self.known = name, known

    def __getattr__(self, name: str) -> Doc:
        return found(self.name, name, self.known)

    def __dir__(self) -> list[str]:
        return sorted(self.known)

    def __repr__(self) -> str:
        return f"<docs of {self.name}: {', '.join(sorted(self.known))}>"


def found(space: str, name: str, known: dict[str, Callable]) -> Doc:
    if name not in known:
        raise AttributeError(f"{space} documents no function '{name}'{meant(name, sorted(known))}")
    return Doc(name, known[name])


def functions() -> dict[str, Callable]:
    """All documented functions, by their public names; names in namespaces have a prefix."""
    lazy.complete()
    methods = {name: f for name, f in vars(Tensor).items() if inspect.isfunction(f) and not name.startswith("_")}
    layers = {
        name: private(f)
        for name, f in vars(functional).items()
        if inspect.isfunction(private(f)) and not name.startswith("_")
    }
    return (
        methods | layers | factories.FUNCTIONS | {name: f for name, f in offered().items() if not name.startswith("_")}
    )


def __getattr__(name: str) -> Doc | Space:
    if name.startswith("_"):
        raise AttributeError(f"module 'rushlight.docs' has no attribute '{name}'")
    known = functions()
    if name in NAMESPACES:
        inside = {full[len(name) + 1 :]: f for full, f in known.items() if full.startswith(name + "_")}
        return Space(f"rushlight.docs.{name}", inside)
    return found("rushlight.docs", name, known)


def __dir__() -> list[str]:
    return sorted([*functions(), *NAMESPACES])
