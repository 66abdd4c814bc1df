"""Padding of small arrays by one index table; copying each border takes three times as long."""

from __future__ import annotations

from functools import lru_cache
from inspect import unwrap
from math import prod

import numpy as np
from numpy import ndarray

from rushlight.fast.index import PAD_TABLE_ELEMENTS
from rushlight.kernels import pad_modes
from rushlight.kernels.pad_modes import Amounts


def bordered(x: ndarray, mode: str, amounts: Amounts) -> ndarray | None:
    """`pad_modes.bordered` for a contiguous array; None for large arrays."""
    if not x.flags.c_contiguous or 2 * x.size > PAD_TABLE_ELEMENTS:
        return None
    places = table(x.shape, mode, amounts)
    return None if places is None else x.take(places)


@lru_cache(maxsize=64)
def table(shape: tuple[int, ...], mode: str, amounts: Amounts) -> ndarray | None:
    """The flat source index of each element of the result."""
    if prod([n + a + b for n, (a, b) in zip(shape, amounts)]) > PAD_TABLE_ELEMENTS:
        return None
    return unwrap(pad_modes.bordered)(np.arange(prod(shape)).reshape(shape), mode, amounts)
