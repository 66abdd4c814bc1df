"""The texts of loops for ops along a dimension, such as softmax and layer norm, written from their
parts or from the rules of their derivatives (fast/formula.py). Each row is read several times while
it is in the cache: once for the sums that depend on nothing, once for those that depend on these,
and once for the results.

A layout says where the numbers of a row are: side by side (ROWS), beside other rows (ACROSS), or in
a channel or a group of channels of a batch (CHANNELS, GROUPS). A value is of one of four levels: a
number for all, for each row, for each column (each channel of a group), or for each element."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rushlight.core.table import TABLE, parameters
from rushlight.fast.formula import Step, inputs, on_steps
from rushlight.fast.rule_text import SPECIAL, Scalar, function

NUMBER, ROW, COLUMN, ELEMENT = range(4)
FLOAT = np.dtype(np.float32)
TILE = 1024  # rows that lie beside each other and are gone through together
START = {"sum": "f32(0)", "mean": "f32(0)", "amax": "f32(-inf)"}
OPERATORS: dict[str, Callable] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
}
COSTLY = ("exp",)  # computed once: kept in the result until that is known


class Layout(NamedTuple):
    """`rows`: the lines before what is done for a row; `x` is the first array. `between`, `columns`:
    the loops over a row. `element`, `row`, `column`: how a value of the level is read, `write`: how
    it is written. `affine`: the level of weight and bias. `wide`: whether sums of parts of a row
    are added up in float64; `tiled`: whether many rows are gone through together. `more`: the
    parameters after the arrays."""

    rows: str
    columns: str
    element: str
    row: str
    affine: int
    between: str = ""
    column: str = "{}[j]"
    write: str = "{} = {}"
    wide: bool = False
    tiled: bool = False
    more: str = ""


ROWS = Layout(
    """wide()
n = x.shape[1]
count = f32(n)
for i in range(x.shape[0]):""",
    "for j in range(n):",
    "{}[i, j]",
    "{}[i]",
    COLUMN,
)
# Arrays (samples, n rows), of n numbers in each row.
ACROSS = Layout(
    f"""wide()
across = x.shape[1] // n
count = f32(n)
for i in range(x.shape[0]):
    for start in range(0, across, {TILE}):
        width, first = min({TILE}, across - start), i * n * across + start""",
    "for j in range(width):",
    "get({}, at + j)",
    "get({}, start + j)",
    ROW,
    between="for at in range(first, first + n * across, across):",
    tiled=True,
    more="n",
)
COLUMNS = ACROSS._replace(wide=True)  # the channels of a matrix: many numbers are added up
# Batches (N, C, L); a part of the work is the channels, or the groups of samples, from `first` on.
CHANNELS = Layout(
    """samples, n = x.shape[0], x.shape[2]
count = f64(samples * n)
for c in range(first, end):""",
    "for j in range(n):",
    "{}[k, c, j]",
    "{}[c]",
    ROW,
    between="for k in range(samples):",
    wide=True,
    more="first, end",
)
GROUPS = Layout(
    """wide()
n, channels = x.shape[2], x.shape[1] // groups
count = f64(channels * n)
for i in range(first, end):
    k, c0 = i // groups, i % groups * channels""",
    "for j in range(n):",
    "{}[k, c, j]",
    "{}[i]",
    COLUMN,
    between="for c in range(c0, c0 + channels):",
    column="{}[c]",
    wide=True,
    more="groups, first, end",
)


LAYOUTS = {
    "rows": ROWS,
    "across": ACROSS,
    "columns": COLUMNS,
    "channels": CHANNELS,
    "groups": GROUPS,
}


@cache
def loop_of(name: str, of: str, layout: str) -> Any:
    """The loop of an op, or of its derivatives by the inputs `of`: a function of the arrays of the
    formula, its numbers, the results, and of what the layout needs."""
    from rushlight.loops.cache import compiled

    return compiled(loop_text(name, of, layout))


