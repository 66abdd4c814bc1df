"""Constant folding, common subexpression elimination, and removal of calls without effect."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from rushlight.compile.graph import (
    Call,
    Graph,
    Store,
    Value,
    homes,
    is_random,
    is_reshape,
    lineage,
    memory_of,
    parents_of,
    replaced,
    substitute,
    values_in,
    with_each,
)
from rushlight.core.table import TABLE
from rushlight.ops.math.elementwise import div, mul
from rushlight.ops.shape.views import clone, contiguous, expand, permute


def simplify(graph: Graph) -> None:
    """One pass in program order: the arguments of each call are already simplified."""
    known: dict[Any, Any] = {}
    by: dict[Value, Value] = {}
    written = {s.target: i for i, s in enumerate(graph.steps) if isinstance(s, Store)}
    # outputs and their bases: no other value may share this memory
    final = {*graph.outputs(), *homes(graph)}
    views, last = memory_of(graph), last_reads(graph)
    steps: list[Call | Store] = []

    def steady(v: Value, out: Value) -> bool:
        """Whether no step writes to the value's memory before the last read of `out`."""
        home = views.get(v, v)
        while home in by:
            home = views.get(by[home], by[home])
        return home not in written or last.get(out, 0) < written[home]

    for step in graph.steps:
        if isinstance(step, Store):
            step.value = by.get(step.value, step.value)
            steps.append(step)
            continue
        step.args = replaced(step.args, by)
        if not step.outs and signature(step) in known:
            continue
        if not step.outs:
            known[signature(step)] = None
        if len(step.outs) == 1 and not is_random(step):
            out = step.outs[0]
            same = folded(step) or unchanged(step, final, views)
            if same is None or not steady(same, out):
                same = known.setdefault(signature(step), out)
            # each output needs memory of its own
            if same is not out and (out not in final or step.runs(clone)):
                by[out] = same
                continue
        steps.append(step)
    graph.steps = steps
    substitute(graph, by)


def last_reads(graph: Graph) -> dict[Value, int]:
    """The index of the last step that reads each value or a view of it; beyond all steps for outputs."""
    parents, last = parents_of(graph), {}
    for i, step in enumerate(graph.steps):
        for v in values_in(step.args):
            last.update(dict.fromkeys(lineage(v, parents), i))
    for v in graph.outputs():
        last.update(dict.fromkeys(lineage(v, parents), len(graph.steps)))
    return last


def signature(call: Call) -> Any:
    """A key that is equal for equal calls."""
    return call.op, key(call.args)


def key(arg: Any) -> Any:
    if isinstance(arg, Value) and arg.kind == "constant" and (number := uniform(arg)) is not None:
        return "constant", arg.dtype.str, arg.shape, repr(number)
    if isinstance(arg, (list, tuple)):
        return type(arg).__name__, *(key(a) for a in arg)
    if isinstance(arg, slice):
        return "slice", arg.start, arg.stop, arg.step
    if isinstance(arg, (float, int, complex)):
        return type(arg).__name__, repr(arg)
    return arg if arg.__hash__ else id(arg)


def uniform(v: Value) -> Any:
    """The number that all elements of a constant equal; None if elements differ or `v` is not a constant."""
    if v.kind != "constant" or v.size == 0 or v.dtype.kind not in "fbi":
        return None
    first = v._array.flat[0]
    if not any(v._array.strides):
        return first
    same = (v._array == first).all() and (v.dtype.kind != "f" or (np.signbit(v._array) == np.signbit(first)).all())
    return first if same else None  # -0.0 is not 0.0


def folded(call: Call) -> Value | None:
    """The result of a call on constants is a constant; equal elements are stored once."""
    inputs = list(values_in(call.args))
    if not inputs or any(v.kind != "constant" for v in inputs):
        return None
    array = computed(call)
    v = Value(array, "constant")
    number = uniform(v)
    v._array = array.copy() if number is None else np.broadcast_to(np.asarray(number, array.dtype), array.shape)
    return v


def computed(call: Call) -> np.ndarray:
    """The result of a call on constants."""
    with np.errstate(all="ignore"):
        made = TABLE[call.op].kernel(*with_each(tuple(call.args), lambda v: v._array))
    # the only output of an op with a list of outputs
    return np.asarray(made[0] if isinstance(made, (tuple, list)) else made)


def unchanged(call: Call, final: set[Value], views: Container[Value]) -> Value | None:
    """The argument that a call returns unchanged, or None."""
    x = call.args[0] if call.args else None
    out = call.outs[0]
    if not isinstance(x, Value) or x.dtype != out.dtype:
        return None
    keeps_order = is_reshape(call) or call.runs(expand, contiguous) or call.runs(permute) and trivial(call.args[1])
    if keeps_order and x.shape == out.shape:
        return x
    if call.runs(clone):
        return original(x, out, final, views)
    if call.runs(mul, div) and x.shape == out.shape and is_one(call.args[1]):
        return x
    y = call.args[1] if call.runs(mul) and is_one(x) else None
    return y if isinstance(y, Value) and (y.shape, y.dtype) == (out.shape, out.dtype) else None


def original(x: Value, out: Value, final: set[Value], views: Container[Value]) -> Value | None:
    """The value that can replace a copy: the original, unless the caller could notice the difference; else None."""
    if out not in final:
        return x if x.kind != "constant" else None
    if x.kind != "call" or x in final or x in views:
        return None
    final.add(x)  # x takes the copy's place
    return x


def trivial(dims: tuple) -> bool:
    return tuple(dims) == tuple(range(len(dims)))


def is_one(v: Any) -> bool:
    return isinstance(v, Value) and uniform(v) == 1 or (not isinstance(v, Value) and v == 1)
