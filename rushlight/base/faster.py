"""The hook through which `rushlight.fast` plugs in from outside, by name, so that kernels do not import it.

Without that package, the reference kernels do everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from math import inf
from types import CodeType
from typing import Any

PLUG = "rushlight.fast"

# Code objects of functions that compute in another way after NotReady (loops/background.py).
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
    """The kernel with the faster way from SITES in fast/index.py, found by the kernel's module and name. The way is a
    function with the same name and arguments; it returns None if the reference kernel should run.
    """
    from_elements: float | None = None  # elements of the first array; read on the first call
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
