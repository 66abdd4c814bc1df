"""One graph of forward and backward as two: what the first hands to the second, and what the second computes again."""
from __future__ import annotations

import numpy as np

from rushlight.compile.graph import Call, Graph, Store, Value, drop_unused, memory_of, replaced, values_in
from rushlight.compile.passes.fuse import RESHAPES, is_element


def split(graph: Graph) -> tuple[Graph, Graph, list[Value]]:
    """(forward, backward, values of the forward that the backward reads).

    Elementwise values are computed again from what is in memory anyway: reading costs more than arithmetic.
    """
    early = [s for s in graph.steps if not s.late]
    late = [s for s in graph.steps if s.late]
    maker = {v: s for s in early for v in s.outs}
    kept = in_memory(early, graph)
    again: dict[int, Call] = {}
    saved: dict[Value, None] = {}
    todo = [v for s in late for v in values_in(s.args)] + [v for v in graph.wrt if v is not None]
    for v in todo:                                # grows while it is read
        step = maker.get(v)
        if step is None or id(step) in again:
            continue
        if v in kept or not repeatable(step):
            saved[v] = None
        else:
            again[id(step)] = step
            todo += values_in(step.args)
    forward = Graph(early, graph.inputs, [*graph.results, *saved], graph.grads)
    drop_unused(forward)
    return forward, second(graph, [s for s in early if id(s) in again] + late, list(saved)), list(saved)


def in_memory(early: list[Call | Store], graph: Graph) -> set[Value]:
    """Values that the forward has to write down for itself: results, and what is read by other than loops."""
    origin = memory_of(graph)
    kept = set(graph.results)
    for step in early:
        if isinstance(step, Call) and not repeatable(step):
            kept.update(origin.get(v, v) for v in values_in(step.args))
            kept.update(step.outs)
    return kept


def repeatable(step: Call | Store) -> bool:
    """Whether a step is a look at memory or arithmetic on elements."""
    if isinstance(step, Store) or len(step.outs) != 1:
        return False
    return step.op in RESHAPES or step.outs[0] in memory_of(Graph([step])) or is_element(step)


def second(graph: Graph, steps: list, saved: list[Value]) -> Graph:
    """The backward as a graph of its own, in which what the forward hands over comes from outside."""
    by = {v: Value(solid(v), "input", ("saved", i)) for i, v in enumerate(saved)}
    inputs = {v: Value(v.array, "input", v.source) for v in graph.inputs}
    constants = [v for s in steps for v in values_in(s.args) if v.kind == "constant"]
    by |= inputs | {v: Value(v.array, "constant", v.source) for v in constants}    # each program names its own
    copies = {}
    for step in steps:
        outs = tuple(copies.setdefault(v, copy(v)) for v in step.outs)
        by.update(zip(step.outs, outs))
    new = [Call(s.op, replaced(s.args, by), tuple(by[v] for v in s.outs), s.line, shares=s.shares) for s in steps]
    wrt = [None if v is None else by.get(v, v) for v in graph.wrt]
    reads = {v for s in new for v in values_in(s.args)} | {v for v in wrt if v is not None}
    return Graph(new, [v for v in by.values() if v.kind == "input" and v in reads],
                 [v for v in wrt if v is not None])


def copy(v: Value) -> Value:
    made = Value(v.array)
    made.traced = v.traced
    return made


def solid(v: Value) -> np.ndarray:
    """An array laid out as the value will be."""
    return v.array if any(v.array.strides) and not v.array.flags.c_contiguous else np.empty(v.shape, v.dtype)
