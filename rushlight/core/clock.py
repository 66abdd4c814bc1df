"""A clock that numbers nodes and in-place writes: comparing two numbers tells which came first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import CodeType
from typing import Any

tick = count(1).__next__


class Writes:
    """The write log of one block of memory, made at the first write. Detached aliases share the log.

    `stamp`: the tick of the last write. `count`: the number of writes. `where`: the statement of the last write.
    `memory`: the array of the base, since a detached alias may start at a later address."""

    __slots__ = ("stamp", "count", "where", "memory", "_pending")
    _pending: dict[str, Callable[[], None]]  # of `Watched` only

    def __init__(self) -> None:
        self.stamp, self.count = 0, 0
        self.memory: Any = None
        self.where: tuple[CodeType, int] | None = None


slot: Any = vars(Writes)["count"]


class Watched(Writes):
    """A write log whose next write runs the functions in `_pending`, and then is an ordinary log.

    A subclass keeps this check out of all other writes."""

    __slots__ = ()

    @property
    def count(self) -> int:
        return slot.__get__(self)

    @count.setter
    def count(self, n: int) -> None:
        slot.__set__(self, n)
        pending, self._pending = self._pending, {}
        self.__class__ = Writes  # type: ignore[assignment]
        for function in pending.values():
            function()


def at_next_write(writes: Writes, name: str, function: Callable[[], None]) -> None:
    """Run `function` after the next write to this memory; it replaces one of the same name."""
    if not isinstance(writes, Watched):
        writes._pending, writes.__class__ = {}, Watched
    writes._pending[name] = function


class Clock:
    """`last_write`: the tick of the last write to any memory. Backward checks older nodes only."""

    __slots__ = ("last_write",)
    last_write: int


clock = Clock()
clock.last_write = 0


def stamp(writes: Writes, where: tuple[CodeType, int] | None) -> None:
    """Add a write that has just happened to the log."""
    writes.count += 1
    writes.where = where
    writes.stamp = clock.last_write = tick()
