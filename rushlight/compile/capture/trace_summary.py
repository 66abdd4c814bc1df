"""The summary of a traced run: can be compared with the summary of the next run, and turned into a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import place
from rushlight.compile.capture.input_sources import find, keyed
from rushlight.compile.capture.trace import Entry, Tracer
from rushlight.compile.graph import Graph, Line, Store, Value, values_in
from rushlight.compile.guards.dynamic_numbers import (
    Item,
    changed_settings,
    explained,
    is_number,
    made_inputs,
    occurrences,
)
from rushlight.compile.guards.guard_predicates import MASK, PLAIN, Fact
from rushlight.compile.guards.guard_set import Snapshot
from rushlight.compile.guards.pytree_signature import planned
from rushlight.compile.lower.memory_plan import overlap
from rushlight.compile.passes.simplify import key
from rushlight.core.engine import reachable, steps
from rushlight.core.mode import within
from rushlight.core.node import Node
from rushlight.core.tensor import Tensor, from_array
from rushlight.core.worlds import AS_TENSORS

# steps after which NumPy stops searching for a common element; its type stub allows only 0 and -1
MAX_WORK: Any = 10_000


class Expected(NamedTuple):
    """Arrays of an eager run, to compare a program with.

    `results`; `grads`: the `.grad` that the run set; `wrt`: the gradients that a backward after the run gives if the
    results' gradients are ones; `leaves`: the leaves of `grads`."""

    results: list[np.ndarray]
    grads: list[np.ndarray]
    wrt: list[np.ndarray]
    leaves: list[np.ndarray]


@contextmanager
def entered(flat: list[Tensor]) -> Iterator[Callable[[], None]]:
    """Inside, the node of each non-leaf argument is an `Entry`, which hides the graph that computed the argument.

    Yields a function that cuts the entries off that graph.
    """
    begun: list[tuple[Tensor, Entry, Node, bool]] = []
    for t in flat:
        if t._node is not None and not t._node.leaf and type(t._node) is not Entry:
            begun.append((t, Entry(t._node), t._node, t._writes is None))
            t._node = begun[-1][1]

    def cut() -> None:
        for _, entry, *_ in begun:
            entry.edges = ()

    try:
        yield cut
    finally:
        for t, entry, origin, unwritten in begun:
            entry.edges = (origin,)
            t._node = origin if t._node is entry else t._node
            # the first write happened in the run, so the log of writes belongs to the node, too
            if unwritten and t._writes is not None:
                origin._writes = t._writes


