"""torch.profiler: the time of each op in forward and backward, of each module, and of user-defined blocks.

While a profile records, a timing wrapper replaces the kernel of every op; otherwise profiling has no overhead. One
profile records at a time, in the whole process.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
from collections.abc import Callable
from enum import Enum
from functools import wraps
from typing import Any

from rushlight.base.errors import explain, runtime_error
from rushlight.base.missing_names import tell as _tell
from rushlight.profiler.clocks import RUNNING, TURN, Clocks, Event, Recorder
from rushlight.profiler.tables import Average, Averages, Modules, by_module

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "tensorboard_trace_handler"]

ProfilerActivity = Enum("ProfilerActivity", "CPU XPU MTIA CUDA HPU PrivateUse1", start=0)
ProfilerActivity.__doc__ = """The devices that torch's profiler can watch; this profiler always watches the CPU.

>>> rushlight.profiler.ProfilerActivity.CPU.name
'CPU'
"""
ProfilerAction = Enum("ProfilerAction", "NONE WARMUP RECORD RECORD_AND_SAVE DEVICE_STOPPED", start=0)
ProfilerAction.__doc__ = """The actions of a profiler in a step: see `schedule`.

>>> rushlight.profiler.schedule(wait=1, warmup=0, active=1)(0) is rushlight.profiler.ProfilerAction.NONE
True
"""


class profile:
    """Record ops, backward nodes, modules and blocks inside it: a context manager, as torch.profiler.profile.

    `schedule`: a function from the step number to an action (`schedule()` makes one); call `step()` after each step.
    `on_trace_ready(prof)`: called when a recording is done. `record_shapes`: keep the inputs' shapes. Accepted, and
    without effect on a CPU: `activities`, `profile_memory` (bytes are always counted), `with_stack`, `with_flops`,
    `with_modules` (modules are always recorded). The time of an op is the time of its kernel; the few hundred
    nanoseconds around the kernel count for the module or block that calls the op.

    >>> x = rushlight.ones(8, 8, requires_grad=True)
    >>> with rushlight.profiler.profile() as prof:
    ...     (x @ x).sum().backward()
    >>> sorted(row.key for row in prof.key_averages())[:4]
    ['MmBackward0', 'SumBackward0', 'aten::mm', 'aten::sum']
    """

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
    ):
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
        """Begin recording, or wait, according to the schedule. RuntimeError while another profile records."""
        if recording(self.current_action):
            self._begin()

    def stop(self) -> None:
        """End the profile, and call `on_trace_ready` if something was recorded."""
        if self._end() and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """Mark the end of a step of the program: the schedule may start or end a recording."""
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
                raise runtime_error(
                    "profiler: another profile is already recording; end it first, since profiles cannot be nested"
                )
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
        """All recorded calls, ordered by their begin."""
        found = self.kept if self.recorder is None else self.recorder.events
        return sorted(found, key=lambda event: event.start)

    @property
    def function_events(self) -> list[Event]:
        """The name of `events()` in torch.autograd.profiler."""
        return self.events()

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> Averages:
        """The calls grouped by name; with `group_by_input_shape`, by name and input shapes."""
        groups: dict[Any, list[Event]] = {}
        for event in self.events():
            groups.setdefault((event.name, str(event.shapes) if group_by_input_shape else None), []).append(event)
        return Averages(
            Average(name, events[0].shapes if shapes else None, events) for (name, shapes), events in groups.items()
        )

    def module_averages(self) -> Modules:
        """The modules by their names in the tree: calls, time forward and backward, bytes. Print it for a table."""
        return by_module(self.events())

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the calls as JSON that chrome://tracing and ui.perfetto.dev show; compressed if `path` ends in .gz."""
        pid = os.getpid()
        events = [
            {
                "ph": "X",
                "cat": "user_annotation" if e.kind == "user" else f"cpu_{e.kind}",
                "name": e.name,
                "pid": pid,
                "tid": e.thread,
                "ts": e.start,
                "dur": e.cpu_time_total,
                "args": {"bytes": e.bytes, **({"Input Dims": e.shapes} if e.shapes is not None else {})},
            }
            for e in self.events()
        ]
        text = json.dumps({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": events}).encode()
        with open(path, "wb") as file:
            file.write(gzip.compress(text) if str(path).endswith(".gz") else text)


def kineto_available() -> bool:
    """False: torch's profiling library is not used.

    >>> rushlight.profiler.kineto_available()
    False
    """
    return False


def recording(action: ProfilerAction) -> bool:
    return action in (ProfilerAction["RECORD"], ProfilerAction["RECORD_AND_SAVE"])


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """action = schedule(step): skip `skip_first` steps; then cycles of waiting, warming up and recording.

    `repeat`: the number of cycles, 0 for no limit.

    >>> when = rushlight.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [when(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
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
    """A context manager and decorator: records a block or function under its own name.

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


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For `on_trace_ready`: writes each recording to a new file in a folder, which is created.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> handler = rushlight.profiler.tensorboard_trace_handler(folder)
    >>> with rushlight.profiler.profile(on_trace_ready=handler):
    ...     _ = rushlight.ones(2) + 1
    >>> len(os.listdir(folder))
    1
    """

    def write(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip))

    return write


_tell(__name__)
