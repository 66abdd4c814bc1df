"""torch.multiprocessing: Python's multiprocessing. Tensors are copied between processes, except those with
`share_memory_`, which are sent by reference.

Processes are forked if the system can fork, even for 'spawn', and even from Python 3.14 on, whose default is
'forkserver', because a forked process starts fast. `multiprocessing` itself offers the other methods.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing import get_start_method, process  # noqa: F401
from multiprocessing.connection import wait
from signal import Signals
from time import monotonic
from typing import Any

FORK = "fork" in multiprocessing.get_all_start_methods()
# Process, Queue, Lock, ... of the context that forks, in place of Python's default context
_context = multiprocessing.get_context("fork" if FORK else None)
globals().update({n: getattr(_context, n) for n in multiprocessing.__all__ if hasattr(_context, n)})


class ProcessException(Exception):
    """A process of `spawn` has failed."""

    def __init__(self, msg: str, error_index: int = 0, error_pid: int | None = None):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid


class ProcessRaisedException(ProcessException):
    """A process of `spawn` has raised an exception."""


class ProcessExitedException(ProcessException):
    """A process of `spawn` was ended: by exit, or by a signal. `exit_code` and `signal_name` give the reason."""

    def __init__(
        self, msg: str, error_index: int = 0, error_pid: int | None = None, exit_code: int = 1,
        signal_name: str | None = None,
    ):  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def forked(method: str | None) -> str | None:
    """'fork' instead of any other method, if the system can fork."""
    return "fork" if FORK else method


def get_context(method: str | None = None) -> Any:  # type: ignore[no-redef]
    """Python's context of this start method; of 'fork' for any method, if the system can fork."""
    return multiprocessing.get_context(forked(method))


def set_start_method(method: str | None, force: bool = False) -> None:  # type: ignore[no-redef]
    """Set the start method of processes: 'fork' for any method, if the system can fork."""
    multiprocessing.set_start_method(method and forked(method), force=force)


class ProcessContext:
    """The processes started by `spawn`. `join()` waits for them; `processes` and `pids()` list them."""

    def __init__(self, processes: list[Any]):
        self.processes = processes

    def pids(self) -> list[int]:
        """The process ids."""
        return [one.pid for one in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait up to `timeout` seconds; returns whether all processes have ended. If one fails, the others are ended:
        ProcessRaisedException for an exception, ProcessExitedException for another exit.
        """
        end = None if timeout is None else monotonic() + timeout
        running = {one.sentinel: one for one in self.processes}
        while running:
            done = wait(list(running), None if end is None else max(0.0, end - monotonic()))
            if not done:
                return False
            for sentinel in done:
                one = running.pop(sentinel)
                one.join()
                if one.exitcode:
                    self.fail(one)
        return True

    def fail(self, one: Any) -> None:
        """End the other processes, and raise the error of the failed one."""
        for other in self.processes:
            if other.is_alive():
                other.terminate()
            other.join()
        i = self.processes.index(one)
        if one.exitcode == 1:
            raise ProcessRaisedException(f"process {i} terminated with exit code 1; see its error above", i, one.pid)
        name = Signals(-one.exitcode).name if one.exitcode < 0 else None
        how = f"signal {name}" if name else f"exit code {one.exitcode}"
        raise ProcessExitedException(f"process {i} terminated with {how}", i, one.pid, one.exitcode, name)


SpawnContext = ProcessContext


def spawn(
    fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Run fn(i, *args) for i < nprocs, each in its own process. ProcessRaisedException if one fails.

    With join=False, returns a ProcessContext while they run.
    """
    context: Any = get_context(start_method)
    made = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for one in made:
        one.start()
    begun = ProcessContext(made)
    if not join:
        return begun
    begun.join()
    return None


start_processes = spawn


def set_sharing_strategy(new_strategy: str) -> None:
    """No effect: there is only one strategy."""


def get_sharing_strategy() -> str:
    """'file_descriptor', like torch's default on Linux: memory without a file name."""
    return "file_descriptor"
