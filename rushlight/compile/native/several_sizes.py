"""Native programs of one compiled function. The first size of an argument has machine code of its own; later sizes
share machine code whose loops read the sizes when they run.

Every size is traced, since Python may do something else for it. The graph of a trace is described by plain data. Where
the descriptions of two graphs differ in sizes alone, they give a pattern with Sizes (sizes.py). A third graph can use
the pattern's code if it fits the pattern for one n."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import reduce
from hashlib import blake2b
from math import gcd
from typing import Any

import numpy as np

from rushlight.base.threads import cores
from rushlight.compile.capture.input_sources import keyed
from rushlight.compile.graph import Call, Graph, Store, Value
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.native_program import PARALLEL_FROM_WORK, NativeCode, NativeProgram, work_of
from rushlight.compile.native.sizes import ANY, SMALLEST, Numbers, Size, Sized, fits, joined, new_value, sizes_in
from rushlight.compile.passes.simplify import uniform

REMEMBERED = 2  # earlier sizes with which a new size may share code
MAX_FAILED = 3  # failed attempts to share code; after these every size gets code of its own


class SeveralSizes:
    """`seen`: descriptions of the graphs of earlier programs; `shared`: (description with Sizes, whether the code has
    threads, code)."""

    def __init__(self) -> None:
        self.seen: deque[tuple] = deque(maxlen=REMEMBERED)
        self.shared: list[tuple[tuple, bool, NativeCode]] = []
        self.failed = 0
        self.reason = ""  # of the last failure

    def program(self, graph: Graph, likes: list[np.ndarray]) -> NativeProgram:
        """The native program of a graph. `likes`: eager's arrays of the results."""
        threads = cores() > 1 and work_of(graph) >= PARALLEL_FROM_WORK
        values, found = described(graph)
        for pattern, has_threads, code in self.shared:
            n = fitting(pattern, found)
            if n and has_threads is threads:
                return NativeProgram(code, graph, n, constants_of(values, pattern))
        made = self.with_sizes(graph, likes, threads, values, found)
        self.seen.append(found)
        return made or NativeProgram(NativeCode(graph, likes, threads, None), graph)

    def with_sizes(
        self, graph: Graph, likes: list[np.ndarray], threads: bool, values: list[Value], found: tuple
    ) -> NativeProgram | None:
        """A program whose code later sizes share; None if the graph does not allow it."""
        for earlier in reversed(self.seen):
            if self.failed >= MAX_FAILED:
                return None
            try:
                pattern = combined(earlier, found)
                n = fitting(pattern, found)
                if n:
                    made, layouts = graph_with(graph, values, pattern)
                    code = NativeCode(made, likes, threads, layouts)
                    self.shared.append((pattern, threads, code))
                    return NativeProgram(code, graph, n, constants_of(values, pattern))
            except (NotNative, TypeError, AttributeError) as error:  # a Size where only an int can stand
                self.reason = str(error)
                self.failed += 1
        return None

    def drop(self, code: NativeCode) -> None:
        """Stop sharing code, because this code gave wrong numbers."""
        if any(code is c for *_, c in self.shared):
            self.shared, self.failed = [], MAX_FAILED


def constants_of(values: list[Value], pattern: tuple) -> list[np.ndarray]:
    """The constants of a graph that differ from size to size, such as the numbers of all positions."""
    facts = pattern[0]
    return [np.asarray(v._array) for v, (kind, *_, last) in zip(values, facts) if kind == "constant" and last is ANY]


# -- descriptions --------------------------------------------------------------------------------------------------


def described(graph: Graph) -> tuple[list[Value], tuple]:
    """The values of a graph, and the graph as tuples of plain data: (values, steps, results)."""
    number: dict[Value, int] = {}
    of = lambda v: number.setdefault(v, len(number))
    for v in graph.inputs:
        of(v)
    steps = tuple([(s.op, plain(s.args, of), tuple(map(of, s.outs))) for s in graph.steps])
    results = tuple(map(of, graph.results))
    return [*number], (tuple(map(fact, number)), steps, results)


def plain(a: Any, of: Any) -> Any:
    """An argument of a step as plain data."""
    if isinstance(a, Value):
        return "value", of(a)
    if isinstance(a, slice):
        return "slice", a.start, a.stop, a.step
    if type(a) in (tuple, list):
        return (type(a).__name__, *[plain(part, of) for part in a])
    return digest(a) if isinstance(a, np.ndarray) else a


