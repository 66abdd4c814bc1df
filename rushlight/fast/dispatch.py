"""From an op and its arguments to a faster way."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import has_llvmlite
from rushlight.base.faster import NotReady, falls_back
from rushlight.fast import policy
from rushlight.fast.index import ELEMENTWISE_ELEMENTS, FEW_PASSES, WAYS, way_of
from rushlight.fast.policy import charge
from rushlight.loops import budget
from rushlight.loops.budget import CALL, ELEMENT

UNKNOWN = object()
MOST_KINDS = 64  # number of argument kinds for which an op keeps its loops for small arrays


@falls_back
def run(op: Any, of: str, kernel: Callable, args: tuple) -> Any:
    """The result of the op's way, or of the way of its derivative by the input `of`, else `kernel(*args)`."""
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
    """`run` for the forward of an op with its own way, looked up once."""
    module, elements, passes, _, dtypes = WAYS[op.name, ""]
    account = policy.small_arrays

    def call(*args: Any) -> Any:
        x = args[0]
        few = passes and x.size < elements
        if few and not dtypes and budget.allowed:
            left = account.left - passes * (CALL + ELEMENT * x.size)
            if left > account.loading:  # does the work of `charge` without its calls
                account.left = left
                return kernel(*args)
        if (
            budget.allowed
            and (not dtypes or x.dtype.char in dtypes)
            and (not passes or few and account.left <= 0 < x.size or charge(passes, x.size, elements))
        ):
            try:
                return run_of(module)(op, "", kernel, *args)
            except NotReady:
                pass
        return kernel(*args)

    few_loop = getattr(import_module(module), "few_loop", None)
    return falls_back(few_first(op, passes, few_loop, kernel, call) if few_loop else call)


def few_first(op: Any, passes: int, few_loop: Callable, kernel: Callable, general: Callable) -> Callable:
    """`general`, except that one small array goes to its loop without the checks of `run`: gelu of 32 numbers takes 1.3
    us, not 3.5. `few_loop`: fast/elementwise.py; `passes`: the NumPy passes that the loop saves.
    """
    if not has_llvmlite():
        return general
    # dtype and settings -> (loop, dtype of its result), or None: the kernel is used
    known: dict[tuple, Any] = {}

    def call(x: Any, *settings: Any) -> Any:
        if x.__class__ is not ndarray or x.size >= ELEMENTWISE_ELEMENTS:
            return general(x, *settings)
        if x.size < 2 or not x.flags.carray or not budget.allowed:
            return kernel(x, *settings)
        key = (x.dtype, *settings)
        try:
            found = known.get(key, UNKNOWN)
            if found is UNKNOWN:
                if not charge(passes or FEW_PASSES, x.size, ELEMENTWISE_ELEMENTS):
                    return kernel(x, *settings)
                if len(known) >= MOST_KINDS:
                    known.clear()
                found = known[key] = few_loop(op, *key)
        except (NotReady, TypeError):  # TypeError: a setting is not hashable
            return kernel(x, *settings)
        if found is None:
            return kernel(x, *settings)
        function, dtype = found
        out = np.empty(x.shape, dtype)
        function(out.ravel(), x.ravel())
        return out

    return call


@cache
def run_of(module: str) -> Callable:
    return import_module(module).run


def size_of(args: tuple) -> int:
    """The size of the larger of the first two arrays: a gradient may be small, or a list with one gradient for each
    output.
    """
    first, second = args[0], args[1] if len(args) > 1 else None
    size = first[0].size if first.__class__ is list else first.size
    return max(size, second.size) if second.__class__ is ndarray else size


def computed(args: tuple) -> tuple:
    """The arguments of a rule, with each deferred gradient computed (fast/backward_chains.py)."""
    return args if args[0].__class__ is ndarray else tuple([a.array() if hasattr(a, "through") else a for a in args])
