"""The text of a loop from functions of a module: the function, the functions that it calls, the constants it reads.

    @program(exact=True)                    def kernel(x, out):
    def scaled(x, out):                         for i in range(len(x)):
        for i in range(len(x)):     ->              out[i] = half(x[i])
            out[i] = half(x[i])             def half(x):
                                                return x * SCALE
                                            SCALE = 0.5

So functions that also run as plain Python (random/rejection.py) are compiled without a second version of them."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from rushlight.loops.cache import compiled, text_of

NUMBERS = (bool, int, float, np.generic)


def program(exact: bool = False) -> Callable[[Callable], Callable]:
    """The decorator of a loop that calls functions of its module. `exact`: as in `compiled`."""
    return lambda function: compiled(whole_text(function), exact)


def whole_text(function: Any) -> str:
    """The function's text as `kernel`, and the texts of all that it uses."""
    parts: dict[str, tuple[Any, str]] = {"kernel": (function, text_of(function))}
    add_used(function, parts)
    return "".join([text for _, text in parts.values()])


def add_used(function: Any, parts: dict[str, tuple[Any, str]]) -> None:
    """Add the definitions of the names that a function reads. `parts`: name -> (object, its definition)."""
    code = function.__code__
    closure = dict(zip(code.co_freevars, [cell.cell_contents for cell in function.__closure__ or ()]))
    for name in (*code.co_freevars, *code.co_names):
        thing = closure.get(name, function.__globals__.get(name))
        text = definition(name, thing)
        if not text:
            continue
        if name in parts:
            if parts[name][0] is not thing:
                raise ValueError(f"{name} has two meanings in the functions of one loop")
            continue
        parts[name] = thing, text
        if isinstance(thing, FunctionType):
            add_used(thing, parts)


def definition(name: str, thing: Any) -> str:
    """A function, a function of `math`, a type of NumPy or a constant as text; "" for other objects."""
    if isinstance(thing, FunctionType):
        return text_of(thing, name)
    if isinstance(thing, BuiltinFunctionType) and thing.__module__ == "math":
        return f"{name} = math.{thing.__name__}\n"
    if isinstance(thing, type) and issubclass(thing, np.generic):
        return f"{name} = np.{thing.__name__}\n"
    many = thing if isinstance(thing, tuple) else (thing,)
    if many and all(isinstance(n, NUMBERS) and isfinite(n) for n in many):
        numbers = [f"np.{type(n).__name__}({n.item()!r})" if type(n) in NARROW else repr(n) for n in many]
        return f"{name} = " + (f"({', '.join(numbers)},)" if isinstance(thing, tuple) else numbers[0]) + "\n"
    return ""


NARROW = (np.float32, np.int32, np.uint32, np.uint64)  # Python's numbers are float64, int64 and bool
