"""Split one graph of forward and backward into two; choose the values that the forward saves and
those that the backward recomputes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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

    The backward recomputes elementwise values from values in memory: reading memory costs more than
    arithmetic. It does not recompute from memory that the caller may write to in between
    (`exposed`), unless eager's backward reads this memory, too (`watched`).
    """
    early = [s for s in graph.steps if not s.late]
    late = [s for s in graph.steps if s.late]
    maker = {v: s for s in early for v in s.outs}
    exposed = set() if watched is None else {v for v, key in handled(graph) if key not in watched}
    kept, origin = in_memory(early, graph) - exposed, memory_of(graph)
    # values that are available when the backward runs
    sound = {v for v in graph.inputs if v not in exposed}
    for s in early:
        fine = repeatable(s) and all(
            [v in sound or v.kind == "constant" for v in values_in(s.args)]
        )
        sound.update(
            [
                v
                for v in s.outs
                if fine or origin.get(v, v) not in exposed and (v in kept or not repeatable(s))
            ]
        )
    again: dict[int, Call] = {}
    # value that the backward reads -> value that the forward saves: the same or a copy
    saved: dict[Value, Value] = {}
    todo = [v for s in late for v in values_in(s.args)] + [v for v in graph.wrt if v is not None]
    for v in todo:  # grows while it is read
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
    return (
        forward,
        second(
            graph, [s for s in graph.steps if not s.late and id(s) in again] + late, list(saved)
        ),
        list(saved),
    )


def handled(graph: Graph) -> Iterator[tuple[Value, tuple]]:
    """(value, key) for memory that the caller may write to after the forward. The keys survive all
    passes.
    """
    origin = memory_of(graph)
    for v in graph.inputs:
        if v.source[0] in ("argument", "state", "grad"):
            yield v, (v.source[0], v.source[1] if isinstance(v.source[1], int) else id(v.source[1]))
    for i, v in enumerate(graph.results):
        yield origin.get(v, v), ("result", i)


def read_late(graph: Graph) -> set[tuple]:
    """The keys of `handled` memory that the backward reads in the recording: eager would notice a
    write to it, too.
    """
    origin = memory_of(graph)
    read = {origin.get(v, v) for s in graph.steps if s.late for v in values_in(s.args)}
    return {key for v, key in handled(graph) if v in read}


def copied(v: Value, step: Call | Store | None, early: list[Call | Store]) -> Value:
    """A copy of a value, made at once."""
    made = Value(np.empty(v.shape, v.dtype))
    early.insert(0 if step is None else early.index(step) + 1, Call(clone.op.name, (v,), (made,)))
    return made


def in_memory(early: list[Call | Store], graph: Graph) -> set[Value]:
    """Values that the forward stores anyway: results, and operands of steps that are not fused into
    loops.
    """
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
    return same_elements(step) or step.outs[0] in memory_of(Graph([step])) or is_element(step)


def second(graph: Graph, steps: list, saved: list[Value]) -> Graph:
    """The backward as a graph of its own, with the saved values as inputs."""
    parents = parents_of(graph)
    gaps = {
        v for s in graph.steps if isinstance(s, Call) and not is_reshape(s) for v in s.outs
    } & parents.keys()
    by = {
        v: Value(solid(v, any(w in gaps for w in lineage(v, parents))), "input", ("saved", i))
        for i, v in enumerate(saved)
    }
    inputs = {v: Value(v._array, "input", v.source) for v in graph.inputs}
    constants = [v for s in steps for v in values_in(s.args) if v.kind == "constant"]
    by = (
        inputs | by | {v: Value(v._array, "constant", v.source) for v in constants}
    )  # each program names its own
    copies = {}
    for step in steps:
        outs = tuple(copies.setdefault(v, copy(v)) for v in step.outs)
        by.update(zip(step.outs, outs))
    new = [
        Call(s.op, replaced(s.args, by), tuple(by[v] for v in s.outs), s.line, shares=s.shares)
        for s in steps
    ]
    wrt = [None if v is None else by.get(v, v) for v in graph.wrt]
    reads = {v for s in new for v in values_in(s.args)} | {v for v in wrt if v is not None}
    return Graph(
        new,
        [v for v in by.values() if v.kind == "input" and v in reads],
        [v for v in wrt if v is not None],
    )


def without(graph: Graph, absent: set[int], seeds: list[set[int]]) -> tuple[Graph, list[bool]]:
    """The backward for calls in which the results in `absent` got no gradient, and which of its
    gradients remain: those to which other results in `seeds` led in the recorded run, if only by
    zeros (through `floor`), which passes remove.

    An absent gradient differs from zeros: 0 times the infinite slope of sqrt at 0 is nan. Backward
    is linear in its seeds, so a step that depends on absent seeds only is left out.
    """
    by = {v: Value(v._array, v.kind, v.source) for v in graph.inputs}
    nothing = {v for v in graph.inputs if v.source[0] == "seed" and v.source[1] in absent}
    some = {v for v in graph.inputs if v.source[0] == "seed"} - nothing
    steps = []
    for s in graph.steps:
        given = set(values_in(s.args))
        if given & nothing and not given & some:
            nothing.update(s.outs)
            continue
        some.update(s.outs if given & some else ())
        zeros = {
            v: Value(np.broadcast_to(np.zeros((), v.dtype), v.shape), "constant")
            for v in given & nothing
        }
        by.update((v, Value(v._array, "constant", v.source)) for v in given if v.kind == "constant")
        by.update((v, copy(v)) for v in s.outs)
        left = [v for v in values_in(s.args) if v not in zeros]
        if (
            zeros
            and s.runs(add)
            and [(v.shape, v.dtype) for v in left] == [(v.shape, v.dtype) for v in s.outs]
        ):
            by[s.outs[0]] = by[left[0]]
        else:
            steps.append(
                Call(
                    s.op,
                    replaced(s.args, by | zeros),
                    tuple([by[v] for v in s.outs]),
                    s.line,
                    shares=s.shares,
                )
            )
    there = [not found <= absent for found in seeds]
    by.update(
        (v, Value(v._array, "constant", v.source)) for v in graph.results if v.kind == "constant"
    )
    by.update(
        (v, Value(np.zeros(v.shape, v.dtype), "constant")) for v in graph.results if v in nothing
    )
    made = Graph(
        steps,
        [by[v] for v in graph.inputs],
        [by[v] for v, kept in zip(graph.results, there) if kept],
    )
    drop_unused(made)
    return made, there


def outline(graph: Graph) -> Graph:
    """The same steps on values without the traced arrays."""
    by = {v: Value(np.empty_like(v._array), "input", v.source) for v in graph.inputs}
    by |= {v: copy(v) for s in graph.steps for v in s.outs}
    steps: list[Any] = [
        Call(s.op, replaced(s.args, by), tuple([by[v] for v in s.outs]), s.line, shares=s.shares)
        for s in graph.steps
    ]
    return Graph(steps, [by[v] for v in graph.inputs], [by.get(v, v) for v in graph.results])


def copy(v: Value) -> Value:
    made = Value(v._array)
    made.traced = v.traced
    return made


def solid(v: Value, gaps: bool) -> np.ndarray:
    """An array laid out as the value will be. `gaps`: it may be a part of other memory."""
    if gaps and v.shape and v._array.flags.c_contiguous:
        return np.empty((*v.shape[:-1], 2 * v.shape[-1]), v.dtype)[..., ::2]
    return (
        v._array
        if any(v._array.strides) and not v._array.flags.c_contiguous
        else np.empty(v.shape, v.dtype)
    )
