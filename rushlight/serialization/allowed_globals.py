"""torch.serialization's safe globals: classes and functions that the user allows in files of weights."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rushlight.serialization.name_map import name_in_torch

Global = Callable[..., Any] | tuple[Callable[..., Any], str]

_lock = RLock()
# replaced, never mutated, so that a load in another thread sees one state
_globals: dict[tuple[str, str], Any] = {}


def named(thing: Global) -> list[tuple[tuple[str, str], Any]]:
    """[((module, name), thing)] for the thing's own name and its name in torch, or for the name given in a pair."""
    if isinstance(thing, tuple):
        thing, name = thing
        module, _, name = name.rpartition(".")
        return [((module, name), thing)]
    names = {(thing.__module__, thing.__qualname__), name_in_torch(thing)}
    return [(name, thing) for name in names if name is not None]


def add_safe_globals(safe_globals: Sequence[Global]) -> None:
    """Allow these classes and functions in files loaded with weights_only=True. A pair (class, "module.name")
    also gives the name in files.

    >>> from fractions import Fraction
    >>> rushlight.serialization.add_safe_globals([Fraction])
    >>> Fraction in rushlight.serialization.get_safe_globals()
    True
    """
    global _globals
    with _lock:
        _globals = _globals | dict(pair for thing in safe_globals for pair in named(thing))


def get_safe_globals() -> list[Any]:
    """The classes and functions allowed by `add_safe_globals`.

    >>> from fractions import Fraction
    >>> with rushlight.serialization.safe_globals([Fraction]):
    ...     Fraction in rushlight.serialization.get_safe_globals()
    True
    """
    return list(dict.fromkeys(_globals.values()))


def clear_safe_globals() -> None:
    """get_safe_globals() = []: revoke everything that `add_safe_globals` has allowed.

    >>> rushlight.serialization.clear_safe_globals()
    >>> rushlight.serialization.get_safe_globals()
    []
    """
    global _globals
    with _lock:
        _globals = {}


def user_globals() -> dict[tuple[str, str], Any]:
    """{(module, name): allowed class or function}."""
    return _globals


@contextmanager
def safe_globals(safe_globals: Sequence[Global]) -> Iterator[None]:
    """`add_safe_globals(safe_globals)`, for the statements inside.

    >>> from fractions import Fraction
    >>> with rushlight.serialization.safe_globals([Fraction]):
    ...     Fraction in rushlight.serialization.get_safe_globals()
    True
    >>> Fraction in rushlight.serialization.get_safe_globals()
    False
    """
    global _globals
    with _lock:
        before = _globals
        add_safe_globals(safe_globals)
    try:
        yield
    finally:
        with _lock:
            _globals = before
