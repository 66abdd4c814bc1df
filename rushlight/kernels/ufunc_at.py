"""Numbers that land on others, where several may meet: r[index[i], j] = r[index[i], j] + g[i, j], or *, maximum,
minimum.

NumPy has `ufunc.at` for it, at 6 ns a number if places are flat, several times that if they are not."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.kernels.float16 import converted, is_half, single

ROWS_AT_ELEMENTS = 1 << 8  # below which np.add.at of rows is faster than of numbers: 1 us, not 3
LISTED_PLACES = 16  # up to which Python compares sooner than NumPy does: 0.4 us, not 1.1
KEPT_PLACES = 1 << 12  # most places that are kept for the next call: they took 6 of gather's 18 us

UFUNCS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def land(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str, name: str) -> None:
    """g[i][j] combined into r[index[i][j]][j] for dim 0, and so on. r lies in C order; g has the shape of the index.
    RuntimeError in the name of the op for an index that is not there."""
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
    """The slices of g combined into those of r at `index` (n,), which counts from the start, along `dim`; half
    precision by way of single, as torch does: sums of ones would stop at 2048, or at 256."""
    if is_half(r):
        wide = single(r)
        land_slices(wide, index, single(g), dim, how)
        r[...] = converted(wide, r.dtype)
        return
    if g.size:
        slices_at(r, index, g, dim, how)


@site
def slices_at(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str) -> None:
    """`land_slices` for numbers that need no conversion."""
    if r.ndim == 1 or dim == 0 and g.size < ROWS_AT_ELEMENTS:
        UFUNCS[how].at(r, index, g)
        return
    at = places(r.shape, index.reshape((1,) * dim + (-1,) + (1,) * (r.ndim - dim - 1)), dim, g.shape)
    UFUNCS[how].at(r.reshape(-1), at.reshape(-1), g.reshape(-1))


def line_of(index: ndarray, shape: tuple[int, ...], dim: int) -> ndarray | None:
    """An index that is the same at all places of the other dimensions, as graph networks expand it, along `dim` alone;
    None for others, and where it does not reach as far as an array of this shape."""
    for d, (n, k, step) in enumerate(zip(shape, index.shape, index.strides)):
        if d != dim and (k != n or step and n > 1):
            return None
    return index[tuple([slice(None) if d == dim else 0 for d in range(index.ndim)])]


# -- where numbers stand ---------------------------------------------------------------------------

INDICES = "ilq"  # dtype.char of int32 and int64
UNSIGNED = {np.dtype(f"i{size}"): np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def check_index(index: ndarray, n: int, name: str, dim: int = 0, kind: type[Exception] = IndexError) -> None:
    """RuntimeError for an index that is neither int32 nor int64; an error of the given kind for one that is not
    there."""
    if index.dtype.char not in INDICES:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got {index.dtype}; hint: index.long()")
    if index.size and not all_below(index, n):
        bad = int(index.max() if index.max() >= n else index.min())
        what = "index out of range in self: " if kind is IndexError else ""
        raise kind(
            f"{what}index {bad} is out of bounds for dimension {dim} with size {n}; hint: indices are 0 to {n - 1}"
        )


def all_below(index: ndarray, n: int) -> bool:
    """Whether all whole numbers, of which there is one at least, are in range(n)."""
    if index.size <= LISTED_PLACES:
        listed = index.ravel().tolist()
        return min(listed) >= 0 and max(listed) < n
    unsigned = UNSIGNED.get(index.dtype, index.dtype)  # of which negative ones look huge
    return bool(np.maximum.reduce(index.view(unsigned), None) < n)


def places(shape: tuple[int, ...], index: ndarray, dim: int, full: tuple[int, ...] | None = None) -> ndarray:
    """Where elements stand in an array of this shape, flat: at `index` along `dim`, each index at its own place in the
    other dimensions; the index repeated to the shape `full`. To add at one flat index takes NumPy a fifth of the time
    that a tuple of them does."""
    step = prod(shape[dim + 1 :])
    flat = index if step == 1 and index.dtype == np.int64 else np.multiply(index, step, dtype=np.int64)
    full = full or index.shape
    others = full[:dim] + (1,) + full[dim + 1 :]
    own = origins(shape, others) if prod(others) <= KEPT_PLACES else origins.__wrapped__(shape, others)
    return flat + own if flat is index or full != index.shape else np.add(flat, own, out=flat)


@lru_cache(maxsize=64)
def origins(shape: tuple[int, ...], part: tuple[int, ...]) -> ndarray:
    """Where the first elements of an array of this shape stand, flat, as many of each dimension as `part` says."""
    own = np.zeros((1,) * len(part), np.int64)
    for d, n in enumerate(part):
        if n > 1:
            step = prod(shape[d + 1 :])
            own = own + np.arange(0, n * step, step).reshape((n,) + (1,) * (len(part) - 1 - d))
    own.flags.writeable = False
    return own
