"""From an op and its arguments to the faster way that takes them, if there is one."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from numpy import ndarray

from rushlight.fast import policy
from rushlight.fast.index import Way, way_of
from rushlight.loops import budget


def run(op: Any, of: str, kernel: Callable, args: tuple) -> Any:
    """The result of the op's way, or of that of its derivative by the input `of`, else `kernel(*args)`."""
    way = way_of(op, of) if budget.allowed else None
    if way is None or way.passes and not policy.charge(way.passes, size_of(args), way.elements):
        return kernel(*map(computed, args))
    return module_of(way)(op, of, kernel, *args)


@cache
def module_of(way: Way) -> Callable:
    return import_module(way.module).run


def size_of(args: tuple) -> int:
    """The elements of the largest of the first two arrays: a gradient may be small, or a list of several outputs'."""
    first, second = args[0], args[1] if len(args) > 1 else None
    size = first[0].size if first.__class__ is list else first.size
    return max(size, second.size) if second.__class__ is ndarray else size


def computed(a: Any) -> Any:
    """The array of a gradient that is not computed yet (ops/chains.py)."""
    return a.array() if hasattr(a, "through") else a