def loop_text(name: str, of: str, layout_name: str) -> str:
    op, layout = TABLE[name], LAYOUTS[layout_name]
    parts = op.options.get("parts", op.forward)
    names = op.options.get("outputs", "out").split()
    levels = Levels(layout, {name: LEVELS.get(name, layout.affine) for name in op.inputs})
    results, symbols = traced([parts], levels)
    summed: set[str] = set()
    if of:
        # g and out are like the op's first result
        given = levels.given | dict(zip(names, map(levels.__getitem__, results)))
        given["g"] = given["gs"] = given[names[0]]
        levels = Levels(layout, given)
        results, symbols = traced([op.rules[by] for by in of.split()], levels)
        names = [f"{by}_grad" for by in of.split()]
        summed = {
            f"{by}_grad"
            for by, made in zip(of.split(), results)
            if levels[made] == ELEMENT and given[by] == COLUMN
        }
    return Writer(layout, levels, dict(zip(names, results)), summed).text(symbols)


# The levels of inputs; those of the others, weight and bias, depend on the layout.
LEVELS = {"x": ELEMENT, "y": ELEMENT, "mu": ROW, "var": ROW}


class Levels(dict):
    """Step -> its level. `given`: the name of an input -> its level."""

    def __init__(self, layout: Layout, given: dict[str, int]):
        super().__init__()
        self.layout, self.given = layout, given | {"eps": NUMBER}

    def __missing__(self, step: Step) -> int:
        found = {self[a] for a in step.steps} - {NUMBER}
        if step.name == "input":
            level = self.given[step.args[0]]
        elif step.name in START:
            of_channel = "others" in step.args and self.layout.affine == COLUMN
            level = COLUMN if of_channel else ROW
        else:
            level = NUMBER if not found else min(found) if len(found) == 1 else ELEMENT
        self[step] = level
        return level


def traced(formulas: list[Callable], levels: Levels) -> tuple[list, list[Step]]:
    """The results of formulas, and the inputs that they share."""
    asked = dict.fromkeys(name for f in formulas for name in parameters(f) if name in levels.given)
    symbols = dict(zip(asked, inputs(tuple(asked))))
    given = {**symbols, "dims": (0,), "gs": [symbols.get("gs"), 0, 0]}
    results: list = []
    for formula in formulas:
        made = on_steps(formula, NAMES)(*[given.get(name) for name in parameters(formula)])
        results += made if isinstance(made, tuple) else [made]
    return results, list(symbols.values())


def unchanged(x: Any, *settings: Any) -> Any:
    return x


# Names of rules: a row is a row in whatever shape, and what is added up over `others(x)`, the
# samples and pixels, is one number for each channel.
NAMES: dict[str, Callable] = {
    **dict.fromkeys(("reshape", "flat", "per_channel", "in_groups"), unchanged),
    "others": lambda x: "others",
}


