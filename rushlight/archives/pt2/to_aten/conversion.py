"""Recorded graphs of one model as a graph of ATen's operators.

`graphs`: the model's traces, which differ in the sizes of dynamic dimensions; one trace if there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import place
from rushlight.compile.graph import Graph, Store, Value, is_random
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor, from_array
from rushlight.onnx.to_onnx.conversion import difference, shape_of
from rushlight.onnx.to_onnx.sizes import Ambiguous, merged

from . import elementwise, layers, recurrent, reductions, shapes
from .rules import RULES, Step
from .varying_constants import written_constant
from .writer import NotExpressed, Symbol, Writer

TABLES = elementwise, layers, recurrent, reductions, shapes  # loaded for their rules


class Conversion:
    """Writes the steps of recorded graphs. `tensors`: {id of an array: symbol} of weights and buffers, `inputs`: the
    symbols of the arguments. `problems`: a text for each step that ATen's operators do not express; `ambiguous`: a
    problem that another trace may solve."""

    def __init__(self, graphs: Sequence[Graph], writer: Writer, tensors: dict[int, Symbol], inputs: Sequence[Symbol]):
        self.graphs, self.writer, self.tensors = graphs, writer, tensors
        graph = graphs[0]
        self.ambiguous: Ambiguous | None = None
        self.of: dict[Value, Symbol] = {v: inputs[v.source[1]] for v in graph.inputs if v.source[0] == "argument"}
        self.made_by: dict[str, Step] = {}
        self.problems: list[str] = []
        self.stores: list[tuple[Symbol, Symbol]] = []  # (buffer, its new value)
        self.read = {v for step in graph.steps for v in values_of(step.args)} | {*graph.results}

    def write(self) -> None:
        """Write all steps. A step that fails is noted, and so are steps that read its results."""
        first = self.graphs[0]
        for graph in self.graphs[1:]:
            if different := difference(first, graph):
                raise NotExpressed(
                    f"the model computes differently for other sizes of its dynamic dimensions: {different}"
                )
        for steps in zip(*[graph.steps for graph in self.graphs]):
            try:
                self.write_step(steps)
            except NotExpressed as error:
                self.ambiguous = error if isinstance(error, Ambiguous) else self.ambiguous
                self.problems.append(described(steps[0], str(error)))
            except Missing:
                pass

    def write_step(self, steps: Sequence[Any]) -> None:
        """Write the calls for a step, which is given from each trace."""
        step = steps[0]
        if isinstance(step, Store):
            self.stores.append((self.symbol([s.target for s in steps]), self.symbol([s.value for s in steps])))
            return
        if is_random(step):
            raise NotExpressed("the step draws random numbers; export the model in evaluation mode: model.eval()")
        if not step.outs:
            return  # a check
        op = TABLE[step.op]
        if op not in RULES:
            raise NotExpressed("no operators of ATen are known for it")
        shapes = [shape_of([s.outs[k] for s in steps]) for k in range(len(step.outs))]
        outs = tuple([(v.dtype, shape, v in self.read) for v, shape in zip(step.outs, shapes)])
        made = Step(op, self.writer, self.arguments(steps), outs, self.made_by)
        found = self.expressed(made)
        for v, shape, symbol in zip(step.outs, shapes, found):
            if symbol is not None:
                self.of[v] = self.fitting(v, shape, symbol)
                self.made_by[self.of[v].name] = made

    def expressed(self, step: Step) -> list[Symbol | None]:
        """The results of a step."""
        try:
            found = RULES[step.op](step)
        except (TypeError, ValueError, IndexError) as error:
            if len(self.graphs) == 1:
                raise
            raise NotExpressed(f"a setting depends on a dynamic dimension ({error})") from None
        return [*found] if isinstance(found, (list, tuple)) and not isinstance(found, Symbol) else [found]

    def arguments(self, steps: Sequence[Any]) -> Any:
        """The arguments of a step."""
        try:
            return self.argument([s.args for s in steps])
        except ValueError as error:
            raise NotExpressed(f"{error}, depending on a dynamic dimension") from None

    def fitting(self, v: Value, shape: tuple, symbol: Symbol) -> Symbol:
        """The symbol of a result, cast to the dtype of the recorded one."""
        if symbol.shape != shape:
            raise NotExpressed(f"its result has the shape {list(symbol.shape)} instead of {list(shape)}")
        if symbol.tensor._array.dtype != v.dtype:
            dtype = from_array(np.zeros((), v.dtype)).dtype
            return self.writer.call("to.dtype", symbol, dtype, False, True)
        return symbol

    def argument(self, each: Sequence[Any]) -> Any:
        """An argument, given from each trace, with symbols in place of values."""
        a = each[0]
        if isinstance(a, Value):
            return self.symbol(each)
        if type(a) in (tuple, list):
            if any(len(other) != len(a) for other in each):
                raise ValueError("the number of its arguments varies")
            return type(a)([self.argument(several) for several in zip(*each)])
        return a if len(each) == 1 else merged(each)

    def symbol(self, each: Sequence[Value]) -> Symbol:
        """The symbol of a value, given from each trace."""
        v = each[0]
        if v not in self.of:
            if v.kind == "input" and v.source[0] == "state":
                array = v.source[1]._array
                found = self.tensors.get(id(array))
                self.of[v] = self.writer.constant(np.asarray(array)) if found is None else found
            elif v.kind == "constant":
                self.of[v] = written_constant(self.writer, [*map(content, each)])
            else:
                raise Missing
        return self.of[v]


class Missing(Exception):
    """A value of a step that could not be written."""


def content(v: Value) -> np.ndarray:
    """The elements of a constant."""
    return np.asarray(v._array._array if isinstance(v._array, Tensor) else v._array)


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
