"""Texts of loops for ops along a dimension, such as softmax and layer norm, generated from their parts or from the
rules of their derivatives (fast/formula.py). Each row is read several times while it is in the cache: first for the
sums that depend on no other sum, then for the sums that depend on those, and last for the results.

A layout defines the position of a row's numbers: contiguous (ROWS), interleaved with other rows (ACROSS), or in a
channel or a group of channels of a batch (CHANNELS, GROUPS). A value has one of four levels: one number for all, for
each row, for each column (each channel of a group), or for each element.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rushlight.core.table import TABLE, Op, parameters
from rushlight.fast.formula import Step, inputs, needed, on_steps
from rushlight.fast.rule_text import ATOM, SPECIAL, Scalar, function
from rushlight.ops.math import elementwise
from rushlight.ops.reduce import reduce

NUMBER, ROW, COLUMN, ELEMENT = range(4)
FLOAT = np.dtype(np.float32)
TILE = 1024  # adjacent rows that are processed together
START = {reduce.sum.op: "f32(0)", reduce.mean.op: "f32(0)", reduce.amax.op: "f32(-inf)", reduce.amin.op: "f32(inf)"}
EXTREMES = {reduce.amax.op: "largest", reduce.amin.op: "smallest"}
OPERATORS: dict[Op | None, Callable] = {
    elementwise.add.op: operator.add,
    elementwise.sub.op: operator.sub,
    elementwise.mul.op: operator.mul,
    elementwise.div.op: operator.truediv,
    elementwise.neg.op: operator.neg,
}
COSTLY = (elementwise.exp.op,)  # ops worth computing once: kept in the result until all sums are known


class Layout(NamedTuple):
    """`rows`: the lines around the code of a row; `x` is the first array. `between` and `columns` are the loops over a
    row; `unblocked` replaces `between` if no sum is accumulated. `element`, `row`, `column`: the text that reads a
    value of the level. `affine`: the level of weight and bias. `wide`: whether partial sums of a row are added up in
    float64. `tiled`: whether a loop processes many rows together. `more`: the parameters after the arrays.
    """

    rows: str
    columns: str
    element: str
    row: str
    affine: int
    between: str = ""
    unblocked: str = ""
    column: str = "{}[j]"
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
# Long rows, in blocks.
BLOCKS = Layout(
    """wide()
n = x.shape[1]
count = f64(n)
for i in range(x.shape[0]):""",
    "for j in range(width):",
    "get({}, first + j)",
    "{}[i]",
    COLUMN,
    between="""for start in range(0, n, 4096):
    width, first = min(4096, n - start), i * n + start""",
    unblocked="width, first = n, i * n",
    wide=True,
)
# Arrays (samples, n rows), with n numbers in each row.
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
# The columns of matrices. Here and below, each core gets the columns, channels or groups from `first` to `end`.
COLUMNS = ACROSS._replace(
    rows=f"""n, across = x.shape
