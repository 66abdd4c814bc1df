"""From an op and its arguments to a faster way."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from numpy import ndarray

from rushlight.base.faster import NotReady, falls_back
from rushlight.fast.index import WAYS, way_of
from rushlight.fast.policy import charge
from rushlight.loops import budget


@falls_back
def run(op: Any, of: str, kernel: Callable, args: tuple) -> Any:
    """The result of the op's way, or of that of its derivative by the input `of`, else
    `kernel(*args)`."""
    way = WAYS.get((op.name, of)) or way_of(op, of)
    if way is None or not budget.allowed:
        return kernel(*computed(args))
    module, elements, passes, _, dtypes = way
    if dtypes and args[0].dtype.char not in dtypes:
        return kernel(*args)
    if passes and not charge(passes, size_of(args) if of else args[0].size, elements):
        return kernel(*(computed(args) if of else args))
    try:
        return run_of(module)(op, of, kernel, *args)
    except NotReady:
        return kernel(*(computed(args) if of else args))


def prepared(op: Any, kernel: Callable) -> Callable:
    """`run` for the forward of an op that has a way of its own, looked up once."""
    module, elements, passes, _, dtypes = WAYS[op.name, ""]

    def call(*args: Any) -> Any:
        x = args[0]
        if (
            budget.allowed
            and (not dtypes or x.dtype.char in dtypes)
            and (not passes or charge(passes, x.size, elements))
        ):
            try:
                return run_of(module)(op, "", kernel, *args)
            except NotReady:
                pass
        return kernel(*args)

    return falls_back(call)


@cache
def run_of(module: str) -> Callable:
    return import_module(module).run


def size_of(args: tuple) -> int:
    """The elements of the largest of the first two arrays: a gradient may be small, or a list of
    several outputs'."""
    first, second = args[0], args[1] if len(args) > 1 else None
    size = first[0].size if first.__class__ is list else first.size
    return max(size, second.size) if second.__class__ is ndarray else size


def computed(args: tuple) -> tuple:
    """The arguments of a rule, with the array of each gradient that was put off
    (fast/backward_chains.py)."""
    return (
        args
        if args[0].__class__ is ndarray
        else tuple([a.array() if hasattr(a, "through") else a for a in args])
    )
