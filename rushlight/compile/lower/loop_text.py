"""From a cluster of steps to the text of one loop (loops/loop_code.py), which reads and writes every element once.

    def kernel(x0, x1, out0):
        for i in range(x0.shape[0]):
            for j in range(x0.shape[1]):
                out0[i, j] = maximum(x0[i, j] + x1[j], f32(0))

Forms of a loop. flat: one loop over all elements. rows: a loop over rows around loops over columns, with a new column
loop after each sum along the row. nest: adjacent dimensions that broadcast alike are merged, then there is one loop for
each dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Store, Value, values_in
from rushlight.compile.passes.decompose import REDUCTIONS
from rushlight.compile.passes.fuse import COLUMN, END, FULL, ROW, SCALAR, Cluster, inputs_of, same_elements
from rushlight.compile.passes.simplify import uniform
from rushlight.core.table import TABLE, entries
from rushlight.fast.rule_text import REALS, SHORT, Scalar, constant, expression
from rushlight.ops.math import activation as A
from rushlight.ops.math import elementwise as E
from rushlight.ops.math import trigonometry as T
from rushlight.ops.math.rare_functions import times_power
from rushlight.ops.math.special import lgamma, logit
from rushlight.ops.nn.loss import binary_cross_entropy_with_logits
from rushlight.ops.reduce import reduce

INDEX = "ijklmn"
BLOCK_ELEMENTS = 4096  # elements added up in the arrays' own dtype before float64 takes over
# the least work (elements times cost) for which a loop runs in parallel parts: about 0.1 ms
PARALLEL_FROM_WORK = 1 << 22
WIDE_FROM_ELEMENTS = 256  # the least row length for which wide vector registers pay off
SLOW_COST = 12
START = {reduce.sum.op: "0", reduce.amax.op: "-inf", reduce.amin.op: "inf"}
STEP = {reduce.sum.op: "plus", reduce.amax.op: "largest", reduce.amin.op: "smallest"}
# The cost of one element relative to an addition: 12 for functions of many instructions.
COSTS = dict.fromkeys(
    entries(
        T.acos, T.acosh, T.asin, T.asinh, T.atan, T.atan2, T.atanh, T.cos, T.cosh, T.sin, T.sinh, T.tan, E.elu, E.erf,
        E.erfc, E.exp, E.exp2, E.expm1, E.log, E.log10, E.log1p, E.log2, E.logaddexp, E.pow, E.sigmoid, E.silu,
        E.softplus, E.tanh, A.gelu, A.gelu_slope, A.gelu_tanh, A.glu_core, A.log_sigmoid, A.mish,
        binary_cross_entropy_with_logits, lgamma, logit, times_power,
    ),
    SLOW_COST,
) | {E.div.op: 4, E.sqrt.op: 4, E.rsqrt.op: 6, E.reciprocal.op: 4}  # fmt: skip
# constants that are written into the text; other constants become arguments
PLAIN = {0, 1, -1, 2, -2, 3, 4, 0.5, -0.5, 0.25}


class Kernel:
    """The text of a loop, and the arguments of its call.

    `reads`, `writes`: values in the order of the parameters, each with its shape inside the loop. `numbers`: constants.
    `slots`: 0-d values that share one array per dtype -> index in this array."""

    def __init__(self, cluster: Cluster, wanted: set[Value], threads: bool = False, slots: Mapping[Value, int] = {}):
        self.cluster, self.slots = cluster, slots
        self.steps = cluster.steps
        self.stores = {s.target: s for s in self.steps if isinstance(s, Store)}
        self.reads: list[Value] = [v for v in cluster.reads() if v not in self.stores]
        made = [v for s in self.steps for v in s.outs]
        self.outs: list[Value] = [v for v in made if v in wanted]
        self.numbers: list[tuple[Any, np.dtype]] = []
        self.uses = counted(self.steps)
        self.merged = shape_of_loops(cluster)
        self.mode = "rows" if cluster.split is not None else "flat" if len(self.merged) == 1 else "nest"
        self.names: dict[Value, str] = {}
        for letter, group in (("x", self.reads), ("p", list(self.stores)), ("out", self.outs)):
            self.names.update((v, f"{letter}{i}") for i, v in enumerate(group))
        self.names.update((v, slots_of(v)) for v in (*self.reads, *self.outs) if v in slots)
        self.env: dict[Value, Scalar] = {}
        self.phases = phases(cluster)
        self.parallel = threads and work(cluster) >= PARALLEL_FROM_WORK
        self.sums: list[Any] = []  # totals that the parts of a parallel loop add up
        self.finish: list[str] = []  # statements that compute results from these totals
        self.lines: list[str] = []
        self.count = 0
        self.body()

    # -- parameters and text ---------------------------------------------------------------------

    @property
    def arguments(self) -> list[Value]:
        """Arrays in the order of the parameters."""
        return [v for v in (*self.reads, *self.stores, *self.outs) if v not in self.slots]

    @property
    def shared(self) -> list[str]:
        """The arrays that hold several 0-d values, passed after the other parameters."""
        return sorted({self.names[v] for v in (*self.reads, *self.outs) if v in self.slots})

    def inner_shape(self, v: Value) -> tuple[int, ...]:
        """The shape that an array has inside the loop."""
        return tuple(n for n, varies in zip(self.sizes(), self.varying(v)) if varies)

    def sizes(self) -> tuple[int, ...]:
        if self.mode != "rows":
            return tuple(n for n, _ in self.merged)
        split, space = self.cluster.split, self.cluster.space
        return int(np.prod(space[:split], dtype=int)), int(np.prod(space[split:], dtype=int))

    def varying(self, v: Value) -> tuple[bool, ...]:
        """The loops along which the elements of a value change."""
        level = self.cluster.levels[v]
        if self.mode == "rows":
            return level in (FULL, ROW), level in (FULL, COLUMN)
        if level in (SCALAR, END):
            return (False,) * len(self.merged)
        padded = (1,) * (len(self.cluster.space) - len(v.shape)) + v.shape
        return tuple(padded[d] == self.cluster.space[d] != 1 or level == FULL for _, d in self.merged)

    def text(self, name: str) -> str:
        """The text of the function, under this name."""
        parameters = [self.names[v] for v in self.looped] + self.shared + ["sums"] * bool(self.sums) + self.constants()
        return f"def {name}({', '.join(parameters)}):\n" + "\n".join("    " + line for line in self.lines) + "\n"

    def finishing(self, name: str, first: tuple[str, ...] = ("restrict()",)) -> str:
        """The function that turns totals into results, where the loop runs in parts. `first`: its first statements."""
        parameters = ["sums"] + [self.names[v] for v in self.after] + self.constants()
        lines = "".join([f"    {line}\n" for line in (*first, *self.finish)])
        return f"def {name}({', '.join(parameters)}):\n{lines}"

    def constants(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.numbers))]

    @property
    def looped(self) -> list[Value]:
        """The arrays of the loop itself."""
        return [v for v in self.arguments if not (self.sums and v in self.outs and self.cluster.levels[v] == END)]

    @property
    def after(self) -> list[Value]:
        """The 0-d arrays, which the function after the loop reads and writes."""
        return [v for v in self.arguments if not any(self.varying(v))]

    def division(self) -> list[int]:
        """For each array of the loop: cut along its rows (1), summed over parts (2), or whole (0)."""
        return [1 if self.varying(v)[0] else 2 if v in self.outs else 0 for v in self.looped] + [2] * bool(self.sums)

    # -- writing the body --------------------------------------------------------------------------

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def body(self) -> None:
        self.put(0, "restrict()")
        if is_long(self.cluster, self.sizes()):
            self.put(0, "wide()")
        for v in (*self.reads, *self.stores):
            if not any(self.varying(v)):
                self.load(v, 0)
        {"flat": self.flat, "rows": self.rows, "nest": self.nest}[self.mode]()

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def load(self, v: Value, depth: int, at: str | None = None) -> None:
        """Read an element; assign it to a name if it is used more than once, or overwritten."""
        index = self.index(v) if at is None else at
        text = f"{self.names[v]}[{index}]"
        if self.uses.get(v, 0) > 1 or v in self.stores or not any(self.varying(v)):
            name = self.fresh("a")
            self.put(depth, f"{name} = {text}")
            text = name
        self.env[v] = Scalar(text, v.dtype)

    def index(self, v: Value) -> str:
        if v in self.slots:
            return str(self.slots[v])
        return ", ".join(i for i, varies in zip(INDEX, self.varying(v)) if varies) or "()"

    def nest(self) -> None:
        """Loops over merged dimensions; no sums."""
        for depth in range(len(self.merged)):
            self.put(depth, f"for {INDEX[depth]} in range({self.length(depth)}):")
        self.element(self.steps, len(self.merged))

    def length(self, loop: int) -> str:
        """The text for a loop's length: the size of an array that has this dimension."""
        for v in self.arguments:
            varying = self.varying(v)
            if varying[loop]:
                return f"{self.names[v]}.shape[{sum(varying[:loop])}]"
        return str(self.sizes()[loop])

    def element(self, steps: Iterable[Any], depth: int, again: Iterable[Value] = ()) -> None:
        """The statements for one element: reads, expressions, writes. `again`: values kept by an earlier loop."""
        steps = list(steps)
        for v in again:
            self.env[v] = Scalar(f"{self.kept_in(v)}[{'i, j' if v in self.names else 'j'}]", v.dtype)
        made = {v for s in steps for v in s.outs}
        for v in dict.fromkeys(v for s in steps for v in read_by(s)):
            if v not in made and self.to_load(v):
                self.load(v, depth)
        for step in steps:
            if isinstance(step, Call):
                self.compute(step, depth)
        for step in steps:
            for v in step.outs:
                if v in self.outs and step.entry not in REDUCTIONS:
                    self.put(depth, f"{self.names[v]}[{self.index(v)}] = {self.env[v].text}")
        for step in steps:
            if isinstance(step, Store):
                self.put(depth, f"{self.names[step.target]}[{self.index(step.target)}] = {self.env[step.value].text}")

    def to_load(self, v: Value) -> bool:
        """Whether an element of the value is read from memory at this point of the loop."""
        if v not in self.names or v in self.outs or not any(self.varying(v)):
            return False
        return v not in self.env or self.mode == "rows" and self.cluster.levels[v] != ROW

    def kept_in(self, v: Value) -> str:
        return self.names[v] if v in self.names else f"keep{list(self.keeps).index(v)}"

    def compute(self, step: Call, depth: int, named: bool = False) -> None:
        """The expression of a step, inlined if it is used once, else assigned to a name."""
        out = step.outs[0]
        if step.entry in REDUCTIONS:
            x = self.operand(step.args[0])
            total = self.totals[out]
            self.put(depth, f"{total} = {STEP[step.entry]}({total}, {x.text})")
            return
        if same_elements(step):
            self.env[out] = self.operand(step.args[0])
            if out in self.keeps and out not in self.names:
                self.put(depth, f"{self.kept_in(out)}[j] = {self.env[out].text}")
            return
        arguments = tuple(self.operand(a) if isinstance(a, Value) else a for a in step.args)
        made = expression(TABLE[step.op], arguments, out.dtype)
        users = self.uses.get(out, 0) + (out in self.outs)
        if named or users > 1 or len(made.text) > 60 or out in self.keeps:
            name = self.fresh("t")
            self.put(depth, f"{name} = {made.text}")
            made = Scalar(name, out.dtype)
        self.env[out] = made
        if out in self.keeps and out not in self.names:
            self.put(depth, f"{self.kept_in(out)}[j] = {made.text}")

    def operand(self, v: Value) -> Scalar:
        if v in self.env:
            return self.env[v]
        number = uniform(v)
        assert number is not None, v
        number = number.item()
        if v.dtype not in REALS or number in PLAIN or number != number:
            if v.dtype == np.bool_:
                return Scalar(str(bool(number)), v.dtype)
            return constant(number, v.dtype)
        if (number, v.dtype) not in self.numbers:
            self.numbers.append((number, v.dtype))
        self.env[v] = Scalar(f"c{self.numbers.index((number, v.dtype))}", v.dtype)
        return self.env[v]

    # -- flat: one long loop, in blocks if it computes sums ---------------------------------------

    keeps: dict[Value, None] = {}
    totals: dict[Value, str] = {}

    def flat(self) -> None:
        ends = [s for s in self.steps if self.cluster.levels[target_of(s)] == END]
        sums = [s for s in ends if s.entry in REDUCTIONS]
        inside = [s for s in self.steps if s not in ends or s in sums]
        if not sums:
            return self.nest()
        self.totals = {s.outs[0]: f"part{i}" for i, s in enumerate(sums)}
        for i in range(len(sums)):
            self.put(0, f"sum{i} = 0.0")
        arrays = [v for v in self.arguments if any(self.varying(v))]
        self.put(0, f"for start in range(0, {self.length(0)}, {BLOCK_ELEMENTS}):")
        outer = {v: self.names[v] for v in arrays}
        for v in arrays:
            self.put(1, f"{outer[v]}_ = {outer[v]}[start:start + {BLOCK_ELEMENTS}]")
            self.names[v] = f"{outer[v]}_"
        for i, s in enumerate(sums):
            self.put(1, f"part{i} = {SHORT[s.outs[0].dtype.name]}(0)")
        self.put(1, f"for i in range({self.length(0)}):")
        self.element(inside, 2)
        self.names.update(outer)
        for i in range(len(sums)):
            self.put(1, f"sum{i} += part{i}")
        self.end(sums, [s for s in ends if s not in sums])

    def end(self, sums: list[Any], rest: list[Any]) -> None:
        """The statements after the last element, which compute results from the totals."""
        if self.parallel and sums:
            for i in range(len(sums)):
                self.put(0, f"sums[{i}] = sum{i}")
            self.sums, loop, self.lines = sums, self.lines, []
            for v in self.reads:
                if not any(self.varying(v)):
                    self.load(v, 0)
            for i in range(len(sums)):
                self.put(0, f"sum{i} = sums[{i}]")
        for i, s in enumerate(sums):
            out = s.outs[0]
            self.env[out] = Scalar(self.fresh("t"), out.dtype)
            self.put(0, f"{self.env[out].text} = {SHORT[out.dtype.name]}(sum{i})")
        for step in rest:
            self.compute(step, 0, True)
        for step in (*sums, *rest):
            v = step.outs[0]
            if v in self.outs:
                self.put(0, f"{self.names[v]}[()] = {self.env[v].text}")
        if self.sums:
            self.finish, self.lines = self.lines, loop

    # -- rows: for each row, one loop for each sum that later loops need -----------------------------

    def rows(self) -> None:
        levels = self.cluster.levels
        full = [s for s in self.steps if levels[target_of(s)] == FULL]
        across = [s for s in self.steps if levels[target_of(s)] == ROW]
        down = [s for s in self.steps if levels[target_of(s)] == COLUMN]
        ends = [s for s in self.steps if levels[target_of(s)] == END]
        sums = [s for s in ends if s.entry in REDUCTIONS]
        last = max([self.phases[target_of(s)] for s in self.steps], default=0)
        steady = {s.outs[0] for s in full if same_elements(s) and levels.get(s.args[0]) in (ROW, SCALAR)}
        self.keeps = dict.fromkeys(v for s in full for v in s.outs if v not in steady and self.needed_later(v))
        self.prepare(down, sums)
        self.put(0, f"for i in range({self.length(0)}):")
        for i, s in enumerate(sums):
            self.put(1, f"part{i} = {SHORT[s.outs[0].dtype.name]}(0)")
        for v in (*self.reads, *self.stores):
            if levels[v] == ROW:
                self.load(v, 1, "i")
        for phase in range(last + 1):
            self.row_values(across, phase)
            self.columns(phase, full, across, [*down, *sums])
        for i in range(len(sums)):
            self.put(1, f"sum{i} += part{i}")
        self.end(sums, [s for s in ends if s not in sums])

    def prepare(self, down: list[Any], sums: list[Any]) -> None:
        """Allocate rows for values that later loops read, and set sums to zero."""
        for v in self.keeps:
            if v not in self.names:
                self.put(0, f"{self.kept_in(v)} = empty({self.length(1)}, {SHORT[v.dtype.name]})")
        self.totals = {s.outs[0]: f"part{i}" for i, s in enumerate(sums)}
        for i in range(len(sums)):
            self.put(0, f"sum{i} = 0.0")
        for s in down:
            name = self.names[s.outs[0]]
            self.totals[s.outs[0]] = f"{name}[j]"
            self.put(0, f"for j in range({self.length(1)}):")
            self.put(1, f"{name}[j] = 0")

    def needed_later(self, v: Value) -> bool:
        """Whether a later loop over the same row reads the value again."""
        return any(
            self.phases[target_of(s)] + (s.entry in REDUCTIONS and self.cluster.levels[s.outs[0]] == ROW) * -1
            > self.phases[v]
            for s in self.steps
            if isinstance(s, Call) and v in set(values_in(s.args))
        )

    def row_values(self, across: list[Any], phase: int) -> None:
        """The values of a row that are computed before this column loop, from sums of the loop before."""
        for step in across:
            v = step.outs[0]
            if self.phases[v] != phase:
                continue
            if step.entry in REDUCTIONS:
                self.env[v] = Scalar(self.totals[v], v.dtype)
            else:
                self.compute(step, 1, True)
            if v in self.outs:
                self.put(1, f"{self.names[v]}[i] = {self.env[v].text}")

    def columns(self, phase: int, full: list[Any], across: list[Any], other: list[Any]) -> None:
        """One loop over the columns of a row."""
        here = [s for s in full if self.phases[target_of(s)] == phase]
        sums = [s for s in across if s.entry in REDUCTIONS and self.phases[s.outs[0]] == phase + 1]
        here += sums + [s for s in other if self.phases[target_of(s)] == phase]
        if not here:
            return
        for s in sums:
            v = s.outs[0]
            self.totals[v] = f"row{len(self.totals)}"
            self.put(1, f"{self.totals[v]} = {SHORT[v.dtype.name]}({START[s.entry]})")
        here.sort(key=self.steps.index)
        inside = {v for s in here for v in s.outs}
        again = [v for s in here for v in read_by(s) if v in self.keeps and v not in inside]
        self.put(1, f"for j in range({self.length(1)}):")
        self.element(here, 2, dict.fromkeys(again))


