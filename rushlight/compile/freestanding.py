"""What takes the place of rushlight in the text of a program that runs without it (standalone.py): how its loops are
compiled, and what they are made of where there is no Numba.

Without Numba, functions of elements (scalars.py) work on whole arrays: the same polynomials, the same arithmetic on bits.
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from rushlight.compile.cache import scope
from rushlight.compile.intrinsics import instructions

try:
    import numba
except ImportError:                               # loops then work on whole arrays
    numba = None


def machine_code(function):
    """A loop, compiled at its first call; kept on disk where its text is a file."""
    if numba is None:
        return function
    kept = os.path.exists(function.__code__.co_filename)
    return numba.njit(cache=kept, fastmath={"contract"}, error_model="numpy", nogil=True)(function)


def loop(whole):
    """The decorator of loops: machine code; without Numba `whole`, which does the same on whole arrays."""
    return machine_code if numba is not None else lambda function: whole or function


def calling(text, **loops):
    """As `compiled`, of a text that calls these loops."""
    return compiled(text, callees=loops)


def compiled(text, exact=False, callees=()):
    """The function `kernel` of a text as machine code."""
    flags = {} if exact else {"fastmath": {"contract"}}
    made = numba.njit(error_model="numpy", nogil=True, **flags)
    names = {**scope(), **dict(callees), "cached": made, "__name__": __name__}      # of functions beside the loop
    exec(text, names)
    return made(names["kernel"])


@cache
def backend():
    """What the functions of elements are made with."""
    if numba is None:
        return on_arrays()
    from numba.extending import intrinsic
    return instructions(numba, intrinsic)


def on_arrays() -> SimpleNamespace:
    """`jit` leaves functions as they are, `select` is np.where, bits are a view."""
    names = "sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh pow"
    libm: dict[str, Any] = {name: getattr(np, name) for name in names.split()}
    libm |= {f.__name__: np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc, lgamma)}
    return SimpleNamespace(numba=np, jit=lambda function: function, libm=SimpleNamespace(**libm), select=np.where,
                           cast_bits=lambda frm, to: lambda x: np.asarray(x, frm).view(to), plus=np.add,
                           scaled=None, largest=np.maximum, smallest=np.minimum, restrict=lambda: None, wide=lambda: None)


def lgamma(x: float) -> float:
    """math.lgamma, infinite at 0, -1, -2..."""
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def of(kind: Any) -> SimpleNamespace:
    """What kernels ask of a dtype."""
    kind = np.dtype(kind)
    return SimpleNamespace(numpy=kind, name=kind.name, itemsize=kind.itemsize, scalar_type=kind.name.capitalize(),
                           is_floating_point=kind.kind == "f", is_complex=kind.kind == "c")


def explain(what: str, cure: str = "", **facts: object) -> str:
    """A message of a sentence, then a line for each fact, and the cure."""
    lines = [what, *(f"  {name.replace('_', ' ')}: {fact}" for name, fact in facts.items() if fact is not None)]
    return "\n".join([*lines, f"  cure: {cure}"] if cure else lines)


class Loop:
    """Where rushlight would compile a loop when it pays, NumPy does the work: to the same bits."""

    def __init__(self, *made_of: Any, **named: Any):
        self.function = self.compiled = None

    def __call__(self, n: int) -> None:
        return None

    def pay(self, elements: int) -> None:
        """Nothing is owed."""


LOOPS = SimpleNamespace()                         # over rows and channels, by name


def mode() -> SimpleNamespace:
    """What eager work asks of its surroundings: there is nothing."""
    return SimpleNamespace(batch=None, watch=None, grad=False)


class Touched(RuntimeError):
    """Only vmap raises it."""


Tensor = np.ndarray


def from_array(array: Any) -> Any:
    """Arrays are all there is."""
    return array


def by_rows(rows: Callable | None, kernel: Callable) -> Callable:
    """A kernel whose large arrays are done by a loop over rows, where there is Numba."""
    def kernel_by_rows(*args: Any) -> Any:
        found = rows(*args) if rows is not None and numba is not None and args[0].size >= 1 << 16 else None
        return kernel(*args) if found is None else found
    return kernel_by_rows


def staying(kernel: Callable, last: int) -> Callable:
    """The kernel with its result in the dtype of one of its inputs."""
    return lambda *args: np.asarray(kernel(*args)).astype(args[last].dtype, copy=False)
