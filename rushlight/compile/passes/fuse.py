"""Clusters of calls that share a loop: elementwise chains, reductions inside them and at their end, writes to memory.

A cluster runs over one space: the shape of its largest values. A reduction splits the dimensions of this space into
rows and columns. Each value has a level: FULL (an element for each element of the space), ROW (one for each row: sums
along rows), COLUMN (one for each column: sums over rows, known after the last row), SCALAR (one, known before the loop)
or END (one, known after the loop: a total).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.compile.graph import (
    Call,
    Graph,
    Store,
    Value,
    is_random,
    is_reshape,
    is_view,
    lineage,
    memory_of,
    parents_of,
    values_in,
)
from rushlight.compile.passes.decompose import REDUCTIONS
from rushlight.compile.passes.simplify import uniform
from rushlight.core.table import TABLE, entries
from rushlight.fast.rule_text import TYPES, NotFused, Scalar, expression
from rushlight.ops.linalg.matmul import mm
from rushlight.ops.nn.conv import convolution
from rushlight.ops.reduce.reduce import sum
from rushlight.ops.shape.views import clone, expand

FULL, ROW, COLUMN, SCALAR, END = "full", "row", "column", "scalar", "end"
# never fuse across these: their operands and results go through memory
HEAVY = entries(mm, convolution)
MAX_STEPS = 400  # most members of a cluster: LLVM's time grows faster than its text


class Cluster:
    """Steps that run in one loop. `levels`: the level of each value that the steps read or make."""

    def __init__(self, space: tuple[int, ...]):
        self.space = space
        self.split: int | None = None  # number of the space's dimensions that are rows
        self.steps: list[Call | Store] = []
        self.levels: dict[Value, str] = {}
        self.made: set[Value] = set()

    def reads(self) -> list[Value]:
        """Values from outside, in order of first use."""
        return list(dict.fromkeys(v for s in self.steps for v in inputs_of(s) if v not in self.made))

    def admit(self, step: Call | Store) -> bool:
        """Add the step if it fits; otherwise change nothing."""
        if len(self.steps) >= MAX_STEPS:
            return False
        before = self.levels.copy(), self.split
        try:
            self.place(step)
        except NotFused:
            self.levels, self.split = before
            return False
        self.steps.append(step)
        self.made.update(step.outs)
        return True

    def place(self, step: Call | Store) -> None:
        if isinstance(step, Store):
            self.place_store(step)
        elif step.entry in REDUCTIONS:
            self.place_reduction(step)
        elif same_elements(step):
            self.place_reshape(step)
        else:
            self.place_element(step)
        self.settle()

    def settle(self) -> None:
        """If there is a total, and operands smaller than the space: find a split into rows that fits. Raises NotFused
        if none does."""
        levels = self.levels.values()
        if self.split is not None or END not in levels or "part" not in levels:
            return
        before = self.levels.copy()
        for split in range(1, len(self.space)):
            try:
                return self.rows_are(split)
            except NotFused:
                self.split, self.levels = None, before.copy()
        raise NotFused

    def place_store(self, step: Store) -> None:
        """A store fits into the loop that makes the value, but not into a loop with sums along rows, which reads memory
        twice."""
        if self.levels.get(step.value) != FULL or self.has(ROW) or step.value.shape != self.space:
            raise NotFused
        if self.levels.setdefault(step.target, FULL) != FULL:
            raise NotFused

    def place_reduction(self, step: Call) -> None:
        x, dims = step.args[0], step.args[1]
        n = len(self.space)
        dims = tuple(range(n)) if dims is None else tuple(sorted(dims))
        if x.shape != self.space or not n or self.level(x) != FULL or x.dtype.kind != "f" or not x.size:
            raise NotFused
        if step.outs[0].dtype != x.dtype:
            raise NotFused
        if dims == tuple(range(n)):
            level = END
        elif dims == tuple(range(n - len(dims), n)):
            level = ROW
            self.rows_are(n - len(dims))
        elif dims == tuple(range(len(dims))):
            level = COLUMN
            self.rows_are(len(dims))
        else:
            raise NotFused
        if level is not ROW and not step.runs(sum) or level is ROW and self.writes_memory():
            raise NotFused
        self.levels[step.outs[0]] = level

    def writes_memory(self) -> bool:
        return any(isinstance(s, Store) for s in self.steps)

    def rows_are(self, split: int) -> None:
        """Fix which dimensions are rows. Raises NotFused if earlier reads do not fit this split."""
        if self.split not in (None, split):
            raise NotFused
        if self.split is None:
            self.split = split
            for v, level in list(self.levels.items()):
                if level == "part":
                    self.levels[v] = self.pattern(v.shape)

    def place_reshape(self, step: Call) -> None:
        """A reshape fits between a reduction and its use, if it changes only dimensions of size 1."""
        x, out = step.args[0], step.outs[0]
        level = self.levels.get(x)
        if out.shape == self.space:
            if x.size == out.size and x.shape != out.shape:
                raise NotFused
            if self.reading(x) == END:
                raise NotFused
            self.levels[out] = FULL
        elif level in (ROW, END, SCALAR) and x.size == out.size and x in self.made:
            self.levels[out] = level
        else:
            raise NotFused

    def place_element(self, step: Call) -> None:
        out, made = step.outs[0], self.made
        inside = {self.levels[v] for v in inputs_of(step) if v in made}
        small = END in inside and inside <= {ROW, END}
        if out.shape == self.space and not small:
            for v in inputs_of(step):
                if self.reading(v) == COLUMN and v in made or self.levels[v] == END:
                    raise NotFused
            self.levels[out] = FULL
        elif inside and (level := self.small(inside, out)) and out.shape != self.space:
            for v in inputs_of(step):
                if v not in made and v.size != 1 and (v.size != out.size or level != ROW):
                    raise NotFused
                self.levels.setdefault(v, SCALAR if v.size == 1 else ROW)
            self.levels[out] = level
        else:
            raise NotFused

    def small(self, inside: set[str], out: Value) -> str | None:
        """The level of a value computed from row sums or totals."""
        if inside == {ROW} and out.size == int(np.prod(self.space[: self.split])):
            return ROW
        return END if inside == {END} and out.size == 1 else None

    def reading(self, v: Value) -> str:
        """The level of an operand that is broadcast to the space."""
        if v in self.made:
            level = self.levels[v]
            if level == ROW and self.pattern(v.shape) != ROW or level == COLUMN:
                raise NotFused
            return level
        level = self.pattern(v.shape)
        if self.levels.setdefault(v, level) != level:
            raise NotFused
        return level

    def pattern(self, shape: tuple) -> str:
        """The level of an operand of this shape. "part" while the split into rows is not known."""
        n = len(self.space)
        padded = (1,) * (n - len(shape)) + shape
        if padded == self.space:
            return FULL
        if all(k == 1 for k in padded):
            return SCALAR
        if self.split is None:
            return "part"
        if padded == self.space[: self.split] + (1,) * (n - self.split):
            return ROW
        if padded == (1,) * self.split + self.space[self.split :]:
            return COLUMN
        raise NotFused

    def level(self, v: Value) -> str:
        return self.levels[v] if v in self.levels else self.reading(v)

    def has(self, level: str) -> bool:
        return any(self.levels[v] == level for v in self.made)


def inputs_of(step: Call | Store) -> list[Value]:
    """The values that a step reads as elements; constants of equal elements are part of the text."""
    if isinstance(step, Store):
        return [step.value]
    return [v for v in values_in(step.args) if v.kind != "constant" or uniform(v) is None]


def same_elements(step: Call | Store) -> bool:
    """Whether a loop has nothing to compute for a step: it reads the elements of the argument at other places."""
    return is_reshape(step) or step.runs(expand, clone)


def fusable(step: Call | Store) -> bool:
    """Whether a step can be part of a loop at all."""
    if isinstance(step, Store):
        return step.value.dtype in TYPES and step.target._array.flags.c_contiguous
    if len(step.outs) != 1 or any(v.dtype not in TYPES for v in (*inputs_of(step), *step.outs)):
        return False
    if step.entry in REDUCTIONS or same_elements(step):
        return True
    return is_element(step)


def is_element(call: Call) -> bool:
    try:
        expression(TABLE[call.op], symbols(call.args), call.outs[0].dtype)
    except (NotFused, TypeError, AttributeError, KeyError):
        return False
    return True


def symbols(args: Any, name: Any = lambda v: "x") -> tuple:
    return tuple(Scalar(name(a), a.dtype) if isinstance(a, Value) else a for a in args)


class Fusion:
    """Puts the steps of a graph into clusters, in order.

    `before[k]`: bit mask of the clusters that must run before cluster k. `direct[k]`: the numbers of the clusters that
    k itself depends on. Two clusters can be merged if no other cluster must run between them.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.clusters: dict[int, Cluster | None] = {}  # None: a step outside of clusters
        self.before: dict[int, int] = {}
        self.direct: dict[int, set[int]] = {}
        self.steps: dict[int, list[int]] = {}  # numbers of the steps in a cluster
        self.home: dict[Value, int] = {}  # the cluster that makes a value
        self.last_reader: dict[Value, int] = {}  # value from outside -> the last cluster that reads it
        self.readers: dict[Value, set[int]] = {}  # the clusters that read an input's memory
        self.origin, parents = memory_of(graph), parents_of(graph)
        # a result shares this memory, so a loop must not copy it
        self.shown = {w for v in graph.results for w in lineage(v, parents)}
        self.epoch = 0  # number of products before each step
        self.epochs: dict[int, int] = {}  # the epoch of a cluster's first step
        self.numbers: int | None = None  # the cluster of 0-d arithmetic
        self.drawn = -1  # the last step that draws random numbers
        for number, step in enumerate(graph.steps):
            self.add(number, step)

    def add(self, number: int, step: Call | Store) -> None:
        self.steps[number], self.direct[number], self.before[number] = [number], self.needs(number, step), 0
        for k in self.direct[number]:
            self.before[number] |= 1 << k | self.before[k]
        cluster = None
        alone = not fusable(step) or is_view(step) and same_elements(step) and step.outs[0] in self.shown
        if not alone:
            cluster = Cluster(space_of(step))
            if not cluster.admit(step):
                cluster = None
        self.clusters[number] = cluster
        self.epoch += step.entry in HEAVY
        self.epochs[number] = self.epoch
        for v in step.outs:
            self.home[v] = number
        if not alone:
            for other in self.candidates(step):
                number = self.joined(other, number, step)
        cluster = self.clusters[number]
        if cluster is not None and cluster.space == ():
            self.numbers = number
        for v in values_in(step.args):
            self.readers.setdefault(self.origin.get(v, v), set()).add(number)
            if v not in self.home or self.home[v] != number:
                self.last_reader[v] = number

    def needs(self, number: int, step: Call | Store) -> set[int]:
        """The clusters that must run before this step: the makers of the operands, and readers of memory that a store
        overwrites.
        """
        direct = {self.home[v] for v in values_in(step.args) if v in self.home}
        if isinstance(step, Store):
            direct |= self.readers.get(step.target, set())
        if is_random(step):  # draws from the random generator keep their order
            direct |= {self.drawn} - {-1}
            self.drawn = number
        return direct

    def candidates(self, step: Call | Store) -> list[int]:
        """Clusters that make an operand of the step, newest first; then clusters that read the same large values."""
        inputs = inputs_of(step)
        makers = sorted({self.home[v] for v in inputs if v in self.home}, reverse=True)
        makers = [k for k in makers if self.epochs[k] == self.epoch]
        if isinstance(step, Store):
            return makers
        space = space_of(step)
        shared = [self.last_reader[v] for v in inputs if v in self.last_reader and v.shape == space and v.size > 1]
        if space == () and self.numbers is not None:
            shared.append(self.numbers)
        return list(dict.fromkeys(k for k in (*makers, *shared) if self.clusters.get(k) is not None))

    def joined(self, other: int, number: int, step: Call | Store) -> int:
        """The number of the merged cluster, or `number` if both cannot be merged."""
        first, second = self.clusters.get(other), self.clusters.get(number)
        if other == number or first is None or self.between(other, number):
            return number
        steps = sorted({*self.steps[other], *self.steps[number]})
        both = [self.graph.steps[i] for i in steps]
        if self.overwrites_operands(both):
            return number
        whole = grown(first, second, step, both)
        if whole is None:
            return number
        self.merge(other, number, whole, steps)
        return other

    def overwrites_operands(self, steps: list[Call | Store]) -> bool:
        """Whether a loop of these steps writes to the memory of a view that the loop reads at other places."""
        targets = {s.target for s in steps if isinstance(s, Store)}
        return bool(targets) and any([self.origin.get(v) in targets for s in steps for v in values_in(s.args)])

    def between(self, a: int, b: int) -> bool:
        """Whether some third cluster must run after one of the two and before the other."""
        return any(
            self.before[k] >> first & 1 for first, last in ((a, b), (b, a)) for k in self.direct[last] if k != first
        )

    def merge(self, kept: int, gone: int, whole: Cluster, steps: list[int]) -> None:
        """Merge two clusters, and update all tables that refer to either."""
        both = 1 << kept | 1 << gone
        need = (self.before[kept] | self.before[gone]) & ~both
        for step in map(self.graph.steps.__getitem__, self.steps[gone]):
            self.home.update(dict.fromkeys(step.outs, kept))
            for v in values_in(step.args):
                if self.last_reader.get(v) == gone:
                    self.last_reader[v] = kept
                who = self.readers.get(self.origin.get(v, v), set())
                if gone in who:
                    who.discard(gone)
                    who.add(kept)
        self.clusters[kept], self.steps[kept], self.before[kept] = whole, steps, need
        self.direct[kept] = (self.direct[kept] | self.direct[gone]) - {kept, gone}
        for book in (self.clusters, self.steps, self.before, self.direct):
            del book[gone]
        for k, mask in self.before.items():
            if mask & both:
                self.before[k] = mask & ~both | 1 << kept | need
                if gone in self.direct[k]:
                    self.direct[k] ^= {gone}
                    self.direct[k].add(kept)

    def ordered(self) -> list[Cluster | Call | Store]:
        """Clusters and single steps in an order that respects all dependencies: the traced order where possible, but
        checks of the data as early as possible: a check that fails before any write has no side effects
        (Part.failed)."""
        waiting = dict(self.before)
        done, result = 0, []
        todo = sorted(waiting, key=lambda k: (not is_test(self.graph.steps[self.steps[k][-1]]), self.steps[k][-1]))
        while todo:
            k = next(k for k in todo if not waiting[k] & ~done)
            todo.remove(k)
            done |= 1 << k
            result.append(self.clusters[k] or self.graph.steps[k])
        return result


def is_test(step: Call | Store) -> bool:
    """Whether a step has no result, but raises an error if its data are wrong."""
    return isinstance(step, Call) and not step.outs


def space_of(step: Call | Store) -> tuple[int, ...]:
    if isinstance(step, Store):
        return step.value.shape
    return step.args[0].shape if step.entry in REDUCTIONS else step.outs[0].shape


def grown(first: Cluster, second: Cluster | None, step: Call | Store, steps: list) -> Cluster | None:
    """The merged cluster; None if the two do not fit."""
    if second is None or len(second.steps) == 1:
        return first if steps[-1] is step and first.admit(step) else None
    if first.space != second.space:
        return None
    whole = Cluster(first.space)
    return whole if all(whole.admit(s) for s in steps) else None
