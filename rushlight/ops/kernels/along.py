"""Reductions and scans of large float32 arrays by the loops of rows.py, at the speed of memory; where a function gives
None, NumPy does it: without Numba, for other dtypes, layouts and dimensions, short rows.
"""
from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.optional import has_numba

SHORT = 32                                        # numbers of a row, below which a loop is no faster
MUCH = 1 << 18                                    # numbers from which all cores share the work
FLOAT = np.dtype(np.float32)


@cache
def loops() -> Any:
    """The compiled loops; None without Numba."""
    if not has_numba():
        return None
    from rushlight.ops.kernels import rows
    return rows


def reduced(name: str, x: ndarray, dims: tuple[int, ...] | int | None, keepdim: bool) -> ndarray | None:
    """One number from each row, a row being the last dimension or dimensions, or all of them."""
    if x.dtype is not FLOAT or not x.flags.carray or loops() is None:
        return None
    dims = (dims,) if isinstance(dims, int) else dims
    kept = 0 if dims is None else x.ndim - len(dims)
    if dims is not None and sorted([d % x.ndim for d in dims]) != [*range(kept, x.ndim)] or prod(x.shape[kept:]) < SHORT:
        return None
    out = np.empty(x.shape[:kept] + (1,) * (x.ndim - kept) * keepdim, FLOAT)
    in_parts(getattr(loops(), name), (x.reshape(out.size, -1), out.reshape(-1)), x.size)
    return out


def running(name: str, x: ndarray, dim: int) -> ndarray | None:
    """`running_sums` or `running_products`, in float64 inside."""
    if x.dtype is not FLOAT or not x.flags.carray or not -x.ndim <= dim < x.ndim or loops() is None:
        return None
    dim, out = dim % x.ndim, np.empty_like(x)
    before, n, after = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1:])
    if after == 1:
        in_parts(getattr(loops(), name + "_of_rows"), (x.reshape(before, n), out.reshape(before, n)), x.size)
    else:
        getattr(loops(), name)(x.reshape(before, n, after), out.reshape(before, n, after), np.empty(after))
    return out


def in_parts(loop: Any, arguments: tuple, size: int) -> None:
    """The call; of much, all cores do some of the rows."""
    if size < MUCH or len(arguments[0]) == 1:
        loop(*arguments)
    else:
        from rushlight.compile.parallel import in_parts
        in_parts(loop, arguments, (1,) * len(arguments))