class Writer:
    """Writes the loop. `results`: the parameter of a result -> its step; `summed`: those that are
    added up over the rows."""

    def __init__(
        self, layout: Layout, levels: Levels, results: dict[str, Step], summed: set[str]
    ):
        self.layout, self.levels, self.results, self.summed = layout, levels, results, summed
        self.order = needed(results.values())
        self.users = Counter(a for s in self.order for a in s.steps)
        self.users.update(results.values())
        self.depths: dict[Step, int] = {}  # loops over the row before the step is known
        for s in self.order:
            before = max([self.depths.get(a, 0) for a in s.steps], default=0)
            self.depths[s] = before + (s.name in START)
        self.names: dict[Step, Scalar] = {}  # what is under a name, or in an array
        self.sums: dict[Step, str] = {}  # reduction -> the variable that adds up
        self.tiles: list[str] = []  # arrays of a number for each row
        self.kept: dict[Step, Scalar] = {}  # what a loop keeps in the result for later ones
        self.lines: list[str] = []
        self.count = 0
        last = layout.rows.split("\n")[-1]  # what follows is inside it
        self.depth = 1 + last.count("    ") + last.endswith(":")

    def text(self, symbols: list[Step]) -> str:
        """The function `kernel`."""
        for s in symbols:
            name = "g" if s.args[0] == "gs" else s.args[0]
            level = self.levels[s]
            self.names[s] = Scalar(
                f"f32({name})" if level == NUMBER else self.place(name, level), FLOAT
            )
        for phase in range(max(self.depths.values()) + 1):
            self.rows(phase, symbols if phase == 0 else [])
            self.loop(phase)
        first = next(s for s in symbols if self.levels[s] == ELEMENT)
        given = ["g" if s.args[0] == "gs" else s.args[0] for s in symbols]
        rows = self.layout.rows.split("\n")
        for name in self.results:
            if name in self.summed:
                rows[-1:-1] = self.layout.columns, f"    {name}[j] = f32(0)"
        more = self.layout.more.split(", ") if self.layout.more else []
        lines = [
            f"def kernel({', '.join([*given, *self.results, *more])}):",
            "    restrict()",
            *self.tiles,
            *("    " + line for line in rows),
            *self.lines,
        ]
        return "\n".join(lines).replace("x.shape", f"{given[symbols.index(first)]}.shape") + "\n"

    # -- parts of the text -------------------------------------------------------------------------

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * (self.depth + depth) + text)

    def place(self, array: str, level: int) -> str:
        """Where an array has the number of an element, a column or a row."""
        return (
            self.layout.row
            if level == ROW
            else self.layout.column
            if level == COLUMN
            else self.layout.element
        ).format(array)

    def store(self, depth: int, place: str, value: str) -> None:
        if place.startswith("get("):
            self.put(depth, f"put({place[4:-1]}, {value})")
        else:
            self.put(depth, f"{place} = {value}")

    def fresh(self, letter: str, dtype: str = "") -> str:
        """A new variable; of a row, if it has a dtype: then of all rows of a tile."""
        self.count += 1
        name = f"{letter}{self.count}"
        if not (dtype and self.layout.tiled):
            return name
        self.tiles.append(f"    {name} = empty({TILE}, {dtype})")
        return f"{name}[j]"

    def written(self, step: Any) -> Any:
        """The expression of a step; numbers are themselves."""
        if not isinstance(step, Step):
            return step
        if step in self.names:
            return self.names[step]
        if step.name == "count":
            return Scalar("f32(count)", FLOAT)
        if step.name in START:
            total = self.sums[step]
            return Scalar(f"f32({total} / count)" if step.name == "mean" else f"f32({total})", FLOAT)
        do = OPERATORS.get(step.name) or SPECIAL.get(step.name) or function(step.name)
        return do(*[self.written(a) for a in step.args])

    # -- what is done for a row --------------------------------------------------------------------

    def rows(self, phase: int, symbols: list[Step]) -> None:
        """What is known of a row before a loop: under a name, if it is used more than once or in
        a loop."""
        known = {s: s.name == "input" or s.name in START or self.is_shared(s) for s in self.order}
        found = [
            s
            for s in (*symbols, *self.order)
            if self.levels[s] == ROW and self.depths.get(s, 0) == phase and known.get(s, True)
        ]
        start = len(self.lines)
        for s in found:
            if s.name in ("sum", "amax") and not self.layout.wide:
                name = self.sums[s]
            else:
                value = self.written(s).text
                name = self.fresh("r", "f32")
                self.put(self.layout.tiled, f"{name} = {value}")
            self.names[s] = Scalar(name, FLOAT)
            for result in [name for name, made in self.results.items() if made is s]:
                self.store(self.layout.tiled, self.place(result, ROW), self.names[s].text)
        if self.layout.tiled and len(self.lines) > start:
            self.lines.insert(start, "    " * self.depth + self.layout.columns)

    def is_shared(self, step: Step) -> bool:
        return self.users[step] > 1 or any(
            step in other.steps and (self.levels[other] > ROW or other.name in START)
            for other in self.order
        ) or step in self.results.values()

    def roots(self, phase: int) -> tuple[list[Step], dict[str, Step]]:
        """What a loop adds up, and the results that it writes."""
        sums = [s for s in self.order if s.name in START and self.depths[s] == phase + 1]
        last = phase == max(self.depths.values())
        return sums, {
            name: s
            for name, s in self.results.items()
            if last and self.levels[s] == ELEMENT
        }

    def uses(self, phase: int) -> Counter:
        """How often a loop uses each step that is not under a name."""
        sums, results = self.roots(phase)
        found: Counter = Counter()
        left = [*[a for s in sums for a in s.args[:1]], *results.values()]
        while left:
            step = left.pop()
            found[step] += 1
            if found[step] == 1 and step not in self.names and self.levels[step] == ELEMENT:
                left += step.steps
        return found

    def loop(self, phase: int) -> None:
        """A loop over the numbers of a row."""
        sums, results = self.roots(phase)
        if not sums and not results:
            return
        layout, tiled = self.layout, self.layout.tiled
        parts = {}
        start = len(self.lines)
        for s in sums:
            name = self.sums[s] = self.fresh("s", "f64" if layout.wide else "f32")
            if self.levels[s] == ROW:
                self.put(tiled, f"{name} = {'0.0' if layout.wide else START[s.name]}")
            parts[s] = self.fresh("p") if layout.wide and not tiled else name
        if tiled and sums:
            self.lines.insert(start, "    " * self.depth + layout.columns)
        depth = bool(layout.between)
        if layout.between:
            self.put(0, layout.between)
        if layout.wide and not tiled:
            for s in sums:
                self.put(depth, f"{parts[s]} = {START[s.name]}")
        self.put(depth, layout.columns)
        self.elements(depth + 1, phase, parts, results)
        for s in sums:
            if self.levels[s] == COLUMN:
                [result] = [name for name, made in self.results.items() if made is s]
                self.put(depth, f"{result}[k, c] = {parts[s]}")
            elif parts[s] != self.sums[s]:
                self.put(depth, f"{self.sums[s]} += {parts[s]}")

    def elements(
        self, depth: int, phase: int, parts: dict[Step, str], results: dict[str, Step]
    ) -> None:
        """What is done for each number of a row."""
        uses = self.uses(phase)
        later = [self.uses(p) for p in range(phase + 1, max(self.depths.values()) + 1)]
        named = []
        for s in self.order:
            kept = s.name in COSTLY and uses[s] and any(s in more for more in later)
            if s in self.names or self.levels[s] != ELEMENT or not (kept or uses[s] > 1):
                continue
            name = self.fresh("e")
            self.put(depth, f"{name} = {self.written(s).text}")
            self.names[s] = Scalar(name, FLOAT)
            named.append(s)
            if kept:
                [place] = [
                    self.place(result, ELEMENT)
                    for result, made in self.results.items()
                    if self.levels[made] == ELEMENT
                ]
                self.store(depth, place, name)
                named.remove(s)
                self.kept[s] = Scalar(place, FLOAT)
        for s, total in parts.items():
            value = self.written(s.args[0]).text
            if s.name == "amax":
                self.put(depth, f"{total} = largest({total}, {value})")
            elif self.layout.tiled:
                self.put(depth, f"{total} += {value}")
            else:
                self.put(depth, f"{total} = plus({total}, {value})")
        for name, s in results.items():
            value = self.written(s).text
            if name in self.summed:
                place = self.place(name, COLUMN)
                self.put(depth, f"{place} = {place} + {value}")
            else:
                self.store(depth, self.place(name, ELEMENT), value)
        for s in named:
            del self.names[s]
        self.names |= self.kept


def needed(results: Iterable[Step]) -> list[Step]:
    """The steps that lead to the results, each after its arguments."""
    wanted, found = set(results), []
    for step in reversed(next(iter(wanted)).recorded.values()):
        if step in wanted:
            found.append(step)
            wanted.update(step.steps)
    return found[::-1]
