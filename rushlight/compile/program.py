"""A compiled run: its text, the arrays it reads, and what it does to the world."""
from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from rushlight.autograd.clock import clock, tick
from rushlight.autograd.node import Node
from rushlight.compile.graph import Graph, Store, Value
from rushlight.compile.lower import Lowering
from rushlight.compile.passes import optimize
from rushlight.tensor import Tensor, from_array, writes_of

number = count().__next__
HELD_BY_US = 3                                    # references to an array handed out earlier: tensor, slot, argument


class CompiledBackward(Node):
    """The node of a result whose graph the program has already gone through: nothing is kept for a second time."""

    __slots__ = ()

    def __init__(self, shape: tuple):
        self.edges, self.saved, self.seq, self.shape, self.where = (), None, tick(), shape, None


class Program:
    """`source` can be read; `run(arguments)` does what the traced run did, on other numbers.

    `results`: how to build what is returned from the arrays of a run; `holds()`: whether it may run.
    """

    def __init__(self, graph: Graph, results: Any, holds: Callable[[], bool], title: str, fuse: bool = True):
        self.results, self.holds = results, holds
        optimize(graph)
        self.graph = graph
        names = [name_of(v, i) for i, v in enumerate(graph.inputs)]
        lowering = Lowering(graph, title, names, fuse)
        self.source, self.shapes = lowering.text, lowering.new
        self.call, self.bind = defined(lowering)
        self.views: tuple | None = None
        self.sources = [v.source for v in graph.inputs]
        self.known: list[np.ndarray] = [v.array for v in graph.inputs]
        self.layout = [layout(v.array) for v in graph.inputs]
        stores = [s.target for s in graph.steps if isinstance(s, Store)]
        self.written = [v.source for v in stores]
        self.owned = {id(a) for a in (v.array for v in stores)}
        self.leaves = [leaf for leaf, _ in graph.grads]
        self.given = [v is not None for _, v in graph.grads]
        self.outputs: list[np.ndarray | None] = [None] * len(self.shapes)
        graph.steps = []                          # the traced arrays are no longer needed
        for v in graph.inputs:
            v.array = None  # type: ignore[assignment]

    def arrays(self, arguments: list[Any]) -> list[np.ndarray] | None:
        """The arrays that the program reads; None if one is not laid out as it was."""
        found = []
        for i, (kind, what) in enumerate(self.sources):
            a = arguments[what].array if kind == "argument" else what.array if kind == "state" else what._grad.array
            if a is not self.known[i]:
                if layout(a) != self.layout[i]:
                    return None
                self.known[i] = a
                if kind == "state":
                    self.views = None
            found.append(a)
        if self.views is None:
            self.views = self.bind(*[a for a, (kind, _) in zip(found, self.sources) if kind == "state"])
        return found

    def run(self, arguments: list[Any]) -> Any:
        """The results, with parameters, gradients and state changed as the traced run did; NotImplemented if it cannot."""
        arrays = self.arrays(arguments)
        if arrays is None or not self.apart(arrays):
            return NotImplemented
        results, grads = self.call(self.new, *arrays, *self.views)  # type: ignore[misc]
        for kind, what in self.written:
            t = arguments[what] if kind == "argument" else what if kind == "state" else what._grad
            writes = writes_of(t)
            writes.count += 1
            writes.stamp = clock.last_write = tick()
        fresh = iter(grads)
        for leaf, given in zip(self.leaves, self.given):
            leaf._grad = from_array(next(fresh)) if given else None
        return rebuilt(self.results, results, arguments)

    def apart(self, arrays: list[np.ndarray]) -> bool:
        """Whether what is written overlaps nothing else: loops count on that."""
        views = [a for a in arrays if a.base is not None and id(a) not in self.owned]
        if not views or not self.owned:
            return True
        own = [a for a in arrays if id(a) in self.owned]
        return not any(np.may_share_memory(a, b) for a in views for b in own)

    def new(self, k: int) -> np.ndarray:
        """Memory for an output: that of an earlier run if nobody holds it any more, else new."""
        old = self.outputs[k]
        if old is not None and sys.getrefcount(old) <= HELD_BY_US and old.nbytes > 1 << 14:
            return old
        shape, dtype = self.shapes[k]
        self.outputs[k] = made = np.empty(shape, dtype)
        return made


def layout(a: np.ndarray) -> tuple:
    """What a loop was compiled for."""
    return a.shape, a.dtype, a.flags.c_contiguous or a.strides, a.flags.writeable


def name_of(v: Value, i: int) -> str:
    """A readable name for an input: the argument's, or the attribute's."""
    kind, what = v.source
    if kind == "argument":
        return f"arg{what}"
    return f"{'grad' if kind == 'grad' else 'p'}{i}"


def defined(lowering: Lowering) -> tuple[Callable, Callable]:
    """The text as a function; tracebacks and `inspect` find its lines."""
    name = f"<rushlight program {number()}>"
    linecache.cache[name] = (len(lowering.text), None, lowering.text.splitlines(True), name)
    names: dict[str, Any] = {"__name__": "rushlight.compile.made", **lowering.constants}
    exec(compile(lowering.text, name, "exec"), names)
    return names["run"], names.get("bind", lambda *arrays: ())


def rebuilt(plan: Any, arrays: list[np.ndarray], arguments: list[Any]) -> Any:
    """What the function returns, from its plan: tensors by number, everything else as it was."""
    kind, what = plan
    if kind == "tensor":
        i, spent = what
        t = from_array(arrays[i])
        if spent:
            t.node = CompiledBackward(arrays[i].shape)
        return t
    if kind == "argument":
        return arguments[what]
    if kind == "value":
        return what
    cls, parts = what
    inside = [rebuilt(p, arrays, arguments) for p in parts]
    return dict(zip(cls, inside)) if kind == "dict" else cls(inside)


def planned(result: Any, arguments: list[Any], place: Callable[[Tensor], tuple[int, bool]]) -> Any:
    """The plan of a result: `place` numbers its tensors. TypeError for what cannot be made again."""
    if isinstance(result, Tensor):
        for i, a in enumerate(arguments):
            if a is result:
                return "argument", i
        return "tensor", place(result)
    if type(result) in (tuple, list):
        return "list", (type(result), [planned(r, arguments, place) for r in result])
    if type(result) is dict:
        return "dict", (list(result), [planned(r, arguments, place) for r in result.values()])
    if result is None or isinstance(result, (bool, int, float, complex, str, bytes)):
        return "value", result
    raise TypeError(f"returns a {type(result).__name__}")
