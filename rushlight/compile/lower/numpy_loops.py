"""A loop as NumPy calls on whole arrays, for an exported program.

def loop_0(x0, x1, out0):
    for i in ...:
        for j in ...:
            out0[i, j] = maximum(x0[i, j] + x1[j], f32(0))

def loop_0(x0, x1, out0):
    out0[...] = kernels.maximum(x0 + x1, f32(0))
"""

from __future__ import annotations

import re
from typing import Any

from rushlight.compile.graph import Store, Value, values_in
from rushlight.compile.lower.loop_text import Kernel
from rushlight.compile.passes.decompose import REDUCTIONS
from rushlight.compile.passes.fuse import COLUMN, END, ROW, same_elements
from rushlight.fast.rule_text import SHORT, Scalar
from rushlight.loops import scalar_math
from rushlight.ops.reduce import reduce

# a function of the scalars world: its name in the op table, and 64 for float64
FUNCTION = re.compile(rf"(?<![\w.])({'|'.join(sorted(scalar_math.NAMES - {'abs'}))})(64)?\(")
UFUNC = {reduce.sum.op: "add", reduce.amax.op: "maximum", reduce.amin.op: "minimum"}


class Whole(Kernel):
    """Writes the function for a loop, with its parameters. Sums of rows keep their dimension: (n, 1)."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.large: set[Value] = set()  # values whose text is an array of the loop's full shape
        super().__init__(kernel.cluster, {*kernel.outs}, kernel.parallel, kernel.slots)
        self.sums = [s for s in self.steps if self.parallel and self.is_total(s)]

    def is_total(self, step: Any) -> bool:
        return step.entry in REDUCTIONS and self.cluster.levels[step.outs[0]] == END

    def body(self) -> None:
        self.numbers += self.kernel.numbers  # the order of the parameters, in which the loop meets the numbers
        for v in (*self.reads, *self.stores):
            text = self.lifted(v) + ".copy()" * (v in self.stores)
            if self.uses.get(v, 0) > 1 or v in self.stores:
                self.put(0, f"{(name := self.fresh('a'))} = {text}")
                text = name
            self.env[v] = Scalar(text, v.dtype)
            if all(self.varying(v)):
                self.large.add(v)
        later = []  # writes come last: the lines before them read the old elements
        totals = 0
        for step in self.steps:
            if isinstance(step, Store):
                later.append(f"{self.place_of(step.target)} = {self.named(step.value)}")
                continue
            out = step.outs[0]
            if self.parallel and self.is_total(step):
                later.append(f"sums[{totals}] = {self.total(step)}")
                totals += 1
                continue
            if self.parallel and self.cluster.levels[out] == END:
                continue  # computed after all parts of the parallel loop
            if step.entry in REDUCTIONS:
                self.put(0, f"{(name := self.fresh('t'))} = {self.total(step)}")
                self.env[out] = Scalar(name, out.dtype)
            else:
                self.compute(step, 0)
            if (
                same_elements(step)
                and step.args[0] in self.large
                or step.entry not in REDUCTIONS
                and any(v in self.large for v in values_in(step.args))
            ):
                self.large.add(out)
            if out in self.outs:
                later.append(f"{self.place_of(out)} = {self.named(out)}")
        for line in later:
            self.put(0, line)

    def named(self, v: Value) -> str:
        """The name of a variable that holds the value, computed before any write."""
        text = self.operand(v).text
        if not text.isidentifier():
            self.put(0, f"{(name := self.fresh('t'))} = {text}")
            self.env[v] = Scalar(name, v.dtype)
        return self.env[v].text

    def lifted(self, v: Value) -> str:
        """The text of an array with dimensions of size 1 inserted, so that it broadcasts to the loop's shape."""
        varying, name = self.varying(v), self.names[v]
        if not any(varying):
            return f"{name}[{self.index(v)}]"
        if all(varying[varying.index(True) :]):
            return name
        return f"{name}[{', '.join(':' if varies else 'None' for varies in varying)}]"

    def place_of(self, v: Value) -> str:
        text = self.lifted(v)
        return text if text.endswith("]") else f"{text}[...]"

    def total(self, step: Any) -> str:
        """The text of a reduction: of rows, shape (n, 1), of columns, shape (m,), or of all elements."""
        x, level = step.args[0], self.cluster.levels[step.outs[0]]
        text, dtype = self.operand(x).text, SHORT[step.outs[0].dtype.name]
        if x not in self.large:
            sizes = [self.length(k) for k in range(len(self.sizes()))]
            text = f"np.broadcast_to({text}, ({', '.join(sizes)},))"
        if level == END:
            whole = f"np.add.reduce({text}, None, f64)"
            return whole if self.sums or self.parallel else f"{dtype}({whole})"
        if level == COLUMN:
            return f"np.add.reduce({text}, 0)"
        assert level == ROW
        return f"np.{UFUNC[step.entry]}.reduce({text}, 1, keepdims=True)"

    def text(self, name: str) -> str:
        return on_arrays(super().text(name))


def on_arrays(text: str) -> str:
    """The text with the table's kernels for the functions of the scalars world, which take arrays and numbers."""
    return FUNCTION.sub(r"kernels.\1(", text)
