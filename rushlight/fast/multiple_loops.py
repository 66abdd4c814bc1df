"""a += factor b in place by a loop, which reads b once and needs no array for the product. Both operations are rounded
separately, as NumPy's are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.fast.index import GATHER_PARALLEL_ELEMENTS
from rushlight.fast.reductions import shared
from rushlight.loops.tiering import Loop

TEXT = """def kernel(a, b, factor):
    restrict()
    wide()
    c = factor[()]
    for i in range(a.shape[0]):
        a[i] = a[i] + b[i] * c
"""


@cache
def loop_of(dtype: np.dtype) -> Loop:
    x = np.zeros(1, dtype)
    return Loop(lambda: TEXT, 2, lambda: (x, x.copy(), np.zeros((), dtype)))


def add_multiple(a: ndarray, b: ndarray, factor: Any) -> bool | None:
    """True if a loop did it; None for other dtypes and layouts, and if the arrays share memory."""
    if (
        a.dtype is not b.dtype
        or a.dtype.char not in "fd"
        or a.shape != b.shape
        or not (a.flags.carray and b.flags.c_contiguous and b.flags.aligned)
        or np.may_share_memory(a, b)
    ):
        return None
    function = loop_of(a.dtype).ready(a.size)
    if function is None:
        return None
    arrays = a.reshape(-1), b.reshape(-1), np.asarray(factor, a.dtype)
    shared(function, arrays, (1, 1, 0), a.size, GATHER_PARALLEL_ELEMENTS)
    return True
