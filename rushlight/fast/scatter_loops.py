"""Numbers that land on others, where several may meet: r[index[i], j] = r[index[i], j] + g[i, j],
or *, maximum, minimum.

NumPy has `ufunc.at` for it, at 6 ns a number if places are flat, several times that if they are
not. The loops take 1 ns and give the same bits: both take one number after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.dependencies import has_numba
from rushlight.fast.policy import charge
from rushlight.kernels.float16 import converted, is_half, single

MANY = 1 << 15  # numbers from which a loop is worth loading
FEW = 1 << 8  # numbers below which rows land as they are
PASSES = 20  # of NumPy over plain numbers, that take as long
KEPT = 1 << 12  # places that are remembered: they were 6 of gather's 18 us

UFUNCS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
MET = {
    "sum": "{0} + {1}",
    "prod": "{0} * {1}",
    "amax": "maximum{2}({0}, {1})",
    "amin": "minimum{2}({0}, {1})",
}

SLICES = """def kernel(r, index, g):
    restrict()
    wide()
    for b in range(r.shape[0]):
        for i in range(index.shape[0]):
            k = index[i]
            for j in range(g.shape[2]):
                r[b, k, j] = {met}
"""
EACH = """def kernel(r, index, g):
    restrict()
    for b in range(r.shape[0]):
        for i in range(index.shape[1]):
            for j in range(g.shape[2]):
                k = index[b, i, j]
                r[b, k, j] = {met}
"""


def land(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str, name: str) -> None:
    """g[i][j] combined into r[index[i][j]][j] for dim 0, and so on. r lies in C order; g has the
    shape of the index. RuntimeError in the name of the op for an index that is not there."""
    line = line_of(index, r.shape, dim)
    check_index(index if line is None else line, r.shape[dim], name, dim, RuntimeError)
    if line is not None:
        land_slices(r, line, g, dim, how)
    elif is_half(r):
        wide = single(r)
        land(wide, index, single(g), dim, how, name)
        r[...] = converted(wide, r.dtype)
    elif not by_loop(EACH, r, index, g, dim, how):
        UFUNCS[how].at(r.reshape(-1), places(r.shape, index, dim).reshape(-1), g.reshape(-1))


def land_slices(r: ndarray, index: ndarray, g: ndarray, dim: int, how: str = "sum") -> None:
    """The slices of g combined into those of r at `index` (n,), which counts from the start, along
    `dim`; half precision by way of single, as torch does: sums of ones would stop at 2048, or at
    256."""
    if is_half(r):
        wide = single(r)
        land_slices(wide, index, single(g), dim, how)
        r[...] = converted(wide, r.dtype)
        return
    if not g.size or by_loop(SLICES, r, index, g, dim, how):
        return
    if r.ndim == 1 or dim == 0 and g.size < FEW:
        UFUNCS[how].at(r, index, g)
        return
    at = places(
        r.shape, index.reshape((1,) * dim + (-1,) + (1,) * (r.ndim - dim - 1)), dim, g.shape
    )
    UFUNCS[how].at(r.reshape(-1), at.reshape(-1), g.reshape(-1))


def line_of(index: ndarray, shape: tuple[int, ...], dim: int) -> ndarray | None:
    """An index that is the same at all places of the other dimensions, as graph networks expand it,
    along `dim` alone; None for others, and where it does not reach as far as an array of this
    shape."""
    for d, (n, k, step) in enumerate(zip(shape, index.shape, index.strides)):
        if d != dim and (k != n or step and n > 1):
            return None
    return index[tuple([slice(None) if d == dim else 0 for d in range(index.ndim)])]


def by_loop(text: str, r: ndarray, index: ndarray, g: ndarray, dim: int, how: str) -> bool:
    """Whether a loop did it: in float32 and float64, of much, or once loops are loaded anyhow."""
    before, after = prod(r.shape[:dim]), prod(r.shape[dim + 1 :])
    many = index.size if text is SLICES else index.shape[dim]
    fits = (
        r.dtype is g.dtype
        and r.dtype.char in "fd"
        and r.flags.carray
        and g.size == before * many * after > 0
    )
    if not fits or not charge(PASSES, g.size, MANY) or not has_numba():
        return False
    at = np.ascontiguousarray(index, np.int64)
    if (
        np.maximum.reduce(at.view(np.uint64), None) >= r.shape[dim]
    ):  # the loop would write where nothing of r is
        raise IndexError(
            f"index out of range: an index is out of bounds for dimension {dim} with size "
            f"{r.shape[dim]}"
        )
    loop_of(text, how, r.dtype.char == "d")(
        r.reshape(before, -1, after),
        at if text is SLICES else at.reshape(before, many, after),
        np.ascontiguousarray(g).reshape(before, many, after),
    )
    return True


@cache
def loop_of(text: str, how: str, wide: bool) -> Callable:
    """The loop for float32, or float64 (`wide`)."""
    from rushlight.loops.cache import compiled

    return compiled(
        text.format(met=MET[how].format("r[b, k, j]", "g[b, i, j]", "64" if wide else ""))
    )


# -- where numbers stand ---------------------------------------------------------------------------

UNSIGNED = {np.dtype(f"i{size}"): np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def check_index(
    index: ndarray, n: int, name: str, dim: int = 0, kind: type[Exception] = IndexError
) -> None:
    """RuntimeError for an index that is no integer; an error of the given kind for one that is not
    there."""
    if index.dtype.kind not in "iu":
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index but got {index.dtype}; cure: "
            "index.long()"
        )
    unsigned = UNSIGNED.get(index.dtype, index.dtype)  # of which negative ones look huge
    if index.size and np.maximum.reduce(index.view(unsigned), None) >= n:
        bad = int(index.max() if index.max() >= n else index.min())
        what = "index out of range in self: " if kind is IndexError else ""
        raise kind(
            f"{what}index {bad} is out of bounds for dimension {dim} with size {n}; cure: count "
            f"from 0 to {n - 1}"
        )


def places(
    shape: tuple[int, ...], index: ndarray, dim: int, full: tuple[int, ...] | None = None
) -> ndarray:
    """Where elements stand in an array of this shape, flat: at `index` along `dim`, each index at
    its own place in the other dimensions; the index repeated to the shape `full`. To add at one
    flat index takes NumPy a fifth of the time that a tuple of them does."""
    step = prod(shape[dim + 1 :])
    flat = (
        index if step == 1 and index.dtype == np.int64 else np.multiply(index, step, dtype=np.int64)
    )
    full = full or index.shape
    others = full[:dim] + (1,) + full[dim + 1 :]
    own = origins(shape, others) if prod(others) <= KEPT else origins.__wrapped__(shape, others)
    return flat + own if flat is index or full != index.shape else np.add(flat, own, out=flat)


@lru_cache(maxsize=64)
def origins(shape: tuple[int, ...], part: tuple[int, ...]) -> ndarray:
    """Where the first elements of an array of this shape stand, flat, as many of each dimension as
    `part` says."""
    own = np.zeros((1,) * len(part), np.int64)
    for d, n in enumerate(part):
        if n > 1:
            step = prod(shape[d + 1 :])
            own = own + np.arange(0, n * step, step).reshape((n,) + (1,) * (len(part) - 1 - d))
    own.flags.writeable = False
    return own
