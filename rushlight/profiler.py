"""Where the time goes: each op forward and backward, each module, each block of one's own. torch's API.

While a profile records, the kernel of every op is called through a clock; otherwise nothing is: ops run as they are.
One profile records at a time, in the whole process.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from enum import Enum
from functools import wraps
from threading import Lock, get_ident
from typing import Any

import numpy as np

import rushlight.autograd.backward  # noqa: F401  (the module, whose name in the package is the function's)
from rushlight.ops import later
from rushlight.ops.table import TABLE

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "tensorboard_trace_handler"]

ProfilerActivity = Enum("ProfilerActivity", "CPU XPU MTIA CUDA HPU PrivateUse1", start=0)
ProfilerAction = Enum("ProfilerAction", "NONE WARMUP RECORD RECORD_AND_SAVE DEVICE_STOPPED", start=0)
UNITS = (("s", 1e6), ("ms", 1e3), ("us", 1.0))
SORTS = ("cpu_time_total", "self_cpu_time_total", "cpu_time", "count", "cpu_memory_usage", "self_cpu_memory_usage")


class Event:
    """One call: `name`, `kind` ('op', 'backward', 'module' or 'user'), times in microseconds, bytes of its result."""

    __slots__ = ("name", "kind", "start", "end", "inside", "bytes", "shapes", "thread", "depth")

    def __init__(self, name: str, kind: str, shapes: list | None, depth: int):
        self.name, self.kind, self.shapes, self.depth = name, kind, shapes, depth
        self.start, self.end, self.inside, self.bytes, self.thread = 0.0, 0.0, 0.0, 0, get_ident()

    @property
    def cpu_time_total(self) -> float:
        return self.end - self.start

    @property
    def self_cpu_time_total(self) -> float:
        """Without the calls inside it."""
        return max(self.cpu_time_total - self.inside, 0.0)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {told(self.cpu_time_total)}>"


class Recorder:
    """The events of the profile that records now. `open`: those under way, by thread."""

    def __init__(self, shapes: bool):
        self.events: list[Event] = []
        self.open: dict[int, list[Event]] = {}
        self.shapes = shapes

    def enter(self, name: str, kind: str, shapes: list | None = None) -> Event:
        stack = self.open.setdefault(get_ident(), [])
        event = Event(name, kind, shapes, len(stack))
        stack.append(event)
        event.start = time.perf_counter_ns() / 1000
        return event

    def leave(self, event: Event) -> None:
        event.end = time.perf_counter_ns() / 1000
        stack = self.open.get(get_ident(), [])
        if event not in stack:  # it began before the recording did
            return
        while stack.pop() is not event:
            pass  # what an error left open
        if stack:
            stack[-1].inside += event.cpu_time_total
        if event.name:  # not the end of a walk
            self.events.append(event)


RUNNING: list[Recorder] = []  # at most one
TURN = Lock()  # for starting and stopping


# -- clocks in front of kernels, modules and the engine ----------------------------------------------------------------


def timed(name: str, kernel: Callable) -> Callable:
    """The kernel, its calls recorded."""

    @wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not RUNNING:
            return kernel(*args, **kwargs)
        recorder = RUNNING[0]
        shapes = [list(a.shape) for a in args if isinstance(a, np.ndarray)] if recorder.shapes else None
        event = recorder.enter(name, "op", shapes)
        try:
            out = kernel(*args, **kwargs)
            event.bytes = size_of(out)
            return out
        finally:
            recorder.leave(event)

    return run


def size_of(out: Any) -> int:
    """Bytes of new arrays; a view has none of its own."""
    if isinstance(out, (tuple, list)):
        return sum(map(size_of, out))
    return out.nbytes if isinstance(out, np.ndarray) and out.base is None else 0


def timed_steps(steps: Callable) -> Callable:
    """The engine, each of its nodes recorded."""

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
                    recorder.leave(event)
            if done is None:
                return
            if event is not None:
                event.bytes = sum(size_of(g) for g in done[2])
            yield done

    return run


def name_of(node: Any) -> str:
    return "autograd::accumulate_grad" if node.leaf else node.name()


def timed_modules(call: Callable) -> Callable:
    """`Module.__call__`, recorded with the module's class."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not RUNNING:
            return call(self, *args, **kwargs)
        recorder = RUNNING[0]
        event = recorder.enter(f"nn.Module: {type(self).__name__}", "module")
        try:
            return call(self, *args, **kwargs)
        finally:
            recorder.leave(event)

    return run


