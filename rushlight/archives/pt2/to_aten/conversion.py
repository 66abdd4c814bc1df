"""A recorded graph as a graph of ATen's operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import place
from rushlight.compile.graph import Call, Graph, Store, Value, is_random
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor, from_array

from . import elementwise, layers, recurrent, reductions, shapes
from .rules import RULES, Step
from .writer import NotExpressed, Symbol, Writer

TABLES = elementwise, layers, recurrent, reductions, shapes  # loaded for their rules


class Conversion:
    """Writes the steps of a recorded graph. `tensors`: {id of an array: symbol} of weights and buffers, `inputs`: the
    symbols of the arguments. `problems`: a text for each step that ATen's operators do not express."""

    def __init__(self, graph: Graph, writer: Writer, tensors: dict[int, Symbol], inputs: Sequence[Symbol]):
        self.graph, self.writer, self.tensors = graph, writer, tensors
        self.of: dict[Value, Symbol] = {v: inputs[v.source[1]] for v in graph.inputs if v.source[0] == "argument"}
        self.made_by: dict[str, Step] = {}
        self.problems: list[str] = []
        self.stores: list[tuple[Symbol, Symbol]] = []  # (buffer, its new value)
        self.read = {v for step in graph.steps for v in values_of(step.args)} | {*graph.results}

    def write(self) -> None:
        """Write all steps. A step that fails is noted, and so are steps that read its results."""
        for step in self.graph.steps:
            try:
                self.write_step(step)
            except NotExpressed as error:
                self.problems.append(described(step, str(error)))
            except Missing:
                pass

    def write_step(self, step: Call | Store) -> None:
        """Write the calls for a step."""
        if isinstance(step, Store):
            self.stores.append((self.symbol(step.target), self.symbol(step.value)))
            return
        if is_random(step):
            raise NotExpressed("the step draws random numbers; export the model in evaluation mode: model.eval()")
        if not step.outs:
            return  # a check
        op = TABLE[step.op]
        if op not in RULES:
            raise NotExpressed("no operators of ATen are known for it")
        outs = tuple([(v.dtype, v.shape, v in self.read) for v in step.outs])
        made = Step(op, self.writer, self.argument(step.args), outs, self.made_by)
        found = RULES[op](made)
        for v, symbol in zip(
            step.outs, found if isinstance(found, (list, tuple)) and not isinstance(found, Symbol) else [found]
        ):
            if symbol is not None:
                self.of[v] = self.fitting(v, symbol)
                self.made_by[self.of[v].name] = made

    def fitting(self, v: Value, symbol: Symbol) -> Symbol:
        """The symbol of a result, cast to the dtype of the recorded one."""
        if symbol.shape != v.shape:
            raise NotExpressed(f"its result has the shape {list(symbol.shape)} instead of {list(v.shape)}")
        if symbol.tensor._array.dtype != v.dtype:
            dtype = from_array(np.zeros((), v.dtype)).dtype
            return self.writer.call("to.dtype", symbol, dtype, False, True)
        return symbol

    def argument(self, a: Any) -> Any:
        """An argument with symbols in place of values."""
        if isinstance(a, Value):
            return self.symbol(a)
        if type(a) in (tuple, list):
            return type(a)([self.argument(x) for x in a])
        return a

    def symbol(self, v: Value) -> Symbol:
        """The symbol of a value."""
        if v not in self.of:
            if v.kind == "input" and v.source[0] == "state":
                array = v.source[1]._array
                found = self.tensors.get(id(array))
                self.of[v] = self.writer.constant(np.asarray(array)) if found is None else found
            elif v.kind == "constant":
                self.of[v] = self.writer.constant(
                    np.asarray(v._array._array if isinstance(v._array, Tensor) else v._array)
                )
            else:
                raise Missing
        return self.of[v]


class Missing(Exception):
    """A value of a step that could not be written."""


def values_of(args: Any) -> Iterator[Value]:
    """The values among arguments, also inside lists and tuples."""
    for a in args:
        if isinstance(a, Value):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from values_of(a)


def described(step: Any, reason: str) -> str:
    """`sort of float32[2, 3]: the reason, at file.py:3: y = x.sort()`"""
    given = ", ".join([f"{v.dtype.name}{list(v.shape)}" for v in values_of(step.args)])
    where = f"\n    at {place(*step.line)}" if step.line else ""
    return f"{step.op} of {given}: {reason}{where}"
