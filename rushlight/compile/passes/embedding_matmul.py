"""Products with looked-up rows: if many indices refer to a small table, multiply the table instead of the rows.

    E[i] @ w + b                        (E @ w + b)[i]
    g.T @ E[i]                          s.T @ E         s: the rows of g added up by their i
    rows of g @ w added up by i         s @ w

For a step of a character model with 1600 indices and 65 rows, this saves a quarter of the time
(benchmarks/workloads.md, W6).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rushlight.compile.graph import Call, Graph, Store, Value, is_reshape, memory_of, substitute, values_in
from rushlight.compile.passes.decompose import Builder
from rushlight.ops.index.along_dim import embedding, embedding_grad
from rushlight.ops.linalg.matmul import mm
from rushlight.ops.math.elementwise import add
from rushlight.ops.shape.views import contiguous, permute, reshape, transpose, unpermute

MIN_LOOKUPS_PER_ROW = 4  # the pass pays off from this many indices per row of the table on
INVERSES = {permute.op: unpermute, unpermute.op: permute}  # permutation op -> its inverse
REALS = (np.dtype(np.float32), np.dtype(np.float64))


def look_up_later(graph: Graph) -> None:
    pass_ = Tables(graph)
    graph.steps = [new for step in graph.steps for new in pass_.step(step)]
    substitute(graph, pass_.by)


class Tables:
    """`rows`: value -> (table, index), where value = table[index] and the index has shape value.shape[:-1]. `products`:
    value -> (the matrix product, later calls that moved its rows)."""

    def __init__(self, graph: Graph):
        self.rows: dict[Value, tuple[Value, Value]] = {}
        self.products: dict[Value, tuple[Call, tuple[Call, ...]]] = {}
        self.by: dict[Value, Value] = {}
        self.origin, self.written = memory_of(graph), set()  # type: ignore[var-annotated]

    def step(self, step: Call | Store) -> Iterator[Call | Store]:
        """The step, or the steps that replace it."""
        if isinstance(step, Store):
            self.written.add(step.target)
        if not isinstance(step, Call) or len(step.outs) != 1:
            yield step
            return
        b, out = Builder(step), step.outs[0]
        self.note(b, step)
        made = self.forward(b, step) or self.weight(b, step) or self.table(b, step)
        yield from b.steps
        if made is None:
            yield step
        else:
            made._array, made.traced = out._array, out.traced
            self.by[out] = made

    def steady(self, *values: Value) -> bool:
        """Whether none of these values is a parameter that was written to."""
        return not any(self.origin.get(v, v) in self.written for v in values)

    def note(self, b: Builder, step: Call) -> None:
        """Record a result that is a lookup or a product, or that contains the moved rows of one. The index of a lookup
        moves with the rows.
        """
        x, out = step.args[0] if step.args and isinstance(step.args[0], Value) else None, step.outs[0]
        if step.runs(embedding) and step.args[2] is None and is_small(*step.args[:2]):
            self.rows[out] = step.args[0], step.args[1]
        elif is_product(step):
            self.products[out] = step, ()
        elif x in self.rows and moves_rows(step):
            table, index = self.rows[x]
            self.rows[out] = table, moved(b, step, index)
        elif x in self.products and moves_rows(step):
            product, calls = self.products[x]
            self.products[out] = product, (*calls, step)

    # -- the three rules ---------------------------------------------------------------------------

    def forward(self, b: Builder, step: Call) -> Value | None:
        """E[i] @ w, and E[i] + b."""
        if not step.runs(mm, add) or step.args[0] not in self.rows:
            return None
        x, other, out = *step.args, step.outs[0]
        if not (is_product(step) or step.runs(add) and is_bias(other, out)):
            return None
        table, index = self.rows[x]
        if not self.steady(table, index):
            return None
        shape = (table.shape[0], out.shape[-1])
        new = b.call(mm, table, other, shape=shape) if step.runs(mm) else b.element(add, table, other)
        self.rows[out] = new, index
        return b.call(embedding, new, index, None, shape=out.shape)

    def weight(self, b: Builder, step: Call) -> Value | None:
        """g.T @ E[i]."""
        if not is_product(step) or step.args[1] not in self.rows:
            return None
        turned, (table, index) = step.args[0], self.rows[step.args[1]]
        if not self.steady(table, index):
            return None
        g = b.call(transpose, turned, 0, 1, shape=turned.shape[::-1])
        total = added(b, g, index, table.shape[0])
        turned = b.call(transpose, total, 0, 1, shape=total.shape[::-1])
        return b.call(mm, turned, table, shape=step.outs[0].shape)

    def table(self, b: Builder, step: Call) -> Value | None:
        """Rows of g @ w added up."""
        if not step.runs(embedding_grad) or step.args[3] is not None or step.args[0] not in self.products:
            return None
        x, index, n, _ = step.args
        product, calls = self.products[x]
        g, w = product.args
        if index.size < MIN_LOOKUPS_PER_ROW * n or index.shape != x.shape[:-1] or not self.steady(g, w, index):
            return None
        for call in reversed(calls):
            index = moved(b, call, index, back=True)
        return b.call(mm, added(b, g, index, n), w, shape=step.outs[0].shape)


def added(b: Builder, g: Value, index: Value, n: int) -> Value:
    """(places, m) -> (n, m): rows added up by their index."""
    return b.call(embedding_grad, g, index, n, None, shape=(n, g.shape[1]))


def is_small(table: Value, index: Value) -> bool:
    return table.dtype in REALS and len(index.shape) > 0 and index.size >= MIN_LOOKUPS_PER_ROW * table.shape[0]


def is_product(step: Call) -> bool:
    """Whether the step is a product of two real matrices."""
    return step.runs(mm) and all(
        len(v.shape) == 2 and v.dtype == step.outs[0].dtype and v.dtype in REALS for v in values_in(step.args)
    )


def is_bias(v: object, out: Value) -> bool:
    return isinstance(v, Value) and v.shape == out.shape[-1:] and v.dtype == out.dtype


def moves_rows(step: Call) -> bool:
    """Whether a call only moves rows: the elements of each row stay together, in order."""
    x, out = step.args[0], step.outs[0]
    last = len(x.shape) - 1
    if step.runs(transpose):
        return last not in (d % (last + 1) for d in step.args[1:])
    if step.entry in INVERSES:
        return step.args[1][-1] % (last + 1) == last
    in_order = is_reshape(step) or step.runs(contiguous)
    return in_order and out.shape[-1:] == x.shape[-1:] and len(out.shape) > 1 and x.size > 0


def moved(b: Builder, step: Call, index: Value, back: bool = False) -> Value:
    """The index after the call moved its rows; `back`: the index before that move."""
    x, out = step.args[0], step.outs[0]
    to = (x if back else out).shape[:-1]
    if step.runs(transpose):
        return b.call(transpose, index, *(d % len(x.shape) for d in step.args[1:]), shape=to)
    op = step.entry
    if op is not None and op in INVERSES:
        dims = tuple(d % len(x.shape) for d in step.args[1][:-1])
        return b.call(INVERSES[op] if back else op.call, index, dims, shape=to)
    return b.call(reshape, index, to, shape=to)
