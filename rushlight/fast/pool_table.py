"""Pooling of small planes with a handful of NumPy calls; one pass for each tap takes dozens.

Maxima use an index table of each window: 48 windows of 2 x 2 take 20 us, not 72. Sums are a product with a matrix of 0
and 1: 3 x 3 windows in 2 x 3 planes of 8 x 8 take 5 us, not 60.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import product
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.intp import as_int64
from rushlight.fast.index import MEAN_PRODUCT_ELEMENTS, POOL_PRODUCTS, POOL_TABLE_ELEMENTS
from rushlight.kernels.im2col import Ints, adaptive_windows, valid_windows
from rushlight.kernels.pool import adaptive_pairs, summed, tap_pairs
from rushlight.loops.tiering import Loop

SUMMED = {np.dtype(np.float32), np.dtype(np.float64)}


def best_of_windows(
    x: ndarray, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints
) -> tuple[ndarray, ndarray] | None:
    """Maxima and indices of x (P, *size); None if all windows together have many elements."""
    if not 0 < len(x) * prod(out) * prod(kernel) <= POOL_TABLE_ELEMENTS:
        return None
    return maxima(x, out, valid_windows, kernel, stride, padding, dilation, out)


def best_of_parts(x: ndarray, out: Ints) -> tuple[ndarray, ndarray] | None:
    """Maxima and indices of `out` nearly equal parts of x (P, *size); None for large arrays."""
    if not (prod(out) and 0 < x.size <= POOL_TABLE_ELEMENTS):
        return None
    return maxima(x, out, adaptive_windows, out)


def window_sums(x: ndarray, out: Ints, pairs: Callable, *dims: Ints) -> ndarray | None:
    if 0 < x.size <= POOL_TABLE_ELEMENTS and x.dtype.char in "fd":
        added = sums_by_loop(x, out, pairs, *dims)
        if added is not None:
            return added
    return sums(x, x.shape[2:], out, pairs, *dims)


def window_spread(g: ndarray, size: Ints, pairs: Callable, *dims: Ints) -> ndarray | None:
    return sums(g, size, g.shape[2:], pairs, *dims, back=True)


def means_of_rows(x: ndarray) -> ndarray | None:
    """The mean of each short row of x (R, n), as a product with ones: a third of the time; None for other arrays."""
    n = x.shape[1]
    if n > MEAN_PRODUCT_ELEMENTS or x.dtype.kind != "f" or x.itemsize < 4:
        return None
    return x @ np.ones(n, x.dtype) / x.dtype.type(n)


@lru_cache(maxsize=64)
def places(cut: Callable, size: Ints, *dims: Ints) -> tuple[ndarray, ndarray]:
    """(indices (O, K), starts (O,)): the flat indices of each window's elements, shorter windows padded at the front
    with copies of their first element; and the start of each row's own elements. `cut(size, *dims)`: the slices of one
    dimension's windows.
    """
    flat = np.arange(prod(size)).reshape(size)
    windows = [flat[window].ravel() for window in product(*map(cut, size, *dims))]
    long = max(map(len, windows))
    table = np.array([np.pad(window, (long - len(window), 0), mode="edge") for window in windows])
    return table, np.arange(len(table)) * long


def maxima(x: ndarray, out: Ints, cut: Callable, *dims: Ints) -> tuple[ndarray, ndarray]:
    """Maxima and indices of x (P, *size): the first of equal elements, the last NaN."""
    table, rows = places(cut, x.shape[1:], *dims)
    flat = x.reshape(len(x), -1)
    made = by_loop(flat, table, True)
    if made is not None:
        return made[0].reshape(-1, *out), made[1].reshape(-1, *out)
    windows = flat.take(table, 1)  # (P, O, K)
    best = windows.argmax(2)
    first = np.arange(0, windows.size, table.shape[1]).reshape(best.shape)
    values = windows.take(best + first)
    if x.dtype.kind == "f" and np.isnan(values).any():
        last = table.shape[1] - 1 - np.isnan(windows[..., ::-1]).argmax(2)
        best = np.where(np.isnan(values), last, best)
    indices = table.take(best + rows)
    return values.reshape(-1, *out), as_int64(indices).reshape(-1, *out)


# values[p, o] = the largest of x[p, table[o, k]] over all k, and its index
MAXIMA = """def kernel(x, table, values{to_places}):
    restrict()
    for p in range(x.shape[0]):
        for o in range(table.shape[0]):
            at = table[o, 0]
            best = x[p, at]
            for k in range(1, table.shape[1]):
                v = x[p, table[o, k]]
                if v > best or v != v:
                    best, at = v, table[o, k]
            values[p, o] = best
            {write_place}
