"""The statements of a program for reading: each loop as a function of whole arrays, each other step as an expression.
compile/export/program_page.py names the values and prints the page.

A text holds a mark in place of each value's name: `§12` is value 12 of the page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Graph, Store, Value, is_reshape, is_view, values_in
from rushlight.compile.passes.decompose import REDUCTIONS
from rushlight.compile.passes.fold_transposes import is_transpose
from rushlight.compile.passes.fuse import COLUMN, END, FULL, ROW, Cluster, same_elements
from rushlight.compile.passes.simplify import uniform
from rushlight.compile.report import kind, place_of, sequence_text
from rushlight.core.table import TABLE
from rushlight.fast.rule_text import ATOM, PRODUCT, SHORT, NotFused, Scalar, expression
from rushlight.loops import scalar_math
from rushlight.ops.linalg.matmul import mm, mv
from rushlight.ops.math.elementwise import sub
from rushlight.ops.reduce import reduce
from rushlight.ops.shape.views import transpose

REDUCED = {reduce.sum.op: "sum", reduce.amax.op: "max", reduce.amin.op: "min"}
MAX_CHARACTERS = 60  # longest inlined expression; a longer one gets a variable
MAX_LITERAL = 8  # a constant of up to this many elements is written as numbers
BACKWARD_OF = "backward of "  # comes before the user's statement
MARK = re.compile(r"§\d+")
NUMBER = re.compile(r"\b(?:f32|f64|i64)\((-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf|nan))\)")
OF_FLOAT64 = re.compile(rf"\b({'|'.join(sorted(scalar_math.NAMES))})64\(")


@dataclass
class Shown:
    """A value of the page. `origin`: the origin of its step (graph.Origin); `source`: for an input; `leaf`: the tensor
    whose gradient the value is. `last`: whether the last op of the user's statement makes it; `slot`: its number among
    the op's results.
    """

    what: str  # dtype and shape
    op: str = ""
    place: str = ""
    source: Any = None
    leaf: Any = None
    last: bool = False
    slot: int = 0
    origin: str = ""


@dataclass
class Statement:
    """`outs` = `lines[0]`; or a call of a function with the statements `lines`, if `arguments` is not None: it takes
    `arguments`, writes into some of them, and returns `returned`. `places`: the user's statements; `origins`: the names
    of the steps' origins (graph.Origin).
    """

    places: list[str]
    outs: list[str]
    lines: list[str]
    origins: list[str] = field(default_factory=list)
    arguments: list[str] | None = None
    returned: list[str] = field(default_factory=list)
    by_rows: bool = False
    on_numbers: bool = False  # all arrays are 0-d


@dataclass
class Page:
    values: list[Shown] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    grads: list[str] = field(default_factory=list)


def page_of(graph: Graph, items: Iterable[Any], wanted: Any) -> Page | None:
    """The page of a graph. None if a step has arguments that the writer does not support: a program must not fail for
    lack of a page.
    """
    try:
        return PageWriter(graph, items, wanted).page
    except Exception:
        if os.environ.get("RUSHLIGHT_DEBUG"):
            raise
        return None


class PageWriter:
    """Writes the page of a graph whose steps and loops are `items`. `wanted(cluster)`: the values of a loop that other
    steps read."""

    def __init__(self, graph: Graph, items: Iterable[Any], wanted: Any):
        self.page = Page()
        self.marks: dict[Any, Any] = {}
        self.views: dict[Value, str] = {}  # a view -> its expression
        self.wanted, self.written = wanted, {s.target for s in graph.steps if isinstance(s, Store)}
        leaves = {v: leaf for leaf, v in graph.grads if v is not None}
        for v in graph.inputs:
            self.value(v, Shown(kind(v), source=v.source))
        ops: dict[Value, str] = {}
        for step, last in lasting(graph.steps):
            for slot, v in enumerate(step.outs):
                place = place_of(step.line) if step.line else ""
                # a conversion has the name of its argument
                ops[v] = ops.get(step.args[0], step.op) if step.op == "to" else step.op
                shown = Shown(kind(v), ops[v], place, None, leaves.get(v), last, slot, origin(step))
                self.value(v, shown)
        for item in items:
            if isinstance(item, Cluster):
                self.loop(item)
            else:
                self.step(item)
        self.page.results = [self.text(v) for v in graph.results]
        self.page.grads = [self.text(v) for _, v in graph.grads if v is not None]

    def value(self, v: Value, shown: Shown) -> str:
        if v not in self.marks:
            self.marks[v] = f"§{len(self.page.values)}"
            self.page.values.append(shown)
        return self.marks[v]

    def text(self, v: Value) -> str:
        """The expression for a value."""
        if v in self.views:
            return self.views[v]
        if v.kind != "constant":
            return self.value(v, Shown(kind(v)))
        number = uniform(v)
        if number is not None:
            text = number_text(number, v.dtype)
            return text if v.shape == () else f"np.full({v.shape}, {text}, '{v.dtype.name}')"
        flat = v._array.ravel()
        if v._array.ndim == 1 and v.dtype == np.int64 and (flat == np.arange(flat.size)).all():
            return f"np.arange({flat.size})"
        if flat.size <= MAX_LITERAL:
            return f"np.array({v._array.tolist()}, '{v.dtype.name}')"
        return self.value(v, Shown(kind(v), "constant"))

    def add(self, steps: list[Any], outs: list[str], lines: list[str], **more: Any) -> None:
        places = [*dict.fromkeys(shown_place(s) for s in steps if s.line)]
        places = [p for p in places if p.removeprefix(BACKWARD_OF) == p or p.removeprefix(BACKWARD_OF) not in places]
        own = [s for s in steps if not (is_view(s) or s.op in ("store", "to"))]
        names = dict.fromkeys(map(origin, own))
        self.page.statements.append(Statement(places, outs, lines, [*names], **more))

    # -- single steps ------------------------------------------------------------------------------

    def step(self, step: Any) -> None:
        if isinstance(step, Store):
            line = f"{self.text(step.target)}[...] = {self.text(step.value)}"
            return self.add([step], [], [line])
        text = self.call(step)
        overwritten = {*values_in(step.args)} & self.written
        transposed = is_view(step) and text.endswith(".T")
        same = is_view(step) or MARK.fullmatch(text)  # the same elements as the argument: a view, or x - 0
        if transposed or same and not overwritten:
            self.views[step.outs[0]] = text
        else:
            self.add([step], [self.text(v) for v in step.outs], [text])

    def call(self, step: Call) -> str:
        """The expression for a step."""
        first = step.args[0] if step.args and isinstance(step.args[0], Value) else None
        if step.runs(mm, mv):
            return " @ ".join(map(self.text, step.args))
        if first is None or not step.outs:
            return self.plain(step)
        if step.runs(transpose) and is_transpose(step):
            return f"{self.text(first)}.T"
        if is_reshape(step):
            return self.reshaped(self.text(first), step.outs[0].shape)
        if step.op == "getitem" and isinstance(step.args[1], tuple):
            return f"{self.text(first)}[{index_text(step.args[1], self.setting)}]"
        if step.entry in REDUCTIONS:
            return self.reduction(REDUCED[step.entry], *step.args)
        return self.plain(step)

    def plain(self, step: Call) -> str:
        """A step as a call of its op, or as the op's formula."""
        if step.op == "check_classes":
            target, classes, ignored = map(self.setting, step.args)
            return f"check_classes({target}, classes={classes}, ignore_index={ignored})"
        made = None
        if step.outs and step.entry is not None and step.entry.elementwise:
            made = written(step, [Scalar(self.text(a), a.dtype) if isinstance(a, Value) else a for a in step.args])
        return made.text if made else f"{step.op}({', '.join(map(self.setting, step.args))})"

    def reduction(self, name: str, x: Value, axes: Any = None, keep: bool = False) -> str:
        where = "" if axes is None else f", {axes_text(axes)}"
        return f"np.{name}({self.text(x)}{where}{', keepdims=True' * bool(keep)})"

    def reshaped(self, text: str, shape: tuple[int, ...]) -> str:
        """The text of an array in another shape, without reshapes that cancel out."""
        text = re.sub(r"\.reshape\(\([^()]*\)\)$", "", text)
        known = re.fullmatch(r"§(\d+)", text)
        if known and self.page.values[int(known[1])].what.endswith(f"{[*shape]}"):
            return text
        return f"{text}.reshape({shape})"

    def setting(self, a: Any) -> str:
        if isinstance(a, Value):
            return self.text(a)
        if type(a) in (tuple, list):
            return sequence_text(type(a), map(self.setting, a))
        text = repr(a)
        return text if re.fullmatch(r"[\w.+'\"()\-, ]*", text) else repr(str(a))

    # -- loops -------------------------------------------------------------------------------------

    def loop(self, cluster: Cluster) -> None:
        for part in parts_of(cluster):
            loop = LoopText(self, part, [v for s in part.steps for v in s.outs])
            self.add(
                part.steps,
                [self.text(v) for v in loop.outs],
                loop.lines,
                arguments=loop.arguments,
                returned=loop.returned,
                by_rows=cluster.split is not None,
                on_numbers=not cluster.space,
            )


