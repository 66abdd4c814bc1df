"""Work in a process of its own: torch itself crashes on some programs, and writes out of bounds in others."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from typing import Any


def records(work: Callable[[Callable[..., None]], None]) -> Iterator[tuple[Any, ...]]:
    """The records that `work(tell)` sends by `tell(...)` from a forked process; the last one is `("signal", name)` if a
    signal ended the process. Raises RuntimeError if `work` raises."""
    received, sent = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(received)
        run_and_exit(work, sent)
    os.close(sent)
    with os.fdopen(received, "rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except (EOFError, pickle.UnpicklingError):
                break
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        yield "signal", signal.Signals(os.WTERMSIG(status)).name
    elif status:
        raise RuntimeError("the forked process failed; its traceback is above")


def run_and_exit(work: Callable[[Callable[..., None]], None], sent: int) -> None:
    """The child process. Each record is flushed, so that a crash loses none."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(sent, "wb") as file:

        def tell(*record: Any) -> None:
            pickle.dump(record, file)
            file.flush()

        try:
            work(tell)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os._exit(0)