class Outline:
    """The summary of a traced run: the graph, the plan of the result, and the state that guards compare."""

    def __init__(self, tracer: Tracer, result: Any, flat: list[Any], grads: list, before: Snapshot, after: Snapshot):
        """`grads`: (source, tensor, its `.grad` before the run) for each tensor. TypeError if no program can do the
        run."""
        left = before.replaced(after, tracer.external)
        before.placed = {(id(c), key) for c, key, _ in left}
        self.before, self.moved = before, before.difference(after) or before.state_difference(after)
        # Whether the function now reaches tensors that the run has made: the state of an optimizer in its first step. A
        # program would not put its own tensors there.
        self.leaves_tensors = bool(after.tensors.keys() - before.tensors.keys() - {id(t) for _, _, t in left})
        # arguments that the function also reaches in another way
        self.reached = {i: t for i, t in enumerate(flat) if id(t) in before.tensors}
        self.values: list[Value] = []
        # the numbers of the results from which the caller may run backward
        self.live: list[int] = []
        self.shown: set[int] = set()  # ids of the arrays that own the memory of results
        self.waiting = waiting = list[Tensor]()  # the results in `live`
        # id of a result -> its number: it may be returned twice
        self.numbered: dict[int, tuple[int, bool]] = {}
        number = lambda t: self.number(t, tracer, waiting)
        leaves = [(source, t) for source, t, old in grads if t._grad is not old]
        # number of a result that is the new `.grad` of a leaf -> the number of this leaf among `graph.grads`
        self.gradients: dict[int, int] = {}
        self.given = {id(t._grad): k for k, (_, t) in enumerate(leaves) if t._grad is not None}
        new = [(t._grad._array, t._array) for _, t, old in grads if t._grad is not old and t._grad is not None]
        if any([id(g) in tracer.known for g, _ in new]):
            raise TypeError("assigns a gradient that existed before the call")
        self.expected = Expected([], [g for g, _ in new], [], [leaf for _, leaf in new])
        self.plan = planned(result, flat, before.tensors, number, before.seen)
        if left:
            placed = [(c, key, planned(t, flat, before.tensors, number)) for c, key, t in left]
            self.plan = "placed", (self.plan, placed)
        value = lambda g: None if g is None else tracer.value(g)
        changed = [(source, value(t._grad)) for source, t in leaves]
        edges, wrt, given = backward_of(waiting, tracer, grads, self.expected.wrt) if waiting else ([], [], [])
        overlaps(tracer, flat, before)
        self.check_shown([t for _, t, _ in grads], waiting, tracer)
        if tracer.problem is not None:
            raise TypeError(tracer.problem)
        before.facts += [Fact(MASK, t, numbers) for t, numbers in tracer.deciding.values()]
        self.graph: Graph = tracer.graph(self.values, changed)
        self.graph.edges, self.graph.wrt, self.graph.given = edges, wrt, given
        self.form = [*form(self.graph, self.plan), ("returned gradients", *self.gradients.items())]
        self.numbers = occurrences(self.graph)
        self.bytes = [v._array.tobytes() for v in self.numbers]
        # settings of optimizers that may change, but keep their sign
        self.free: frozenset[Item] = frozenset()
        self.lines: list[tuple[str, Line]] = [(s.op, s.line) for s in self.graph.steps]
        self.targets = [s.target.source for s in self.graph.steps if isinstance(s, Store)]

    def check_shown(self, everyone: list[Tensor], live: list[Tensor], tracer: Tracer) -> None:
        """TypeError if a result with a node shares memory with another result, or with a tensor that has a node.

        A write to one must change the nodes of both, and a program's results are not registered as views. Also
        TypeError if two results share the memory of a constant, or a result shares the memory of a new gradient: a
        program would return two copies."""
        roots: dict[int, np.ndarray] = {}
        for a in self.expected.results:
            root = tracer.owner.get(id(a), a)
            v = tracer.cells.get(id(root))
            if roots.setdefault(id(root), a) is not a and v is not None and v.kind == "constant":
                raise TypeError("returns tensors that share memory")
        returned = [a for i, a in enumerate(self.expected.results) if i not in self.gradients]
        if any([np.may_share_memory(a, g) for a in returned for g in self.expected.grads]):
            raise TypeError("returns a view of a gradient")
        arrays = {id(a): a for a in (*self.expected.results, *[t._array for t in everyone if t._node is not None])}
        for a in [t._array for t in live] if len(arrays) > 1 else ():
            for b in arrays.values():
                if a is not b and np.may_share_memory(a, b) and shared(a, b):
                    raise TypeError("returns tensors that share memory")

    def number(self, t: Tensor, tracer: Tracer, waiting: list[Tensor]) -> tuple[int, bool]:
        """(the number of a result, whether a backward inside the run has freed its graph)."""
        if id(t) in self.numbered:
            return self.numbered[id(t)]
        v = tracer.value(t)
        root = tracer.owner.get(id(t._array), t._array)
        if id(root) in tracer.written and (id(root) in tracer.known or id(root) in self.shown):
            tracer.stop("returns a view of memory that it writes to")
        self.shown.add(id(root))
        self.values.append(tracer.call("clone", (v,), v._array) if v.kind == "constant" else v)
        self.expected.results.append(t._array)
        spent = t._node is not None and any(n.saved is None for n in reachable([t._node]))
        if t._node is not None and not spent:
            waiting.append(t)
            self.live.append(len(self.values) - 1)
        self.numbered[id(t)] = len(self.values) - 1, spent
        if id(t) in self.given:
            self.gradients[len(self.values) - 1] = self.given[id(t)]
        return self.numbered[id(t)]

    def let_go(self) -> None:
        """Free the arrays of the run; the rest can still be compared."""
        self.waiting = []
        self.graph, self.values, self.numbers, self.expected = Graph(), [], [], Expected([], [], [], [])

    def unsteady(self, last: Outline) -> str | None:
        """The reason why two runs differ, or None."""
        if self.moved:
            return f"changes Python state: {self.moved}"
        if self.form != last.form:
            return f"does something else in each run: {self.first_difference(last)}"
        changed = frozenset((id(group), name) for group, name, *_ in changed_settings(last.before, self.before))
        others = last.before.difference(self.before, changed)
        if not others:
            # includes settings on which no number depends: Rprop reads lr in its first step only
            self.free = changed
        if self.bytes == last.bytes and (others or not changed):
            return None
        found = None if others else explained(last.bytes, self.numbers, last.before, self.before)
        if found is None:
            return "computes with other numbers in each run"
        made_inputs(self.graph, found)
        return None

    def fixed(self, last: Outline) -> list[tuple[int, Tensor]]:
        """(index, tensor) of the arguments that must be the same tensor objects in each call.

        The function also reaches such a tensor by itself (a closure), so the trace does not show which of the two an op
        used. If the last run had another tensor as argument and did the same, the ops used the argument."""
        same = not self.before.difference(last.before, self.free)
        return [(i, t) for i, t in self.reached.items() if not same or last.reached.get(i) is t]

    def first_difference(self, last: Outline) -> str:
        """The first step that differs between two runs, with the user's line."""
        for old, new, (op, line) in zip(last.form, self.form, self.lines):
            if old != new:
                return f"{op} at {place(*line)}" if line else op
        return f"{len(last.lines)} and {len(self.lines)} steps"


