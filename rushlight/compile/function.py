"""A function that is traced, compiled and guarded: what `rushlight.compile` returns."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any
from weakref import WeakSet

import numpy as np

from rushlight.autograd.engine import reachable, steps
from rushlight.autograd.grad_mode import current, mode
from rushlight.autograd.node import Node
from rushlight.compile.graph import Graph, Store, Value, values_in
from rushlight.compile.guards import PLAIN, Snapshot
from rushlight.compile.passes.simplify import key
from rushlight.compile.program import MOVED, OVERLAPPING, Program, find, planned
from rushlight.compile.trace import Tracer, traced
from rushlight.errors import place
from rushlight.tensor import Tensor, from_array

MOST_PROGRAMS = 8                                 # of one function, as torch's limit of recompilations
MOST_TRIES = 24                                   # traced runs without a program among them


EVERYONE: WeakSet = WeakSet()                     # all compiled functions, for `compiler.reset()`


class CannotCompile(RuntimeError):
    """Raised with `fullgraph=True` where otherwise the function would run as it is."""


class Compiled:
    """Runs `function`: at first as it is, watched; then, for arguments of the same kind, as a program.

    Two watched runs in a row must do the same before their program counts. Whatever a program would do wrong
    (numbers read by Python, random numbers, Python state that goes on changing) leaves the function as it is.
    """

    def __init__(self, function: Callable, fullgraph: bool = False, fuse: bool = True):
        self.function, self.fullgraph, self.fuse = function, fullgraph, fuse
        self.programs: dict[Any, list[Program]] = {}
        self.last: dict[Any, Outline] = {}
        self.tries = 0
        self.given_up = ""
        self.lock = Lock()
        if hasattr(function, "__code__"):
            update_wrapper(self, function)
        EVERYONE.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.given_up or mode().watch is not None or not self.lock.acquire(blocking=False):
            return self.function(*args, **kwargs)
        try:
            flat: list[Any] = []
            kind = (signature(args, flat), signature(kwargs, flat), mode().grad, mode().inference)
            for program in self.programs.get(kind, ()):
                if program.holds():
                    result = program.run(flat)
                    if result is OVERLAPPING:
                        return self.function(*args, **kwargs)
                    if result is not MOVED:
                        return result
            return self.watched(kind, flat, args, kwargs)
        finally:
            self.lock.release()

    def forget(self) -> None:
        """Drop the programs; the next calls are watched again."""
        with self.lock:
            self.programs.clear()
            self.last.clear()
            self.tries, self.given_up = 0, ""

    def watched(self, kind: Any, flat: list[Any], args: tuple, kwargs: dict) -> Any:
        """Run the function as it is, and make a program if this run did what the last one did."""
        before = Snapshot(self.function)
        tracer = Tracer(known_arrays(flat, before))
        rng = random_state()
        grads = [(source, find(source, flat), find(source, flat)._grad) for source in everyone(flat, before)]
        result = traced(self.function, args, kwargs, tracer)
        if not before.complete:
            tracer.problem = tracer.problem or "reaches more Python objects than can be watched"
        if random_state() != rng:
            tracer.problem = tracer.problem or "draws random numbers"
        outline = None
        if tracer.problem is None:
            try:
                outline = Outline(tracer, result, flat, grads, before, Snapshot(self.function))
            except TypeError as error:
                tracer.problem = str(error)
        self.consider(kind, outline, tracer.problem, flat)
        return result

    def consider(self, kind: Any, outline: Outline | None, problem: str | None, flat: list[Any]) -> None:
        """Keep the program, or wait for the next run, or give up."""
        self.tries += 1
        last = self.last.pop(kind, None)
        if problem is None and outline is not None:
            problem = outline.unsteady(last) if last is not None else None
            if last is not None and problem is None:
                return self.keep(kind, outline)
            self.last[kind] = outline
        if problem is not None and (outline is None or self.fullgraph):
            return self.give_up(problem)
        if self.tries >= MOST_TRIES or len(self.programs) > MOST_PROGRAMS:
            self.give_up(problem or "every call is of another kind: other shapes, dtypes or Python values")

    def keep(self, kind: Any, outline: Outline) -> None:
        programs = self.programs.setdefault(kind, [])
        if len(programs) >= MOST_PROGRAMS:
            return self.give_up("Python values change from call to call: " + str(outline.changed(programs[-1])))
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        program = Program(outline.graph, outline.plan, outline.live, outline.before.check(),
                          f"Made by rushlight.compile from {name}.", self.fuse)
        program.before = outline.before
        programs.append(program)
        self.tries = 0

    def give_up(self, why: str) -> None:
        """Run as it is from now on; say so once."""
        self.given_up = why
        self.last.clear()
        self.programs.clear()
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        text = f"rushlight.compile: {name} runs as it is, not compiled: it {why}"
        if self.fullgraph:
            raise CannotCompile(text)
        warnings.warn(text, stacklevel=4)


class Outline:
    """What a watched run did, in a form that can be compared with the next one."""

    def __init__(self, tracer: Tracer, result: Any, flat: list[Any], grads: list, before: Snapshot, after: Snapshot):
        self.before, self.after = before, after
        values: list[Value] = []
        live: list[Tensor] = []
        self.live: list[int] = []

        def numbered(t: Tensor) -> tuple[int, bool]:
            v = tracer.value(t)
            values.append(tracer.call("clone", (v,), v.array) if v.kind == "constant" else v)
            spent = t.node is not None and any(n.saved is None for n in reachable([t.node]))
            if t.node is not None and not spent:
                live.append(t)
                self.live.append(len(values) - 1)
            return len(values) - 1, spent
        self.plan = planned(result, flat, numbered)
        changed = [(source, None if t._grad is None else tracer.value(t._grad))
                   for source, t, old in grads if t._grad is not old]
        if live:
            edges, wrt = backward_of(live, tracer, flat)
        overlaps(tracer)
        if tracer.problem is not None:
            raise TypeError(tracer.problem)
        self.graph: Graph = tracer.graph(values, changed)
        if live:
            self.graph.edges, self.graph.wrt = edges, wrt
        self.form = form(self.graph, self.plan)

    def unsteady(self, last: Outline) -> str | None:
        """Why this run and the last one are not the same program; None if they are."""
        moved = self.before.difference(self.after)
        if moved:
            return f"changes Python state: {moved}"
        if self.form != last.form:
            return f"does something else in each run: {self.first_difference(last)}"
        return None

    def changed(self, program: Any) -> str:
        return program.before.difference(self.before)

    def first_difference(self, last: Outline) -> str:
        """The first step that differs, by the user's line."""
        for old, new, step in zip(last.form, self.form, self.graph.steps):
            if old != new:
                return f"{step.op} at {place(*step.line)}" if step.line else step.op
        return f"{len(last.graph.steps)} and {len(self.graph.steps)} steps"


