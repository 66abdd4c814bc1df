"""What the names in a rule mean. The text of a rule is written once; the world decides.

`ARRAYS`: kernels (the fast backward); `TENSORS`: the ops themselves (`create_graph`, tracing); formulas: symbols that
print themselves (introspect/formulas.py); scalars: the body of a compiled loop (loops/scalar_math.py)."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rushlight.base.lazy import next_part
from rushlight.core.table import SHARED, Op, rebind

# The names of each world. `__name__`: the filter of NumPy's warnings goes by it.
ARRAYS: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__}
TENSORS: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__}


def adopt(kernels: ModuleType) -> None:
    """Let every public function of a module of kernels be a name of the world of arrays; not Python's own (math.prod).

    Helpers of rules keep their names, in whatever order tables are loaded.
    """
    ARRAYS.update(
        (name, value)
        for name, value in vars(kernels).items()
        if not name.startswith("_")
        and callable(value)
        and name not in SHARED
        and getattr(value, "__module__", None) not in ("math", "itertools")
    )


def shared(function: Callable, own: bool = False) -> Callable:
    """A helper of rules: like them written once, in names of ops, and there in all worlds. `own`: of a user's file."""
    (SHARED.own if own else SHARED)[function.__name__] = function
    for world in (ARRAYS, TENSORS):
        world[function.__name__] = rebind(function, world)
    return function


@shared
def not_differentiable(function, argument):
    """The rule of an input that a function depends on, and by which neither torch nor this library differentiates
    it."""
    raise RuntimeError(
        f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot "
        "have requires_grad True.; hint: detach() it"
    )


@shared
def not_implemented(function):
    """The rule of an input whose derivative torch does not implement: backward raises."""
    raise NotImplementedError(f"the derivative for '{function}' is not implemented.; hint: detach() its input")


def present(op: Op) -> None:
    """Load parts of the library until all names in the op's rules are there. `co_names` has names of attributes, too,
    such as `shape`, which are not in the world: such a rule loads all parts."""
    names = {name for rule in op.rules.values() if rule is not None for name in rule.__code__.co_names}
    while not names <= TENSORS.keys() | vars(builtins).keys() and next_part():
        pass
