"""Reductions and scans of large float32 arrays by the loops of row_loops.py, at memory speed. A function returns None
if NumPy should do it: without llvmlite, for other dtypes, layouts and dimensions, and for short rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import has_llvmlite
from rushlight.fast.index import REDUCTION_PARALLEL_ELEMENTS, REDUCTION_ROW_ELEMENTS
from rushlight.fast.row_text import loop_of
from rushlight.kernels.summation import added

Dims = tuple[int, ...] | int | None
FLOAT = np.dtype(np.float32)


@cache
def loops() -> Any:
    """The compiled loops; None without llvmlite."""
    if not has_llvmlite():
        return None
    from rushlight.fast import row_loops as rows

    return rows


def reduced(x: ndarray, dims: Dims, keepdim: bool, loop: Callable[..., Any], *how: str) -> ndarray | None:
    """The reduction of each row to one number, by the loop `loop(*how)`; a row is the last dimension or dimensions, or
    the whole array.
    """
    if x.dtype is not FLOAT or not x.flags.carray:
        return None
    dims = (dims,) if isinstance(dims, int) else dims
    kept = 0 if dims is None else x.ndim - len(dims)
    last = dims is None or sorted([d % x.ndim for d in dims]) == [*range(kept, x.ndim)]
    if not last or prod(x.shape[kept:]) < REDUCTION_ROW_ELEMENTS or loops() is None:
        return None
    out = np.empty(x.shape[:kept] + (1,) * (x.ndim - kept) * keepdim, FLOAT)
    shared(loop(*how), (x.reshape(out.size, -1), out.reshape(-1)), (1, 1), x.size)
    return out


def sums(x: ndarray, dims: Dims = None, keepdim: bool = False) -> ndarray | None:
    """The sum. Each element of an expanded array is added once, and the result is multiplied by the number of
    repeats."""
    if 0 not in x.strides:
        return reduced(x, dims, keepdim, loop_of, "sum", "", "blocks")
    once, count = without_copies(x, dims)
    if count == 1:
        return None
    made = reduced(once, dims, keepdim, loop_of, "sum", "", "blocks")
    return (added(once, dims, keepdim) if made is None else made) * FLOAT.type(count)


def without_copies(x: ndarray, dims: Dims) -> tuple[ndarray, int]:
    """x with size 1 in the summed dimensions that repeat the same elements; and the number of repeats."""
    summed = range(x.ndim) if dims is None else (dims,) if isinstance(dims, int) else dims
    repeated = [d % x.ndim for d in summed if not x.strides[d] and x.shape[d] > 1]
    key = tuple([slice(1) if d in repeated else slice(None) for d in range(x.ndim)])
    return x[key], prod([x.shape[d] for d in repeated])


def products(x: ndarray, dims: Dims = None, keepdim: bool = False) -> ndarray | None:
    """The product; None for the product of all elements, because NumPy is as fast (reduce.multiplied)."""
    return None if dims is None else reduced(x, dims, keepdim, lambda: loops().products)


def largest(x: ndarray, dims: Dims = None, keepdim: bool = False) -> ndarray | None:
    return reduced(x, dims, keepdim, loop_of, "amax", "", "rows")


def smallest(x: ndarray, dims: Dims = None, keepdim: bool = False) -> ndarray | None:
    return reduced(x, dims, keepdim, loop_of, "amin", "", "rows")


def means(x: ndarray, dims: Dims = None, keepdim: bool = False) -> ndarray | None:
    total = sums(x, dims, keepdim)
    return None if total is None else total / FLOAT.type(x.size // max(total.size, 1))


def norms(x: ndarray, p: float, dims: Dims, keepdim: bool = False) -> ndarray | None:
    """The norm; None for the norm of the whole array, because BLAS's dot is as fast."""
    return reduced(x, dims, keepdim, lambda: loops().norms) if p == 2 and (dims is not None or keepdim) else None


def running_sums(x: ndarray, dim: int) -> ndarray | None:
    return running("running_sums", x, dim)


def running_products(x: ndarray, dim: int) -> ndarray | None:
    return running("running_products", x, dim)


def largest_so_far(x: ndarray, dim: int) -> tuple[ndarray, ndarray] | None:
    return extremes(np.maximum, x, dim)


def smallest_so_far(x: ndarray, dim: int) -> tuple[ndarray, ndarray] | None:
    return extremes(np.minimum, x, dim)


