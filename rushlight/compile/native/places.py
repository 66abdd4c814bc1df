"""The memory of the values of a program: buffers, and the places of values in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from rushlight.compile.graph import Value
from rushlight.compile.lower.memory_plan import ALIGN_BYTES, offsets
from rushlight.compile.native.sizes import at, sized, sizes_in

SLACK_BYTES = 64  # behind each buffer, so that a vector may begin at the last element


@dataclass(eq=False)
class Buffer:
    """A piece of memory. `kind`: "arena" (between steps), "input", "output" or "bound" (made of parameters); `bytes`:
    may be a Size. `first`, `last`: the first and the last step that use a buffer of the arena."""

    kind: str
    bytes: Any
    first: int = 0
    last: int = 0


@dataclass(eq=False)
class Place:
    """The elements of a value. `offset` and `strides` count elements; they and `shape` may have Sizes (sizes.py)."""

    buffer: Buffer
    shape: tuple[Any, ...]
    dtype: np.dtype
    strides: tuple[Any, ...]
    offset: Any = 0

    def spread(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The strides of the elements broadcast to a shape: 0 along a dimension that is repeated."""
        missing = len(shape) - len(self.shape)
        own = zip(self.shape, self.strides, shape[missing:])
        return (0,) * missing + tuple([0 if n == 1 != m else s for n, s, m in own])

    def reshaped(self, shape: tuple[Any, ...]) -> Place | None:
        """The same elements in another shape; None if that needs a copy."""

        def view(array: np.ndarray, n: int) -> list[np.ndarray] | None:
            made = array.view()
            try:
                made.shape = at(shape, n)
            except AttributeError:
                return None
            return [made]

        found = self.viewed(view, shape)
        return None if found is None else found[0]

    def viewed(self, views: Callable[[np.ndarray, int], list[np.ndarray] | None], settings: Any) -> list[Place] | None:
        """The places of the arrays views(array, n), where `array` has these strides; None if the arrays are None.
        `n`: for the Sizes of the place and of `settings`."""

        def found(n: int) -> tuple | None:
            own = self.at(n)
            array = own.dummy()
            made, start = views(array, n), array.__array_interface__["data"][0]
            if made is None:
                return None
            return tuple([(a.shape, a.strides, own.offset + a.__array_interface__["data"][0] - start) for a in made])

        size = next(sizes_in((self.shape, self.strides, self.offset, settings)), None)
        made = found(0) if size is None else sized(found, size.least)
        return None if made is None else [Place(self.buffer, n, self.dtype, s, offset) for n, s, offset in made]

    def at(self, n: int) -> Place:
        """The place with numbers for Sizes."""
        return Place(self.buffer, at(self.shape, n), self.dtype, at(self.strides, n), at(self.offset, n))

    def dummy(self) -> np.ndarray:
        """An array of one byte an element with these strides."""
        extent = 1 + sum([(n - 1) * s for n, s in zip(self.shape, self.strides) if n])
        return np.lib.stride_tricks.as_strided(np.empty(max(extent, 1), np.uint8), self.shape, self.strides)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array in C order."""
    return tuple([prod(shape[k + 1 :]) for k in range(len(shape))])


@dataclass
class Memory:
    """All buffers of a program. `now`: the number of the step that is being written."""

    arena: list[Buffer] = field(default_factory=list)
    places: dict[Value, Place] = field(default_factory=dict)
    now: int = 0

    def scratch(self, count: Any, dtype: Any) -> Buffer:
        """Memory of the arena for `count` elements, from this step on; `use` keeps it alive."""
        size = count * np.dtype(dtype).itemsize + SLACK_BYTES
        buffer = Buffer("arena", size, self.now, self.now)
        self.arena.append(buffer)
        return buffer

    def use(self, buffer: Buffer) -> Buffer:
        """Keep a buffer until this step."""
        buffer.last = max(buffer.last, self.now)
        return buffer

    def settled(self, n: int = 0) -> tuple[list[int], int]:
        """The first byte of each buffer of the arena, and the size of the arena. `n`: for Sizes."""
        sizes = [-(-at(b.bytes, n) // ALIGN_BYTES) * ALIGN_BYTES for b in self.arena]
        begin = offsets(sizes, [b.first for b in self.arena], [b.last for b in self.arena])
        return begin, max(map(sum, zip(begin, sizes)), default=0)