class Numbers:
    """Numbers values in order of appearance, so that the graphs of two runs can be compared.

    Constants are represented by their elements. (A class, because a recursive closure is a reference cycle, which would
    keep all values until the garbage collector runs.)"""

    def __init__(self) -> None:
        self.known: dict[Value, Any] = {}

    def of(self, v: Value) -> Any:
        if v not in self.known:
            what: Any = len(self.known)
            if is_number(v):
                return "number", v.dtype.str  # compared separately (dynamic_numbers.py): it may change
            if v.kind == "constant":
                elements = v._array.tobytes()
                what = "constant", v.dtype.str, v.shape, elements if v.size < 1 << 20 else hash(elements)
            elif v.kind == "input":
                what = keyed(v.source)
            self.known[v] = what
        return self.known[v]

    def plain(self, a: Any) -> Any:
        """An argument of a step, with each value replaced by its number."""
        if isinstance(a, Value):
            return self.of(a)
        return (type(a).__name__, *map(self.plain, a)) if type(a) in (tuple, list) else key(a)


def form(graph: Graph, plan: Any) -> list[Any]:
    """The graph as plain data that can be compared."""
    numbers = Numbers()
    rows: list[Any] = [
        (s.op, numbers.plain(s.args), tuple([(numbers.of(v), v.shape, v.dtype.str) for v in s.outs]))
        for s in graph.steps
    ]
    rows.append(("returns", plan_key(plan), tuple(map(numbers.of, graph.results))))
    rows += [("grad", keyed(t), None if v is None else numbers.of(v)) for t, v in graph.grads]
    rows += [("wrt", keyed(t), None if v is None else numbers.of(v)) for t, v in zip(graph.edges, graph.wrt)]
    return rows


def plan_key(plan: Any) -> Any:
    """The plan of a result as plain data that can be compared."""
    kind, what = plan
    if kind == "value":
        return kind, key(what) if isinstance(what, PLAIN) else id(what)
    if kind == "placed":
        return kind, plan_key(what[0]), tuple([(id(c), key, p) for c, key, p in what[1]])
    if kind in ("list", "dict", "object"):
        return kind, repr(what[0]), tuple(map(plan_key, what[1]))
    return plan