def running(name: str, x: ndarray, dim: int) -> ndarray | None:
    """`running_sums` or `running_products`, in float64 inside."""
    if x.dtype is not FLOAT or not x.flags.carray or not -x.ndim <= dim < x.ndim or loops() is None:
        return None
    dim, out = dim % x.ndim, np.empty_like(x)
    before, n, after = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])
    if after == 1:
        shared(getattr(loops(), name + "_of_rows"), (x.reshape(before, n), out.reshape(before, n)), (1, 1), x.size)
    else:
        getattr(loops(), name)(x.reshape(before, n, after), out.reshape(before, n, after), np.empty(after))
    return out


EXTREMES = """def kernel(x, out, places):
    restrict()
    for b in range(x.shape[0]):
        for k in range(x.shape[2]):
            out[b, 0, k] = x[b, 0, k]
            places[b, 0, k] = 0
        for j in range(1, x.shape[1]):
            for k in range(x.shape[2]):
                v = x[b, j, k]
                last = v {sign} out[b, j - 1, k] or v != v
                out[b, j, k] = v if last else out[b, j - 1, k]
                places[b, j, k] = j if last else places[b, j - 1, k]
"""
EXTREMES_OF_ROWS = """def kernel(x, out, places):
    restrict()
    for b in range(x.shape[0]):
        top, at, known = x[b, 0, 0], 0, True
        for j in range(x.shape[1]):
            v = x[b, j, 0]
            known = known and v == v
            if known and not v {less} top or v != v:
                top, at = v, j
            out[b, j, 0], places[b, j, 0] = top, at
"""


@cache
def extremes_loop(ufunc: np.ufunc, rows: bool, dtype: np.dtype) -> Any:
    """The loop of a running extreme, for float32 or float64, along rows or across them, with NumPy's results. Rows of
    100,000 numbers take 0.1 ms; 0.42 if each comparison waits for the one before, as with a nan as maximum.
    """
    from rushlight.loops.tiering import Loop  # imported on first use

    text = (EXTREMES_OF_ROWS if rows else EXTREMES).format(
        **{"sign": ">=", "less": "<"} if ufunc is np.maximum else {"sign": "<=", "less": ">"}
    )
    x = np.zeros((1, 1, 1), dtype)
    return Loop(lambda: text, 30, lambda: (x, x.copy(), np.zeros((1, 1, 1), np.int64)))


def extremes(ufunc: np.ufunc, x: ndarray, dim: int) -> tuple[ndarray, ndarray] | None:
    """The running extreme along a dimension, and its last index."""
    if x.dtype.char not in "fd" or not x.size or not x.flags.carray or not -x.ndim <= dim < x.ndim:
        return None
    dim %= x.ndim
    shape = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])
    function = extremes_loop(ufunc, shape[2] == 1, x.dtype).ready(x.size)
    if function is None:
        return None
    out, places = np.empty_like(x), np.empty(x.shape, np.int64)
    shared(function, (x.reshape(shape), out.reshape(shape), places.reshape(shape)), (1, 1, 1), x.size)
    return out, places


def shared(
    loop: Callable, arguments: tuple, how: tuple[int, ...], size: int, much: int = REDUCTION_PARALLEL_ELEMENTS
) -> None:
    """Calls the loop; large work is split between cores, by `parallel.in_parts`, which takes `how`."""
    if size < much:
        loop(*arguments)
    else:
        from rushlight.loops.parallel import in_parts

        in_parts(loop, arguments, how)


# the function for each op, called with the arguments of its kernel
FUNCTIONS: dict[str, Callable] = {
    "sum": sums,
    "prod": products,
    "amax": largest,
    "amin": smallest,
    "mean": means,
    "vector_norm": norms,
    "cumsum": running_sums,
    "cumprod": running_products,
    "cummax": largest_so_far,
    "cummin": smallest_so_far,
}


def run(op: Any, of: str, kernel: Callable, *args: Any) -> Any:
    """`kernel(*args)` by the op's loop, if the loop supports these arguments."""
    made = FUNCTIONS[op.name](*args)
    return kernel(*args) if made is None else made


def examples() -> dict[tuple[str, str], Callable[[], tuple]]:
    """Example arguments for each of FUNCTIONS."""
    x = (np.cos(np.arange(128) * 1.7) + FLOAT.type(1.1)).astype(FLOAT).reshape(2, 64)
    more = {"vector_norm": (2.0, (1,)), "cumsum": (1,), "cumprod": (1,), "cummax": (1,), "cummin": (1,)}
    given = {name: (x, *more.get(name, ((1,),))) for name in FUNCTIONS}
    return {(name, ""): lambda args=args: args for name, args in given.items()}  # type: ignore[misc]