count = f32(n)
for start in range(first, end, {TILE}):
    width = min({TILE}, end - start)""",
    between="for at in range(start, start + n * across, across):",
    wide=True,
    more="first, end",
)
# Batches (N, C, L).
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


LAYOUTS = {"rows": ROWS, "blocks": BLOCKS, "across": ACROSS, "columns": COLUMNS, "channels": CHANNELS, "groups": GROUPS}


@functools.cache
def loop_of(name: str, of: str, layout: str) -> Any:
    """The loop of an op, or of its derivatives by the inputs `of`: a function of the formula's arrays, its numbers, the
    results, and the layout's parameters.
    """
    from rushlight.loops.cache import compiled

    return compiled(loop_text(name, of, layout))


def loop_text(name: str, of: str, layout_name: str) -> str:
    """The function `kernel` of `loop_of`."""
    op, layout = TABLE[name], LAYOUTS[layout_name]
    parts = op.options.get("parts", op.forward)
    names = op.options.get("outputs", "out").split()
    levels = Levels(layout, {name: LEVELS.get(name, layout.affine) for name in op.inputs})
    results, symbols = traced([parts], levels)
    if of:
        # g and out have the shape of the op's first result
        given = levels.given | dict(zip(names, map(levels.__getitem__, results)))
        given["g"] = given["gs"] = levels[results[0]]
        levels = Levels(layout, given)
        results, symbols = traced([op.rules[by] for by in of.split()], levels)
        names = [f"{by}_grad" for by in of.split()]
    return Writer(layout, levels, dict(zip(names, results))).text(symbols)


# The levels of inputs; the levels of weight and bias depend on the layout.
LEVELS = {"x": ELEMENT, "y": ELEMENT, "mu": ROW, "var": ROW}


class Levels(dict):
    """Step -> its level. `given`: the name of an input -> its level."""

    def __init__(self, layout: Layout, given: dict[str, int]):
        super().__init__()
        self.layout, self.given = layout, given | {"eps": NUMBER, "correction": NUMBER}

    def __missing__(self, step: Step) -> int:
        found = {self[a] for a in step.steps} - {NUMBER}
        if step.name == "input":
            level = self.given[step.args[0]]
        elif step.entry in START:
            of_channel = "others" in step.args and self.layout.affine == COLUMN
            level = COLUMN if of_channel else ROW
        else:
            level = NUMBER if not found else min(found) if len(found) == 1 else ELEMENT
        self[step] = level
        return level


def traced(formulas: list[Callable], levels: Levels) -> tuple[list, list[Step]]:
    """The results of formulas, and the inputs that they share."""
    asked = dict.fromkeys(name for f in formulas for name in parameters(f) if name in levels.given)
    symbols = dict(zip(asked, inputs(["g" if name == "gs" else name for name in asked])))
    given = {**symbols, "dims": (0,), "gs": [symbols.get("gs"), 0, 0]}
    results: list = []
    for formula in formulas:
        made = on_steps(formula, NAMES)(*[given.get(name) for name in parameters(formula)])
        results += made if isinstance(made, tuple) else [made]
    return results, list(symbols.values())


def unchanged(x: Any, *settings: Any) -> Any:
    return x


# The names of rules: each shape in a rule means a row, and a sum over `others(x)`, the samples and pixels, gives one
# number for each channel.
NAMES: dict[str, Callable] = {
    **dict.fromkeys(("reshape", "flat", "per_channel", "in_groups"), unchanged),
    "others": lambda x: "others",
    "count": lambda x, axes: x.shape[0],
    "spread": lambda x, axes, correction: 2 / (x.shape[0] - correction),
}


class Writer:
    """Writes the loop. `results`: the parameter of a result -> its step."""

    def __init__(self, layout: Layout, levels: Levels, results: dict[str, Step]):
        self.layout, self.levels, self.results = layout, levels, results
        # the gradients of values that are the same in all rows are added up over the rows
        columns = [f"{name}_grad" for name, level in levels.given.items() if level == COLUMN]
        self.summed = {name for name in columns if name in results and levels[results[name]] == ELEMENT}
        self.order = needed(tuple(results.values()))
        self.users = Counter(a for s in self.order for a in s.steps)
        self.users.update(results.values())
        self.depths: dict[Step, int] = {}  # the number of loops over the row before the step is known
        for s in self.order:
            before = max([self.depths.get(a, 0) for a in s.steps], default=0)
            self.depths[s] = before + (s.entry in START)
        # reduction -> the summed step, and its factors that are constant along the row
        self.addends = {s: self.split(s.args[0]) for s in self.order if s.entry in START}
        self.names: dict[Step, Scalar] = {}  # the steps that have a variable, or are in an array
        self.sums: dict[Step, str] = {}  # reduction -> its accumulator variable
        self.tiles: list[str] = []  # arrays with a number for each row
        self.kept: dict[Step, Scalar] = {}  # steps that a loop stores in the result for later loops
        self.lines: list[str] = []
        self.count = 0
        # accumulators in float64 of the parts of a row, each summed in float32
        self.in_parts = layout.wide and not layout.tiled
        last = layout.rows.split("\n")[-1]  # the lines after this are the loop's body
        self.depth = 1 + last.count("    ") + last.endswith(":")

    def text(self, symbols: list[Step]) -> str:
        """The function `kernel`."""
        for s in symbols:
            [name], level = s.args, self.levels[s]
            self.names[s] = Scalar(f"f32({name})" if level == NUMBER else self.place(name, level), FLOAT)
        for phase in range(max(self.depths.values()) + 1):
            self.rows(phase, symbols if phase == 0 else [])
            self.loop(phase)
        [first] = next(s.args for s in symbols if self.levels[s] == ELEMENT)
        given = [s.args[0] for s in symbols]
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
        return "\n".join(lines).replace("x.shape", f"{first}.shape") + "\n"

    def split(self, value: Step) -> tuple[Step, list[Step]]:
        """(the product of the factors that vary along the row, the other factors) of a product. In groups, whose
        columns are channels of many elements, the others come after the sum over a channel.
        """
        each: list[Step] = []
        others: list[Step] = []
        left = [value]
        while left and self.layout is GROUPS:
            s = left.pop()
            if s.entry is elementwise.mul.op and self.levels[s] == ELEMENT:
                left += reversed(s.steps)
            else:
                (each if self.levels[s] == ELEMENT else others).append(s)
        each.sort(key=lambda s: self.order.index(s) if s in self.order else -1)
        return functools.reduce(operator.mul, each) if others else value, others

    # -- parts of the text -------------------------------------------------------------------------

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * (self.depth + depth) + text)

    def place(self, array: str, level: int) -> str:
        """The text of the index of an element, a column or a row in an array."""
        forms = {ROW: self.layout.row, COLUMN: self.layout.column}
        return forms.get(level, self.layout.element).format(array)

    def store(self, depth: int, place: str, value: str) -> None:
        if place.startswith("get("):
            self.put(depth, f"put({place[4:-1]}, {value})")
        else:
            self.put(depth, f"{place} = {value}")

    def fresh(self, letter: str, dtype: str = "") -> str:
        """A new variable; with a dtype, a variable of the row: one for each row of a tile."""
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
        if step.entry in START:
            total = self.sums[step]
            return Scalar(f"f32({total} / count)" if step.entry is reduce.mean.op else f"f32({total})", FLOAT)
        do = OPERATORS.get(step.entry) or SPECIAL.get(step.name) or function(step.name)
        return do(*[self.written(a) for a in step.args])

    # -- code of a row ---------------------------------------------------------------------------------

    def rows(self, phase: int, symbols: list[Step]) -> None:
        """Write the steps of a row that are known before a loop: inputs, and steps that follow from sums."""
        found = [s for s in symbols if self.levels[s] == ROW]
        for s in self.order:
            if self.levels[s] == ROW and self.depths[s] == phase and self.is_named(s):
                found.append(s)
        start, tiled = len(self.lines), self.layout.tiled
        for s in found:
            places = [self.place(name, ROW) for name, made in self.results.items() if made is s]
            if s.entry is not reduce.mean.op and s.entry in START and not self.layout.wide:
                name = self.sums[s]
            elif tiled and s.name == "input":
                continue
            else:
                value, name = self.written(s).text, self.fresh("r", "f32")
                self.put(tiled, f"{name} = {value}")
            self.names[s] = Scalar(name, FLOAT)
            for place in places:
                self.store(tiled, place, name)
        if tiled and len(self.lines) > start:
            self.lines.insert(start, "    " * self.depth + self.layout.columns)

    def is_named(self, step: Step) -> bool:
        """True if a value of a row gets a variable: sums, results, and steps used more than once or in a loop."""
        return (
            step.entry in START
            or step in self.results.values()
            or self.users[step] > 1
            or any(step in s.steps and self.levels[s] > ROW for s in self.order)
        )

    def roots(self, phase: int) -> tuple[list[Step], dict[str, Step]]:
        """The sums that a loop accumulates, and the results that it writes."""
        sums = [s for s in self.order if s.entry in START and self.depths[s] == phase + 1]
        last = phase == max(self.depths.values())
        return sums, {name: s for name, s in self.results.items() if last and self.levels[s] == ELEMENT}

    def uses(self, phase: int) -> Counter:
        """For each step without a variable, the number of its uses in a loop."""
        sums, results = self.roots(phase)
        found: Counter = Counter()
        left = [*dict.fromkeys([self.addends[s][0] for s in sums]), *results.values()]
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
        totals = self.totals(sums)
        between = self.layout.between if sums else self.layout.unblocked or self.layout.between
        depth = between.startswith("for")
        for line in between.split("\n") if between else ():
            self.put(0, line)
        for part in totals.values() if self.in_parts else ():
            self.put(depth, f"{part} = f32(0)")
        self.put(depth, self.layout.columns)
        self.elements(depth + 1, phase, totals, results)
        for s in sums if self.in_parts else ():
            addend, factors = self.addends[s]
            product = [totals[addend, "plus"], *(self.written(a).within(ATOM) for a in factors)]
            to = self.sums[s] + (" = " if self.levels[s] == COLUMN else " += ")
            self.put(depth, to + " * ".join(product))

    def totals(self, sums: list[Step]) -> dict[tuple[Step, str], str]:
        """(addend, the loop's way to combine addends) -> variable."""
        totals: dict[tuple[Step, str], str] = {}
        start, tiled = len(self.lines), self.layout.tiled
        for s in sums:
            key = self.addends[s][0], EXTREMES.get(s.entry, "plus")
            if key in totals and not self.in_parts:
                self.sums[s] = totals[key]
                continue
            if self.levels[s] == COLUMN:  # the sum is added up in the result itself
                [total] = [f"{name}[k, c]" for name, made in self.results.items() if made is s]
            else:
                total = self.fresh("s", "f64" if self.layout.wide else "f32")
                self.put(tiled, f"{total} = {'0.0' if self.layout.wide else START[s.entry]}")
            self.sums[s] = total
            totals.setdefault(key, self.fresh("p") if self.in_parts else total)
        if tiled and sums:
            self.lines.insert(start, "    " * self.depth + self.layout.columns)
        return totals

    def elements(self, depth: int, phase: int, totals: dict[tuple[Step, str], str], results: dict[str, Step]) -> None:
        """The code for each number of a row."""
        before = set(self.names)
        self.name_elements(depth, phase)
        for (addend, how), total in totals.items():
            value = self.written(addend).text
            if how == "plus" and self.layout.tiled:
                self.put(depth, f"{total} += {value}")
            else:
                self.put(depth, f"{total} = {how}({total}, {value})")
        for name, s in results.items():
            value = self.written(s).text
            if name in self.summed:
                place = self.place(name, COLUMN)
                self.put(depth, f"{place} = {place} + {value}")
            else:
                self.store(depth, self.place(name, ELEMENT), value)
        self.names = {s: name for s, name in self.names.items() if s in before} | self.kept

    def name_elements(self, depth: int, phase: int) -> None:
        """Give a variable to steps used more than once in a loop; costly steps used later are stored in the result."""
        uses = self.uses(phase)
        later = [self.uses(p) for p in range(phase + 1, max(self.depths.values()) + 1)]
        for s in self.order:
            kept = s.entry in COSTLY and uses[s] and any(s in more for more in later)
            if s in self.names or self.levels[s] != ELEMENT or not (kept or uses[s] > 1):
                continue
            name = self.fresh("e")
            self.put(depth, f"{name} = {self.written(s).text}")
            self.names[s] = Scalar(name, FLOAT)
            if kept:
                [place] = [
                    self.place(result, ELEMENT) for result, made in self.results.items() if self.levels[made] == ELEMENT
                ]
                self.store(depth, place, name)
                self.kept[s] = Scalar(place, FLOAT)
