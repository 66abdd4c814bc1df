"""The names that a compiled program imports: element types, kernels of the table, planned memory, loop decorators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.core.table import TABLE
from rushlight.kernels.matmul import into as matmul
from rushlight.loops.cache import joint, loop
from rushlight.loops.parallel import in_parts

b1, f32, f64, i64 = np.bool_, np.float32, np.float64, np.int64


class Kernels:
    """The kernels of the op table by name: `kernels.gather(x, index, 1)`."""

    def __getattr__(self, name: str) -> Callable:
        if name not in TABLE:
            raise AttributeError(f"the table has no op {name}")
        kernel = self.__dict__[name] = TABLE[name].kernel
        return kernel


kernels = Kernels()


def check_index(index: np.ndarray, n: int) -> None:
    """IndexError unless all indices are in range(n)."""
    # a negative index is a huge unsigned number
    if index.size and np.maximum.reduce(index.view(np.uint64), None) >= n:
        raise IndexError(f"index out of range: from {index.min()} to {index.max()}, but the dimension has size {n}")


def check_classes(target: np.ndarray, classes: int, ignore_index: int) -> None:
    """IndexError unless all targets are in range(classes), or ignore_index."""
    if target.size and np.maximum.reduce(target.view(np.uint64), None) >= classes:
        wrong = target[((target < 0) | (target >= classes)) & (target != ignore_index)]
        if wrong.size:
            raise IndexError(f"Target {wrong[0]} is out of bounds: there are {classes} classes, 0 to {classes - 1}")


def check_true(condition: np.ndarray) -> None:
    """RuntimeError unless all elements are true. rushlight then runs the function eagerly, which raises the real
    error."""
    if not condition.all():
        raise RuntimeError("a check of the inputs of an op or a distribution failed")


def laid(a: np.ndarray, axes: list[int]) -> np.ndarray:
    """The array with dimensions `axes` in memory from the outermost to the innermost; a copy if its layout differs."""
    turned = a.transpose(axes)
    return a if turned.flags.c_contiguous else turned.copy().transpose(np.argsort(axes))


def memory(size: int) -> Callable[[int, tuple, str], np.ndarray]:
    """Allocate an arena of `size` bytes; returns `place(start, shape, dtype)`, which views a part of it as an array."""
    arena = aligned(size)

    def place(start: int, shape: tuple, dtype: str) -> np.ndarray:
        kind = np.dtype(dtype)
        n = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        return arena[start : start + n].view(kind).reshape(shape)

    return place


def aligned(n: int, to: int = 64) -> np.ndarray:
    """n zero bytes starting at a multiple of `to` bytes (a cache line)."""
    raw: Any = np.zeros(n + to, np.uint8)
    start = -raw.ctypes.data % to
    return raw[start : start + n]


__all__ = [
    "b1", "check_classes", "check_index", "check_true", "f32", "f64", "i64", "in_parts", "joint", "kernels", "laid",
    "loop", "matmul", "memory",
]  # fmt: skip
