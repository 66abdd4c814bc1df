"""The memory plan of a program: values whose lifetimes do not overlap share memory."""

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

ALIGN_BYTES = 64


class Plan:
    """The arena of a program. While the program is written, `take` collects values; `settle` then places them.

    `parents`: view -> its base. After `settle`: `leases`, `size` (bytes of the arena), `asked` (bytes without sharing).
    """

    def __init__(self, items: list[Any], parents: dict[Value, Value]):
        self.now = 0  # the number of the item that is being written
        # (value, bytes, number of the item that makes it)
        self.taken: list[tuple[Value, int, int]] = []
        self.ends: dict[Value, int] = {}  # the last item that reads a value or a view of it
        for i, item in enumerate(items):
            for s in getattr(item, "steps", None) or [item]:
                for v in (*values_in(s.args), *s.outs):
                    self.ends.update(dict.fromkeys(lineage(v, parents), i))

    def take(self, v: Value) -> None:
        """Reserve memory for a value, from the present item to the last one that reads the value."""
        self.taken.append((v, -(-v.size * v.dtype.itemsize // ALIGN_BYTES) * ALIGN_BYTES, self.now))

    def settle(self) -> None:
        """Place all values: sets `leases`, `size` and `asked`."""
        ends = [self.ends[v] for v, _, _ in self.taken]
        starts = offsets([n for _, n, _ in self.taken], [first for _, _, first in self.taken], ends)
        self.leases = [
            Lease(v.name, start, n, first, last) for (v, n, first), start, last in zip(self.taken, starts, ends)
        ]
        self.size = max([r.start + r.size for r in self.leases], default=0)
        self.asked = sum([r.size for r in self.leases])


def offsets(sizes: list[int], firsts: list[int], lasts: list[int]) -> list[int]:
    """The offset of each block, such that blocks with overlapping lifetimes do not overlap in memory.

    Greedy by size (Pisarchyk and Lee 2020, arxiv.org/abs/2001.03288): the largest block first, each into the smallest
    gap that fits between the blocks placed before. In practice within a few percent of the lower bound, the bytes alive
    at once."""
    order = np.argsort(-np.asarray(sizes, np.int64), kind="stable")
    size, first, last = (np.asarray(x, np.int64)[order] for x in (sizes, firsts, lasts))
    start = np.zeros(len(order), np.int64)
    for k, n in enumerate(size):
        meets = (first[:k] <= last[k]) & (last[:k] >= first[k])
        begins, ends = start[:k][meets], (start + size)[:k][meets]
        up = np.argsort(begins, kind="stable")
        # starts of the gaps; each ends at the next block
        free = np.concatenate([[0], np.maximum.accumulate(ends[up])])
        gaps = begins[up] - free[:-1]
        fitting = np.flatnonzero(gaps >= n)
        start[k] = free[fitting[gaps[fitting].argmin()] if fitting.size else -1]
    return [int(x) for x in start[np.argsort(order)]]


class Spans:
    """The byte ranges of arrays, sorted: `touch` finds by bisection whether an array overlaps one of them."""

    def __init__(self, arrays: Iterable[np.ndarray]):
        spans = sorted([byte_bounds(a) for a in arrays if a.size])
        self.starts = [start for start, _ in spans]
        self.ends = [*accumulate((end for _, end in spans), max)]  # the largest end so far
        self.apart = all(end <= start for end, start in zip(self.ends, self.starts[1:]))

    def touch(self, a: np.ndarray) -> bool:
        start, end = byte_bounds(a)
        k = bisect_left(self.starts, end) if a.size else 0
        return k > 0 and self.ends[k - 1] > start


def overlap(written: list[np.ndarray], read: list[np.ndarray]) -> bool:
    """Whether an array in `written` may share memory with another array, by their byte ranges."""
    others = Spans(read)
    return not Spans(written).apart or any(others.touch(a) for a in written)


def orders(graph: Graph, parents: dict[Value, Value], like: Mapping[Value, np.ndarray]) -> dict[Value, list[int]]:
    """For each output its dimensions from the outermost in memory to the innermost, as in eager's arrays `like`.

    Leaves out outputs that share memory with an input or another output, and arrays that have gaps."""
    roots = {v: [*lineage(v, parents)][-1] for v in graph.outputs()}
    times = Counter(roots.values())
    found = {}
    for v, a in like.items():
        axes = sorted(range(a.ndim), key=lambda d: not a.flags.c_contiguous and a.shape[d] > 1 and -a.strides[d])
        if roots[v].kind != "input" and times[roots[v]] == 1 and a.transpose(axes).flags.c_contiguous:
            found[v] = axes
    return found
