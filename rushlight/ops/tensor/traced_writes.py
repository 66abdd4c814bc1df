"""Ops that exist only in recorded programs: regions of memory as values, and random numbers that are drawn again in
each run.

Values in a recorded program are immutable: a write through a view creates a new tensor in which this region is changed.
A region is given by the arguments of `as_strided`: size, strides and offset, in elements of the base without gaps.
"""

from __future__ import annotations

import numpy as np
from numpy import ascontiguousarray, ndarray
from numpy.lib.stride_tricks import as_strided

from rushlight import random
from rushlight.core.build import build, inner, inner_view


def looked(x: ndarray, size: tuple, stride: tuple, start: int, writable: bool = True) -> ndarray:
    """`writable`: whether the recorded view was writable; overlapping windows are not writable."""
    if 0 in size:
        return np.empty(size, x.dtype)
    x = ascontiguousarray(x).reshape(-1)[start:]
    return as_strided(x, size, tuple(step * x.itemsize for step in stride), writeable=writable)


def written(x: ndarray, y: ndarray, size: tuple, stride: tuple, start: int) -> ndarray:
    r = np.array(x, order="C")
    looked(r, size, stride, start)[...] = y
    return r


def fresh(method: str, args: tuple, named: tuple) -> ndarray:
    # arrays in C order, which is the order of the draws
    args = tuple(np.asarray(a, order="C") if isinstance(a, ndarray) else a for a in args)
    return np.asarray(getattr(random.default_generator, method)(*args, **dict(named)))


# fmt: off
region = inner_view(lambda x, /, size, stride, start, writable=True: region(x, size, stride, start, writable),
    kernel=looked)
with_region = inner(lambda x, y, /, size, stride, start: with_region(x, y, size, stride, start), kernel=written)
draw        = inner(lambda method, args, named: draw(method, args, named), kernel=fresh, random=True)
# fmt: on

build(globals())