def shared(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have an element in common; True if that is too hard to compute."""
    try:
        return np.shares_memory(a, b, max_work=MAX_WORK)
    except Exception:  # TooHardError, whose module differs between NumPy's versions
        return True


def overlaps(tracer: Tracer, flat: list[Any], snapshot: Snapshot) -> None:
    """TypeError if an argument shares memory with a tensor that the function reaches, or if shared memory is
    written."""
    own = {id(t._array) for t in snapshot.tensors.values()}
    own |= {id(t._grad._array) for t in (*flat, *snapshot.tensors.values()) if t._grad is not None}
    if any(id(t._array) in own and id(t) not in snapshot.tensors for t in flat):
        raise TypeError("has an argument that shares memory with a tensor reached in another way")
    targets = {id(s.target._array): s.target._array for s in tracer.steps if isinstance(s, Store)}
    others = {id(v._array): v._array for s in tracer.steps for v in values_in(s.args) if v.kind == "input"}
    if overlap([*targets.values()], [a for i, a in others.items() if i not in targets]):
        raise TypeError("writes into memory that two tensors share")


def everyone(flat: list[Tensor], snapshot: Snapshot) -> list[tuple[str, Any]]:
    """The source of each tensor that exists before the run. An argument that the function also reaches counts as an
    argument."""
    found: dict[int, tuple[str, Any]] = {}
    for i, t in enumerate(flat):
        found.setdefault(id(t), ("argument", i))
    for t in snapshot.tensors.values():
        found.setdefault(id(t), ("state", t))
    return list(found.values())


def backward_of(live: list[Tensor], tracer: Tracer, everyone: list, gives: list) -> tuple[list, list, list]:
    """Trace the backward that the caller may run after the call, from the results `live`.

    Returns (sources of the inputs with a gradient, the gradients' values, for each gradient the numbers of the results
    it comes from). Appends the gradients' arrays to `gives`."""
    below = reachable([t._node for t in live])  # type: ignore[misc]
    nodes = inputs_below(below, everyone)
    hooked = [n for n in below if n.hooks is not None]
    seeds: dict[Any, Tensor] = {}
    for i, t in enumerate(live):
        g = from_array(np.ones_like(t._array))
        tracer.seed(g._array, i)
        seeds[t._node] = g
    tracer.late = True
    found: dict[Node, Tensor] = {}
    with within(grad=False, watch=tracer), unhooked(hooked):
        for node, g, _ in steps(seeds, AS_TENSORS, set(nodes), True):
            if node in nodes:
                found[node] = g
    gives += [found[n]._array for n in nodes if n in found]
    below_each = [set(reachable([t._node])) for t in live]  # type: ignore[list-item]
    given = [{i for i, ways in enumerate(below_each) if n in ways} if n in found else None for n in nodes]
    return (list(nodes.values()), [tracer.value(found[n]) if n in found else None for n in nodes], given)


def inputs_below(below: list[Node], everyone: list) -> dict[Node, Any]:
    """{node: source} for the inputs of a backward through the nodes `below`. TypeError if that backward cannot be a
    program.
    """
    known = {t._node: source for source, t, _ in everyone if t._node is not None}
    # hooks on leaves run in the caller's backward
    if any(n.hooks is not None and not (n.leaf and n in known) for n in below):
        raise TypeError("has hooks on tensors that require grad")
    nodes = {n: known[n] for n in below if n in known}
    if any(not n.leaf and type(n) is not Entry for n in nodes):
        raise TypeError("is given tensors that were computed from others that require grad")
    if any(n.leaf and n not in known for n in below):
        raise TypeError("makes tensors that require grad")
    return nodes


@contextmanager
def unhooked(nodes: list[Node]) -> Iterator[None]:
    """Inside, these nodes run no hooks: their class is the one without hooks (`with_hooks` in core/node.py)."""
    kinds = [type(n) for n in nodes]
    for n, kind in zip(nodes, kinds):
        n.__class__ = kind.__base__  # type: ignore[assignment]
    try:
        yield
    finally:
        for n, kind in zip(nodes, kinds):
            n.__class__ = kind


def known_arrays(flat: list[Any], snapshot: Snapshot) -> dict[int, Any]:
    """id -> (array, source) of the arrays that exist before the run: of arguments, reachable tensors, gradients."""
    known: dict[int, Any] = {}
    for t in (*flat, *snapshot.tensors.values()):
        if (own := t._array.dtype) is not dtypes.of(own).numpy and own == dtypes.of(own).numpy:
            # an unpickled array has an equal dtype that is another object
            t._array = t._array.view(dtypes.of(own).numpy)
    for i, t in enumerate(flat):
        known.setdefault(id(t._array), (t._array, ("argument", i)))
    for t in snapshot.tensors.values():
        known.setdefault(id(t._array), (t._array, ("state", t)))
    for source in everyone(flat, snapshot):
        t = find(source, flat)
        if t._grad is not None:
            known.setdefault(id(t._grad._array), (t._grad._array, ("grad", source[1])))
    return known
