"""Elements sent to places, and reduced there."""
from __future__ import annotations

import numpy as np
from numpy import ndarray

from rushlight.ops.kernels.index import check_index, places

UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def reduce_at(x: ndarray, index: ndarray, source: ndarray, dim: int, reduce: str, include_self: bool = True) -> ndarray:
    """x with source[i][j] reduced into [index[i][j]][j] for dim 0, and so on."""
    return reduce_into(np.array(x, order="C"), index, source, dim, reduce, include_self)


def reduce_into(r: ndarray, index: ndarray, source: ndarray, dim: int, reduce: str, include_self: bool = True) -> ndarray:
    """`reduce_at` into r, which lies in C order."""
    if index.size == 0:
        return r
    shape = r.shape or (1,)
    flat, index, source = r.reshape(-1), index.reshape(index.shape or 1), source.reshape(source.shape or 1)
    check_index(index, shape[dim], "scatter_reduce", dim, RuntimeError)
    place = places(shape, index, dim).reshape(-1)
    if not include_self:
        flat[place] = neutral(reduce, r.dtype)
    UFUNCS[reduce].at(flat, place, np.broadcast_to(source, index.shape).reshape(-1))
    if reduce == "mean":
        n = np.maximum(np.bincount(place, minlength=flat.size) + int(include_self), 1)
        flat[...] = flat // n if r.dtype.kind in "iub" else flat / n
    return r


def neutral(reduce: str, dtype: np.dtype) -> float:
    """What a reduction begins with."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    sign = -1 if reduce == "amax" else 1
    if dtype.kind not in "iub":
        return sign * np.inf
    if dtype.kind == "b":
        return sign > 0
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min