class LoopText:
    """A loop as statements on whole arrays. Values along rows keep the summed dimensions."""

    def __init__(self, writer: PageWriter, cluster: Cluster, made: list[Value]):
        self.writer, self.cluster = writer, cluster
        self.lines: list[str] = []
        targets = [s.target for s in cluster.steps if isinstance(s, Store)]
        wanted = writer.wanted(cluster)
        self.outs = [v for v in made if v in wanted]
        self.env: dict[Value, Scalar] = {}
        self.arguments: list[str] = []
        for v in dict.fromkeys([*cluster.reads(), *targets]):
            self.read(v)
        stores = [s for s in cluster.steps if isinstance(s, Store)]
        for step in cluster.steps:
            if isinstance(step, Call):
                self.compute(step)
        # Writes come last: the statements before them read the old elements.
        writes: list[str] = []
        for store in stores:
            value = self.operand(store.value) if not writes else self.named(store.value)
            writes.append(f"{writer.text(store.target)}[...] = {value.text}")
        overwritten = {m for s in stores for m in marks(writer.text(s.target))}
        for v in self.outs:
            if overwritten & marks(self.operand(v).text):
                self.named(v)
        self.returned = [self.shaped(v) for v in self.outs]
        self.lines += writes

    def read(self, v: Value) -> None:
        """Make the value, or the value that it is a view of, a parameter."""
        text = self.writer.text(v)
        self.arguments += [m for m in MARK.findall(text) if m not in self.arguments]
        shape = self.natural(v)
        lead = (1,) * (len(shape) - len(v.shape)) + v.shape
        self.env[v] = Scalar(text if shape == lead else f"{text}.reshape({shape})", v.dtype)

    def natural(self, v: Value) -> tuple[int, ...]:
        """The shape in which a value broadcasts with the other values of the loop."""
        space, split, level = self.cluster.space, self.cluster.split, self.cluster.levels.get(v)
        if level == ROW:
            return (*space[:split], *(1,) * len(space[split:]))
        if level == COLUMN:
            return tuple(space[split:])
        if level == FULL and v in self.cluster.made:
            return space
        lead = (1,) * (len(space) - len(v.shape)) + v.shape
        fits = len(lead) == len(space) and all(n in (1, m) for n, m in zip(lead, space))
        return lead if fits else space if v.size == np.prod(space) else v.shape

    def shaped(self, v: Value) -> str:
        made = self.operand(v)
        text = made.text
        shape = () if self.cluster.levels.get(v) == END else self.natural(v)
        if shape == v.shape or not v.shape:
            return text
        return f"{made.within(ATOM)}.reshape({v.shape})"

    def operand(self, v: Value) -> Scalar:
        if v not in self.env:
            text = number_text(uniform(v), v.dtype)
            self.env[v] = Scalar(text, v.dtype, PRODUCT if text[0] == "-" else ATOM)
        return self.env[v]

    def named(self, v: Value) -> Scalar:
        """The value as a variable of the function."""
        made = self.operand(v)
        mark = self.writer.value(v, Shown(kind(v)))
        if made.text != mark:
            self.lines.append(f"{mark} = {made.text}")
            self.env[v] = Scalar(mark, v.dtype)
        return self.env[v]

    def compute(self, step: Call) -> None:
        out = step.outs[0]
        if step.entry in REDUCTIONS:
            self.env[out] = Scalar(self.total(step), out.dtype)
        elif same_elements(step):
            self.env[out] = self.operand(step.args[0])
            return
        else:
            given = [self.operand(a) if isinstance(a, Value) else a for a in step.args]
            made = written(step, given)
            if made is None:
                names = ", ".join(a.text if isinstance(a, Scalar) else repr(a) for a in given)
                made = Scalar(f"{step.op}({names})", out.dtype)
            self.env[out] = made
        uses = sum(v is out for s in self.cluster.steps for v in values_in(s.args))
        if uses + (out in self.outs) > 1 or (length(self.env[out].text) > MAX_CHARACTERS and self.outs != [out]):
            self.named(out)

    def total(self, step: Call) -> str:
        """A reduction: of rows, of columns or of all elements."""
        x, level = step.args[0], self.cluster.levels[step.outs[0]]
        text, space, split = self.operand(x).text, self.cluster.space, self.cluster.split or 0
        if x not in self.cluster.made and x.shape != space or self.is_small(x):
            text = f"np.broadcast_to({text}, {space})"
        if level == END:
            return f"{SHORT[step.outs[0].dtype.name]}(np.sum({text}, dtype=f64))"
        if level == COLUMN:
            return f"np.sum({text}, {axes_text(range(split))})"
        rows = axes_text(range(split, len(space)))
        return f"np.{REDUCED[step.entry]}({text}, {rows}, keepdims=True)"

    def is_small(self, v: Value) -> bool:
        """Whether the text of a value may be smaller than the loop's space."""
        made = {w for s in self.cluster.steps for w in s.outs if not same_elements(s)}
        if v in made:
            step = next(s for s in self.cluster.steps if v in s.outs)
            return all(self.is_small(a) for a in values_in(step.args) if a in self.cluster.levels)
        return v.shape != self.cluster.space