def digest(a: np.ndarray) -> Numbers:
    """A hash of an array's numbers."""
    return Numbers(blake2b(np.ascontiguousarray(a).tobytes(), digest_size=20).digest())


def fact(v: Value) -> tuple:
    """The kind, dtype and shape of a value; for an input its source and strides, for a constant its numbers."""
    own: tuple = ()
    if v.kind == "input":
        own = keyed(v.source), v._array.strides
    elif v.kind == "constant":
        number = uniform(v)
        own = (digest(v._array) if number is None else number.tobytes(),)
    return v.kind, v.dtype.str, v._array.shape, *own


def sizes_of_arguments(found: tuple) -> Iterator[Any]:
    """All sizes of the arguments."""
    for kind, _, shape, *own in found[0]:
        if kind == "input" and own[0][0] == "argument":
            yield from shape


def combined(a: tuple, b: tuple) -> tuple:
    """The description of two graphs, with Sizes where numbers differ.

    The first size of an argument that differs is `slope n + rest`, with the smallest slope for which all other sizes
    are whole multiples of n, too."""
    first = next(((x, y) for x, y in zip(sizes_of_arguments(a), sizes_of_arguments(b)) if x != y), None)
    if first is None:
        raise NotNative("no size of an argument differs")
    step = reduce(gcd, differences(a, b))
    slope = abs(first[1] - first[0]) // step
    n, m = (x // slope for x in first)
    sizes = [*sizes_in([shape for _, _, shape, *_ in joined(a, b, n, m, SMALLEST)[0]])]
    least = max([SMALLEST, *(-((s.rest - SMALLEST) // s.slope) for s in sizes if s.slope > 0)])
    return joined(a, b, n, m, least)


def differences(a: Any, b: Any) -> Iterator[int]:
    """The differences of the numbers in two descriptions."""
    if type(a) is tuple and type(b) is tuple:
        for x, y in zip(a, b):
            yield from differences(x, y)
    elif type(a) is int and type(b) is int and a != b:
        yield b - a


def fitting(pattern: tuple, found: tuple) -> int:
    """The n for which a description fits the pattern; 0 if there is none."""
    if len(pattern[0]) != len(found[0]):
        return 0
    for size, number in zip(sizes_of_arguments(pattern), sizes_of_arguments(found)):
        if isinstance(size, Size):
            n = (number - size.rest) // size.slope
            return n if n >= size.least and fits(pattern, found, n) else 0
    return 0


def graph_with(graph: Graph, values: list[Value], pattern: tuple) -> tuple[Graph, dict[Value, tuple]]:
    """A graph with the Sizes of a pattern, and the strides of its inputs in bytes."""
    facts, steps, _ = pattern
    new: dict[Value, Value] = {}
    layouts: dict[Value, tuple] = {}
    constants: list[Value] = []
    for v, (kind, _, shape, *own) in zip(values, facts):
        varying = kind == "constant" and own[0] is ANY
        if kind == "call" or varying or (kind == "input" and v.source[0] == "argument"):
            new[v] = made = new_value(shape, v.dtype)
            made.kind, made.source = v.kind, v.source
        else:
            new[v] = v if shape == v.shape else Sized(v, shape)
        if kind == "input":
            layouts[new[v]] = own[1]
        elif varying:
            new[v].kind, new[v].source = "input", ("constant", len(constants))
            constants.append(new[v])
    made_steps: list[Call | Store] = [
        Call(s.op, tuple(settings(s.args, args, new)), tuple([new[v] for v in s.outs]), shares=s.shares)
        for s, (_, args, _) in zip(graph.steps, steps)
    ]
    return Graph(made_steps, [*[new[v] for v in graph.inputs], *constants], [new[v] for v in graph.results]), layouts


def settings(a: Any, found: Any, new: dict[Value, Value]) -> Any:
    """The arguments of a step, with Sizes in place of the numbers that vary."""
    if isinstance(a, Value):
        return new[a]
    if isinstance(a, slice):
        return slice(*found[1:])
    if type(a) in (tuple, list):
        return type(a)([settings(part, f, new) for part, f in zip(a, found[1:])])
    return a if isinstance(a, np.ndarray) else found
