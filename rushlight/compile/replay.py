"""A recorded run once more, as far as somebody asks: what the values of a program are compared with.

The traced run keeps none of the arrays that its ops made, as eager keeps none. Here the same ops run on the same inputs,
when a value is asked for, and an array goes when nobody will ask for it or compute with it again.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np

from rushlight.autograd.grad_mode import within
from rushlight.compile.graph import Call, Graph, Store, Value, is_random, values_in, with_each
from rushlight.compile.noise import Noise, of_half
from rushlight.compile.sources import keyed
from rushlight.ops.table import TABLE
from rushlight.tensor import from_array


class Replay:
    """`value(number)`: the array of the value that the run made as its number-th."""

    def __init__(self, graph: Graph):
        """`graph`: as recorded; passes may change it afterwards."""
        self.maker = {v.traced: Call(s.op, s.args, s.outs, s.line, shares=()) for s in graph.steps for v in s.outs}
        self.inputs = list(graph.inputs)
        self.results = list(graph.results)
        self.grads = [v for v in (*[v for _, v in graph.grads], *graph.wrt) if v is not None]
        self.written = {keyed(s.target.source): s.value for s in graph.steps if isinstance(s, Store)}
        self.halves = any(of_half(v.dtype) for s in graph.steps for v in s.outs)
        self.drew: dict[int, np.ndarray] = {}     # random numbers
        self.unsure: dict[int, Callable[[Noise], np.ndarray]] = {}            # what a program keeps for backward, by number
        self.noise: Noise | None = None
        self.known: dict[Any, np.ndarray] = {}    # numbers of values, and inputs -> arrays
        self.left: Counter = Counter()            # how often each will be asked for, and computed with

    def begin(self, arrays: Iterable[np.ndarray], asked: Counter) -> None:
        """With these inputs; `asked`: how often each value will be asked for."""
        self.known = dict(zip(self.inputs, arrays))
        self.left = Counter(asked)
        todo, seen = list(asked), set()
        for number in todo:                       # grows while it is read
            step = self.maker[number]
            if id(step) not in seen and not is_random(step):
                seen.add(id(step))
                needs = needed(step)
                self.left.update(needs)
                todo += needs

    def value(self, number: int) -> np.ndarray:
        """The array, which its caller may keep but not change."""
        todo = [number]
        while todo:
            step = self.maker[todo[-1]]
            missing = [n for n in needed(step) if n not in self.known]
            if todo[-1] in self.known:
                todo.pop()
            elif missing:
                todo += missing
            else:
                self.run(step)
        array = self.known[number]
        self.done([number])
        return array

    def drawn(self, number: int, array: np.ndarray) -> None:
        """Random numbers are not drawn twice: these are the ones."""
        self.known[number] = self.drew[number] = array.copy()

    def shaken(self, arrays: list[np.ndarray], written: list) -> Iterator[list[np.ndarray]]:
        """What the whole run gives (results, memory `written` to, gradients) if each op rounds in its own way."""
        ends = [*self.results, *[self.written[keyed(source)] for source in written], *self.grads]
        for seed in count():
            self.noise = Noise(seed, halves=seed > 0)         # or of two tries every other moves none
            self.begin(arrays, Counter(v.traced for v in ends if v.traced))
            self.known.update(self.drew)
            yield [v.array if v.kind == "constant" else self.value(v.traced) if v.traced else self.known[v] for v in ends]

    def run(self, step: Call) -> None:
        """The op, in the way that it went: of one or two arrays element by element as a function of tensors, which may know
        a faster one than the kernel (ops/large.py)."""
        def array(v: Value) -> np.ndarray:
            return v.array if v.kind == "constant" else self.known[v.traced or v]
        assert not is_random(step), step
        op = TABLE[step.op]
        with np.errstate(all="ignore"):
            if op.family.__name__ in ("unary", "binary"):
                with within(grad=False, watch=None):
                    made = op.call(*with_each(tuple(step.args), lambda v: from_array(array(v)))).array
            else:
                made = op.kernel(*with_each(tuple(step.args), array))
        for v, a in zip(step.outs, made if isinstance(made, (tuple, list)) else [made]):
            if self.left[v.traced]:
                a = np.asarray(a)
                self.known[v.traced] = a if self.noise is None else self.noise.after(step, a)
        self.done(needed(step))

    def done(self, numbers: Iterable[int]) -> None:
        self.left.subtract(numbers)
        for n in numbers:
            if self.left[n] <= 0:
                self.known.pop(n, None)


def needed(step: Call) -> list[int]:
    """The numbers of the values that a step computes with."""
    return list({v.traced for v in values_in(step.args) if v.traced})
