"""The runtime of an exported program (compile/export/module_text.py): replaces parts of rushlight that the program's
text needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


def in_parts(loop: Callable, arguments: tuple, how: tuple) -> None:
    """`loop(*arguments)`; rushlight divides the arrays among all cores."""
    loop(*arguments)


def by_element(function: Callable) -> Callable:
    """A function of numbers as a kernel, in the array's dtype."""

    def kernel(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.vectorize(function, otypes=[np.float64])(x)).astype(x.dtype)

    return kernel


def log_gamma(x: float) -> float:
    """math.lgamma, infinite at 0, -1, -2..."""
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def erfinv(x: float) -> float:
    """The inverse of math.erf: a quantile of the normal distribution, and for numbers near 0 a step of Newton's method,
    since the quantile's probability loses their last digits."""
    from statistics import NormalDist

    if not abs(x) < 1:
        return x * math.inf if abs(x) == 1 else math.nan
    y = NormalDist().inv_cdf((1 - abs(x)) / 2) / -math.sqrt(2)
    if abs(x) < 0.5:
        y -= (math.erf(y) - abs(x)) * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return math.copysign(y, x)


# SciPy's functions in rushlight
erf, erfc, gammaln, inverse_of_erf = map(by_element, (math.erf, math.erfc, log_gamma, erfinv))


def of(kind: Any) -> SimpleNamespace:
    """The attributes of a dtype that kernels use."""
    kind = np.dtype(kind)
    return SimpleNamespace(
        numpy=kind,
        name=kind.name,
        itemsize=kind.itemsize,
        scalar_type=kind.name.capitalize(),
        is_floating_point=kind.kind == "f",
        is_complex=kind.kind == "c",
    )


def explain(what: str, hint: str = "", **facts: object) -> str:
    """An error message: a sentence, a line for each fact, the hint."""
    lines = [what, *(f"  {name.replace('_', ' ')}: {fact}" for name, fact in facts.items() if fact is not None)]
    return "\n".join([*lines, f"  hint: {hint}"] if hint else lines)


class Loop:
    """Replaces loops that rushlight compiles when they pay: here NumPy does the work, with the same bits."""

    def __init__(self, *made_of: Any, **named: Any):
        self.function = self.compiled = None

    def __call__(self, n: int) -> None:
        return None

    def ready(self, elements: int) -> None:
        """NumPy does the work."""


def mode() -> SimpleNamespace:
    """A mode without grad mode, watcher and vmap."""
    return SimpleNamespace(batch=None, watch=None, grad=False)


class Touched(RuntimeError):
    """Raised by vmap only, so never here."""


Tensor = np.ndarray


def from_array(array: Any) -> Any:
    """The array itself: a standalone program has no tensors."""
    return array


def staying(kernel: Callable, last: int) -> Callable:
    """The kernel, with its result converted to the dtype of input number `last`."""
    return lambda *args: np.asarray(kernel(*args)).astype(args[last].dtype, copy=False)
