"""Which values may lie in the same memory: those whose lives do not overlap."""
from __future__ import annotations

from typing import Any

from rushlight.compile.graph import Value, values_in

ALIGN = 64


class Plan:
    """Hands out pieces of memory while the program is written, and takes them back after their last use.

    `sizes`: bytes of each piece; `asked`: bytes without sharing; `origin`: whose memory a view shows.
    """

    def __init__(self, items: list[Any], origin: dict[Value, Value]):
        self.sizes: list[int] = []
        self.asked = 0
        self.free: list[int] = []
        self.held: dict[Value, int] = {}
        self.ends: dict[Value, int] = {}
        for i, item in enumerate(items):
            for s in getattr(item, "steps", None) or [item]:
                for v in (*values_in(s.args), *s.outs):
                    self.ends[v] = self.ends[origin.get(v, v)] = i

    def take(self, v: Value) -> int:
        """The number of a piece: the smallest free one that is large enough, else the largest, made larger."""
        n = -(-v.size * v.dtype.itemsize // ALIGN) * ALIGN
        self.asked += n
        fitting = [k for k in self.free if self.sizes[k] >= n]
        if fitting:
            best = min(fitting, key=lambda k: self.sizes[k])
        elif self.free:
            best = max(self.free, key=lambda k: self.sizes[k])
            self.sizes[best] = n
        else:
            best = len(self.sizes)
            self.sizes.append(n)
        if best in self.free:
            self.free.remove(best)
        self.held[v] = best
        return best

    def release(self, item: int) -> None:
        """Take back what nobody reads after this item."""
        for v in [v for v in self.held if self.ends[v] <= item]:
            self.free.append(self.held.pop(v))
