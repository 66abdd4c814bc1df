"""The timing wrappers around kernels, modules and the engine, and the recorded calls."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import wraps
from threading import Lock, get_ident
from typing import Any

import numpy as np

import rushlight.core.backward  # noqa: F401  (the module; `autograd.backward` is the function of that name)
from rushlight.base import lazy
from rushlight.core.node import tick
from rushlight.core.table import TABLE
from rushlight.profiler.torch_names import ACCUMULATE, profiler_name
from rushlight.profiler.units import time_text


class Event:
    """A recorded call: `name`, `kind` ('op', 'backward', 'module', 'collective' or 'user'), times in microseconds,
    bytes of its result.

    `within`: the module call around it. `path`: a module's name in the tree, "2.attention". `seq`: ticks of the
    autograd clock: for a node the tick of its making, for a module call the ticks of its begin and end."""

    __slots__ = (
        "name", "kind", "start", "end", "inside", "bytes", "shapes", "thread", "depth", "within", "path", "seq",
    )  # fmt: skip

    def __init__(self, name: str, kind: str, shapes: list | None, depth: int, within: Event | None = None):
        self.name, self.kind, self.shapes, self.depth, self.within = name, kind, shapes, depth, within
        self.start, self.end, self.inside, self.bytes, self.thread = 0.0, 0.0, 0.0, 0, get_ident()
        self.path, self.seq = "", (0, 0)

    count = 1  # number of calls

    @property
    def key(self) -> str:
        """The name by which `key_averages` groups."""
        return self.name

    @property
    def is_async(self) -> bool:
        """Whether it is an operation between ranks, which ends while the program continues."""
        return self.kind == "collective"

    @property
    def input_shapes(self) -> list:
        """The shapes of its inputs, with record_shapes=True."""
        return self.shapes or []

    @property
    def cpu_time_total(self) -> float:
        return self.end - self.start

    @property
    def cpu_time(self) -> float:
        """Microseconds."""
        return self.cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds, excluding the calls inside it."""
        return max(self.cpu_time_total - self.inside, 0.0)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {time_text(self.cpu_time_total)}>"


class Recorder:
    """The events of the current profile. `open`: thread -> stack of unfinished events."""

    def __init__(self, shapes: bool):
        self.events: list[Event] = []
        self.open: dict[int, list[Event]] = {}
        self.modules: dict[Event, Any] = {}  # unfinished call -> its module
        self.shapes = shapes

    def enter(self, name: str, kind: str, shapes: list | None = None) -> Event:
        stack = self.open.setdefault(get_ident(), [])
        within = stack[-1] if stack else None
        if within is not None and within.kind != "module":
            within = within.within
        event = Event(name, kind, shapes, len(stack), within)
        stack.append(event)
        event.start = time.perf_counter_ns() / 1000
        return event

    def leave(self, event: Event) -> None:
        event.end = time.perf_counter_ns() / 1000
        stack = self.open.get(get_ident(), [])
        if event not in stack:  # it began before the recording
            return
        while stack.pop() is not event:
            pass  # calls that an error left open
        if stack:
            stack[-1].inside += event.cpu_time_total
        if event.name:  # the event at the end of a backward has no name
            self.events.append(event)


RUNNING: list[Recorder] = []  # at most one element
TURN = Lock()  # lock for starting and stopping


# -- timing wrappers -------------------------------------------------------------------------------


def timed(name: str, kernel: Callable) -> Callable:
    """The kernel with its calls recorded."""
    shown = profiler_name(name)

    @wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not RUNNING:
            return kernel(*args, **kwargs)
        recorder = RUNNING[0]
        shapes = [list(a.shape) for a in args if isinstance(a, np.ndarray)] if recorder.shapes else None
        event = recorder.enter(shown if isinstance(shown, str) else shown(args), "op", shapes)
        try:
            out = kernel(*args, **kwargs)
            event.bytes = size_of(out, args)
            return out
        finally:
            recorder.leave(event)

    return run


