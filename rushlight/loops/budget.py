"""Accounts of NumPy's work: how much work NumPy does before compiled loops take over; and the switch that turns loops
off.
"""

from __future__ import annotations

from _thread import allocate_lock
from math import inf
from sys import modules

from rushlight.base.dependencies import llvmlite_loads

CALL, ELEMENT = 0.4e-6, 0.3e-9  # seconds of a NumPy pass: for the call, and for each element

# The import of llvmlite takes 0.04 s. A loop takes 2 ms from disk, and on a new machine mostly 10 to 100 ms. Without
# this price, a first sum of 300 x 300 would take 50 ms instead of 20 us.
LOADING_SECONDS, IMPORT_SECONDS = 0.08, 0.05

PUT_OFF = 0.1  # a loop that was not ready is tried again after this fraction of the price
BUDGETS: list[Budget] = []  # all accounts
settled = False  # whether accounts that are opened later are settled, too

allowed = True  # False after rushlight.fast.off(): eager work stays with NumPy


class Budget:
    """The work that NumPy does before loops with different rounding take over: as much as loading the loops costs.

    `price`: in seconds or another unit of work; `loading`: the part of the price that is saved if llvmlite is already
    loaded. Only the amount of work decides, so a repeated program gives the same numbers.
    """

    def __init__(self, price: float, loading: float = 0.0) -> None:
        self.left, self.loading, self.lock = price, loading, allocate_lock()
        self.price = price
        BUDGETS.append(self)
        if settled:
            self.settle()

    def charge(self, cost: float) -> bool:
        """Charge the cost of this work for NumPy. Returns whether loops do the work instead."""
        if self.left > 0 and allowed:
            with self.lock:
                self.left -= cost
                if self.left <= self.loading and (self.left <= 0 or "llvmlite.binding" in modules):
                    self.settle()
        return self.left <= 0 and allowed

    def charge_passes(self, passes: float, size: int) -> bool:
        """`charge` for the cost of a number of NumPy passes over `size` elements."""
        return self.charge(passes * (CALL + ELEMENT * size)) and size > 0

    def settle(self) -> None:
        """Use loops from now on, if there are any."""
        self.left = 0.0 if llvmlite_loads() else inf

    def put_off(self) -> None:
        """Let NumPy do some more work before loops are tried again."""
        with self.lock:
            self.left, self.loading = max(self.left, self.price * PUT_OFF), 0.0


def settle() -> None:
    """Settle all accounts."""
    global settled
    settled = True
    for account in BUDGETS:
        account.settle()


def put_off() -> None:
    """A loop is still being compiled: postpone all accounts."""
    for account in BUDGETS:
        account.put_off()
