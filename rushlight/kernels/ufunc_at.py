"""Combining numbers at indices that may repeat: r[index[i], j] = r[index[i], j] + g[i, j], or *, maximum, minimum.

NumPy's `ufunc.at` takes 6 ns per number for flat indices, and several times as long for other indices.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.kernels.float16 import converted, is_half, single

ROWS_AT_ELEMENTS = 1 << 8  # below this size, np.add.at is faster on rows than on numbers: 1 us, not 3
LISTED_PLACES = 16  # up to this size, Python compares faster than NumPy: 0.4 us, not 1.1
KEPT_PLACES = 1 << 12  # most indices that are cached: computing them took 6 of gather's 18 us

UFUNCS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def land(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str, name: str) -> None:
    """g[i][j] combined into r[index[i][j]][j] for dim 0, and so on. r is in C order; g has the shape of the index.
    RuntimeError that names the op for an index out of range.
    """
    line = line_of(index, r.shape, dim)
    check_index(index if line is None else line, r.shape[dim], name, dim, RuntimeError)
    if line is not None:
        land_slices(r, line, g, dim, how)
    elif is_half(r):
        wide = single(r)
        land(wide, index, single(g), dim, how, name)
        r[...] = converted(wide, r.dtype)
    else:
        each_at(r, index, g, dim, how)


@site
def each_at(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str) -> None:
    """`land` for an index of g's shape."""
    UFUNCS[how].at(r.reshape(-1), places(r.shape, index, dim).reshape(-1), g.reshape(-1))


def land_slices(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str = "sum") -> None:
    """The slices of g combined into r's slices at `index` (n,), nonnegative, along `dim`; half precision is computed in
    float32, as in torch: sums of ones would stop at 2048, or at 256.
    """
    if is_half(r):
        wide = single(r)
        land_slices(wide, index, single(g), dim, how)
        r[...] = converted(wide, r.dtype)
        return
    if g.size:
        slices_at(r, index, g, dim, how)


@site
def slices_at(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str) -> None:
    """`land_slices` without conversion of dtypes."""
    if r.ndim == 1 or dim == 0 and g.size < ROWS_AT_ELEMENTS:
        UFUNCS[how].at(r, index, g)
        return
    at = places(r.shape, index.reshape((1,) * dim + (-1,) + (1,) * (r.ndim - dim - 1)), dim, g.shape)
    UFUNCS[how].at(r.reshape(-1), at.reshape(-1), g.reshape(-1))


def line_of(index: ndarray, shape: tuple[int, ...], dim: int) -> ndarray | None:
    """The 1-d index that was expanded over the other dimensions; None if it was not, or is shorter than `shape`."""
    for d, (n, k, step) in enumerate(zip(shape, index.shape, index.strides)):
        if d != dim and (k != n or step and n > 1):
            return None
    return index[tuple([slice(None) if d == dim else 0 for d in range(index.ndim)])]


# -- flat indices ----------------------------------------------------------------------------------

INDICES = "ilq"  # dtype.char of int32 and int64
UNSIGNED = {np.dtype(f"i{size}"): np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def check_index(index: ndarray, n: int, name: str, dim: int = 0, kind: type[Exception] = IndexError) -> None:
    """RuntimeError unless the index is int32 or int64; an error of the given kind for an index out of range."""
    if index.dtype.char not in INDICES:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got {index.dtype}; hint: index.long()")
    if index.size and not all_below(index, n):
        bad = int(index.max() if index.max() >= n else index.min())
        what = "index out of range in self: " if kind is IndexError else ""
        raise kind(
            f"{what}index {bad} is out of bounds for dimension {dim} with size {n}; hint: indices are 0 to {n - 1}"
        )


def all_below(index: ndarray, n: int) -> bool:
    """True if all integers (at least one) are in range(n)."""
    if index.size <= LISTED_PLACES:
        listed = index.ravel().tolist()
        return min(listed) >= 0 and max(listed) < n
    unsigned = UNSIGNED.get(index.dtype, index.dtype)  # as unsigned, negative numbers are huge
    return bool(np.maximum.reduce(index.view(unsigned), None) < n)


def places(shape: tuple[int, ...], index: ndarray, dim: int, full: tuple[int, ...] | None = None) -> ndarray:
    """The flat indices of elements in an array of this shape: `index` along `dim`, and each index's own position in the
    other dimensions; the index is repeated to the shape `full`. Adding at one flat index takes NumPy a fifth of the
    time of a tuple of indices.
    """
    step = prod(shape[dim + 1 :])
    flat = index if step == 1 and index.dtype == np.int64 else np.multiply(index, step, dtype=np.int64)
    full = full or index.shape
    others = full[:dim] + (1,) + full[dim + 1 :]
    own = origins(shape, others) if prod(others) <= KEPT_PLACES else origins.__wrapped__(shape, others)
    return flat + own if flat is index or full != index.shape else np.add(flat, own, out=flat)


@lru_cache(maxsize=64)
def origins(shape: tuple[int, ...], part: tuple[int, ...]) -> ndarray:
    """The flat indices of the leading corner `part` of an array of this shape."""
    own = np.zeros((1,) * len(part), np.int64)
    for d, n in enumerate(part):
        if n > 1:
            step = prod(shape[d + 1 :])
            own = own + np.arange(0, n * step, step).reshape((n,) + (1,) * (len(part) - 1 - d))
    own.flags.writeable = False
    return own
