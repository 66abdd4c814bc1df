"""Where `rushlight.fast` plugs in: all that the core knows about speed.

`rushlight.fast.index` says from how many elements an op has a faster way. `rushlight.fast.dispatch.run` looks for one.
Without that package, or after `rushlight.fast.off()`, the reference kernels do everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf
from typing import Any

import numpy as np

from rushlight.base.dtypes import HALVES
from rushlight.base.faster import index, plugged

# Set by `rushlight.fast` with the first large elementwise op: the kind (gradient_kinds.py) of gradients that are put
# off, made from the targets of a backward.
deferred_kind: Callable | None = None


class Site:
    """A place in the core that is no op, and has faster ways under this name."""

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
    """From how many elements of its first array on an op (`of`: "") or its derivative by the input `of` may have a
    faster way than its kernel or rule; inf where there is none. `of_half`: of arrays of 16-bit floats."""
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
    """Whether the op has a faster way of its own, besides that of all elementwise ops."""
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
