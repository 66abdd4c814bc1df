"""Packages that are used where they are installed, and from when on."""
from __future__ import annotations

from functools import cache
from importlib import import_module
from math import inf
from sys import modules
from types import ModuleType

CALL, ELEMENT = 0.4e-6, 0.3e-9                    # seconds that a pass of NumPy takes, and one element of it
PRICE, LOADING = 0.3, 0.25                        # seconds that count as the cost of loops from disk, and Numba's part of it
# elements from which loops are asked: along rows (NumPy's layer norm of 8,192 takes 60 us, the loop 15), of several passes
ROWS, LARGE, HUGE = 1 << 13, 1 << 15, 1 << 18     # (gelu of 32,768: 270 and 50), of one ufunc
refused: list[Exception] = []                     # why Numba could not be imported
SOME = 512                                        # numbers from which half precision goes by way of single


@cache
def has_numba() -> bool:
    """Whether loops can be compiled. Asked when one could first be used: `importlib.util` takes 0.5 ms of an import."""
    from importlib.util import find_spec
    return not refused and find_spec("numba") is not None


def numba_loads() -> bool:
    """Whether it is there and lets itself be imported. If not, as beside a newer NumPy than it knows, a warning says so
    once, and it is as if it were not installed."""
    if has_numba() and "numba" not in modules:
        try:
            import_module("numba")
        except Exception as error:
            from rushlight.errors import warn
            refused.append(error)
            has_numba.cache_clear()
            warn(f"Numba is installed, but cannot be imported: {error}; NumPy does its work, which takes longer for large "
                 "tensors; cure: pip install --upgrade numba")
    return has_numba()


def scipy_part(name: str, asked: str) -> ModuleType:
    """SciPy's module of that name, imported when first used; `asked` is what needs it, as the subject of the error."""
    try:
        import_module("scipy")                    # not there, though a part of it may still be
        return import_module(f"scipy.{name}")
    except ImportError as error:
        raise ImportError(f"{asked} SciPy: pip install scipy") from error


class Spent:
    """When loops that round in their own way take over from NumPy: once what it did for them, and would do now, costs their
    price. Nothing but the work decides, so that a program repeated gives the same numbers. `loading`: the part of the price
    that is no cost any more where Numba has been loaded (W5b: its small tensors take 0.8 of the time).
    """

    def __init__(self, price: float, loading: float = 0.0) -> None:
        self.left, self.loading = price, loading

    def paid(self, cost: float) -> bool:
        """Whether loops are to do this work; if not, NumPy does, and it counts."""
        if self.left > 0:
            self.left -= cost
            if self.left <= self.loading and (self.left <= 0 or "numba" in modules):
                self.settle()
        return self.left <= 0

    def settle(self) -> None:
        """Loops from now on, if there are any."""
        self.left = 0.0 if numba_loads() else inf

    def enough(self, passes: float, size: int) -> bool:
        """Whether loops are to do what takes NumPy so many passes over `size` numbers."""
        return self.paid(passes * (CALL + ELEMENT * size)) and size > 0


spent = Spent(PRICE, LOADING)                     # of ops on small arrays
# On large ones: without, a first sum of 300 x 300 took 0.9 s, not 20 us; with 0.5 s a GPT's first 17 steps took 85 ms each,
# of which loops leave 50. On a new machine loops cost 3 to 20 s, once.
much = Spent(PRICE, LOADING)


def loops_pay(passes: int, size: int, large: int) -> bool:
    """Whether loops are to do what takes NumPy so many passes over `size` numbers; `large`: from how many that is much, and
    takes a third to an eighth of what the passes say, most of which are calls (layer norm, batch norm)."""
    return spent.enough(passes, size) if size < large else much.enough(passes / 4, size)