def size_of(out: Any, args: tuple = ()) -> int:
    """The bytes of new arrays in an op's output; a view of an argument counts 0."""
    if isinstance(out, (tuple, list)):
        return sum(size_of(part, args) for part in out)
    if not isinstance(out, np.ndarray):
        return 0
    given = [a for a in args if isinstance(a, np.ndarray)]
    new = out.base is None or bool(given) and not any(out.base is a or out.base is a.base for a in given)
    return out.nbytes if new else 0


def timed_steps(steps: Callable) -> Callable:
    """The engine with each node recorded."""

    def run(*args: Any, **kwargs: Any) -> Iterator:
        walk = steps(*args, **kwargs)
        while True:
            recorder = RUNNING[0] if RUNNING else None
            event = recorder.enter("", "backward") if recorder is not None else None
            done = None
            try:
                done = next(walk, None)
            finally:
                if recorder is not None and event is not None:
                    event.name = "" if done is None else name_of(done[0])
                    event.seq = (0, 0) if done is None or done[0].leaf else (done[0].seq, done[0].seq)
                    recorder.leave(event)
            if done is None:
                return
            if event is not None:
                event.bytes = sum(size_of(g) for g in done[2])
            yield done

    return run


def name_of(node: Any) -> str:
    return ACCUMULATE if node.leaf else node.name()


def timed_modules(call: Callable) -> Callable:
    """`Module.__call__` with each call recorded under the module's class."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not RUNNING:
            return call(self, *args, **kwargs)
        recorder = RUNNING[0]
        event = recorder.enter(f"nn.Module: {type(self).__name__}", "module")
        event.path, begin = path_of(self, recorder, event), tick()
        try:
            return call(self, *args, **kwargs)
        finally:
            event.seq = begin, tick()
            recorder.leave(event)
            recorder.modules.pop(event, None)

    return run


def path_of(module: Any, recorder: Recorder, event: Event) -> str:
    """The module's name relative to the outermost module that is being called; "" for that module."""
    recorder.modules[event] = module
    above = event.within
    while above is not None:
        owner = recorder.modules.get(above)
        name = next((name for name, m in owner.named_modules() if m is module), "") if owner is not None else ""
        if name:
            return f"{above.path}.{name}" if above.path else name
        above = above.within
    return ""


class Clocks:
    """Installs and removes wrappers around kernels, the engine and modules; by default the timing wrappers."""

    def __init__(
        self, kernel: Callable = timed, steps: Callable = timed_steps, modules: Callable = timed_modules
    ) -> None:
        self.kernel, self.steps, self.modules = kernel, steps, modules
        self.undo: list[Callable[[], None]] = []

    def put(self) -> None:
        lazy.complete()
        ops = [*TABLE.values(), *TABLE.own.values()]
        for op, call in [(one, call) for one in ops for call in getattr(one.call, "forms", (one.call,))]:
            cells = dict(zip(call.__code__.co_freevars, call.__closure__ or ()))
            if "kernel" in cells:
                self.swap(cells["kernel"], self.kernel(op.called, cells["kernel"].cell_contents))
        engine = sys.modules["rushlight.core.backward"]
        self.assign(engine, "steps", self.steps(engine.steps))
        nn = sys.modules.get("rushlight.nn.hooks")
        if nn is not None:
            self.assign(nn.Hooked, "__call__", self.modules(nn.Hooked.__call__))

    def swap(self, cell: Any, value: Any) -> None:
        known = cell.cell_contents
        cell.cell_contents = value
        self.undo.append(lambda: setattr(cell, "cell_contents", known))

    def assign(self, owner: Any, name: str, value: Any) -> None:
        known = getattr(owner, name)
        setattr(owner, name, value)
        self.undo.append(lambda: setattr(owner, name, known))

    def take(self) -> None:
        while self.undo:
            self.undo.pop()()
