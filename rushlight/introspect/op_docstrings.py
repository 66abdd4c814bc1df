"""Docstrings and signatures of the table's functions, derived from their entries.

The formula is the entry's forward and the gradients are its rules, printed by introspect/formulas.py; shapes, dtypes
and errors follow from the family; the example is run to get its output. Only the sentence that describes the op is
written by hand: `doc=` in the entry, or in docs.py of its subject.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import Context
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, Signature
from operator import attrgetter
from textwrap import TextWrapper
from types import MappingProxyType
from typing import Any

from rushlight.base.text import define
from rushlight.core.arguments import ROLES
from rushlight.core.table import BOOL, FLOATING, PUBLIC, REAL, TABLE, Op, parameters
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import ARRAYS
from rushlight.introspect.formulas import Formula, formula
from rushlight.ops.doc_text import NO_TEXT, Text

wrap = TextWrapper(88, break_long_words=False, break_on_hyphens=False).fill
indented = TextWrapper(88, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False).fill


# -- signatures ------------------------------------------------------------------------------------


def public(op: Op, name: str) -> str:
    """The public name of a parameter."""
    return op.options.get("names", {}).get(name) or PUBLIC.get(name, name)


def in_order(op: Op) -> list[str]:
    """The parameters in the order of the public signature, by their names in the entry."""
    return op.options.get("order", " ".join(op.inputs + op.settings)).split()


def signature(op: Op, writes: bool = False) -> Signature:
    """torch's signature of the op's function; of the method with an underscore if it `writes`."""
    found = [
        Parameter(
            public(op, name),
            Parameter.VAR_POSITIONAL if name == op.options.get("variadic") else Parameter.POSITIONAL_OR_KEYWORD,
            default=op.defaults.get(name, Parameter.empty),
        )
        for name in in_order(op)
    ]
    kind = family(op)
    more = (["dtype"] if kind == "reduction" else []) + (["out"] if kind != "view" and not writes else [])
    return Signature(found + [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in more])


def family(op: Op) -> str:
    """The name of the op's family: elementwise, binary, reduction, view or general."""
    return op.family.__name__


# -- the parts of a docstring ----------------------------------------------------------------------


def text(op: Op, writes: bool = False) -> str:
    """The whole docstring; the in-place form's docstring if it `writes`."""
    known = text_of_subject(op)
    head, says = known.formula or headline(op), sentence(op)
    if writes:
        head, says = f"input = {call_text(op)}", f"`{op.name}`, written back into the tensor, which is returned."
    facts = [shapes(op, known), dtypes(op, known), *([] if writes else [other_names(op)])]
    paragraphs = [
        head,
        wrap(says),
        wrap(" ".join(filter(None, facts))),
        wrap(raises(op, known, writes)),
        "\n".join(gradients(op)),
        (example_in_place if writes else example)(op, known),
    ]
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def sentence(op: Op) -> str:
    """The description of the op: the sentence of the entry, of the subject's docs.py, or of the kernel."""
    return op.doc or text_of_subject(op).says or opening(op.kernel)


def text_of_subject(op: Op) -> Text:
    """The text for the op in docs.py of its entry's folder."""
    folder = op.forward.__module__.rpartition(".")[0]
    return texts_in(folder).get(op.name, NO_TEXT)


@cache
def texts_in(folder: str) -> dict[str, Text]:
    own = folder.startswith("rushlight.ops.") and find_spec(f"{folder}.docs")
    return import_module(f"{folder}.docs").TEXTS if own else {}


def opening(kernel: Any) -> str:
    """The first paragraph of a kernel's docstring, and the next one if the first ends in a colon."""
    if not hasattr(kernel, "__code__"):
        return ""
    first, *more = (kernel.__doc__ or "").split("\n\n")
    return " ".join(" ".join([first, *(more[:1] if first.endswith(":") else [])]).split())


def headline(op: Op) -> str:
    """`out = x * y`; if the forward is only a call of the op itself, the public call."""
    made = expression(op, op.forward)
    plain = not isinstance(made, Formula) or (made.head == "call" and not op.elementwise)
    return f"out = {call_text(op) if plain else made}"


def call_text(op: Op) -> str:
    """The op as users call it: name(input, dim)."""
    given = ", ".join(("*" if name == op.options.get("variadic") else "") + public(op, name) for name in in_order(op))
    return f"{title(op)}({given})"


def title(op: Op) -> str:
    """The public name of the op."""
    return op.called


def expression(op: Op, function: Callable) -> Any:
    """The formula of a rule or the forward, in the public names; a sentence if it cannot be run on symbols."""
    try:
        return as_called(formula(function, {name: symbol(op, name) for name in parameters(function)}))
    except TypeError:
        return f"a program, in {op.forward.__module__}"


