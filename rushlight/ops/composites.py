"""Composites: functions made of ops, registered beside the entries of the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from numbers import Number
from typing import Any, TypeVar

from rushlight.base.errors import keywords, suggesting, warn_once
from rushlight.base.placeholder import sample_by_sample
from rushlight.base.public_function import MORE, public
from rushlight.core.build import before_write
from rushlight.core.table import NUMPY, SHARED, TABLE, in_namespace, parameters
from rushlight.core.tensor import Tensor, method
from rushlight.core.views import assign, into
from rushlight.core.worlds import TENSORS

F = TypeVar("F", bound=Callable)


def rewritten(x: Tensor, function: Callable, *args: Any, **kwargs: Any) -> Tensor:
    """x = function(x, ...), written into x."""
    return assign(x, function(before_write(x, args), *args, **kwargs))


def given(out: Any, made: Any) -> Any:
    """The result, written into `out` if that is given."""
    return made if out is None else into(out, made)


def checked_method(f: F) -> F:
    """Make a function a method of Tensor whose errors name an argument of the wrong type."""
    return method(suggesting(f, always=True))


# functions of one or two microseconds, which a wrapper would slow down
QUICK = frozenset(
    (
        *("add", "sub", "subtract", "div", "divide", "true_divide", "mul", "matmul", "mm", "bmm"),
        *("t", "clone", "detach", "detach_", "zero_", "fill", "masked_fill"),
    )
)


def composite(
    *names: str, tensor: bool = True, function: bool = True, looks: bool = False, factors: tuple[str, ...] = ()
) -> Callable[[F], F]:
    """Register a function made of ops under these names: for rules on tensors, as a function, and as a method.

    `looks`: the function reads numbers or computes with arrays, so vmap runs it sample by sample. `factors`: the
    numbers that may also be passed by position (`older_overload`)."""

    def register(f: F) -> F:
        own, taken = names or (f.__name__,), len(parameters(f))
        spellings = NUMPY if "dim" in (keywords(f) or parameters(f)) else None
        f = suggesting(f, spellings, always=f.__name__ not in QUICK)
        if looks:
            f = sample_by_sample(f)
        if factors:
            f = older_overload(f, taken, factors)
        for name in own:
            # rules use other names as entries of the table, with their order of parameters, or as shared helpers
            if name not in TABLE and name not in SHARED:
                TENSORS[name] = f
            if function:
                FUNCTIONS[name] = f
        if tensor:
            method(f, *[name for name in own if not in_namespace(name)])
        return f

    return register


def older_overload(f: F, taken: int, factors: tuple[str, ...]) -> F:
    """The function of `taken` tensors, which also accepts its factors by position, as in older torch and older
    optimizers: v.addcmul_(1 - b, g, g), addmm(beta, x, alpha, y, z). The numbers among the arguments are the factors,
    in this order.
    """

    @wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > taken:
            numbers = [a for a in args if isinstance(a, Number)]
            if len(args) - len(numbers) == taken and len(numbers) <= len(factors):
                warn_once(
                    f"This overload of {f.__name__} is deprecated: name the "
                    f"{'factor' if len(numbers) == 1 else 'factors'}, as in {f.__name__}(..., "
                    f"{', '.join(f'{w}={n}' for w, n in zip(factors, numbers))})",
                    "overload",
                )
                kwargs |= dict(zip(factors, numbers))
                args = tuple(a for a in args if not isinstance(a, Number))
        return f(*args, **kwargs)

    return call  # type: ignore[return-value]


FUNCTIONS: dict[str, Callable] = {}  # composites that the package offers besides the table


def offered() -> dict[str, Callable]:
    """The public functions of the loaded ops, by name; the names of a namespace have its prefix."""
    table = {
        name: one.call
        for one in TABLE.values()
        for name in one.names
        if one.options.get("function", True) and one.options.get("method", True)
    }
    return table | FUNCTIONS | MORE


def members(space: str) -> dict[str, Callable]:
    """The functions of a namespace: linalg_det as det."""
    return {name[len(space) + 1 :]: public(f) for name, f in offered().items() if name.startswith(space + "_")}
