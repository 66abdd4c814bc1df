"""A loop that is compiled once NumPy has worked for as long as compiling takes, or at once for a compiled program.

Only for loops that give NumPy's results to the last bit: every operation of the text is rounded separately. So the
results do not depend on the moment when the loop takes over.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import ContextVar
from math import inf
from sys import modules
from typing import Any

from rushlight.base.dependencies import has_llvmlite
from rushlight.base.faster import NotReady, falls_back
from rushlight.loops import budget
from rushlight.loops.budget import CALL, ELEMENT

LEAST = 0.1  # seconds of work before the price of compiling is looked up
LEAST_LOADED = 0.01  # the same limit if llvmlite is already loaded for another loop
MUCH = 1 << 14  # from this size on, the first run of a compiled program compiles its loops at once
# True in the first run of a compiled program
at_once: ContextVar[bool] = ContextVar("at_once", default=False)


class Loop:
    """`function`: the compiled loop; None until it has paid for itself, and while loops are not allowed.

    `write`: returns the text, empty if there can be none; `example`: makes arguments for a first call.
    """

    __slots__ = ("built", "calls", "example", "known", "owed", "price", "write")

    def __init__(self, write: Callable[[], str], calls: int, example: Callable[[], tuple]):
        self.built: Callable | None = None
        self.write, self.calls, self.example, self.owed = write, calls, example, 0.0
        self.price, self.known = LEAST if has_llvmlite() else inf, False

    @property
    def function(self) -> Callable | None:
        return self.built if budget.allowed else None

    def ready(self, elements: int) -> Callable | None:
        """The loop for this number of elements; None if NumPy should do the work, which is then recorded."""
        if self.built is not None and budget.allowed:
            return self.built
        self.pay(elements)
        return None

    def pay(self, elements: int) -> None:
        """Record that NumPy does the work; compile the loop if the work has cost enough, or if `at_once` is set."""
        if not budget.allowed:
            return
        self.owed += self.calls * (CALL + ELEMENT * elements)
        now = self.price < inf and elements >= MUCH and at_once.get()
        if now or self.owed > self.price or self.owed > LEAST_LOADED and self.may_ask():
            if self.known or now:
                self.build()
            else:
                self.ask()

    def may_ask(self) -> bool:
        """True if the price of compiling is unknown and quick to determine."""
        return not self.known and self.price < inf and "llvmlite.binding" in modules

    def ask(self) -> None:
        """Determine the price of compiling; infinite if the loop cannot be compiled."""
        from rushlight.loops.cache import price

        text = self.write()
        self.price, self.known = price(text, exact=True) if text else inf, True

    @falls_back
    def build(self) -> None:
        """Compile the loop, or read its machine code. If that fails, NumPy continues, with a warning."""
        from rushlight.loops.cache import compiled

        text, self.price = self.write(), inf
        if not text:
            return
        try:
            function: Any = compiled(text, exact=True)
            function(*self.example())
        except NotReady:
            self.owed, self.price = 0.0, LEAST
        except Exception as error:
            warnings.warn(f"a loop could not be compiled, so NumPy is used: {error}", stacklevel=2)
        else:
            self.built = function
