"""Reports about a compiled program: a drawing of the steps, the memory plan, timing, graph breaks."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from os.path import basename
from time import perf_counter
from typing import Any, NamedTuple

from rushlight.base.errors import line_of, place
from rushlight.compile.graph import Graph, Line, Store, Value, values_in


class Item(NamedTuple):
    """A statement of a program."""

    text: str
    ops: tuple[str, ...]  # the ops that the statement computes
    reads: tuple[str, ...]  # names
    makes: tuple[tuple[str, str], ...]  # (name, dtype and shape: float32[3, 4])
    places: tuple[str, ...]  # the user's lines


class Lease(NamedTuple):
    """The memory of a value in the arena: bytes `start` to `start + size`, from step `first` to step `last`."""

    name: str
    start: int
    size: int
    first: int
    last: int


class Parts(NamedTuple):
    """The pieces of a program's text."""

    title: str
    mark: str  # the prefix of its names
    constants: dict[str, Any]
    loops: dict[str, str]  # name -> text
    wholes: dict[str, str]  # name -> the loop as NumPy calls on whole arrays
    memory: str
    functions: str  # `run`, and `bind` if there is something to bind
    new: list[tuple[tuple, Any]]  # (shape, dtype) of the results that get memory of their own
    inputs: list[tuple[str, str]]  # (name, dtype and shape: float32[3, 4])
    bound: list[str]  # names of the inputs of `bind`
    page: Any = None  # the statements for reading (compile/lower/page_text.py)


class Break(NamedTuple):
    """A graph break: an operation that no program supports, and the user's line."""

    reason: str
    where: str


def kind(v: Value) -> str:
    return f"{v.dtype.name}{list(v.shape)}"


def sequence_text(kind: type, parts: Iterable[str]) -> str:
    """The text of a list or a tuple with these elements."""
    parts = [*parts]
    inside = ", ".join(parts)
    return f"[{inside}]" if kind is list else f"({inside}{',' * (len(parts) == 1)})"


def listing(graph: Graph) -> str:
    """The text of a graph, a step per line."""
    names: dict[Value, str] = {}

    def name(v: Value) -> str:
        return names.setdefault(v, f"{'c' if v.kind == 'constant' else 'x' if v.kind == 'input' else 'v'}{len(names)}")

    lines = []
    for s in graph.steps:
        made = ", ".join(f"{name(v)} {kind(v)}" for v in s.outs)
        lines.append(f"{made + ' = ' if made else ''}{s.op}({', '.join([shown(a, name) for a in s.args])})")
    return "\n".join([*lines, f"return {', '.join(map(name, graph.outputs()))}"])


def shown(a: Any, name: Callable[[Value], str]) -> str:
    if isinstance(a, Value):
        return name(a)
    return f"({', '.join([shown(x, name) for x in a])})" if type(a) in (tuple, list) else repr(a)


def drawing(items: Iterable[Item], inputs: Iterable[tuple[str, str]], results: Iterable[str]) -> str:
    """A program in Graphviz' language: boxes are statements, arrows are arrays from a statement to its readers."""
    lines = ["digraph program {", '  node [shape=box, fontname="monospace"];']
    home: dict[str, str] = {}
    for name, what in inputs:
        home[name] = name
        lines.append(f'  {name} [shape=ellipse, label="{name}\\n{what}"];')
    shapes: dict[str, str] = {}
    for i, item in enumerate(items):
        ops = ", ".join(item.ops if len(item.ops) < 6 else (*item.ops[:4], "...", item.ops[-1]))
        where = "\\n".join(p.replace("\\", "\\\\").replace('"', "'") for p in item.places[:2])
        lines.append(f'  s{i} [label="{ops}\\n{where}"];')
        for name in item.reads:
            if name in home:
                lines.append(f'  {home[name]} -> s{i} [label="{shapes.get(name, "")}"];')
        for name, what in item.makes:
            home[name], shapes[name] = f"s{i}", what
    lines += [f"  {home[name]} -> result;" for name in dict.fromkeys(results) if name in home]
    return "\n".join([*lines, "  result [shape=ellipse];", "}"])


