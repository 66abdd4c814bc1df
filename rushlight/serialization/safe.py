"""Classes and functions that the user allows in files of weights, as torch.serialization's."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .names import name_in_torch

Global = Callable[..., Any] | tuple[Callable[..., Any], str]

_lock = RLock()
_globals: dict[tuple[str, str], Any] = {}  # replaced, never changed, so that a load sees one state of it


def named(thing: Global) -> list[tuple[tuple[str, str], Any]]:
    """((module, name), thing), also with its name in torch; a pair says the full name under which files know it."""
    if isinstance(thing, tuple):
        thing, name = thing
        module, _, name = name.rpartition(".")
        return [((module, name), thing)]
    names = {(thing.__module__, thing.__qualname__), name_in_torch(thing)} - {None}
    return [(name, thing) for name in names]


def add_safe_globals(safe_globals: Sequence[Global]) -> None:
    """Allow these classes and functions in files loaded with weights_only=True; (class, "module.name") names it anew.

    >>> from collections import deque
    >>> add_safe_globals([deque])
    >>> get_safe_globals()
    [<class 'collections.deque'>]
    >>> clear_safe_globals()
    """
    global _globals
    with _lock:
        _globals = _globals | dict(pair for thing in safe_globals for pair in named(thing))


def get_safe_globals() -> list[Any]:
    """What was allowed."""
    return list(dict.fromkeys(_globals.values()))


def clear_safe_globals() -> None:
    """Allow nothing but what weights need."""
    global _globals
    with _lock:
        _globals = {}


def user_globals() -> dict[tuple[str, str], Any]:
    """{(module, name): what was allowed}."""
    return _globals


@contextmanager
def safe_globals(safe_globals: Sequence[Global]) -> Iterator[None]:
    """What `add_safe_globals` does, for the statements inside."""
    global _globals
    with _lock:
        before = _globals
        add_safe_globals(safe_globals)
    try:
        yield
    finally:
        with _lock:
            _globals = before
