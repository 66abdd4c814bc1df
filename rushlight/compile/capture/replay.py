"""Recompute the values of a traced run, to compare a program's values with them.

The traced run does not keep the arrays of its ops. `Replay` runs the same ops on the same inputs when a value is
needed, and frees an array after its last use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np

from rushlight.compile.capture.input_sources import keyed
from rushlight.compile.graph import Call, Graph, Store, Value, is_random, values_in, with_each
from rushlight.compile.run.tolerance import Noise, of_half
from rushlight.core.mode import within
from rushlight.core.table import TABLE
from rushlight.core.tensor import from_array


class Replay:
    """`value(number)`: the array of the run's value with this number (`Value.traced`)."""

    def __init__(self, graph: Graph):
        """`graph`: the graph as recorded. Passes may change it afterwards."""
        self.maker = {v.traced: Call(s.op, s.args, s.outs, s.line, shares=()) for s in graph.steps for v in s.outs}
        self.inputs = list(graph.inputs)
        self.results = list(graph.results)
        self.grads = [v for v in (*[v for _, v in graph.grads], *graph.wrt) if v is not None]
        self.written = {keyed(s.target.source): s.value for s in graph.steps if isinstance(s, Store)}
        self.halves = any(of_half(v.dtype) for s in graph.steps for v in s.outs)
        self.drew: dict[int, np.ndarray] = {}  # number of a value that holds random numbers -> its array
        # values that a program saves for backward but the traced run did not have: index -> function of the noise
        self.unsure: dict[int, Callable[[Noise], np.ndarray]] = {}
        self.noise: Noise | None = None
        self.known: dict[Any, np.ndarray] = {}  # number of a value, or an input -> array
        self.left: Counter = Counter()  # number of a value -> remaining number of reads

    def begin(self, arrays: Iterable[np.ndarray], asked: Counter) -> None:
        """Start with these arrays as inputs. `asked`: the number of reads of each value by the caller."""
        self.known = dict(zip(self.inputs, arrays))
        self.left = Counter(asked)
        todo, seen = list(asked), set()
        for number in todo:  # the list grows in the loop
            step = self.maker[number]
            if id(step) not in seen and not is_random(step):
                seen.add(id(step))
                needs = needed(step)
                self.left.update(needs)
                todo += needs

    def value(self, number: int) -> np.ndarray:
        """The array of a value. The caller may keep the array, but must not write to it."""
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
        """Set the random numbers that the program has drawn; `Replay` does not draw them again."""
        self.known[number] = self.drew[number] = array.copy()

    def shaken(self, arrays: list[np.ndarray], written: list) -> Iterator[list[np.ndarray]]:
        """Repeats the run endlessly, each time with other rounding noise after each op. Yields the results, the
        `written` memory and the gradients of each run."""
        ends = [*self.results, *[self.written[keyed(source)] for source in written], *self.grads]
        for seed in count():
            # the first run, with which the others are compared, has no noise in half precision
            self.noise = Noise(seed, halves=seed > 0)
            self.begin(arrays, Counter(v.traced for v in ends if v.traced))
            self.known.update(self.drew)
            yield [
                v._array if v.kind == "constant" else self.value(v.traced) if v.traced else self.known[v] for v in ends
            ]

    def run(self, step: Call) -> None:
        """Run the op as eager did. The call of a unary or binary op may choose a loop (fast/elementwise.py); any other
        op runs by its kernel.
        """

        def array(v: Value) -> np.ndarray:
            return v._array if v.kind == "constant" else self.known[v.traced or v]

        assert not is_random(step), step
        op = TABLE[step.op]
        with np.errstate(all="ignore"):
            if op.family.__name__ in ("unary", "binary"):
                with within(grad=False, watch=None):
                    made = op.call(*with_each(tuple(step.args), lambda v: from_array(array(v))))._array
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
    """The numbers of a step's input values, each once."""
    return list({v.traced for v in values_in(step.args) if v.traced})
