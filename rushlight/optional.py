"""Packages that are used where they are installed, and from when on."""
from __future__ import annotations

from functools import cache
from math import inf

CALL, ELEMENT = 0.4e-6, 0.3e-9                    # seconds that a pass of NumPy takes, and one element of it
PRICE = 0.3                                       # seconds that count as the cost of loading Numba and some loops


@cache
def has_numba() -> bool:
    """Whether loops can be compiled. Asked when one could first be used: `importlib.util` takes 0.5 ms of an import."""
    from importlib.util import find_spec
    return find_spec("numba") is not None


class Spent:
    """When loops that round in their own way take over from NumPy: once what it did for them has cost their price.
    Nothing but the work done decides, so that a program repeated gives the same numbers.
    """

    def __init__(self, price: float) -> None:
        self.left = price

    def paid(self, cost: float) -> bool:
        """Whether loops are to do this work; if not, NumPy does, and it counts."""
        if self.left <= 0:
            return True
        self.left -= cost
        if self.left <= 0 and not has_numba():
            self.left = inf
        return False

    def enough(self, passes: int, size: int) -> bool:
        """Whether loops are to do what takes NumPy so many passes over `size` numbers."""
        return self.paid(passes * (CALL + ELEMENT * size)) and size > 0


spent = Spent(PRICE)                              # of ops on small arrays