def as_called(value: Any) -> Any:
    """The formula, with the arguments of its calls in the public order, which may differ from the entry's order."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(as_called, value))
    if not isinstance(value, Formula):
        return value
    head, parts = value.head, [as_called(part) for part in value.parts]
    op = TABLE.get(parts[0].parts[0]) if head == "call" and parts[0].head == "name" else None
    if op is not None and "order" in op.options:
        names = op.inputs + op.settings
        parts[1] = tuple(parts[1][names.index(name)] for name in in_order(op) if names.index(name) < len(parts[1]))
    return Formula(head, *parts)


def symbol(op: Op, name: str) -> Any:
    """The symbol for a parameter of a rule: `x_shape` is input.shape."""
    owner, _, fact = name.rpartition("_")
    if name == "gs" and "outputs" in op.options:
        return [Formula("name", f"g.{output}") for output in op.options["outputs"].split()]
    if fact in ("shape", "dtype") and owner in op.inputs:
        return getattr(Formula("name", public(op, owner)), fact)
    return Formula("name", public(op, name))


def shapes(op: Op, known: Text) -> str:
    """The shapes of the results; empty if the family does not determine them."""
    if known.shape:
        return f"Shape: {known.shape}."
    return {
        "elementwise": f"Shapes: {listed(list(op.inputs), op)} broadcast to out's."
        if len(op.inputs) > 1
        else "Shape: the input's.",
        "reduction": "Shape: the input's without `dim`, which is a number, several, or None for all; with `keepdim` "
        "those dimensions stay, with length 1.",
        "view": "A view: out shares the input's memory"
        + (" if possible; otherwise it is a copy." if op.options.get("copies") else "."),
        "binary": "Shapes: (..., n, k) and (..., k, m) give (..., n, m).",
    }.get(family(op), "")


def dtypes(op: Op, known: Text) -> str:
    """The dtypes of the results; empty if neither family nor entry determine them."""
    if known.dtype:
        return f"Dtype: {known.dtype}."
    if op.result in RESULTS:
        return f"Dtype: {RESULTS[op.result]}."
    if op.options.get("strict"):
        return "Dtype: one for both operands, which is out's."
    if family(op) == "elementwise" and len(op.inputs) > 1:
        return "Dtype: promoted as in torch."
    return "" if family(op) == "general" else "Dtype: the input's."


RESULTS = {
    FLOATING: "floating-point and complex ones stay, bool and integers become the default dtype",
    BOOL: "bool",
    REAL: "the input's; complex numbers give real ones",
}


def other_names(op: Op) -> str:
    """The op's aliases, and its in-place form."""
    names = [name for name in op.options.get("alias", "").split() if name != title(op)]
    writing = getattr(getattr(Tensor, f"{op.name}_", None), "op", None) is op
    aliases = f"Also called {' and '.join(names)}." if names else ""
    return " ".join(filter(None, [aliases, f"In place: {op.name}_." if writing else ""]))


def raises(op: Op, known: Text, writes: bool) -> str:
    """The errors, each with its condition."""
    several = family(op) == "elementwise" and len(op.inputs) > 1
    promoted = op.options.get("promote", " ".join(op.inputs)).split() if several else []
    strict = [name for name in op.inputs if name not in promoted]
    found = [
        f"TypeError if {listed(names, op, 'or')} is {what}"
        for names, what in ((strict, "no tensor"), (promoted, "neither tensor nor number"))
        if names
    ]
    if several:
        found.append("RuntimeError where shapes do not broadcast")
    if op.options.get("strict"):
        found.append("RuntimeError for different dtypes and for sizes that do not fit")
    if family(op) == "reduction" or any(name in ROLES and "dim" in name for name in op.settings):
        found.append("IndexError for a dimension that is not there")
    if writes:
        found.append("RuntimeError if out's shape or dtype is not the tensor's, or if it is a leaf that requires grad")
    return "; ".join(found + ([known.errors] if known.errors else [])) + "."


def listed(names: list[str], op: Op, word: str = "and") -> str:
    """Parameters in a sentence: `input`, `other` and `weight`."""
    shown = [
        "one of `tensors`" if name == "tensors" else f"`{public(op, name)}`" for name in in_order(op) if name in names
    ]
    return f" {word} ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


# -- gradients -------------------------------------------------------------------------------------

# Parameters of rules besides inputs, outputs and settings.
GIVEN = {
    "n": "how many elements make one of out's",
    "dims": "the dimensions that are reduced",
    "gs": "the gradients of the outputs",
    "tensors_shapes": "the tensors' shapes",
}