class Clocks:
    """What a recording puts in front of things, and takes away again."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []

    def put(self) -> None:
        later.complete()
        for op in TABLE.values():
            cells = dict(zip(op.call.__code__.co_freevars, op.call.__closure__ or ()))  # type: ignore[attr-defined]
            if "kernel" in cells:
                self.swap(cells["kernel"], timed(op.called, cells["kernel"].cell_contents))
        engine = sys.modules["rushlight.autograd.backward"]
        self.assign(engine, "steps", timed_steps(engine.steps))
        nn = sys.modules.get("rushlight.nn.hooks")
        if nn is not None:
            self.assign(nn.Hooked, "__call__", timed_modules(nn.Hooked.__call__))

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


# -- results ---------------------------------------------------------------------------------------------------------


class Average:
    """All calls of one name: `key`, `count`, times in microseconds, bytes."""

    def __init__(self, key: str, shapes: list | None, events: list[Event]):
        self.key, self.input_shapes, self.count = key, shapes, len(events)
        self.cpu_time_total = sum(e.cpu_time_total for e in events)
        self.self_cpu_time_total = sum(e.self_cpu_time_total for e in events)
        self.cpu_memory_usage = self.self_cpu_memory_usage = sum(e.bytes for e in events)
        self.is_user_annotation = any(e.kind == "user" for e in events)

    @property
    def cpu_time(self) -> float:
        """Microseconds of one call, on average."""
        return self.cpu_time_total / self.count

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, {told(self.cpu_time_total)}>"


class Averages(list):
    """What `key_averages()` returns: a list of `Average`, with `table()`."""

    @property
    def self_cpu_time_total(self) -> float:
        return sum(row.self_cpu_time_total for row in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
              max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False, time_unit: str | None = None) -> str:  # fmt: skip
        """A table, the largest first: `sort_by` is 'self_cpu_time_total', 'cpu_time_total', 'cpu_time', 'count' or
        'cpu_memory_usage'; without it the order is that of the first calls."""
        if sort_by is not None and sort_by not in SORTS:
            raise AttributeError(f"profiler: cannot sort by {sort_by!r}; choose one of {', '.join(SORTS)}")
        rows = self if sort_by is None else sorted(self, key=lambda row: getattr(row, sort_by), reverse=True)
        whole = self.self_cpu_time_total or 1.0
        shaped = any(row.input_shapes is not None for row in self)
        head = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "CPU Mem", "# of Calls"]
        lines = [head + ["Input Shapes"] * shaped]
        for row in rows[: row_limit if row_limit >= 0 else None]:
            lines.append([row.key[:max_name_column_width], f"{row.self_cpu_time_total / whole:.2%}",
                          told(row.self_cpu_time_total, time_unit), f"{row.cpu_time_total / whole:.2%}",
                          told(row.cpu_time_total, time_unit), told(row.cpu_time, time_unit), in_bytes(row.cpu_memory_usage),
                          str(row.count)] + [str(row.input_shapes)[:max_shapes_column_width]] * shaped)  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*lines)]
        rule = "  ".join("-" * width for width in widths)
        text = ["  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:]))]) for line in lines]
        total = f"Self CPU time total: {told(self.self_cpu_time_total, time_unit)}"
        return "\n".join([*([header] if header else []), rule, text[0], rule, *text[1:], rule, total]) + "\n"

    def __str__(self) -> str:
        return self.table()


def told(us: float, unit: str | None = None) -> str:
    name, size = next(((n, s) for n, s in UNITS if (n == unit if unit else us >= s)), UNITS[-1])
    return f"{us / size:.3f}{name}"


def in_bytes(count: int) -> str:
    for name, size in (("Gb", 2**30), ("Mb", 2**20), ("Kb", 2**10)):
        if count >= size:
            return f"{count / size:.2f} {name}"
    return f"{count} b"


# -- the profile -----------------------------------------------------------------------------------------------------


class profile:
    """Record ops, backward nodes, modules and blocks inside it: a context manager, as torch.profiler.profile.

    `schedule`: a function of the step number that says what to do, see `schedule()`; call `step()` after each step.
    `on_trace_ready(prof)`: called when a recording is done. `record_shapes`: keep the inputs' shapes. Accepted, and
    without effect on a CPU: `activities`, `profile_memory` (bytes are always counted), `with_stack`, `with_flops`,
    `with_modules` (modules are always recorded). The time of an op is its kernel's; the few hundred nanoseconds
    around it belong to the module or block that calls it.

    >>> x = rushlight.ones(8, 8, requires_grad=True)
    >>> with rushlight.profiler.profile() as prof:
    ...     (x @ x).sum().backward()
    >>> sorted(row.key for row in prof.key_averages())[:3]
    ['MmBackward0', 'SumBackward0', 'autograd::accumulate_grad']
    """

    def __init__(self, *, activities: Any = None, schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[[profile], Any] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
                 acc_events: bool = False, use_cuda: bool | None = None, custom_trace_id_callback: Any = None):  # fmt: skip
        self.activities, self.schedule, self.on_trace_ready = activities, schedule, on_trace_ready
        self.record_shapes, self.acc_events = record_shapes, acc_events
        self.step_num = 0
        self.recorder: Recorder | None = None
        self.clocks = Clocks()
        self.kept: list[Event] = []

    @property
    def current_action(self) -> ProfilerAction:
        return ProfilerAction["RECORD"] if self.schedule is None else self.schedule(self.step_num)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin: to record, or to wait as the schedule says. RuntimeError while another profile records."""
        if recording(self.current_action):
            self._begin()

    def stop(self) -> None:
        """End; what was recorded is handed to `on_trace_ready`."""
        if self._end() and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """Say that a step of the program is done: the schedule may start, end or go on."""
        before = self.current_action
        self.step_num += 1
        now = self.current_action
        if before is ProfilerAction["RECORD_AND_SAVE"] or (recording(before) and not recording(now)):
            self.stop()
        if recording(now) and self.recorder is None:
            self._begin()

    def _begin(self) -> None:
        with TURN:
            if RUNNING:
                raise RuntimeError("profiler: another profile records already; end it first, they cannot be nested")
            try:
                self.clocks.put()
            except BaseException:
                self.clocks.take()
                raise
            self.recorder = Recorder(self.record_shapes)
            RUNNING.append(self.recorder)

    def _end(self) -> bool:
        with TURN:
            if self.recorder is None:
                return False
            RUNNING.clear()
            self.clocks.take()
            self.kept = [*self.kept, *self.recorder.events] if self.acc_events else self.recorder.events
            self.recorder = None
            return True

    def events(self) -> list[Event]:
        """Every call, in the order in which they began."""
        found = self.kept if self.recorder is None else self.recorder.events
        return sorted(found, key=lambda event: event.start)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> Averages:  # fmt: skip
        """Calls of one name together; with `group_by_input_shape`, of one name and one list of shapes."""
        groups: dict[Any, list[Event]] = {}
        for event in self.events():
            groups.setdefault((event.name, str(event.shapes) if group_by_input_shape else None), []).append(event)
        return Averages(Average(name, events[0].shapes if shapes else None, events)
                        for (name, shapes), events in groups.items())  # fmt: skip

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the calls as JSON that chrome://tracing and ui.perfetto.dev show; compressed if `path` ends in .gz."""
        pid = os.getpid()
        events = [{"ph": "X", "cat": "user_annotation" if e.kind == "user" else f"cpu_{e.kind}", "name": e.name, "pid": pid,
                   "tid": e.thread, "ts": e.start, "dur": e.cpu_time_total,
                   "args": {"bytes": e.bytes, **({"Input Dims": e.shapes} if e.shapes is not None else {})}}
                  for e in self.events()]  # fmt: skip
        text = json.dumps({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}).encode()
        with open(path, "wb") as file:
            file.write(gzip.compress(text) if str(path).endswith(".gz") else text)


