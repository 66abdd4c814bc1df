"""Which of two loops draws: NumPy's, which is there at once, or Numba's, which is fast and takes a second to load."""

from __future__ import annotations

import math
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any

LARGE = 2**13  # numbers in a draw that counts, where a small one costs next to nothing
PAYS = 3_000_000  # numbers after which NumPy has lost about what loading costs


class Loop:
    """The loop of this name in `loops`, for Numba: None until so many numbers were drawn that it pays.

    From then on small draws take it as well. Where Numba is not installed it stays None. `cost`: as many plain numbers
    as one takes the time of; `call`: as many as a draw of few does, 0 where NumPy's is as fast; `libm`: whether the loop
    calls the C library, whose numbers Intel's are not.
    """

    def __init__(self, name: str, cost: int = 1, libm: bool = False, call: int = 0) -> None:
        self.name, self.cost, self.libm, self.call, self.compiled = name, cost, libm, call, None
        self._until_it_pays: float = PAYS
        self._lock = allocate_lock()

    def __call__(self, n: int) -> Callable[..., Any] | None:
        """The compiled loop, or None: draw these n numbers with NumPy."""
        if self.compiled is None and (n * self.cost >= LARGE or self.call):
            with self._lock:
                self._until_it_pays -= n * self.cost + self.call
                if self._until_it_pays <= 0:
                    self._load()
        return self.compiled

    def _load(self) -> None:
        try:
            from . import loops
        except ImportError:  # of Numba
            self._until_it_pays = math.inf
            return
        if loops.SAME_LIBRARY or not self.libm:
            self.compiled = getattr(loops, self.name)
        else:
            self._until_it_pays = math.inf
