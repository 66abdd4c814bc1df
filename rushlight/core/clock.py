"""A clock that numbers nodes and in-place writes: comparing two numbers tells which came first."""

from __future__ import annotations

from itertools import count
from types import CodeType
from typing import Any

tick = count(1).__next__


class Writes:
    """The write log of one block of memory, made at the first write. Detached aliases share the
    log.

    `stamp`: the tick of the last write. `count`: the number of writes. `where`: the statement of
    the last write. `memory`: the array of the base, since a detached alias may start at a later
    address."""

    __slots__ = ("stamp", "count", "where", "memory", "_views")
    _views: list  # weak references to views; set on `Left` only

    def __init__(self) -> None:
        self.stamp, self.count = 0, 0
        self.memory: Any = None
        self.where: tuple[CodeType, int] | None = None


slot: Any = vars(Writes)["count"]


class Left(Writes):
    """The write log of a tensor that `detach_` took out of the graph while views of the tensor
    stayed in the graph.

    The next write takes the views out, too, because no node computed the new elements. A subclass
    keeps this check out of all other writes."""

    __slots__ = ()

    @property
    def count(self) -> int:
        return slot.__get__(self)

    @count.setter
    def count(self, n: int) -> None:
        slot.__set__(self, n)
        self.__class__ = Writes  # type: ignore[assignment]
        for weak in self._views:
            if (view := weak()) is not None:
                view._node = None
        self._views = []


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
