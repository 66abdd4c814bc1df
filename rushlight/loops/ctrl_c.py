"""Import Numba with Ctrl-C deferred while it compiles, for at most one loop.

LLVM calls back into Python when it has finished. An interrupt that came while it compiled would raise KeyboardInterrupt
in that callback, where exceptions are printed and lost, and the program would continue."""

from __future__ import annotations

import signal
from threading import current_thread, main_thread
from typing import Any

import numba
from numba.core.event import Event, Listener, register

__all__ = ["numba"]


class Interrupts(Listener):
    """Defers interrupts during the outermost compilation of the main thread; other threads receive no interrupts."""

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
        """The signal handler during compilation."""
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
