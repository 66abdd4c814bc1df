"""The hook through which `rushlight.fast` plugs in from outside, by name, so that core and kernels do not import it.

For ops: `rushlight.fast.index` has the least size for which an op has a faster way, and `rushlight.fast.dispatch.run`
looks for the way. For kernels: `site`. Without that package, or after
`rushlight.fast.off()`, the reference kernels do everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from math import inf
from types import CodeType
from typing import Any

import numpy as np

from rushlight.base.dtypes import HALVES

PLUG = "rushlight.fast"

# Code objects of functions that catch NotReady and then compute in another way (loops/background.py).
FALLING_BACK: set[CodeType] = set()


class NotReady(Exception):
    """A way's loop is still being compiled (loops/background.py): the reference kernel runs."""


def falls_back(function: Any) -> Callable:
    """The decorator of functions that catch NotReady."""
    FALLING_BACK.add(function.__code__)
    return function


def plugged(module: str) -> Any:
    """A module of `rushlight.fast` by name; None without the package."""
    try:
        return import_module(PLUG + module)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(PLUG):
            raise
        return None


@cache
def index() -> Any:
    return plugged(".index")


def site(reference: Callable) -> Callable:
    """The kernel, with the faster way that SITES in fast/index.py lists for its module and name. The way is a
    function with the same name and arguments; it returns None if the reference kernel should run.
    """
    from_elements: float | None = None  # the least size of the first array; read on the first call
    way: Callable | None = None  # imported with the first large array
    switch: Any = None  # loops/budget.py, where rushlight.fast.off() sets a flag

    @wraps(reference)
    def run(*args: Any) -> Any:
        nonlocal from_elements, way, switch
        if from_elements is None:
            found = index()
            from_elements = inf if found is None else found.least_of_site(name_of(reference))
        if from_elements and (from_elements == inf or args[0].size < from_elements):
            return reference(*args)
        if way is None:
            switch = index().budget
            way = getattr(import_module(index().SITES[name_of(reference)].module), reference.__name__)
        try:
            made = way(*args) if switch.allowed else None
        except NotReady:
            made = None
        return reference(*args) if made is None else made

    return falls_back(run)


def name_of(kernel: Callable) -> str:
    """`module.function`, the key of SITES."""
    return f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}"


# -- ops -------------------------------------------------------------------------------------------

# Set by `rushlight.fast` with the first large elementwise op: (targets of a backward) -> the kind of gradients
# (core/worlds.py) that are computed later, in one loop.
deferred_kind: Callable | None = None


class Site:
    """A place in the core, not an op, whose faster ways fast/index.py lists under `name`."""

    __slots__ = ("elementwise", "name")

    def __init__(self, name: str):
        self.name, self.elementwise = name, False


@cache
def runner() -> Callable:
    """`rushlight.fast.dispatch.run`, imported with the first large array."""
    found = plugged(".dispatch")
    return reference if found is None else found.run


def reference(op: Any, of: str, kernel: Callable, args: tuple) -> Any:
    return kernel(*args)


def least(op: Any, of: str = "", of_half: bool = False) -> float:
    """The least size of the first array for which a faster way exists; inf if none. `of`: the input whose derivative is
    meant, "" for the op itself. `of_half`: for arrays of 16-bit floats."""
    found = index()
    return inf if found is None else found.least(op, of, of_half)


class LeastByDtype(dict):
    """{dtype: `least(op)` of arrays of this dtype}, filled as dtypes are met. inf for all dtypes if the op's kernel is
    `dispatching`."""

    def __init__(self, op: Any):
        known = hasattr(op.kernel, "reference")
        self.elements, self.of_half = (inf, inf) if known else (least(op), least(op, of_half=True))
        self.smallest = min(self.elements, self.of_half)  # below it, no dtype has a faster way

    def __missing__(self, dtype: np.dtype) -> float:
        found = self[dtype] = self.of_half if dtype.char in HALVES else self.elements
        return found


def has_own_way(op: Any) -> bool:
    """Whether the op has a faster way of its own, besides the loops for all elementwise ops."""
    found = index()
    return found is not None and (op.name, "") in found.WAYS


def faster(op: Any, of: str, kernel: Callable, *args: Any) -> Any:
    """The result of the first faster way that takes these arguments, else `kernel(*args)`."""
    return runner()(op, of, kernel, args)


def prepared(op: Any, kernel: Callable) -> Callable:
    """The kernel with the op's faster way before it, imported with the first large array."""
    found = plugged(".dispatch")
    return kernel if found is None else found.prepared(op, kernel)


def dispatching(op: Any, kernel: Callable) -> Callable:
    """The kernel of an op, with its faster ways for large arrays."""
    from_elements, fast = least(op), None

    def run(*args: Any) -> Any:
        nonlocal fast
        if args[0].size < from_elements:
            return kernel(*args)
        if fast is None:
            fast = prepared(op, kernel)
        return fast(*args)

    run.reference = kernel  # type: ignore[attr-defined]
    return run
