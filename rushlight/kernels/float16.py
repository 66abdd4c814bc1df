"""Conversions between 16-bit floats and float32, and elementwise kernels that compute in float32, as torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.faster import site
from rushlight.base.memory_format import room_like

FLOAT, HALF = np.dtype(np.float32), np.dtype(np.float16)
# ops that depend on the dtype's spacing or limits, or work on bits
APART = {"nextafter", "nan_to_num", "abs", "where"}


def is_half(a: Any) -> bool:
    """True for float16 and bfloat16. `a` may be a Placeholder (base/placeholder.py), whose conversion raises."""
    d = getattr(a, "dtype", None)
    return d is HALF or (d is not None and d.kind == "V")


@site
def converted(x: ndarray, dtype: np.dtype) -> ndarray:
    """x.astype(dtype), in x's memory order: rounds to the nearest number, ties to even."""
    if x.flags.c_contiguous:
        return x.astype(dtype)
    r = room_like(x, dtype)
    r[...] = x
    return r


def single(x: ndarray) -> ndarray:
    """x in float32 if it has half precision; else unchanged."""
    return converted(x, FLOAT) if is_half(x) else x


def singly(name: str, kernel: Callable, args: tuple) -> Any:
    """An elementwise kernel that computes in float32; a float32 result is rounded to the half precision of the
    arguments.
    """
    dtypes = {a.dtype for a in args if is_half(a)}
    if len(dtypes) != 1 or name in APART:
        return kernel(*args)
    (dtype,) = dtypes
    with np.errstate(over="ignore"):
        r = kernel(*[single(a) for a in args])
    return converted(r, dtype) if getattr(r, "dtype", None) is FLOAT else r


def in_single(name: str, kernel: Callable, place: int = 0) -> Callable:
    """An elementwise kernel of several steps, or its rule, that converts 16-bit floats to float32 and rounds the result
    once, as torch does. `place`: the index of the argument whose dtype the result has.
    """
    if name in APART:
        return kernel

    def call(*args: Any) -> Any:
        return singly(name, kernel, args) if args[place].itemsize == 2 else kernel(*args)

    call.in_full = kernel  # type: ignore[attr-defined]
    return call
