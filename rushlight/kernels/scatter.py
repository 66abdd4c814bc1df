"""Scattering elements to indices with a reduction."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy import ndarray

from rushlight.base.intp import as_intp
from rushlight.kernels.float16 import is_half, single
from rushlight.kernels.index import scatter_into
from rushlight.kernels.ufunc_at import land, line_of, places


def reduce_at(x: ndarray, index: ndarray, source: ndarray, dim: int, reduce: str, include_self: bool = True) -> ndarray:
    """x with source[i][j] reduced into [index[i][j]][j] for dim 0, and so on."""
    return reduce_into(np.array(x, order="C"), index, source, dim, reduce, include_self)


def reduce_into(
    r: ndarray, index: ndarray, source: ndarray, dim: int, reduce: str, include_self: bool = True
) -> ndarray:
    """`reduce_at` into r, which is in C order; half precision is reduced in float32."""
    if index.size == 0:
        return r
    if is_half(r):
        r[...] = reduce_into(single(r), index, single(source), dim, reduce, include_self)
        return r
    target, index, source = (a if a.ndim else a.reshape(1) for a in (r, index, source))
    if not include_self:
        scatter_into(target, index, np.asarray(neutral(reduce, r.dtype), r.dtype), dim)
    operation = "sum" if reduce == "mean" else reduce
    land(target, index, np.broadcast_to(source, index.shape), dim, operation, "scatter_reduce")
    if reduce == "mean":
        n = np.maximum(counts(target.shape, index, dim) + int(include_self), 1)
        target[...] = target // n if r.dtype.kind in "iub" else target / n
    return r


def counts(shape: tuple[int, ...], index: ndarray, dim: int) -> ndarray:
    """The number of times that each position of an array of this shape is an index."""
    line = line_of(index, shape, dim)
    if line is None:
        flat = as_intp(places(shape, index, dim).reshape(-1))
        return np.bincount(flat, minlength=prod(shape)).reshape(shape)
    along = np.bincount(as_intp(line), minlength=shape[dim])
    return along.reshape((-1,) + (1,) * (len(shape) - dim - 1))


def neutral(reduce: str, dtype: np.dtype) -> float:
    """The initial value of a reduction."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    sign = -1 if reduce == "amax" else 1
    if dtype.kind not in "iub":
        return sign * np.inf
    if dtype.kind == "b":
        return sign > 0
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min
