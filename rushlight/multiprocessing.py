"""torch.multiprocessing: Python's own. Tensors are copied between processes, but for those with `share_memory_`.

Where processes can be forked they are, also if 'spawn' is asked for: shared memory is handed down to forked processes
only, and in a program under `rushlight run` they know that `torch` means rushlight.
"""
from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing import get_start_method, process  # noqa: F401
from typing import Any

from rushlight.absent import tell as _tell


class ProcessRaisedException(Exception):
    """A process of `spawn` has raised an exception."""

    def __init__(self, msg: str, error_index: int = 0, error_pid: int | None = None):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid


def forked(method: str | None) -> str | None:
    """'fork' for 'spawn' and 'forkserver', where there is one."""
    return "fork" if method and "fork" in multiprocessing.get_all_start_methods() else method


def get_context(method: str | None = None) -> Any:  # type: ignore[no-redef]
    """Python's context of this start method; see above for 'spawn'."""
    return multiprocessing.get_context(forked(method))


def set_start_method(method: str | None, force: bool = False) -> None:  # type: ignore[no-redef]
    """How processes are started; see above for 'spawn'."""
    multiprocessing.set_start_method(forked(method), force=force)


def spawn(fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
          start_method: str = "spawn") -> Any:
    """fn(i, *args) for i < nprocs, each in a process of its own. ProcessRaisedException if one fails.

    With join=False the list of the processes, which run on.
    """
    context: Any = get_context(start_method)
    made = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for one in made:
        one.start()
    if not join:
        return made
    for one in made:
        one.join()
    for i, one in enumerate(made):
        if one.exitcode:
            raise ProcessRaisedException(f"process {i} terminated with exit code {one.exitcode}; its own error stands above",
                                         i, one.pid)
    return None


def set_sharing_strategy(new_strategy: str) -> None:
    """Nothing to set: there is one way."""


def get_sharing_strategy() -> str:
    """'file_descriptor', as torch's default on Linux: memory without a file's name."""
    return "file_descriptor"

_tell(__name__)