"""


@cache
def loop_of(dtype: np.dtype, with_places: bool) -> Loop:
    """The loop of maxima, with or without their indices. It copies numbers, so its results equal NumPy's."""
    parts = (", places", "places[p, o] = at") if with_places else ("", "")
    text = MAXIMA.format(to_places=parts[0], write_place=parts[1])

    def example() -> tuple:
        x, table = np.zeros((1, 1), dtype), np.zeros((1, 1), np.int64)
        return (x, table, x.copy(), table.copy()) if with_places else (x, table, x.copy())

    return Loop(lambda: text, 8, example)


def by_loop(x: ndarray, table: ndarray, with_places: bool) -> list[ndarray] | None:
    """The maxima (P, O) of x (P, elements) over windows of indices (O, K), and with `with_places` their indices. None if
    NumPy should compute them.
    """
    if x.dtype.char not in "fd" or table.dtype.char != "l" or not x.flags.carray:
        return None
    function = loop_of(x.dtype, with_places).ready(x.size)
    if function is None:
        return None
    made = [np.empty((len(x), len(table)), x.dtype)]
    if with_places:
        made.append(np.empty(made[0].shape, np.int64))
    function(x, table, *made)
    return made


# sums[p, o] = the sum of x[p, table[o, k]] from first[o] on
SUMS = """def kernel(x, table, first, sums):
    restrict()
    for p in range(x.shape[0]):
        for o in range(table.shape[0]):
            total = x[p, table[o, first[o]]]
            for k in range(first[o] + 1, table.shape[1]):
                total += x[p, table[o, k]]
            sums[p, o] = total
"""


@cache
def loop_of_sums(dtype: np.dtype) -> Loop:
    def example() -> tuple:
        x, table = np.zeros((1, 1), dtype), np.zeros((1, 1), np.int64)
        return x, table, table[0], x.copy()

    return Loop(lambda: SUMS, 8, example)


@lru_cache(maxsize=64)
def summands(pairs: Callable, *dims: Ints) -> tuple[ndarray, ndarray]:
    """The indices of each window's elements, as in `places`, and the number of copies before them."""
    if pairs is tap_pairs:
        size, kernel, stride, padding, out = dims
        windows = [*map(valid_windows, size, kernel, stride, padding, (1,) * len(size), out)]
        table, _ = places(valid_windows, size, kernel, stride, padding, (1,) * len(size), out)
    else:
        windows = [*map(adaptive_windows, *dims)]
        table, _ = places(adaptive_windows, *dims)
    counts = [prod([part.stop - part.start for part in window]) for window in product(*windows)]
    return table, table.shape[1] - np.array(counts)


def sums_by_loop(x: ndarray, out: Ints, pairs: Callable, *dims: Ints) -> ndarray | None:
    """The sums of x (N, C, *size) over windows, in order; None if NumPy should do it."""
    loop = loop_of_sums(x.dtype)
    function = loop.function
    if function is None or pairs not in (tap_pairs, adaptive_pairs) or not x.flags.carray:
        loop.pay(x.size)
        return None
    table, first = summands(pairs, *dims)
    n, channels = x.shape[:2]
    made = np.empty((n, channels, *out), x.dtype)
    function(x.reshape(n * channels, -1), table, first, made.reshape(n * channels, -1))
    return made


@lru_cache(maxsize=64)
def membership(dtype: np.dtype, size: Ints, out: Ints, pairs: Callable, *dims: Ints) -> ndarray:
    """1 if an element of the plane is in a window, else 0: (elements, windows)."""
    n = prod(size)
    return np.ascontiguousarray(summed(np.eye(n, dtype=dtype).reshape(n, 1, *size), out, pairs, *dims).reshape(n, -1))


def sums(x: ndarray, size: Ints, out: Ints, pairs: Callable, *dims: Ints, back: bool = False) -> ndarray | None:
    """The sums of x (N, C, *size) over windows (N, C, *out), or with `back` from windows to elements; None for large
    arrays, and for infinities, since 0 times infinity is nan.
    """
    n, windows = prod(size), prod(out)
    if (
        x.dtype not in SUMMED
        or not 0 < x.shape[0] * x.shape[1] * n * windows <= POOL_PRODUCTS
        or not x.flags.c_contiguous
    ):
        return None
    table = membership(x.dtype, size, out, pairs, *dims)
    made = x.reshape(-1, windows) @ table.T if back else x.reshape(-1, n) @ table
    if np.count_nonzero(np.isfinite(made)) < made.size:
        return None
    return made.reshape(*x.shape[:2], *(size if back else out))
