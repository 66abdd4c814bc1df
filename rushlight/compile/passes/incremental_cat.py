"""Incremental computation for sequences that grow: the rows of the last call are reused (KV caching).

x = cat((a, b)): f(x) = cat((f(a), f(b))), if f works row by row and f(a) is already computed

A language model that generates token by token receives the whole text in each call. All but the last row of its results
were computed by the call before; this pass computes the last row only, whose query reads the stored keys and values.
This does the work of a hand-written KV cache (measurements: benchmarks/workloads.md, W5b).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rushlight.compile.graph import Call, Graph, Store, Value, is_random, lineage, parents_of, replaced, values_in
from rushlight.compile.passes.decompose import Builder
from rushlight.compile.passes.row_dependence import ALL, Box, key_of, part_of, places
from rushlight.compile.passes.simplify import folded, key, signature
from rushlight.core.table import entries
from rushlight.ops.linalg.matmul import linear, mm
from rushlight.ops.nn.attention import attention
from rushlight.ops.shape.views import cat, getitem, reshape, view_as_shape

COSTLY_OPS = entries(linear, mm, attention)  # ops for which the pass pays off
MAX_CONSTANT_ELEMENTS = 1 << 16  # elements of the largest constant that is compared with others


def extend(graph: Graph) -> None:
    """Reuse known rows wherever that pays. Not in a graph with gradients, whose backward reads all rows at once."""
    learns = any(v is not None for v in (*graph.wrt, *[v for _, v in graph.grads]))
    if learns or not any(step.runs(cat) for step in graph.steps):
        return
    pass_ = Extension(graph)
    steps = [new for step in graph.steps for new in pass_.step(step)]
    if pass_.pays:
        graph.steps = steps


def content(array: np.ndarray) -> tuple:
    return array.dtype.str, array.shape, array.tobytes()


def mark(call: Call) -> Any:
    """A key that is equal for equal calls; for reads: equal if they read the same part."""
    found = places(call)
    return signature(call) if found is None else ("part", call.args[0], *found)


class Grown(NamedTuple):
    """A value made of `head`, the first rows, known from an earlier call, and `tail`, the new rows, along `dim`."""

    dim: int
    head: Value
    tail: Value


class Extension:
    """`same`: value -> an equal earlier value. `known`: key of a call -> its results. `read`: value -> (the value of
    which it is a part, the part). `constants`: content -> constant. `shown`: outputs of the program and their bases;
    the caller may write to these, so views among them stay views.
    """

    def __init__(self, graph: Graph):
        self.grown: dict[Value, Grown] = {}
        self.same: dict[Value, Value] = {}
        self.known: dict[Any, tuple[Value, ...]] = {}
        self.read: dict[Value, tuple[Value, list]] = {}
        self.constants: dict[tuple, Value] = {}
        self.shapes: set[tuple] = set()  # shapes of constants
        self.parents = parents_of(graph)
        self.written = {s.target for s in graph.steps if isinstance(s, Store)}
        self.shown = {v for result in graph.outputs() for v in lineage(result, self.parents)}
        self.pays = False

    def step(self, step: Call | Store) -> Iterable[Call | Store]:
        """The step, or the steps that replace it."""
        if isinstance(step, Store) or not step.outs or is_random(step) or not self.steady(step):
            return [step]
        self.same.update({v: self.constant(v._array) for v in values_in(step.args) if v.kind == "constant"})
        call = Call(step.op, replaced(step.args, self.same), step.outs, step.line, step.late, step.shares, step.origin)
        if (found := places(call)) is not None and self.reads_all(call, found):
            return [call]
        made = self.known.setdefault(mark(call), call.outs)
        if made is not call.outs:
            self.same.update({v: self.same.get(w, w) for v, w in zip(call.outs, made)})
            return [call]
        if (constant := folded(call)) is not None:
            self.same[call.outs[0]] = self.constant(constant._array)
            return [call]
        if call.runs(cat) and len(call.args[0]) == 1:
            [self.same[call.outs[0]]] = call.args[0]
        elif call.runs(cat):
            self.join(call)
        return self.lengthened(call) or [call]

    def lengthened(self, call: Call) -> list[Call] | None:
        """The calls that extend the result of an earlier call; None if the call itself must run."""
        out = call.outs[0]
        looks = out in self.shown and out in self.parents
        if not looks and (longer := self.extended(call)) is not None:
            return longer
        if call.runs(view_as_shape) and any(v in self.grown for v in lineage(out, self.parents)):
            call.op = reshape.op.name  # joined arrays may have another memory order
        return None

    def steady(self, step: Call) -> bool:
        """Whether no step writes to the operands, so that equal calls give equal results."""
        return not any(self.written & {*lineage(v, self.parents)} for v in values_in(step.args))

    def constant(self, array: np.ndarray) -> Value:
        """The constant with these elements. A constant is `Grown` if an earlier constant of at least half the length is
        a prefix.
        """
        if array.size > MAX_CONSTANT_ELEMENTS:
            return Value(array, "constant")
        made = self.constants.setdefault(content(array), Value(array, "constant"))
        self.shapes.add(array.shape)
        # searched again each time, because a longer constant may have been added
        for dim, size in enumerate(array.shape):
            for n in range(size - 1, (size - 1) // 2, -1):
                if (*array.shape[:dim], n, *array.shape[dim + 1 :]) in self.shapes:
                    first, rest = np.split(array, [n], dim)
                    if (head := self.constants.get(content(first))) is not None:
                        self.grown[made] = Grown(dim, head, self.constant(rest))
                        return made
        return made

    def join(self, call: Call) -> None:
        """Note that cat((a, b, c)) is `Grown` from cat((a, b)), if that exists, and that cat((a, b)) is `Grown` from
        a."""
        (*first, last), dim = call.args[0], call.args[1] % len(call.outs[0].shape)
        head = first if len(first) == 1 else self.known.get((cat.op.name, key((tuple(first), call.args[1]))))
        if head:
            self.grown[call.outs[0]] = Grown(dim, head[0], last)

    def reads_all(self, call: Call, found: list) -> bool:
        """Whether a read returns its whole argument. A read of only new or only old rows is changed to read `tail` or
        `head`.
        """
        x, out = call.args[0], call.outs[0]
        if found == [range(n) for n in x.shape]:
            self.same[out] = x
            return True
        while x in self.grown and out not in self.shown:
            dim, head, tail = self.grown[x]
            k, n = found[dim], head.shape[dim]
            first, last = (k, k) if isinstance(k, int) else (k[0], k[-1]) if k else (0, n)
            if first < n <= last:
                break
            by, x = (0, head) if last < n else (n, tail)
            k = k - by if isinstance(k, int) else range(k.start - by, k.stop - by, k.step)
            found = [*found[:dim], k, *found[dim + 1 :]]
        call.op, call.args = getitem.op.name, (x, key_of(found, x.shape))
        self.read[out] = x, found
        return False

    def extended(self, call: Call) -> list[Call] | None:
        """Calls that compute only the new rows of a result and join them with the known first rows; None if the first
        rows are not known.
        """
        x = next((v for v in values_in(call.args) if v in self.grown), None)
        if x is None:
            return None
        grown, out = self.grown[x], call.outs[0]
        n, size = grown.head.shape[grown.dim], x.shape[grown.dim]
        for dim in [d for d, length in enumerate(out.shape) if length == size <= 2 * n]:
            lead = (ALL,) * dim
            rest = (ALL,) * (len(out.shape) - dim - 1)
            head = part_of(call, (*lead, slice(0, n), *rest), self.first_rows)
            made = None if head is None else self.known.get(mark(head))
            if made is None:
                continue
            b = Builder(call)
            tail = part_of(call, (*lead, slice(n, size), *rest), partial(self.new_rows, b))
            if tail is not None:
                return [*b.steps, tail, *self.joined(call, dim, made, tail.outs)]
        return None

    def first_rows(self, v: Value, box: Box) -> Value:
        """The known first rows of a value; for rows that are not known a new value, which matches no earlier call."""
        [dim] = [d for d, k in enumerate(box) if k != ALL]
        if v in self.grown and self.grown[v].dim == dim and self.grown[v].head.shape[dim] == box[dim].stop:
            return self.grown[v].head
        if v.kind == "constant":
            return self.constant(v._array[box])
        if v in self.read:
            x, found = self.read[v]
            d = [d for d, k in enumerate(found) if isinstance(k, range)][dim]
            made = self.known.get(("part", x, *found[:d], found[d][box[dim]], *found[d + 1 :]))
            if made is not None:
                return made[0]
        return Value(v._array[box])

    def new_rows(self, b: Builder, v: Value, box: Box) -> Value:
        [dim] = [d for d, k in enumerate(box) if k != ALL]
        if v in self.grown and self.grown[v].dim == dim and self.grown[v].head.shape[dim] == box[dim].start:
            return self.grown[v].tail
        if v.kind == "constant":
            return self.constant(v._array[box])
        return b.call(getitem, v, (*box, ...), shape=v._array[box].shape)

    def joined(self, call: Call, dim: int, heads: tuple[Value, ...], tails: tuple[Value, ...]) -> Iterator[Call]:
        """Join old and new rows, for readers of the whole result."""
        self.pays = self.pays or call.entry in COSTLY_OPS
        for out, head, tail in zip(call.outs, heads, tails):
            self.grown[out] = Grown(dim, head, tail)
            yield Call(cat.op.name, ((head, tail), dim), (out,), call.line, call.late, ())
