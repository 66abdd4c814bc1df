"""float16 and bfloat16 to float32 and back. NumPy converts one number at a time: 260 us for 51,200 to float16, 140
back. Loops, used once NumPy has taken as long as compiling them (loops/tiering.py), take 6 and 7 us. They give the same
bits, except for the payload of nan.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.buffer_pool import memory
from rushlight.fast.index import WIDENED_ELEMENTS
from rushlight.fast.reductions import FLOAT, shared
from rushlight.kernels.float16 import HALF, is_half, singly

BITS = np.dtype(np.int16)


def converted(x: ndarray, dtype: np.dtype) -> ndarray | None:
    """x.astype(dtype) between float32 and 16 bits, for a contiguous array."""
    if not x.flags.c_contiguous or not x.flags.carray:
        return None
    if dtype is FLOAT and is_half(x):
        return widened(x)
    if x.dtype is FLOAT and (dtype is HALF or dtype.kind == "V"):
        return narrowed(x, dtype)
    return None


def add_to(a: ndarray, b: ndarray) -> bool | None:
    """a += b of 16-bit floats, computed in float32."""
    if a.itemsize != 2:
        return None
    a[...] = singly("add", np.add, (a, b))
    return True


def widened(h: ndarray) -> ndarray:
    """A contiguous array as float32."""
    function = loop_of("widen", h.dtype).ready(h.size)
    if function is not None:
        out = memory.take(h.shape, FLOAT)
        shared(function, (h.reshape(-1).view(BITS), out.reshape(-1)), (1, 1), h.size)
        return out
    return widened_by_bits(h) if h.dtype is HALF and h.size >= WIDENED_ELEMENTS else h.astype(FLOAT)


BLOCK_ELEMENTS = 1 << 17  # elements converted at a time
PLACES, SCALE = np.array(-0x7000_2000, np.int32), np.array(2.0**112, FLOAT)


def widened_by_bits(h: ndarray) -> ndarray:
    """float32 of float16 in whole passes: sign, exponent and fraction are moved to their places, and a product adjusts
    the exponent's bias. Blocks with inf or nan, which would become 2^16 and more, are left to NumPy.
    """
    out, h = memory.take(h.shape, FLOAT), h.reshape(-1)
    flat = out.reshape(-1)
    for i in range(0, h.size, BLOCK_ELEMENTS):
        part, given = flat[i : i + BLOCK_ELEMENTS], h[i : i + BLOCK_ELEMENTS]
        bits = part.view(np.int32)
        bits[...] = given.view(BITS)
        np.bitwise_and(np.left_shift(bits, 13, bits), PLACES, bits)
        np.multiply(part, SCALE, part)
        if part.max() >= 65536 or part.min() <= -65536:
            lost = np.absolute(part) >= 65536
            part[lost] = given[lost]
    return out


def narrowed(x: ndarray, dtype: np.dtype) -> ndarray:
    """A contiguous array of float32 as float16 or bfloat16: rounded to nearest, ties to even."""
    function = loop_of("narrow", dtype).ready(x.size)
    if function is not None:
        out = memory.take(x.shape, dtype)
        shared(function, (x.reshape(-1), out.reshape(-1).view(BITS)), (1, 1), x.size)
        return out
    return x.astype(dtype)


TEXT = """def kernel(x, out):
    restrict()
    wide()
    for i in range(x.shape[0]):
        out[i] = {}(x[i])
"""
WORDS = {True: ("from_half", "to_half"), False: ("from_bfloat", "to_bfloat")}


def text_of(name: str, half: bool) -> str:
    """The loop between float32 and the bits of float16, if `half`, else bfloat16; empty if this processor does not
    support one.
    """
    return TEXT.format(WORDS[half][name == "narrow"]) if not half or knows_float16() else ""


def knows_float16() -> bool:
    from rushlight.loops.scope import knows_halves

    return knows_halves()


@cache
def loop_of(name: str, dtype: np.dtype) -> Any:
    from rushlight.loops.tiering import Loop

    short, wide = np.zeros(1, BITS), np.zeros(1, FLOAT)
    return Loop(lambda: text_of(name, dtype is HALF), 15, lambda: (short, wide) if name == "widen" else (wide, short))