def slots_of(v: Value) -> str:
    """The name of the array that holds the 0-d values of a dtype."""
    return f"numbers_{SHORT[v.dtype.name]}"


def work(cluster: Cluster) -> int:
    """Elements times the cost of each: 1 for arithmetic, more for slower functions."""
    cost = sum(COSTS.get(s.entry, 1) for s in cluster.steps)
    return int(np.prod(cluster.space, dtype=np.int64)) * cost if len(cluster.space) else 0


def is_long(cluster: Cluster, sizes: tuple[int, ...]) -> bool:
    """Whether wide vector registers pay off: slow functions on many consecutive elements."""
    return (
        bool(sizes)
        and sizes[-1] >= WIDE_FROM_ELEMENTS
        and any(COSTS.get(s.entry, 1) == SLOW_COST for s in cluster.steps)
    )


def target_of(step: Call | Store) -> Value:
    return step.value if isinstance(step, Store) else step.outs[0]


def read_by(step: Call | Store) -> list[Value]:
    """The values that a step reads element by element, and the target of a store."""
    return [step.value, step.target] if isinstance(step, Store) else inputs_of(step)


def counted(steps: list[Any]) -> dict[Value, int]:
    """The number of reads of each value inside the cluster. A reshape reads its argument as often as its result is
    read.
    """
    uses: dict[Value, int] = {}
    for step in reversed(steps):
        for v in (step.value,) if isinstance(step, Store) else values_in(step.args):
            uses[v] = uses.get(v, 0) + (max(uses.get(step.outs[0], 0), 2) if same_elements(step) else 1)
    return uses


