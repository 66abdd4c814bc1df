"""The parts of a trace: values, calls of ops on values, and writes to memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from rushlight.core.table import TABLE, Op
from rushlight.ops.shape.views import clone

Line = tuple[CodeType, int] | None  # a user's statement: code object and instruction


class Origin(NamedTuple):
    """The part of the user's program that a step belongs to, for names and comments. `name`: `linear`, `cross_entropy`,
    `adamw`, `linear_backward`. `line`: for a step of backward, the user's statement whose gradient it computes.
    """

    name: str
    line: Line = None


class Value:
    """An array made by a call, or from outside the program.

    `kind`: "call", "input" (read at each run) or "constant". `_array`: the elements in the traced run; for "call" only
    shape, dtype and layout matter. `source`: the source of an input. `traced`: the number of the equal value in the
    traced run; 0 if there is none.
    """

    __slots__ = ("_array", "kind", "name", "source", "traced")

    def __init__(self, array: np.ndarray, kind: str = "call", source: Any = None):
        self._array, self.kind, self.source = array, kind, source
        self.name, self.traced = "", 0

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    size = property(lambda self: self._array.size)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.dtype.name}{list(self.shape)}>"


class Call:
    """An op of the table, run on `args` (values and settings), with the results `outs`. A call without `outs` is a
    check.

    `late`: it belongs to the backward that the caller may run later; `shares`: pairs (number of a result, number of the
    value among the arguments whose memory the result shows). `origin`: see Origin; None if a pass has made the call.
    """

    __slots__ = ("_entry", "args", "late", "line", "op", "origin", "outs", "shares")

    def __init__(
        self,
        op: Any,
        args: tuple,
        outs: tuple[Value, ...],
        line: Line = None,
        late: bool = False,
        shares: tuple[tuple[int, int], ...] | None = None,
        origin: Origin | None = None,
    ):
        self.op, self.args, self.outs, self.line, self.late = op, args, outs, line, late
        self.origin, self._entry = origin, None
        self.shares = (
            shared(op, [v._array for v in values_in(args)], [v._array for v in outs]) if shares is None else shares
        )

    @property
    def entry(self) -> Op | None:
        """The op's entry in the table; None for a check."""
        found = self._entry
        if found is None or found.name != self.op:  # a pass has changed the op
            found = self._entry = TABLE.get(self.op)
        return found

    def runs(self, *functions: Any) -> bool:
        """Whether the step is a call of one of these ops: `step.runs(mm, mv)`."""
        return any([self.op == function.op.name for function in functions])

    def __repr__(self) -> str:
        return f"{', '.join(map(repr, self.outs))} = {self.op}{self.args}"


@dataclass
class Store:
    """At this point of the program `value` is written into the memory of the input `target`."""

    target: Value
    value: Value
    line: Line = None

    op, origin = "store", None
    entry = None
    outs = ()
    shares = ()
    late = False

    def runs(self, *functions: Any) -> bool:
        """Always False: a store does not call an op."""
        return False

    @property
    def args(self) -> tuple:
        return self.target, self.value


@dataclass
class Graph:
    """Steps in the order of execution, and the values that exist after the program.

    `results`: the returned values, flattened. `grads`: (leaf tensor, value or None) for each `.grad` that changed.
    `wrt`, if the caller may run backward: for each input in `edges` the gradient, or None. `given`: for each of these
    gradients, the results from which it comes, even if only zeros come from them (through `floor`). If none of these
    results has a gradient, the gradient is None.
    """

    steps: list[Call | Store] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    grads: list[tuple[Any, Value | None]] = field(default_factory=list)
    wrt: list[Value | None] = field(default_factory=list)
    edges: list[Any] = field(default_factory=list)
    given: list[set[int] | None] = field(default_factory=list)

    def outputs(self) -> Iterator[Value]:
        """Values that must exist when the program ends."""
        yield from self.results
        yield from (v for _, v in self.grads if v is not None)
        yield from (v for v in self.wrt if v is not None)

    def forget(self) -> None:
        """Free the traced arrays, which were kept for shapes and dtypes."""
        self.steps, self.inputs, self.results, self.grads, self.wrt = [], [], [], [], []

    def users(self) -> dict[Value, list[Call | Store]]:
        """The steps that read each value."""
        found: dict[Value, list[Call | Store]] = {}
        for step in self.steps:
            for v in set(values_in(step.args)):
                found.setdefault(v, []).append(step)
        return found


def values_in(args: Any) -> Iterator[Value]:
    """The values among arguments, also inside lists and tuples."""
    for a in args:
        if isinstance(a, Value):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from values_in(a)


