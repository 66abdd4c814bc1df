"""How much rounding may change a result: the same ops again, with numbers that differ in their last
places.

Numbers of half precision are computed in single and rounded. Where the single one lies next to the
middle between two of half precision, its last place decides which of them it becomes: few change,
but by a whole unit, 2^-9 to 2^-8 of the number in bfloat16, 30,000 times what single precision
differs by. So these are shaken apart from the others, and counted once for each unit, not for what
else might round."""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.compile.graph import Call, is_view
from rushlight.kernels.float16 import single
from rushlight.ops.shape.views import to

SHAKEN = 4  # units in the last place
NOISE = 32  # how many times what changes then a result may differ
ROUNDED = 2  # and how many times what comes of halves that become their neighbours
SIGN, BITS = np.int16(0x7FFF), {"float16": 0x7C00, "bfloat16": 0x7F80}  # all but the sign; infinity


class Noise:
    """Random signs, and what has been computed with them. `floats`: whether to shake single
    precision and more, `halves`: what ops round to half precision; `given`: what is of half
    precision before."""

    def __init__(self, seed: int, floats: bool = True, halves: bool = False, given: bool = False):
        self.numbers, self.made = np.random.default_rng(seed), {}  # type: ignore[var-annotated]
        self.floats, self.halves, self.given = floats, halves, given

    def on(self, a: np.ndarray, given: bool = True) -> np.ndarray:
        """The same numbers but for their last places. `given`: no op of those that are looked at
        has made them."""
        if of_half(a.dtype):
            return self.neighbours(a) if (self.given if given else self.halves) else a
        if a.dtype.kind not in "fc" or not self.floats:
            return a
        return a * (
            1 + SHAKEN * np.finfo(a.dtype).eps * self.numbers.choice([-1, 1], a.shape)
        ).astype(a.dtype)

    def after(self, step: Call, a: np.ndarray) -> np.ndarray:
        """What an op has made, rounded in another way."""
        source = step.args[0] if step.args else None
        narrows = (
            step.runs(to)
            and of_half(a.dtype)
            and getattr(source, "kind", "") not in ("input", "constant")
        )
        exact = step.entry is not None and step.entry.options.get("exact") or is_view(step)
        return self.on(a, False) if narrows or not exact else a

    def neighbours(self, a: np.ndarray) -> np.ndarray:
        """The next numbers of half precision, above or below; 0 and what is not finite stay."""
        bits = np.ascontiguousarray(a).view(np.int16)
        size = bits & SIGN
        moves = (size > 0) & (size < BITS[a.dtype.name] - 1)
        return (
            (bits + np.where(moves, self.numbers.choice([-1, 1], bits.shape), 0).astype(np.int16))
            .view(a.dtype)
            .reshape(a.shape)
        )


def of_half(dtype: Any) -> bool:
    return dtype.name in BITS


def unit(a: np.ndarray) -> np.ndarray:
    """How far numbers of half precision are from the next ones towards 0; in float32."""
    bits = np.ascontiguousarray(a).view(np.int16).reshape(a.shape) & SIGN
    below = np.maximum(bits - np.int16(1), np.int16(0)).view(a.dtype)
    return np.abs(single(a)) - single(below)


def change(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """By how much, or, of whole numbers, whether."""
    return a != b if b.dtype.kind in "biu" else np.abs(single(a) - single(b))
