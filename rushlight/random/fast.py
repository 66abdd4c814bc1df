"""Which of two loops draws: NumPy's, which is there at once, or Numba's, which is fast and takes a second to load."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from math import inf
from typing import Any

from rushlight.fast.index import LOADING_SECONDS, NUMBA_SECONDS
from rushlight.loops.budget import Budget

LARGE = 2**13  # numbers in a draw that counts, where a small one costs next to nothing
PAYS = 3_000_000  # numbers after which NumPy has lost about what loading costs,
NUMBA = int(PAYS * NUMBA_SECONDS / LOADING_SECONDS)  # of them those that Numba itself costs, if nobody has loaded it yet


class Loop:
    """The loop of this name in `loops`, for Numba: None until so many numbers were drawn that it pays.

    From then on small draws take it as well. Where Numba is not installed it stays None. `cost`: as many plain numbers
    as one takes the time of; `call`: as many as a draw of few does, 0 where NumPy's is as fast; `libm`: whether the loop
    calls the C library, whose numbers Intel's are not.
    """

    def __init__(self, name: str, cost: float = 1, libm: bool = False, call: int = 0) -> None:
        self.name, self.cost, self.libm, self.call, self.compiled = name, cost, libm, call, None
        self._spent = Budget(PAYS, loading=NUMBA)
        self._lock = allocate_lock()

    def __call__(self, n: int) -> Callable[..., Any] | None:
        """The compiled loop, or None: draw these n numbers with NumPy."""
        if self.compiled is None and (n * self.cost >= LARGE or self.call):
            with self._lock:
                if self._spent.charge(n * self.cost + self.call):
                    self._load()
        return self.compiled

    def _load(self) -> None:
        try:
            from . import loops
        except ImportError:  # a Numba that does not fit this NumPy
            self._spent.left = inf
            return
        if loops.SAME_LIBRARY or not self.libm:
            self.compiled = getattr(loops, self.name)
        else:
            self._spent.left = inf
