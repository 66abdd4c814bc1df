"""Faster implementations of ops for large arrays, plugged into the core from outside (base/faster.py).

`index.py` lists the ways of each op and the least number of elements for each; `policy.py` decides when compiled loops
take over from NumPy. `off()` leaves all work to the reference kernels: results stay right, their last bits may differ.
With `RUSHLIGHT_FAST=0` in the environment they are off from the start.
"""

from __future__ import annotations

import os

from rushlight.loops import budget


def off() -> None:
    """Leave all work to the reference kernels."""
    budget.allowed = False


def on() -> None:
    """Use the faster ways again."""
    budget.allowed = True


def settle() -> None:
    """Use the faster ways from the first op on, and wait for the compilation of loops.

    Without this call NumPy does the work of the first 0.3 to 0.6 s, and continues while loops are compiled. The moment
    when a loop takes over then depends on the machine's speed, and so do the last bits of the first run on a machine
    (loops/background.py).

    >>> rushlight.fast.settle()
    """
    from rushlight.loops.background import background

    background.wait()
    budget.settle()


def is_on() -> bool:
    """True if faster ways are used."""
    return budget.allowed


if os.environ.get("RUSHLIGHT_FAST", "").lower() in ("0", "off", "no", "false"):
    off()
