"""Memory for large results, used again: the system hands out fresh pages one by one, zeroed, at 2
to 4 GB/s.

Arrays that were handed out are remembered, and handed out again once nobody else holds them, views
of them included. At most MOST bytes are remembered. They begin with a line of the cache: then NumPy
writes past the caches, and an addition of 10 million numbers takes 9.4 ms, not 14."""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock as Lock
from math import prod
from pickle import PickleBuffer
from typing import Any

import numpy as np
from numpy import ndarray

LEAST, MOST = 1 << 20, 1 << 29  # bytes: of an array that is remembered; of all of them
LINE = 64  # bytes


def held_by_us() -> int:
    """What `getrefcount` says of an array that only a list and a local variable hold."""
    known = [np.empty(0)]
    for array in known:
        return sys.getrefcount(array)
    raise AssertionError


HELD_BY_US = held_by_us()


class Memory:
    """`take(shape, dtype)`: an array with any content."""

    def __init__(self) -> None:
        self.lock, self.bytes = Lock(), 0
        self.known: dict[tuple, list[ndarray]] = {}

    def take(self, shape: tuple[int, ...], dtype: Any) -> ndarray:
        with self.lock:
            known = self.known.get((shape, dtype))
            if known is not None:
                for array in known:
                    if (
                        sys.getrefcount(array) == HELD_BY_US
                        and array.shape == shape
                        and array.flags.carray
                    ):
                        return array
            size = prod(shape) * dtype.itemsize
            if not LEAST <= size <= MOST or not self.room(size):
                return np.empty(shape, dtype)
            array = aligned(shape, dtype)
            self.known.setdefault((shape, dtype), []).append(array)
            self.bytes += size
        return array

    def room(self, size: int) -> bool:
        """Whether so many bytes more may be remembered; arrays of other shapes that nobody holds
        are let go for it."""
        if self.bytes + size > MOST:
            for key, known in list(self.known.items()):
                kept = []
                for array in known:
                    if sys.getrefcount(array) == HELD_BY_US:
                        self.bytes -= array.nbytes
                    else:
                        kept.append(array)
                if kept:
                    self.known[key] = kept
                else:
                    del self.known[key]
        return self.bytes + size <= MOST


def give_back() -> None:
    """Let go of the arrays that nobody holds, and hand what was freed back to the system, where the
    C library can: glibc's allocator keeps pages among those in use."""
    import ctypes

    with memory.lock:
        memory.room(MOST)
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return


def aligned(shape: tuple[int, ...], dtype: np.dtype) -> ndarray:
    """An array at the beginning of a line of the cache. Its views hold it, not the bytes below:
    these are no array."""
    held: Any = np.empty(prod(shape) * dtype.itemsize + LINE, np.uint8)
    buffer: Any = PickleBuffer(held)
    return ndarray(shape, dtype, buffer, -held.ctypes.data % LINE)


memory = Memory()


def after_fork() -> None:
    memory.lock = Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