def origin(step: Call | Store) -> str:
    """The name of the step's origin; the op's name for a step made by a pass."""
    return step.op if step.origin is None else step.origin.name


def shown_place(step: Call | Store) -> str:
    """The user's statement; for a step of backward, the statement whose gradient it computes."""
    if step.origin is not None and step.origin.line:
        return BACKWARD_OF + place_of(step.origin.line)
    return place_of(step.line)


def marks(text: str) -> set[str]:
    return {*MARK.findall(text)}


def length(text: str) -> int:
    """The number of characters, not counting the marks."""
    return len(MARK.sub("§", text))


def index_text(index: tuple, setting: Any) -> str:
    """An index as written between brackets."""
    parts = []
    for i in index:
        if isinstance(i, slice):
            ends = ["" if end is None else str(end) for end in (i.start, i.stop)]
            parts.append(":".join(ends if i.step is None else [*ends, str(i.step)]))
        else:
            parts.append("..." if i is Ellipsis else setting(i))
    while len(parts) > 1 and parts[-1] in ("...", ":"):
        parts.pop()
    return ", ".join(parts)


def axes_text(axes: Iterable[int]) -> str:
    found = tuple(axes)
    return str(found[0]) if len(found) == 1 else str(found)


def written(step: Call, given: list[Any]) -> Scalar | None:
    """The expression for an elementwise op: its formula, or its name if the formula is long. None for an op without a
    formula."""
    if step.runs(sub) and isinstance(step.args[1], Value) and uniform(step.args[1]) == 0:
        return given[0] if step.args[0].shape == step.outs[0].shape else None
    try:
        made = expression(TABLE[step.op], tuple(given), step.outs[0].dtype)
    except (NotFused, KeyError, TypeError):
        return None
    short = ", ".join(a.text if isinstance(a, Scalar) else repr(a) for a in given)
    if length(made.text) > length(short) + MAX_CHARACTERS:
        made = Scalar(f"{step.op}({short})", made.dtype)
    text = NUMBER.sub(r"\1", OF_FLOAT64.sub(r"\1(", made.text))
    return Scalar(text, made.dtype, made.rank)