def phases(cluster: Cluster) -> dict[Value, int]:
    """The column loop of a row after which each value is known: the loop of the latest input, plus 1 for a sum along
    the row.
    """
    found: dict[Value, int] = {}
    for step in cluster.steps:
        if isinstance(step, Store):
            found.setdefault(step.target, 0)
            continue
        out = step.outs[0]
        latest = max([found.get(v, 0) for v in inputs_of(step)], default=0)
        found[out] = latest + (step.entry in REDUCTIONS and cluster.levels[out] == ROW)
    return found


def shape_of_loops(cluster: Cluster) -> list[tuple[int, int]]:
    """(size, representative dimension) of each loop. Adjacent dimensions are merged if every value broadcasts in both
    or in neither.
    """
    space, n = cluster.space, len(cluster.space)
    patterns = {
        tuple(k == m != 1 for k, m in zip((1,) * (n - len(v.shape)) + v.shape, space))
        for v, level in cluster.levels.items()
        if level not in (SCALAR, END, FULL)
    }
    merged: list[list[int]] = []
    for d in range(n):
        if space[d] == 1 and n > 1 and any(k != 1 for k in space):
            continue
        if merged and all(p[d] == p[merged[-1][1]] for p in patterns):
            merged[-1][0] *= space[d]
        else:
            merged.append([space[d], d])
    return [(size, d) for size, d in merged]
