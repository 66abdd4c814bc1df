"""Public functions that do not bind: a class attribute `exp = torch.exp` stays a function of one argument, like torch's
built-in functions. A Python function would become a method and receive the instance as its first argument.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from sys import modules
from types import FunctionType
from typing import Any

FUNCTIONS = FunctionType, type(cache(lambda: None))
MADE: dict[Any, PublicFunction] = {}
# what the package offers besides ops and composites: questions, writes, classes
MORE: dict[str, Callable] = {}


class PublicFunction(partial):
    """A public function of the library. It has the attributes of the Python function `func`, which the library's own
    modules call. A call takes 0.03 us longer.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> PublicFunction:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in SHOWN:
            raise AttributeError(name)
        return getattr(self.func, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.func, name, value)

    def __eq__(self, other: object) -> bool:
        return self is other or self.func is other

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return repr(self.func)

    def __reduce__(self) -> str:
        return home(self)[1]

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.func.__doc__

    @property
    def __module__(self) -> str:  # type: ignore[override]
        return home(self)[0]


# attributes of functions that `inspect`, debuggers and decorators read
SHOWN = frozenset(
    [
        *("__name__", "__qualname__", "__wrapped__", "__signature__", "__text_signature__"),
        *("__code__", "__globals__", "__defaults__", "__kwdefaults__", "__closure__"),
        *("__annotations__", "__type_params__"),
    ]
)


def public(value: Any) -> Any:
    """The public form of a Python function; other values unchanged."""
    if type(value) not in FUNCTIONS:
        return value
    found = MADE.get(value)
    if found is None:
        found = MADE.setdefault(value, PublicFunction(value))
    return found


def private(value: Any) -> Any:
    """The Python function behind a public function; other values unchanged."""
    return value.func if type(value) is PublicFunction else value


HOMES: dict[PublicFunction, tuple[str, str]] = {}


def home(function: PublicFunction) -> tuple[str, str]:
    """The (namespace, name) by which pickle finds a public function: ("rushlight.linalg", "svd")."""
    if function not in HOMES:
        spaces = [path for path in [*modules] if path.startswith("rushlight.")]
        for path in ("rushlight", *sorted(spaces, key=lambda path: path.count("."))):
            for name, value in [*vars(modules[path]).items()]:
                if value is function:
                    return HOMES.setdefault(function, (path, name))
        return function.func.__module__, function.func.__qualname__
    return HOMES[function]
