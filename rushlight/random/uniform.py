"""Uniform numbers: `torch.rand` and `uniform_`."""

from __future__ import annotations

from functools import cache

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.random.blocks import DType, Shape, blocks, count_of, empty
from rushlight.random.choose_loop import Loop
from rushlight.random.fma import fma32, fma64, narrow

from .stream import MAX_SMALL_DRAW, Stream

_LOOP = Loop("uniforms")
UNIT = np.float32(0), np.float32(1)


def uniform(stream: Stream, shape: Shape, dtype: DType = np.float32, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """low + (high - low) * u, u uniform in [0, 1): a multiple of 2^-53 for float64 and complex128, else of 2^-24.

    Shape: `shape`. Dtypes: float16, bfloat16, float32, float64, complex64, complex128 (both parts). RuntimeError if low
    > high or a bound does not fit the dtype.

    >>> rushlight.Generator().manual_seed(42).uniform(3)
    array([0.88226926, 0.91500396, 0.38286376], dtype=float32)
    """
    unit = low == 0.0 and high == 1.0
    if unit and dtype == np.float32 and (n := count_of(shape)) <= MAX_SMALL_DRAW:
        made = stream.uniform24(n).copy()
        return made if made.shape == shape else made.reshape(shape)
    out, parts = empty("uniform_", shape, dtype, "fc")
    if not unit:
        check_bounds(parts.dtype, low, high)
    if parts.itemsize == 8:
        for block in blocks(parts):
            block[...] = stream.uniform53(len(block)) if unit else fma64(stream.uniform53(len(block)), high - low, low)
        return out
    single = UNIT if unit else (np.float32(low), np.float32(high))
    # for 16 bits and for [0, 1), NumPy is nearly as fast: do not load the loop
    loop = None if parts.itemsize < 4 else _LOOP.compiled if unit else _LOOP(len(parts))
    for block in blocks(parts):
        if loop is not None:
            loop(stream.words(len(block)), block, single[1] - single[0], single[0])
            continue
        values = stream.uniform24(len(block))
        if not unit:
            values = fma32(values, float(single[1] - single[0]), float(single[0]))
        block[...] = values if block.itemsize == 4 else half(values, *single, block.dtype)
    return out


def half(values: np.ndarray, low: np.float32, high: np.float32, dtype: np.dtype) -> np.ndarray:
    """float32 rounded to float16 or bfloat16; a number that rounds up to `high` becomes `low`, because high is
    excluded.
    """
    narrowed = narrow(values, dtype)
    return np.where(narrowed >= high.astype(dtype), low.astype(dtype), narrowed)


def check_bounds(dtype: np.dtype, low: float, high: float) -> None:
    """RuntimeError unless low <= high, and low, high and high - low are in the dtype's range."""
    limit = largest(dtype)
    if -limit <= low <= high <= limit and high - low <= limit:
        return
    for name, bound in (("from", low), ("to", high)):
        if not abs(bound) <= limit:
            raise runtime_error(f"{name} is out of bounds for {dtype}: {bound} is outside of [{-limit}, {limit}]")
    if low > high:
        raise runtime_error(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > limit:
        raise runtime_error(
            f"uniform_ expects to-from <= {limit}, the largest {dtype}, but found to={high} and from={low} which "
            "result in to-from to exceed the limit: draw from [0, 1) and scale it"
        )


@cache
def largest(dtype: np.dtype) -> float:
    """The largest finite number of a floating dtype; also of bfloat16, which np.finfo lacks."""
    return (2.0 - 2.0**-7) * 2.0**127 if dtype.name == "bfloat16" else float(np.finfo(dtype).max)