def recording(action: ProfilerAction) -> bool:
    return action in (ProfilerAction["RECORD"], ProfilerAction["RECORD_AND_SAVE"])


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """Skip some steps; then, again and again (`repeat` times, 0: for ever): `wait`, `warmup`, and record `active` steps."""
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction["NONE"]
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction["NONE"]
        at = step % cycle
        if at < wait:
            return ProfilerAction["NONE"]
        if at < wait + warmup:
            return ProfilerAction["WARMUP"]
        return ProfilerAction["RECORD" if at < cycle - 1 else "RECORD_AND_SAVE"]

    return action


class record_function:
    """A block, or a function that it decorates, under a name of its own in the profile.

    >>> with rushlight.profiler.record_function("my block"):
    ...     y = rushlight.ones(2) + 1
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self.under_way: list[tuple[Recorder, Event] | None] = []

    def __enter__(self) -> record_function:
        self.under_way.append((RUNNING[0], RUNNING[0].enter(self.name, "user")) if RUNNING else None)
        return self

    def __exit__(self, *exc: object) -> None:
        begun = self.under_way.pop()
        if begun is not None:
            begun[0].leave(begun[1])

    def __call__(self, function: Callable) -> Callable:
        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return inside


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None,
                              use_gzip: bool = False) -> Callable[[profile], None]:  # fmt: skip
    """For `on_trace_ready`: write each recording to a file of its own in a folder, which is made."""

    def write(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip))

    return write
