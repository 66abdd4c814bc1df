"""A pool of memory for large results. New memory from the system is slow, since its pages are zeroed.

The pool keeps the arrays that it returned, and returns them again once no other object refers to them or their views.
The pool keeps at most MAX_POOL_BYTES. Arrays begin at a cache line: NumPy can then write past the caches.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock as Lock
from math import prod
from pickle import PickleBuffer
from typing import Any

import numpy as np
from numpy import ndarray

# the size of the smallest array in the pool; the largest total size of its arrays
MIN_ARRAY_BYTES, MAX_POOL_BYTES = 1 << 20, 1 << 29
CACHE_LINE_BYTES = 64  # bytes


def held_by_us() -> int:
    """`getrefcount` of an array that only a list and a local variable refer to."""
    known = [np.empty(0)]
    for array in known:
        return sys.getrefcount(array)
    raise AssertionError


HELD_BY_US = held_by_us()


class Memory:
    """The pool: `take(shape, dtype)` returns an uninitialized array."""

    def __init__(self) -> None:
        self.lock, self.bytes = Lock(), 0
        self.known: dict[tuple, list[ndarray]] = {}

    def take(self, shape: tuple[int, ...], dtype: Any) -> ndarray:
        with self.lock:
            known = self.known.get((shape, dtype))
            if known is not None:
                for array in known:
                    if sys.getrefcount(array) == HELD_BY_US and array.shape == shape and array.flags.carray:
                        return array
            size = prod(shape) * dtype.itemsize
            if not MIN_ARRAY_BYTES <= size <= MAX_POOL_BYTES or not self.room(size):
                return np.empty(shape, dtype)
            array = aligned(shape, dtype)
            self.known.setdefault((shape, dtype), []).append(array)
            self.bytes += size
        return array

    def room(self, size: int) -> bool:
        """Whether the pool may keep `size` more bytes. To make space, unused arrays of other shapes are freed."""
        if self.bytes + size > MAX_POOL_BYTES:
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
        return self.bytes + size <= MAX_POOL_BYTES


def give_back() -> None:
    """Free the unused arrays, and return the memory to the system if the C library can: glibc's allocator would keep
    the pages.
    """
    with memory.lock:
        memory.room(MAX_POOL_BYTES)
    try:
        import ctypes

        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, ImportError, OSError, TypeError):
        return


def aligned(shape: tuple[int, ...], dtype: np.dtype) -> ndarray:
    """An array that begins at a cache line. Its views refer to this array, not to the bytes below, which are not an
    array.
    """
    held: Any = np.empty(prod(shape) * dtype.itemsize + CACHE_LINE_BYTES, np.uint8)
    buffer: Any = PickleBuffer(held)
    return ndarray(shape, dtype, buffer, -held.ctypes.data % CACHE_LINE_BYTES)


memory = Memory()


def after_fork() -> None:
    memory.lock = Lock()  # the old lock stays locked if another thread held it at the fork


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
