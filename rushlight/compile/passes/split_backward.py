"""Split one graph of forward and backward into two; choose the values that the forward saves, and the values that the
backward recomputes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from rushlight.compile.graph import (
    Call,
    Graph,
    Store,
    Value,
    drop_unused,
    is_reshape,
    lineage,
    memory_of,
    parents_of,
    replaced,
    values_in,
)
from rushlight.compile.passes.fuse import is_element, same_elements
from rushlight.ops.math.elementwise import add
from rushlight.ops.shape.views import clone


def split(graph: Graph, watched: set | None = None) -> tuple[Graph, Graph, list[Value]]:
    """(forward, backward, values of the forward that the backward reads).

    The backward recomputes elementwise values from values in memory: reading memory costs more than arithmetic. It does
    not recompute from memory that the caller may write to in between (`exposed`), unless eager's backward reads this
    memory, too (`watched`).
    """
    early = [s for s in graph.steps if not s.late]
    late = [s for s in graph.steps if s.late]
    maker = {v: s for s in early for v in s.outs}
    exposed = set() if watched is None else written_between(graph, watched)
    kept, origin = in_memory(early, graph) - exposed, memory_of(graph)
    sound = still_known(graph, exposed, kept)
    again: dict[int, Call] = {}
    saved: dict[Value, Value] = {}  # value that backward reads -> the value passed to it: the same value or a copy
    todo = [v for s in late for v in values_in(s.args)] + [*filter(None, graph.wrt)]
    for v in todo:  # the list grows in the loop
        step = maker.get(v)
        if v in saved or v not in exposed and step is None or id(step) in again:
            continue
        if step is not None and v not in kept and repeatable(step) and v in sound:
            again[id(step)] = step  # type: ignore[assignment]  # a store makes no values
            todo += values_in(step.args)
        else:
            saved[v] = v if origin.get(v, v) not in exposed else copied(v, step, early)
    forward = Graph(early, graph.inputs, [*graph.results, *saved.values()], graph.grads)
    drop_unused(forward)
    repeated = [s for s in graph.steps if not s.late and id(s) in again]
    return forward, second(graph, repeated + late, list(saved)), list(saved)


def still_known(graph: Graph, exposed: set[Value], kept: set[Value]) -> set[Value]:
    """The values of the forward that the backward can have: in memory that no other code may have written to, or
    recomputed from such values.
    """
    origin = memory_of(graph)
    sound = {v for v in graph.inputs if v not in exposed}
    for s in graph.steps:
        if s.late:
            continue
        again = repeatable(s) and all(v in sound or v.kind == "constant" for v in values_in(s.args))
        for v in s.outs:
            untouched = origin.get(v, v) not in exposed
            if again or untouched and (v in kept or not repeatable(s)):
                sound.add(v)
    return sound


def handled(graph: Graph) -> Iterator[tuple[Value, tuple]]:
    """(value that owns the memory, key) for all memory that the caller may write to after the forward. The keys survive
    all passes."""
    origin = memory_of(graph)
    for v in graph.inputs:
        if v.source[0] in ("argument", "state", "grad"):
            yield v, (v.source[0], v.source[1] if isinstance(v.source[1], int) else id(v.source[1]))
    for i, v in enumerate(graph.results):
        yield origin.get(v, v), ("result", i)


def written_between(graph: Graph, watched: set[tuple]) -> set[Value]:
    """The memory that the caller may write to before the backward runs, except the memory whose versions eager's
    backward checks.
    """
    return {v for v, key in handled(graph) if key not in watched}


def read_late(graph: Graph) -> set[tuple]:
    """The keys of `handled` memory that the backward reads in the recording: eager would notice a write to it, too."""
    origin = memory_of(graph)
    read = {origin.get(v, v) for s in graph.steps if s.late for v in values_in(s.args)}
    return {key for v, key in handled(graph) if v in read}


def copied(v: Value, step: Call | Store | None, early: list[Call | Store]) -> Value:
    """A copy of a value, made at once."""
    made = Value(np.empty(v.shape, v.dtype))
    early.insert(0 if step is None else early.index(step) + 1, Call(clone.op.name, (v,), (made,)))
    return made


def in_memory(early: list[Call | Store], graph: Graph) -> set[Value]:
    """Values that the forward stores anyway: results, and operands of steps that are not fused into loops."""
    origin = memory_of(graph)
    kept = set(graph.results)
    for step in early:
        if isinstance(step, Call) and not repeatable(step):
            kept.update(origin.get(v, v) for v in values_in(step.args))
            kept.update(step.outs)
    return kept


def repeatable(step: Call | Store) -> bool:
    """Whether a step is a view or elementwise arithmetic."""
    if isinstance(step, Store) or len(step.outs) != 1:
        return False
    return same_elements(step) or step.outs[0] in memory_of(Graph([step])) or is_element(step)


def second(graph: Graph, steps: list, saved: list[Value]) -> Graph:
    """The backward as a separate graph, whose inputs are the values that the forward saves."""
    inputs = {v: Value(v._array, "input", v.source) for v in graph.inputs}
    by = inputs | from_forward(graph, saved)
    by |= own_constants(v for s in steps for v in values_in(s.args))
    copies: dict[Value, Value] = {}
    for step in steps:
        outs = tuple(copies.setdefault(v, copy(v)) for v in step.outs)
        by.update(zip(step.outs, outs))
    new: list[Call | Store] = [with_values(s, by) for s in steps]
    wrt = [None if v is None else by.get(v, v) for v in graph.wrt]
    reads = {v for s in new for v in values_in(s.args)} | {v for v in wrt if v is not None}
    return Graph(new, [v for v in by.values() if v.kind == "input" and v in reads], [v for v in wrt if v is not None])


def from_forward(graph: Graph, saved: list[Value]) -> dict[Value, Value]:
    """For each value that the forward passes on: the input of the backward that replaces it."""
    parents = parents_of(graph)
    made = {v for s in graph.steps if isinstance(s, Call) and not is_reshape(s) for v in s.outs}
    gaps = made & parents.keys()
    return {
        v: Value(solid(v, any(w in gaps for w in lineage(v, parents))), "input", ("saved", i))
        for i, v in enumerate(saved)
    }


def own_constants(values: Iterable[Value]) -> dict[Value, Value]:
    """Copies of the constants among the values: each program needs its own names."""
    return {v: Value(v._array, "constant", v.source) for v in values if v.kind == "constant"}


def with_values(step: Call | Store, by: dict[Value, Value]) -> Call:
    """The same call on other values: `by` maps all results, and the arguments that change."""
    outs = tuple([by[v] for v in step.outs])
    return Call(step.op, replaced(step.args, by), outs, step.line, shares=step.shares, origin=step.origin)


def without(graph: Graph, absent: set[int], seeds: list[set[int]]) -> tuple[Graph, list[bool]]:
    """(the backward without the gradients of `absent` outputs, for each input whether it still gets a gradient). It
    does if its `seeds` name another result: the recorded run reached it from there, even if only by zeros (through
    `floor`), which passes remove.

    An absent gradient differs from zeros: 0 times the infinite slope of sqrt at 0 is nan. Backward is linear in its
    seeds, so a step that depends on absent seeds only is left out.
    """
    by = {v: Value(v._array, v.kind, v.source) for v in graph.inputs}
    came_in = {v: v.source[1] for v in graph.inputs if v.source[0] == "seed"}
    nothing = {v for v, result in came_in.items() if result in absent}
    some = came_in.keys() - nothing
    steps: list[Call | Store] = []
    for s in graph.steps:
        given = set(values_in(s.args))
        if given & nothing and not given & some:
            nothing.update(s.outs)
            continue
        some.update(s.outs if given & some else ())
        zeros = {v: Value(np.broadcast_to(np.zeros((), v.dtype), v.shape), "constant") for v in given & nothing}
        by |= own_constants(given)
        by.update((v, copy(v)) for v in s.outs)
        left = [v for v in values_in(s.args) if v not in zeros]
        alike = [(v.shape, v.dtype) for v in left] == [(v.shape, v.dtype) for v in s.outs]
        if zeros and s.runs(add) and alike:
            by[s.outs[0]] = by[left[0]]
        else:
            steps.append(with_values(s, by | zeros))
    there = [not found <= absent for found in seeds]
    by |= own_constants(graph.results)
    by.update((v, Value(np.zeros(v.shape, v.dtype), "constant")) for v in graph.results if v in nothing)
    made = Graph(steps, [by[v] for v in graph.inputs], [by[v] for v, kept in zip(graph.results, there) if kept])
    drop_unused(made)
    return made, there


def outline(graph: Graph) -> Graph:
    """The same steps on values without the traced arrays."""
    by = {v: Value(np.empty_like(v._array), "input", v.source) for v in graph.inputs}
    by |= {v: copy(v) for s in graph.steps for v in s.outs}
    steps: list[Call | Store] = [with_values(s, by) for s in graph.steps]
    return Graph(steps, [by[v] for v in graph.inputs], [by.get(v, v) for v in graph.results])


def copy(v: Value) -> Value:
    made = Value(v._array)
    made.traced = v.traced
    return made


def solid(v: Value, gaps: bool) -> np.ndarray:
    """An array with the layout that the value will have. `gaps`: it may be a slice of other memory."""
    if gaps and v.shape and v._array.flags.c_contiguous:
        return np.empty((*v.shape[:-1], 2 * v.shape[-1]), v.dtype)[..., ::2]
    return v._array if any(v._array.strides) and not v._array.flags.c_contiguous else np.empty(v.shape, v.dtype)
