"""Packages that are used where they are installed."""
from __future__ import annotations

from functools import cache


@cache
def has_numba() -> bool:
    """Whether loops can be compiled. Asked when one could first be used: `importlib.util` takes 0.5 ms of an import."""
    from importlib.util import find_spec
    return find_spec("numba") is not None
