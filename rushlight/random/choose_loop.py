"""Choose the loop for a draw: NumPy's, which needs no start-up, or a compiled loop. The compiled loop is faster but
takes 0.05 to 0.15 s to load."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from math import inf
from typing import Any

from rushlight.loops.budget import IMPORT_SECONDS, LOADING_SECONDS, Budget

MIN_COUNTED_DRAW = 2**13  # smaller draws do not count towards LOAD_AFTER_NUMBERS
# Loading takes 0.06 s, of which the import of llvmlite takes 0.04 s, and 0.2 s on a new machine. NumPy takes 10 to 15
# ms for a million numbers, a loop 0.5 to 1.2 ms: loading pays off if 4 to 7 million numbers follow. With llvmlite
# loaded, a loop takes 0.015 s, and pays off after 1 to 2 million.
LOAD_AFTER_NUMBERS = 3_000_000  # numbers drawn by NumPy before a loop is loaded
# the part of LOAD_AFTER_NUMBERS for importing llvmlite, if it is not yet imported
IMPORT_NUMBERS = int(LOAD_AFTER_NUMBERS * IMPORT_SECONDS / LOADING_SECONDS)


class Loop:
    """The compiled loop `name` of loops.py; None until enough numbers were drawn to pay for loading it.

    Then small draws use the loop, too. Always None without llvmlite. `cost`: the time of one number, divided by the
    time of a plain uniform number. `call`: the time saved per small draw, in the same unit; 0 if NumPy is as fast."""

    def __init__(self, name: str, cost: float = 1, call: int = 0) -> None:
        self.name, self.cost, self.call, self.compiled = name, cost, call, None
        self._spent = Budget(LOAD_AFTER_NUMBERS, loading=IMPORT_NUMBERS)
        self._lock = allocate_lock()

    def __call__(self, n: int) -> Callable[..., Any] | None:
        """The compiled loop for a draw of n numbers, or None if NumPy should draw them."""
        if self.compiled is None and (n * self.cost >= MIN_COUNTED_DRAW or self.call):
            with self._lock:
                if self._spent.charge(n * self.cost + self.call):
                    self._load()
        return self.compiled

    def _load(self) -> None:
        try:
            from rushlight.random import loops
        except ImportError:  # an llvmlite that does not load
            self._spent.left = inf
        else:
            self.compiled = getattr(loops, self.name)
