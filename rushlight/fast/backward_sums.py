"""Sums of two gradients of one node: 16-bit floats are added in float32, large arrays reuse memory of the buffer pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.core.table import TABLE
from rushlight.fast.elementwise import run as elementwise
from rushlight.fast.index import SUM_ELEMENTS


def run(site: Any, of: str, add: Callable, a: Any, b: Any) -> Any:
    """a + b."""
    if not (a.__class__ is b.__class__ is ndarray) or a.dtype != b.dtype:
        return add(a, b)
    if a.itemsize == 2:
        return elementwise(TABLE["add"], "", np.add, a, b)
    return np.add(a, b, out=memory.take(a.shape, a.dtype)) if a.size >= SUM_ELEMENTS else add(a, b)


def examples() -> dict[tuple[str, str], Callable[[], tuple]]:
    x = np.linspace(-1, 1, 1024).astype(np.float16)
    return {("sum of gradients", ""): lambda: (x, x[::-1].copy())}