def gradients(op: Op) -> list[str]:
    """One line for each rule, and the definitions of their helpers."""
    made = {name: expression(op, rule) for name, rule in op.rules.items() if rule is not None}
    if not made:
        return ["It has no gradient."]
    kept = ", both with the reduced dimensions kept" if family(op) == "reduction" else ""
    lines = [f"    d {public(op, name)}: {made[name]}" for name in made]
    asked = {name for rule in op.rules.values() if rule for name in parameters(rule)} - set(op.settings)
    asked -= {"gs"} if "outputs" in op.options else set()
    notes = [f"{name}: {GIVEN[name]}" for name in GIVEN if name in asked]
    notes += [note for name in dict.fromkeys(called(list(made.values()))) for note in helper(name)]
    return [f"Gradient, g being that of out{kept}:", *lines, *(indented(note) for note in notes)]


def called(value: Any) -> Iterator[str]:
    """The names that are called in a formula."""
    if isinstance(value, Formula):
        if value.head == "call" and value.parts[0].head == "name":
            yield value.parts[0].parts[0]
        value = value.parts
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from called(part)


def helper(name: str) -> list[str]:
    """The definition of a helper in a formula, if the package has no public function of this name."""
    kernel: Any = ARRAYS.get(name)
    is_public = any(hasattr(place, name) for place in (rushlight(), Tensor, builtins))
    if is_public or not hasattr(kernel, "__code__"):
        return []
    says = sentence(TABLE[name]) if name in TABLE else opening(kernel)
    return [f"{name}({', '.join(parameters(kernel))}): {says}"] if says else []


# -- examples --------------------------------------------------------------------------------------


def rushlight() -> Any:
    """The package, as the examples' programs import it."""
    return sys.modules["rushlight"]


def example(op: Op, known: Text) -> str:
    """A call and its result; empty if there is no example, or if it cannot be run."""
    code = known.example or default_example(op, data(op, known))
    return run(code.replace("NAME", path(op)), {op.called: op.call} if "own" in op.options else {})


def example_in_place(op: Op, known: Text) -> str:
    """A call of the in-place form, on the same numbers."""
    if not op.elementwise or any(name not in op.defaults for name in op.settings):
        return ""
    first, *others = data(op, known)
    return run(f"x = rushlight.tensor({first})\nx.{op.name}_({', '.join(f'rushlight.tensor({x})' for x in others)})")


def path(op: Op) -> str:
    """The expression by which a program calls the function."""
    if "own" in op.options:
        return op.called
    with suppress(AttributeError):
        if attrgetter(title(op))(rushlight()) == op.call:
            return f"rushlight.{title(op)}"
    return f"{op.forward.__module__}.{op.name}"


def data(op: Op, known: Text) -> list[str]:
    """Numbers for an elementwise op's inputs."""
    if known.data:
        return list(known.data)
    one = "[0.25, 0.5, 0.75]" if op.result == FLOATING else "[-1.5, 0., 2.]"
    return [one] if len(op.inputs) == 1 else ["[1., 2., 3.]", "[3., 2., 1.]", "[0.5, 0.5, 0.5]"][: len(op.inputs)]


# Values of settings in examples, by the setting's name.
GUESSES = {
    "dim": "0", "new_dim": "0", "dim0": "0", "dim1": "1", "dims": "(0,)", "k": "1", "n": "1", "start": "0",
    "length": "1", "size": "2", "step": "1",
}  # fmt: skip


def default_example(op: Op, numbers: list[str]) -> str:
    """An example that fits every op of the family; empty if there is none."""
    needed = [name for name in op.settings if name not in op.defaults]
    if op.elementwise and not needed:
        return f"NAME({', '.join(f'rushlight.tensor({x})' for x in numbers)})"
    if op.inputs != ("x",) or "order" in op.options or not all(name in GUESSES for name in needed):
        return ""
    matrix, rest = "rushlight.tensor([[1., 2.], [3., 4.]])", [GUESSES[name] for name in needed]
    if family(op) == "reduction":
        rest = ["1"]
    if not hasattr(rushlight(), title(op)) and getattr(Tensor, title(op), None) is op.call:
        return f"{matrix}.{title(op)}({', '.join(rest)})"
    return f"NAME({', '.join([matrix, *rest])})"


def run(code: str, own: Mapping[str, Callable] = MappingProxyType({})) -> str:
    """The lines of a program as an interactive session, with the value of the last line. `own`: names besides
    rushlight."""
    if not code:
        return ""
    *before, last = code.split("\n")
    names = {"rushlight": rushlight(), **own}
    try:
        shown = Context().run(evaluated, before, last, names)  # independent of the reader's grad mode
    except Exception:  # SciPy is missing, or the op rejects the family's example numbers
        return ""
    return "\n".join([f">>> {line}" for line in (*before, last)] + ([shown] if shown != "None" else []))


def evaluated(before: list[str], last: str, names: dict) -> str:
    lines = ["def example():", *before, f"return repr({last})"]
    return define("\n    ".join(lines), "example", names, "example of a docstring", "<")()
