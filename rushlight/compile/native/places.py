"""The memory of the values of a program: buffers, and the places of values in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from rushlight.compile.graph import Value
from rushlight.compile.lower.memory_plan import ALIGN_BYTES, offsets

SLACK_BYTES = 64  # behind each buffer, so that a vector may begin at the last element


class NotNative(Exception):
    """Raised for a graph that has no native function: the program then stays as it is."""


class WrongInput(Exception):
    """Raised by a native function for an input that eager refuses: the caller runs eagerly, for eager's own error."""


@dataclass(eq=False)
class Buffer:
    """A piece of memory. `kind`: "arena" (between steps), "input", "output" or "bound" (made of parameters).

    `index`: the number among the buffers of its kind; for the arena the first byte. `first`, `last`: the first and the
    last step that use a buffer of the arena."""

    kind: str
    bytes: int
    index: int = 0
    first: int = 0
    last: int = 0


@dataclass(eq=False)
class Place:
    """The elements of a value. `offset` and `strides` count elements."""

    buffer: Buffer
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...]
    offset: int = 0

    def spread(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The strides of the elements broadcast to a shape: 0 along a dimension that is repeated."""
        missing = len(shape) - len(self.shape)
        own = zip(self.shape, self.strides, shape[missing:])
        return (0,) * missing + tuple([0 if n == 1 != m else s for n, s, m in own])

    def reshaped(self, shape: tuple[int, ...]) -> Place | None:
        """The same elements in another shape; None if that needs a copy."""
        array = self.dummy()
        view = array.view()
        try:
            view.shape = shape
        except AttributeError:
            return None
        return self.of_view(array, view)

    def dummy(self) -> np.ndarray:
        """An array of one byte an element with these strides."""
        extent = 1 + sum([(n - 1) * s for n, s in zip(self.shape, self.strides) if n])
        return np.lib.stride_tricks.as_strided(np.empty(max(extent, 1), np.uint8), self.shape, self.strides)

    def of_view(self, array: np.ndarray, view: np.ndarray) -> Place:
        """The place of a view: `array` is the dummy, `view` a view of the dummy."""
        moved = view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
        return Place(self.buffer, view.shape, self.dtype, view.strides, self.offset + moved)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array in C order."""
    return tuple([prod(shape[k + 1 :]) for k in range(len(shape))])


@dataclass
class Memory:
    """All buffers of a program. `now`: the number of the step that is being written."""

    arena: list[Buffer] = field(default_factory=list)
    places: dict[Value, Place] = field(default_factory=dict)
    now: int = 0

    def scratch(self, count: int, dtype: Any) -> Buffer:
        """Memory of the arena for `count` elements, from this step on; `use` keeps it alive."""
        size = -(-(count * np.dtype(dtype).itemsize + SLACK_BYTES) // ALIGN_BYTES) * ALIGN_BYTES
        buffer = Buffer("arena", size, 0, self.now, self.now)
        self.arena.append(buffer)
        return buffer

    def use(self, buffer: Buffer) -> Buffer:
        """Keep a buffer until this step."""
        buffer.last = max(buffer.last, self.now)
        return buffer

    def settle(self) -> int:
        """Set the first byte of each buffer of the arena; the size of the arena."""
        begin = offsets(*([getattr(b, name) for b in self.arena] for name in ("bytes", "first", "last")))
        for buffer, start in zip(self.arena, begin):
            buffer.index = start
        return max([b.index + b.bytes for b in self.arena], default=0)
