"""Which values may lie in the same memory: those whose lives do not overlap."""
from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from rushlight.compile.graph import Graph, Value, lineage, values_in
from rushlight.compile.report import Lease

ALIGN = 64


class Plan:
    """Hands out pieces of memory while the program is written, and takes them back after their last use.

    `sizes`: bytes of each piece; `asked`: bytes without sharing; `parents`: what a view is a view of.
    """

    def __init__(self, items: list[Any], parents: dict[Value, Value]):
        self.sizes: list[int] = []
        self.asked = 0
        self.now = 0                              # the item that is being written
        self.taken: list[tuple[Value, int, int, int]] = []      # value, piece, bytes, item
        self.free: list[int] = []
        self.held: dict[Value, int] = {}
        self.ends: dict[Value, int] = {}
        for i, item in enumerate(items):
            for s in getattr(item, "steps", None) or [item]:
                for v in (*values_in(s.args), *s.outs):
                    self.ends.update(dict.fromkeys(lineage(v, parents), i))

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
        self.taken.append((v, best, n, self.now))
        return best

    def release(self, item: int) -> None:
        """Take back what nobody reads after this item."""
        for v in [v for v in self.held if self.ends[v] <= item]:
            self.free.append(self.held.pop(v))
        self.now = item + 1

    def leases(self) -> list[Lease]:
        """Who was where, and from when to when."""
        return [Lease(v.name, piece, n, first, self.ends[v]) for v, piece, n, first in self.taken]


class Spans:
    """Where arrays lie, sorted: whether another one touches them is found without looking at each."""

    def __init__(self, arrays: Iterable[np.ndarray]):
        spans = sorted([byte_bounds(a) for a in arrays if a.size])
        self.starts = [start for start, _ in spans]
        self.ends = [*accumulate((end for _, end in spans), max)]               # the furthest so far
        self.apart = all(end <= start for end, start in zip(self.ends, self.starts[1:]))

    def touch(self, a: np.ndarray) -> bool:
        start, end = byte_bounds(a)
        k = bisect_left(self.starts, end) if a.size else 0
        return k > 0 and self.ends[k - 1] > start


def overlap(written: list[np.ndarray], read: list[np.ndarray]) -> bool:
    """Whether some array that is written may share memory with another one: by where each begins and ends."""
    others = Spans(read)
    return not Spans(written).apart or any(others.touch(a) for a in written)


def orders(graph: Graph, parents: dict[Value, Value], like: Mapping[Value, np.ndarray]) -> dict[Value, list[int]]:
    """The dimensions of what is handed out from the outermost in memory to the innermost, as in eager's arrays, `like`; not
    of what shows memory of an input or of another result, which it has to share, nor of what has gaps."""
    roots = {v: [*lineage(v, parents)][-1] for v in graph.outputs()}
    times = Counter(roots.values())
    found = {}
    for v, a in like.items():
        axes = sorted(range(a.ndim), key=lambda d: not a.flags.c_contiguous and a.shape[d] > 1 and -a.strides[d])
        if roots[v].kind != "input" and times[roots[v]] == 1 and a.transpose(axes).flags.c_contiguous:
            found[v] = axes
    return found
