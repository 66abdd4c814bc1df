"""Numba, and Ctrl-C while it compiles, which waits until that is done: at most for one loop.

LLVM calls a function of Python's when it has finished, and the exception of an interrupt that came meanwhile is raised
there, from where none comes back: it was printed, and the program went on (3 of 60 interrupts of the demo in its first 3 s).
"""
from __future__ import annotations

import signal
from threading import current_thread, main_thread
from typing import Any

import numba
from numba.core.event import Event, Listener, register

__all__ = ["numba"]


class Interrupts(Listener):
    """Keeps those that come between start and end of the outermost compilation of the main thread, which alone gets any."""

    def __init__(self) -> None:
        self.depth, self.came, self.handler = 0, False, None  # type: tuple[int, bool, Any]

    def on_start(self, event: Event) -> None:
        if current_thread() is not main_thread():
            return
        if self.depth == 0 and callable(handler := signal.getsignal(signal.SIGINT)):
            self.came, self.handler = False, handler
            signal.signal(signal.SIGINT, self.keep)
        self.depth += 1

    def keep(self, number: int, frame: Any) -> None:
        """The handler meanwhile."""
        self.came = True

    def on_end(self, event: Event) -> None:
        if current_thread() is not main_thread():
            return
        self.depth -= 1
        if self.depth == 0 and self.handler is not None:
            signal.signal(signal.SIGINT, self.handler)
            self.handler = None
            if self.came:
                signal.raise_signal(signal.SIGINT)


register("numba:compiler_lock", Interrupts())
