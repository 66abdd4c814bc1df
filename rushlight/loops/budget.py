"""What NumPy's work may cost before compiled loops take over, and the switch that keeps loops away."""

from __future__ import annotations

from _thread import allocate_lock
from math import inf
from sys import modules

from rushlight.base.dependencies import numba_loads

CALL, ELEMENT = 0.4e-6, 0.3e-9  # seconds that a pass of NumPy takes, and one element of it

# Loops read from disk take 0.3 s, of which Numba's import takes 0.25 s. Without this price, a first sum of 300 x 300
# took 0.9 s instead of 20 us; with 0.5 s, the first 17 steps of a GPT took 85 ms each, loops take 50 ms. On a new
# machine loops cost 3 to 20 s, once.
LOADING_SECONDS, NUMBA_SECONDS = 0.3, 0.25

PUT_OFF = 0.1  # the part of its price after which an account tries again a loop that was not ready
BUDGETS: list[Budget] = []  # all accounts
settled = False  # whether accounts that are opened later are settled, too

allowed = True  # False after rushlight.fast.off(): eager work stays with NumPy


class Budget:
    """What NumPy's work may cost before loops that round in another way take over: as much as loading the loops costs.

    `price`: in seconds or another unit of work; `loading`: the part of the price that is no cost any more where Numba
    has been loaded. Nothing but the work decides, so a program that is run again gives the same numbers."""

    def __init__(self, price: float, loading: float = 0.0) -> None:
        self.left, self.loading, self.lock = price, loading, allocate_lock()
        self.price = price
        BUDGETS.append(self)
        if settled:
            self.settle()

    def charge(self, cost: float) -> bool:
        """Charge what this work costs NumPy; whether loops do the work instead."""
        if self.left > 0 and allowed:
            with self.lock:
                self.left -= cost
                if self.left <= self.loading and (self.left <= 0 or "numba" in modules):
                    self.settle()
        return self.left <= 0 and allowed

    def charge_passes(self, passes: float, size: int) -> bool:
        """The same for a number of NumPy's passes over `size` elements."""
        return self.charge(passes * (CALL + ELEMENT * size)) and size > 0

    def settle(self) -> None:
        """Loops from now on, if there are any."""
        self.left = 0.0 if numba_loads() else inf

    def put_off(self) -> None:
        """NumPy does some more work before loops are tried again."""
        with self.lock:
            self.left, self.loading = max(self.left, self.price * PUT_OFF), 0.0


def settle() -> None:
    """Settle all accounts."""
    global settled
    settled = True
    for account in BUDGETS:
        account.settle()


def put_off() -> None:
    """A loop is still being compiled: put all accounts off."""
    for account in BUDGETS:
        account.put_off()
