"""Transposes around matrix products: BLAS reads transposed operands without extra cost, loops and copies do not."""

from __future__ import annotations

from rushlight.compile.graph import Call, Graph, Value, substitute
from rushlight.compile.passes.decompose import Builder
from rushlight.ops.linalg.matmul import mm
from rushlight.ops.shape.views import permute, transpose, unpermute


def turn_products(graph: Graph) -> None:
    """(a b)^T becomes b^T a^T if a b has no other reader, and (a^T)^T becomes a."""
    cancel(graph)
    users = graph.users()
    final = set(graph.outputs())
    maker = {v: s for s in graph.steps if isinstance(s, Call) for v in s.outs}
    instead: dict[int, list[Call]] = {}
    by: dict[Value, Value] = {}
    for step in graph.steps:
        product = maker.get(step.args[0]) if isinstance(step, Call) and is_transpose(step) else None
        if product is None or not product.runs(mm) or len(users[step.args[0]]) > 1 or step.args[0] in final:
            continue
        b = Builder(product)
        a, c = product.args
        turned = [b.call(transpose, x, 0, 1, shape=x.shape[::-1]) for x in (c, a)]
        by[step.outs[0]] = b.call(mm, *turned, shape=step.outs[0].shape)
        by[step.outs[0]]._array, by[step.outs[0]].traced = step.outs[0]._array, step.outs[0].traced
        instead[id(product)], instead[id(step)] = b.steps, []
    graph.steps = [new for s in graph.steps for new in instead.get(id(s), [s])]
    substitute(graph, by)
    cancel(graph)


def cancel(graph: Graph) -> None:
    """Remove pairs of transposes."""
    turned: dict[Value, Value] = {}
    by: dict[Value, Value] = {}
    for step in graph.steps:
        if isinstance(step, Call) and is_transpose(step):
            x = by.get(step.args[0], step.args[0])
            if x in turned:
                by[step.outs[0]] = turned[x]
            else:
                turned[step.outs[0]] = x
    substitute(graph, by)


def is_transpose(call: Call) -> bool:
    """Whether a call swaps the two dimensions of a matrix."""
    if not call.args or not isinstance(call.args[0], Value) or len(call.args[0].shape) != 2:
        return False
    if call.runs(transpose):
        return {d % 2 for d in call.args[1:]} == {0, 1}
    return call.runs(permute, unpermute) and tuple(d % 2 for d in call.args[1]) == (1, 0)
