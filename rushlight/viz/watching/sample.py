"""One training step that is watched closely: outputs of layers, gradients, updates, and the time of each op."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import get_ident
from time import perf_counter
from typing import Any

import numpy as np

from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.nn.hooks import Hooked
from rushlight.profiler.clocks import RUNNING, TURN, Clocks, Recorder, timed
from rushlight.viz.watching.samples import histogram, picked, rms, short

MAX_EVENTS = 20_000  # ops of one step; a longer one (an evaluation between two steps) is not timed
MAX_OPS = 12  # rows of the table of slow ops


# A kernel gets its timer once: all timers are put in place in 0.4 ms in place of 1.5 ms.
timer = lru_cache(maxsize=None)(timed)


class Sample:
    """From the end of one step to the end of the next. `outputs`: {module without children: elements of its output};
    `calls`: {outermost module: (arguments, keyword arguments, output)}."""

    def __init__(self) -> None:
        self.outputs: dict[Any, np.ndarray] = {}
        self.calls: dict[Any, tuple[tuple, dict[str, Any], Any]] = {}
        self.parameters: dict[int, tuple[np.ndarray, Any]] = {}  # number -> (values before the step, gradient)
        self.changes: dict[int, list[Any]] = {}  # number -> [histogram of values, of the gradient, update : data]
        self.stepped: list[Any] = []  # optimizers, in order
        self.step_time = self.began = self.seconds = 0.0
        self.thread: int | None = None  # the thread of the first module
        self.depth = 0
        self.clocks = Clocks(timer, modules=self.modules)
        self.recorder: Recorder | None = None

    def start(self) -> None:
        """Put the wrappers in place. Without times of ops if another profile records."""
        with TURN:
            if RUNNING:
                self.clocks.assign(Hooked, "__call__", self.modules(Hooked.__call__))
            else:
                self.clocks.put()
                self.recorder = Recorder(False)
                RUNNING.append(self.recorder)
        self.began = perf_counter()

    def stop(self) -> None:
        """Take the wrappers away. A second call does nothing."""
        with TURN:
            if self.recorder is not None and RUNNING and RUNNING[0] is self.recorder:
                RUNNING.clear()
            self.clocks.take()

    # -- while the step runs -----------------------------------------------------------------------

    def modules(self, call: Callable) -> Callable:
        """`Module.__call__`, which also keeps elements of the outputs."""

        def run(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            self.thread = self.thread or get_ident()
            if get_ident() != self.thread:
                return call(module, *args, **kwargs)
            self.depth += 1
            try:
                output = call(module, *args, **kwargs)
            finally:
                self.depth -= 1
            m = mode()
            if m.watch is None and m.batch is None:
                self.called(module, args, kwargs, output)
            return output

        return run

    def called(self, module: Any, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
        if self.depth == 0:
            self.calls.pop(module, None)
            self.calls[module] = args, kwargs, output
        if not module._modules:
            array = array_of(output[0] if isinstance(output, tuple) and output else output)
            if array is not None:
                self.outputs[module] = picked(array)

    def before_update(self, optimizer: Any, parameters: dict[int, Any]) -> None:
        """Keep values and gradients, before the optimizer changes the values."""
        for i, p in parameters.items():
            values, grad = array_of(p), array_of(p._grad)
            if values is not None:
                self.parameters[i] = picked(values), None if grad is None else picked(grad)
        self.step_time = -perf_counter()

    def after_update(self, optimizer: Any, parameters: dict[int, Any]) -> None:
        self.step_time += perf_counter()
        self.seconds = perf_counter() - self.began
        self.stepped.append(optimizer)
        for i, (before, grad) in self.parameters.items():
            if i in parameters and (values := array_of(parameters[i])) is not None:
                after, size = picked(values), rms(before)
                ratio = short(rms(after - before) / size) if size > 0 else None
                self.changes[i] = [histogram(after), None if grad is None else histogram(grad), ratio]

    # -- after the step ----------------------------------------------------------------------------

    def activations(self, number: dict[Any, int]) -> dict[int, Any]:
        """{number of the layer: histogram of its output}. `number`: {module: its number}."""
        return {number[m]: histogram(values) for m, values in self.outputs.items() if m in number}

    def ops(self) -> list[list[Any]]:
        """[name, milliseconds, calls] of the slowest ops of the step, without the ops inside them; the optimizer's
        step; and the rest of the time."""
        events = self.recorder.events if self.recorder is not None else []
        if not 0 < len(events) <= MAX_EVENTS:
            return []
        found: dict[str, list[float]] = {}
        for event in events:
            one = found.setdefault(event.name, [0.0, 0])
            one[0] += event.self_cpu_time_total / 1000
            one[1] += 1
        rows = sorted(((name, ms, int(count)) for name, (ms, count) in found.items()), key=lambda row: -row[1])
        others = rows[MAX_OPS:]
        step = 1000 * self.step_time
        rest = max(0.0, 1000 * self.seconds - step - sum(row[1] for row in rows))
        shown = [
            *rows[:MAX_OPS],
            ("optimizer.step()", step, len(self.stepped)),
            ("all other ops", sum(row[1] for row in others), sum(row[2] for row in others)),
            ("Python between the ops", rest, 1),
        ]
        return [[name, short(ms), count] for name, ms, count in sorted(shown, key=lambda row: -row[1]) if count]


def array_of(value: Any) -> np.ndarray | None:
    """The array of a dense tensor; None for other values."""
    if not isinstance(value, Tensor) or value.is_sparse:
        return None
    try:
        array = value._array
    except Exception:  # a tensor with another layout has no array
        return None
    return array if isinstance(array, np.ndarray) else None
