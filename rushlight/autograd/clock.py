"""One clock numbers nodes and in-place writes, so that one comparison says which came first."""
from __future__ import annotations

from itertools import count
from types import CodeType
from typing import Any

tick = count(1).__next__


class Writes:
    """What was written into one piece of memory; made at the first write and shared by detached aliases.

    `memory`: the array at which the memory begins, where a detached alias may begin later.
    """

    __slots__ = ("stamp", "count", "where", "memory", "views")
    views: list                                   # weak references, of a `Left` only

    def __init__(self) -> None:
        self.stamp, self.count = 0, 0
        self.memory: Any = None
        self.where: tuple[CodeType, int] | None = None


slot: Any = vars(Writes)["count"]


class Left(Writes):
    """The record of a tensor that `detach_` took out of the graph while views of the tensor stayed in it. The next write
    takes the views out, too, because no graph knows the new numbers. A class of its own keeps the check out of all other
    writes."""

    __slots__ = ()

    @property
    def count(self) -> int:  # type: ignore[override]
        return slot.__get__(self)

    @count.setter
    def count(self, n: int) -> None:
        slot.__set__(self, n)
        self.__class__ = Writes  # type: ignore[assignment]
        for weak in self.views:
            if (view := weak()) is not None:
                view.node = None
        self.views = []


class Clock:
    """`last_write`: when any memory was last written; backward looks at saved tensors only past it."""

    __slots__ = ("last_write",)
    last_write: int


clock = Clock()
clock.last_write = 0


def stamp(writes: Writes, where: tuple[CodeType, int] | None) -> None:
    """Note a write that has just happened."""
    writes.count += 1
    writes.where = where
    writes.stamp = clock.last_write = tick()