def form(graph: Graph, plan: Any) -> list[Any]:
    """The graph as plain data: values as numbers in order of appearance, constants by their elements."""
    numbers: dict[Value, Any] = {}

    def number(v: Value) -> Any:
        if v not in numbers:
            what: Any = len(numbers)
            if v.kind == "constant":
                what = "constant", v.dtype.str, v.shape, v.array.tobytes() if v.size < 1 << 20 else hash(v.array.tobytes())
            elif v.kind == "input":
                what = source_key(v.source)
            numbers[v] = what
        return numbers[v]

    def plain(a: Any) -> Any:
        if isinstance(a, Value):
            return number(a)
        return (type(a).__name__, *map(plain, a)) if type(a) in (tuple, list) else key(a)
    rows: list[Any] = [(s.op, plain(s.args), tuple((number(v), v.shape, v.dtype.str) for v in s.outs))
                       for s in graph.steps]
    rows.append(("returns", plan_key(plan), tuple(map(number, graph.results))))
    rows += [("grad", source_key(t), None if v is None else number(v)) for t, v in graph.grads]
    rows += [("wrt", source_key(t), None if v is None else number(v)) for t, v in zip(graph.edges, graph.wrt)]
    return rows


def source_key(source: tuple) -> tuple:
    """Where an input comes from, comparable."""
    return source if isinstance(source[1], int) else (source[0], id(source[1]))


