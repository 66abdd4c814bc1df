"""Ops that fuse better in parts: softmax is a largest element, an exponential and a sum, and so on."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Graph, Line, Value, substitute

REDUCTIONS = ("sum", "amax", "amin")


class Builder:
    """Appends calls, knowing the shape and dtype of what they give."""

    def __init__(self, line: Line):
        self.steps: list[Call] = []
        self.line = line

    def call(self, op: str, *args: Any, shape: tuple, dtype: np.dtype | None = None) -> Value:
        first = next(a for a in args if isinstance(a, Value))
        out = Value(np.broadcast_to(np.zeros((), dtype or first.dtype), shape))
        self.steps.append(Call(op, args, (out,), self.line))
        return out

    def element(self, op: str, *args: Any, dtype: np.dtype | None = None) -> Value:
        """An elementwise op; Python numbers become constants of the first value's dtype."""
        first = next(a for a in args if isinstance(a, Value))
        whole = tuple(a if isinstance(a, Value) else Value(np.asarray(a, first.dtype), "constant") for a in args)
        return self.call(op, *whole, shape=np.broadcast_shapes(*(a.shape for a in whole)), dtype=dtype)

    def reduce(self, op: str, x: Value, dims: tuple | None, keepdim: bool = True) -> Value:
        dims = tuple(range(len(x.shape))) if dims is None else dims
        shape = tuple(1 if i in dims else n for i, n in enumerate(x.shape) if keepdim or i not in dims)
        return self.call(op, x, dims, keepdim, shape=shape)


def softmax(b: Builder, x: Value, dim: int) -> Value:
    e = b.element("exp", b.element("sub", x, b.reduce("amax", x, (dim,))))
    return b.element("div", e, b.reduce("sum", e, (dim,)))


def log_softmax(b: Builder, x: Value, dim: int) -> Value:
    shifted = b.element("sub", x, b.reduce("amax", x, (dim,)))
    return b.element("sub", shifted, b.element("log", b.reduce("sum", b.element("exp", shifted), (dim,))))


def mean(b: Builder, x: Value, dims: tuple | None = None, keepdim: bool = False) -> Value:
    total = b.reduce("sum", x, dims, keepdim)
    return b.element("div", total, float(x.size // max(total.size, 1)))


def var_core(b: Builder, x: Value, dims: tuple | None, correction: float) -> Value:
    total = b.reduce("sum", x, dims)
    n = x.size // max(total.size, 1)
    d = b.element("sub", x, b.element("div", total, float(n)))
    return b.element("div", b.reduce("sum", b.element("mul", d, d), dims), float(n - correction))


def linear(b: Builder, x: Value, weight: Value, bias: Value | None) -> Value:
    across = b.call("transpose", weight, 0, 1, shape=weight.shape[::-1])
    product = b.call("mm", x, across, shape=(*x.shape[:-1], weight.shape[0]))
    return product if bias is None else b.element("add", product, bias)


PARTS: dict[str, Callable] = {f.__name__: f for f in (softmax, log_softmax, mean, var_core, linear)}


def decompose(graph: Graph) -> None:
    """Put the parts in place of such calls, where the numbers are of a kind that fuses."""
    steps: list[Any] = []
    by: dict[Value, Value] = {}
    for step in graph.steps:
        if not suits(step):
            steps.append(step)
            continue
        b = Builder(step.line)
        by[step.outs[0]] = PARTS[step.op](b, *step.args)
        by[step.outs[0]].array = step.outs[0].array
        steps += b.steps
    graph.steps = steps
    substitute(graph, by)


def suits(step: Any) -> bool:
    if step.op not in PARTS:
        return False
    out, x = step.outs[0], step.args[0]
    return out.dtype.name in ("float32", "float64") and x.dtype == out.dtype and x.size > 0 \
        and (step.op != "linear" or len(x.shape) == 2) and not empty_variance(step)


def empty_variance(step: Any) -> bool:
    """Whether a variance has nothing left to divide by: inf or nan, as the kernel says."""
    return step.op == "var_core" and step.args[0].size // max(step.outs[0].size, 1) <= step.args[2]
