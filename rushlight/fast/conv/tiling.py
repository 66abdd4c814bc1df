"""Code shared by the compiled ways of convolution: workspaces, results, and weight gradients summed in a fixed order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import local

import numpy as np
from numpy import ndarray

FLOAT = np.dtype(np.float32)
MAX_KEPT_FLOATS = 1 << 22  # floats of the largest workspace that is kept for the next call
LINE_BYTES = 64  # bytes of a cache line


class Inexact(ArithmeticError):
    """The way would be inexact for these numbers; the next way that suits takes over."""


class Workspaces(local):
    """Each thread's workspaces, kept between calls: mapping fresh pages takes as long as filling them."""

    def __init__(self) -> None:
        self.kept: dict[str, ndarray] = {}

    def take(self, name: str, floats: int) -> ndarray:
        """Uninitialized memory for at least `floats` numbers plus a vector of 16, aligned to a cache line."""
        space = self.kept.get(name)
        if space is None or len(space) < floats + 16:
            fresh = np.zeros(floats + 32, FLOAT)
            space = fresh[-fresh.ctypes.data % LINE_BYTES // FLOAT.itemsize :][: floats + 16]
            if floats <= MAX_KEPT_FLOATS:
                self.kept[name] = space
        return space

    def zeros(self, name: str, floats: int) -> ndarray:
        space = self.take(name, floats)
        space[:floats] = 0
        return space


workspaces = Workspaces()


@cache
def lanes() -> int:
    """Floats in a vector register."""
    from rushlight.loops.llvm import machine

    return machine()[0]


def whole_vectors(floats: int) -> int:
    """`floats` rounded up to whole vectors."""
    return -(-floats // lanes()) * lanes()


def contiguous(a: ndarray) -> ndarray:
    return a if a.flags.carray else a.copy()


def padded_bias(bias: ndarray | None, floats: int) -> ndarray:
    """The bias padded with zeros; only zeros for None."""
    padded = np.zeros(floats, FLOAT)
    if bias is not None:
        padded[: len(bias)] = bias
    return padded


def for_images(part: Callable, images: int, step: int, least: int | None = None) -> None:
    """Calls part(first, end, images at a time) on all cores, by `parallel_for` (loops/parallel.py)."""
    from rushlight.loops.parallel import parallel_for

    parallel_for(part, images, step, least)


def sum_over_images(start: Callable, floats: int, images: int, step: int, each: int | None = None) -> ndarray:
    """The sum over all images of add(total, first, end, at a time), where each total starts from zeros and each core's
    `add` is made by start().

    Each core's images are one part, or parts of `each` images if that is given; a core gets at least `step` images. The
    totals of the parts are added up in image order, so the result does not depend on the order in which parts finish.
    """
    totals: dict[int, ndarray] = {}

    def part(first: int, end: int, at_a_time: int) -> None:
        add = start()
        for begin in range(first, end, at_a_time if each else end - first):
            totals[begin] = total = np.zeros(floats, FLOAT)
            add(total, begin, min(begin + at_a_time, end) if each else end, at_a_time)

    for_images(part, images, each or step, step)
    arrays = [totals[first] for first in sorted(totals)]
    return arrays[0] if len(arrays) == 1 else np.sum(arrays, 0)