def memory_table(leases: list[Lease], size: int) -> str:
    """A table of the arena: the bytes and the steps of each value."""
    rows = [f"{size} bytes; every value for itself would take {sum(r.size for r in leases)}"]
    rows += [
        f"  {r.name:>8}  bytes {r.start:>10} to {r.start + r.size:>10}  steps {r.first} to {r.last}"
        for r in sorted(leases, key=lambda r: (r.start, r.first))
    ]
    return "\n".join(rows)


@dataclass
class Timings:
    """The time of each statement of a program. Printed with the slowest first."""

    # (microseconds per run, statement)
    rows: list[tuple[float, Item]] = field(default_factory=list)
    calls: int = 0

    def __str__(self) -> str:
        total = sum(t for t, _ in self.rows)
        lines = [f"{total:.0f} us in {len(self.rows)} statements, the mean of {self.calls} calls"]
        for t, item in sorted(self.rows, key=lambda r: -r[0]):
            lines.append(f"{t:10.1f} us  {item.text[:70]:70}  {', '.join(item.ops)[:40]}  {'; '.join(item.places[:1])}")
        return "\n".join(lines)


class Stopwatch:
    """An observer of a program, called after each statement: adds up the time of each."""

    def __init__(self, items: list[Item]):
        self.items, self.spent, self.last, self.calls = items, [0.0] * len(items), 0.0, 0

    def __call__(self, i: int, *arrays: Any) -> None:
        now = perf_counter()
        self.spent[i] += now - self.last
        self.last = perf_counter()

    def around(self, run: Callable) -> Callable:
        """The program's function, with the clock started at each call."""

        def timed(*arrays: Any) -> Any:
            self.calls += 1
            self.last = perf_counter()
            return run(*arrays)

        return timed


@dataclass
class Explanation:
    """The result of compiling a function: its programs and its graph breaks."""

    breaks: list[Break]
    why: str  # the reason why the function is not one program; "" if it is
    steps: int  # the number of ops of the traced run
    programs: list[Any] = field(default_factory=list)

    @property
    def program(self) -> Any:
        """The program, if there is exactly one; else None."""
        return self.programs[0] if len(self.programs) == 1 else None

    @property
    def graph_break_count(self) -> int:
        return len(self.breaks)

    @property
    def graph_count(self) -> int:
        return len(self.programs)

    @property
    def break_reasons(self) -> list[Break]:
        return self.breaks

    def __str__(self) -> str:
        made = f"{self.steps} ops became {sum(len(p.items) for p in self.programs)} statements"
        if self.programs and not self.why:
            return f"compiled: {made}, no graph breaks"
        head = f"runs as it is, not compiled: it {self.why}"
        if self.programs:
            head = f"compiled in pieces: {made} in {len(self.programs)} programs; as a whole it {self.why}"
        return "\n".join([head, *(f"  {b.where}\n    {b.reason}" for b in self.breaks)])

    __repr__ = __str__


def where(line: Line) -> str:
    return place(*line) if line else "<unknown>"


def item_of(text: str, steps: list[Any], made: list[Value], places: list[str]) -> Item:
    """The `Item` of a statement, which stays when the traced run is freed."""
    inside = {v for s in steps for v in s.outs}
    reads = dict.fromkeys(v.name for s in steps for v in values_in(s.args) if v not in inside and v.name)
    ops = dict.fromkeys("store" if isinstance(s, Store) else s.op for s in steps)
    return Item(text, tuple(ops), tuple(reads), tuple((v.name, kind(v)) for v in made), tuple(places))


def place_of(line: Line) -> str:
    """The user's statement: its file, line and text."""
    code, lasti = line  # type: ignore[misc]
    number = line_of(code, lasti)
    text = linecache.getline(code.co_filename, number).strip()
    return f"{basename(code.co_filename)}:{number} {text}".strip()