def with_each(a: Any, of: Callable[[Value], Any]) -> Any:
    """The arguments with of(v) in place of each value v. (Not a nested recursive function: that would be a reference
    cycle, which keeps all reachable arrays until the garbage collector runs.)"""
    if isinstance(a, Value):
        return of(a)
    return type(a)([with_each(x, of) for x in a]) if type(a) in (tuple, list) else a


def replaced(args: Any, by: dict[Value, Value]) -> Any:
    """The arguments with some values in place of others."""
    return with_each(args, lambda v: by.get(v, v))


def substitute(graph: Graph, by: dict[Value, Value]) -> None:
    """Replace some values by others, everywhere in the graph."""
    if not by:
        return
    for old in by:  # chains: a -> b, b -> c
        while by[old] in by:
            by[old] = by[by[old]]
    for step in graph.steps:
        if isinstance(step, Store):
            step.value = by.get(step.value, step.value)
        else:
            step.args = replaced(step.args, by)
    graph.results = [by.get(v, v) for v in graph.results]
    graph.grads = [(t, None if v is None else by.get(v, v)) for t, v in graph.grads]
    graph.wrt = [None if v is None else by.get(v, v) for v in graph.wrt]


def used(graph: Graph) -> set[Value]:
    """The values that outputs depend on."""
    wanted = set(graph.outputs())
    for step in reversed(graph.steps):
        if not step.outs or is_random(step) or any(v in wanted for v in step.outs):
            wanted.update(values_in(step.args))
    return wanted


def is_random(step: Call | Store) -> bool:
    """Whether a step draws from the generator: it must run exactly once, in order."""
    return step.entry is not None and "random" in step.entry.options


def is_view(step: Call | Store) -> bool:
    """Whether a step is a view of its argument."""
    return step.entry is not None and step.entry.is_view


def is_reshape(step: Call | Store) -> bool:
    """Whether a step is a view of the same elements in the same order."""
    return step.entry is not None and "in_order" in step.entry.options


def drop_unused(graph: Graph) -> None:
    """Dead code elimination: remove calls whose results are not used."""
    wanted = used(graph)
    graph.steps = [s for s in graph.steps if not s.outs or is_random(s) or any(v in wanted for v in s.outs)]
    graph.inputs = [v for v in graph.inputs if v in wanted]


def parents_of(graph: Graph) -> dict[Value, Value]:
    """View -> the value it is a view of. Includes results of other calls that shared memory with an argument in the
    traced run.
    """
    parents: dict[Value, Value] = {}
    for s in graph.steps:
        if not isinstance(s, Call) or not s.outs:
            continue
        if is_view(s) and isinstance(s.args[0], Value):
            parents[s.outs[0]] = s.args[0]
        elif s.shares:
            given = list(values_in(s.args))
            parents.update((s.outs[i], given[k]) for i, k in s.shares)
    return parents


def shared(op: str, given: list[np.ndarray], made: list[np.ndarray]) -> tuple[tuple[int, int], ...]:
    """(result, argument) pairs that share memory in the traced run, for a call that is not a view."""
    if not made or op not in TABLE or TABLE[op].elementwise:
        return ()
    return tuple(
        (i, k) for k, x in enumerate(given) for i, a in enumerate(made) if x.size and np.may_share_memory(x, a)
    )


def lineage(v: Value, parents: dict[Value, Value]) -> Iterator[Value]:
    """The value, its base, the base of this base, and so on. They may be in different memory, because a loop can copy a
    view."""
    yield v
    while v in parents:
        v = parents[v]
        yield v


def memory_of(graph: Graph) -> dict[Value, Value]:
    """For each view the value whose memory it shows."""
    parents = parents_of(graph)
    origin: dict[Value, Value] = {}
    for v, x in parents.items():  # in program order, so x is already in the table
        origin[v] = origin.get(x, x)
    return origin


def homes(graph: Graph) -> list[Value]:
    """The value whose memory each result shows, then each gradient."""
    origin = memory_of(graph)
    return [origin.get(v, v) for v in (*graph.results, *(v for _, v in graph.grads if v is not None))]


def keep_apart(graph: Graph, before: list[Value]) -> None:
    """Copy results and gradients that share memory with an input or with each other, if they did not before passes
    removed copies: the caller may write to them.
    """
    now, shown, waiting = homes(graph), {}, iter(before)  # type: ignore[var-annotated]
    places = iter(now)

    def own(v: Value) -> Value:
        home, old = next(places), next(waiting)
        if home.kind == "constant" or (
            home is old or home.source == old.source if home.kind == "input" else shown.setdefault(home, old) is old
        ):
            return v
        made = Value(np.empty(v.shape, v.dtype))
        graph.steps.append(Call(clone.op.name, (v,), (made,)))
        return made

    graph.results = [own(v) for v in graph.results]
    graph.grads = [(t, None if v is None else own(v)) for t, v in graph.grads]