def plan_key(plan: Any) -> Any:
    return repr(plan)


def overlaps(tracer: Tracer) -> None:
    """TypeError if memory that is written is part of another array that the run uses."""
    targets = list(dict.fromkeys(s.target for s in tracer.steps if isinstance(s, Store)))
    others = {id(v.array): v.array for s in tracer.steps for v in values_in(s.args) if v.kind == "input"}
    for t in targets:
        for a in others.values():
            if a is not t.array and np.may_share_memory(a, t.array):
                raise TypeError("writes into memory that two tensors share")


def everyone(flat: list[Tensor], snapshot: Snapshot) -> list[tuple[str, Any]]:
    """Where to find each tensor that exists before the run; what the function reaches counts as its own."""
    found: dict[int, tuple[str, Any]] = {id(t): ("state", t) for t in snapshot.tensors.values()}
    for i, t in enumerate(flat):
        found.setdefault(id(t), ("argument", i))
    return list(found.values())


def backward_of(live: list[Tensor], tracer: Tracer, flat: list[Any]) -> tuple[list, list[Value | None]]:
    """Trace the backward that the caller may run: (where the inputs come from, their gradients)."""
    sources = [v.source for v in tracer.inputs if find(v.source, flat).node is not None]
    nodes = {find(s, flat).node: s for s in sources}
    below = reachable([t.node for t in live])  # type: ignore[misc]
    if any(n.hooks is not None for n in below):
        raise TypeError("has hooks on tensors that require grad")
    if any(not n.leaf and any(e is not None for e in n.edges) for n in nodes):
        raise TypeError("is given tensors that were computed from others that require grad")
    seeds = {}
    for i, t in enumerate(live):
        g = from_array(np.ones_like(t.array))
        tracer.seed(g.array, i)
        seeds[t.node] = g
    tracer.late = True
    found: dict[Node, Value] = {}
    token = current.set(mode().but(grad=False, watch=tracer))
    try:
        for node, g, _ in steps(seeds, "tensors", set(nodes), True):  # type: ignore[arg-type]
            if node in nodes:
                found[node] = tracer.value(g)
    finally:
        current.reset(token)
    return list(nodes.values()), [found.get(n) for n in nodes]


def known_arrays(flat: list[Any], snapshot: Snapshot) -> dict[int, Any]:
    """Arrays that exist before the run: of arguments, of what the function can reach, of their gradients."""
    known: dict[int, Any] = {}
    for t in snapshot.tensors.values():
        known[id(t.array)] = t.array, ("state", t)
    for i, t in enumerate(flat):
        known.setdefault(id(t.array), (t.array, ("argument", i)))
    for source in everyone(flat, snapshot):
        t = find(source, flat)
        if t._grad is not None:
            known.setdefault(id(t._grad.array), (t._grad.array, ("grad", source[1])))
    return known


def signature(value: Any, flat: list[Any]) -> Any:
    """What an argument must be like for a program to apply; tensors are collected in `flat`."""
    if isinstance(value, Tensor):
        flat.append(value)
        a, node = value.array, value.node
        return (a.shape, a.dtype.num, a.flags.c_contiguous or a.strides, node is None, value._grad is None,
                next(i for i, t in enumerate(flat) if t.array is a))
    if type(value) in (tuple, list):
        return (type(value), *[signature(v, flat) for v in value])
    if type(value) is dict:
        return (dict, *[(k, signature(v, flat)) for k, v in value.items()])
    if isinstance(value, PLAIN):
        return type(value), value if value == value else "nan"
    return type(value), id(value)


def forget_all() -> None:
    """Every compiled function forgets its programs."""
    for compiled in list(EVERYONE):
        compiled.forget()


def random_state() -> Any:
    """The state of the default generator, if it was ever used."""
    module = sys.modules.get("rushlight.random")
    return None if module is None else module.get_rng_state().tobytes()
