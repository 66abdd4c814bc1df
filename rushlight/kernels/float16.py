"""float16 and bfloat16 to float32 and back, and what works element by element by way of float32, as
in torch. NumPy converts one number at a time, 51,200 to float16 in 260 us, back in 140; loops, once
NumPy has taken as long as these take to compile (loops/tiering.py), take 6 and 7 and give the same
bits, but for which nan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.base.memory_format import room_like
from rushlight.fast.index import HALF_ELEMENTS
from rushlight.fast.reductions import FLOAT, shared

HALF, BITS = np.dtype(np.float16), np.dtype(np.int16)
APART = {
    "nextafter",
    "nan_to_num",
    "abs",
    "where",
}  # what depends on the dtype's own steps or ends, or is done on bits


def is_half(a: Any) -> bool:
    """Also of what only looks like an array (core/arguments.py), which says so when it is
    converted."""
    d = getattr(a, "dtype", None)
    return d is HALF or (d is not None and d.kind == "V")


def converted(x: ndarray, dtype: np.dtype) -> ndarray:
    """x.astype(dtype)."""
    frm = x.dtype
    if not x.flags.c_contiguous:
        r = room_like(x, dtype)
        r[...] = x
        return r
    if x.size < HALF_ELEMENTS or not x.flags.carray:
        return x.astype(dtype)
    if dtype is FLOAT and is_half(x):
        return widened(x)
    if frm is FLOAT and (dtype is HALF or dtype.kind == "V"):
        return narrowed(x, dtype)
    return x.astype(dtype)


def single(x: ndarray) -> ndarray:
    """In float32, if it is of half precision; else as it is."""
    return converted(x, FLOAT) if is_half(x) else x


def singly(name: str, kernel: Callable, args: tuple) -> Any:
    """The kernel of an op that works element by element, in float32; its result, if that is
    float32, in the half precision of the arguments."""
    dtypes = {a.dtype for a in args if is_half(a)}
    if len(dtypes) != 1 or name in APART:
        return kernel(*args)
    (dtype,) = dtypes
    with np.errstate(over="ignore"):
        r = kernel(*[single(a) for a in args])
    return converted(r, dtype) if getattr(r, "dtype", None) is FLOAT else r


def in_single(name: str, kernel: Callable, place: int = 0) -> Callable:
    """The kernel of an elementwise op of several steps, or its rule, which takes 16-bit floats to
    float32 and rounds the result once, as torch does. `place`: that of an argument which has the
    dtype of the result."""
    if name in APART:
        return kernel

    def call(*args: Any) -> Any:
        return singly(name, kernel, args) if args[place].itemsize == 2 else kernel(*args)

    call.in_full = kernel  # type: ignore[attr-defined]
    return call


def widened(h: ndarray) -> ndarray:
    """float32 of an array that lies in order."""
    loop = loop_of("widen", h.dtype)
    if loop.function is not None:
        out = memory.take(h.shape, FLOAT)
        shared(loop.function, (h.reshape(-1).view(BITS), out.reshape(-1)), (1, 1), h.size)
        return out
    loop.pay(h.size)
    return widened_by_bits(h) if h.dtype is HALF and h.size >= MANY else h.astype(FLOAT)


MANY, BLOCK = (
    1 << 13,
    1 << 17,
)  # float16 from which bits are moved: 100,000 in 40 us, not 165; at a time
PLACES, SCALE = np.array(-0x7000_2000, np.int32), np.array(2.0**112, FLOAT)


def widened_by_bits(h: ndarray) -> ndarray:
    """float32 of float16 in whole passes: sign, exponent and fraction are moved to their places, a
    product moves the exponent's zero. inf and nan, which would be 2^16 and more, are left to NumPy.
    """
    out, h = memory.take(h.shape, FLOAT), h.reshape(-1)
    flat = out.reshape(-1)
    for i in range(0, h.size, BLOCK):
        part, given = flat[i : i + BLOCK], h[i : i + BLOCK]
        bits = part.view(np.int32)
        bits[...] = given.view(BITS)
        np.bitwise_and(np.left_shift(bits, 13, bits), PLACES, bits)
        np.multiply(part, SCALE, part)
        if part.max() >= 65536 or part.min() <= -65536:
            lost = np.absolute(part) >= 65536
            part[lost] = given[lost]
    return out


def narrowed(x: ndarray, dtype: np.dtype) -> ndarray:
    """float16 or bfloat16 of an array of float32 that lies in order: the nearest, of two as near
    the even one."""
    loop = loop_of("narrow", dtype)
    if loop.function is not None:
        out = memory.take(x.shape, dtype)
        shared(loop.function, (x.reshape(-1), out.reshape(-1).view(BITS)), (1, 1), x.size)
        return out
    loop.pay(x.size)
    return x.astype(dtype)


TEXT = """def kernel(x, out):
    restrict()
    wide()
    for i in range(x.shape[0]):
        out[i] = {}(x[i])
"""
WORDS = {True: ("from_half", "to_half"), False: ("from_bfloat", "to_bfloat")}


def text_of(name: str, half: bool) -> str:
    """The loop between float32 and the bits of float16, if `half`, else bfloat16; empty if this
    processor has none."""
    return TEXT.format(WORDS[half][name == "narrow"]) if not half or knows_float16() else ""


def knows_float16() -> bool:
    from rushlight.loops.intrinsics import knows_halves

    return knows_halves()


@cache
def loop_of(name: str, dtype: np.dtype) -> Any:
    from rushlight.loops.tiering import Loop

    short, wide = np.zeros(1, BITS), np.zeros(1, FLOAT)
    return Loop(
        lambda: text_of(name, dtype is HALF),
        15,
        lambda: (short, wide) if name == "widen" else (wide, short),
    )
