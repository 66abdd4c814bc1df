"""A model's forward as a recorded graph, for the texts and libraries of an export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.base.errors import type_error
from rushlight.compile.capture.trace_summary import Outline
from rushlight.compile.graph import Graph, drop_unused
from rushlight.compile.native.schedule import copied
from rushlight.compile.run.compiled_function import CannotCompile, Compiled
from rushlight.compile.run.eager_run import EagerRun
from rushlight.core.tensor import Tensor

STEADY = "let the model store values that change in buffers, and write there (`self.n += 1`, `copy_`)"
TENSORS = "let the model compute with tensors alone, and do what needs numbers outside"


class Recorder(Compiled):
    """Runs the function eagerly under a tracer. `outline`: the last run's, if the run before did the same; with `once`,
    the first run's."""

    outline: Outline | None = None
    once = False

    def in_its_place(self, run: EagerRun, kind: Any, last: Outline | None, problem: str | None, call: tuple) -> Any:
        """The run's own result: no program is made."""
        if run.outline is None:
            self.give_up(problem or "cannot be compiled", run.tracer.stops)
            return run.result
        if last is not None:
            self.unsteady = run.outline.unsteady(last) or run.draws.mixed or ""
            self.outline = None if self.unsteady else run.outline
        elif self.once:
            self.outline = run.outline
        self.last[kind] = run.outline
        return run.result


def refused(compiled: Compiled, error: str, hint: str) -> CannotCompile:
    """The error for a function that is not one program, with the lines of its graph breaks."""
    lines = [f"  {b.where}\n    {b.reason}" for b in compiled.breaks]
    return CannotCompile("\n".join([f"export: {error}", *lines, f"  hint: {hint}"]))


def recorded(
    model: Callable, args: tuple, kwargs: dict[str, Any] | None = None, once: bool = False
) -> tuple[Graph, Any]:
    """(the graph of the model's forward, the plan of its result). CannotCompile with the lines of the graph breaks.

    The model runs twice, to see that it does the same; with `once`, a single time."""
    recorder = Recorder(model, True)
    recorder.once = once
    try:
        for _ in range(4):
            recorder(*args, **(kwargs or {}))
            if recorder.outline is not None:
                graph = recorder.outline.graph
                own = Graph(list(map(copied, graph.steps)), [*graph.inputs], [*graph.results], grads=[*graph.grads])
                drop_unused(own)
                return own, recorder.outline.plan
    except CannotCompile as error:
        raise refused(recorder, str(error), STEADY if recorder.unsteady else TENSORS) from None
    raise refused(recorder, f"{recorder.name} {recorder.unsteady or 'does something else in each run'}", STEADY)


def results_of(plan: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """(name, number of the result) of each array in the model's result, without Python's values. TypeError for a result
    that is an input, or does not depend on the inputs."""
    kind, what = plan
    if kind == "tensor":
        yield path, what[0]
    elif kind == "value" and not isinstance(what, Tensor):
        return
    elif kind in ("list", "dict", "object"):
        cls, inside = what
        names = cls if kind == "dict" else getattr(cls, "names", None) or range(len(inside))
        for name, part in zip(names, inside):
            yield from results_of(part, f"{path}_{name}" if path else str(name))
    else:
        raise type_error(
            "export: a part of the model's result is an input, or does not depend on the inputs",
            "return only new tensors that the model computes",
        )


def empty_like(graph: Graph) -> list[np.ndarray]:
    """Arrays in C order, like the graph's results."""
    return [np.empty(v.shape, v.dtype) for v in graph.results]