def number_text(number: Any, dtype: np.dtype) -> str:
    """The number as its dtype prints it: 0.1, not 0.10000000149011612."""
    text = str(dtype.type(number))
    return text.removesuffix(".0")


def parts_of(cluster: Cluster) -> list[Cluster]:
    """A loop on single numbers as one loop for each group of steps that share no value; any other loop as it is."""
    if cluster.space:
        return [cluster]
    groups: list[tuple[set[Value], list[Any]]] = []
    for step in cluster.steps:
        touched = {v for v in (*values_in(step.args), *step.outs) if v.kind != "constant"}
        near = [g for g in groups if g[0] & touched]
        groups = [g for g in groups if not g[0] & touched]
        steps = [s for g in near for s in g[1]]
        groups.append((touched.union(*(g[0] for g in near)), [*steps, step]))
    parts = []
    for _, steps in groups:
        part = Cluster(())
        part.steps, part.levels = steps, cluster.levels
        part.made = {v for s in steps for v in s.outs}
        parts.append(part)
    return parts


def lasting(steps: list[Any]) -> list[tuple[Any, bool]]:
    """(step, whether it is the last of the neighbouring steps of one statement of the user)."""
    calls = [s for s in steps if s.outs]
    places = [s.line and place_of(s.line) for s in calls]
    return [(s, i + 1 == len(calls) or places[i + 1] != places[i]) for i, s in enumerate(calls)]
