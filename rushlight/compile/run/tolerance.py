"""The effect of rounding on a result: run the same ops again, on numbers that differ in the last place.

Half-precision numbers are computed in single precision and rounded. If the single-precision number is near the midpoint
of two half-precision numbers, its last place decides which of them is the result. This changes few numbers, but by a
whole unit, 2^-9 to 2^-8 of the number in bfloat16, 30,000 times the error of single precision. So half-precision
numbers are perturbed separately, by one unit each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.compile.graph import Call, is_view
from rushlight.kernels.float16 import single
from rushlight.ops.shape.views import to

PERTURBED_ULPS = 4  # the size of the noise, in units in the last place
NOISE_FACTOR = 32  # a result may differ by this multiple of the change in perturbed runs
HALF_NOISE_FACTOR = 2  # the same multiple if half-precision numbers were perturbed
SIGN, BITS = np.int16(0x7FFF), {"float16": 0x7C00, "bfloat16": 0x7F80}  # all but the sign; infinity


class Noise:
    """Random perturbations of numbers. `floats`: perturb single and double precision. `halves`: perturb half-precision
    results of ops. `given`: perturb half-precision inputs.
    """

    def __init__(self, seed: int, floats: bool = True, halves: bool = False, given: bool = False):
        self.numbers, self.made = np.random.default_rng(seed), {}  # type: ignore[var-annotated]
        self.floats, self.halves, self.given = floats, halves, given

    def on(self, a: np.ndarray, given: bool = True) -> np.ndarray:
        """The numbers with random changes in the last place. `given`: the array is an input, not the result of an
        op."""
        if of_half(a.dtype):
            return self.neighbours(a) if (self.given if given else self.halves) else a
        if a.dtype.kind not in "fc" or not self.floats:
            return a
        return a * (1 + PERTURBED_ULPS * np.finfo(a.dtype).eps * self.numbers.choice([-1, 1], a.shape)).astype(a.dtype)

    def after(self, step: Call, a: np.ndarray) -> np.ndarray:
        """The result of an op, rounded differently."""
        source = step.args[0] if step.args else None
        narrows = step.runs(to) and of_half(a.dtype) and getattr(source, "kind", "") not in ("input", "constant")
        exact = step.entry is not None and step.entry.options.get("exact") or is_view(step)
        return self.on(a, False) if narrows or not exact else a

    def neighbours(self, a: np.ndarray) -> np.ndarray:
        """A neighbouring half-precision number of each, above or below; 0, inf and nan stay."""
        bits = np.ascontiguousarray(a).view(np.int16)
        size = bits & SIGN
        moves = (size > 0) & (size < BITS[a.dtype.name] - 1)
        steps = np.where(moves, self.numbers.choice([-1, 1], bits.shape), 0).astype(np.int16)
        return (bits + steps).view(a.dtype).reshape(a.shape)


def of_half(dtype: Any) -> bool:
    return dtype.name in BITS


def unit(a: np.ndarray) -> np.ndarray:
    """The distance of half-precision numbers to the next ones towards 0; in float32."""
    bits = np.ascontiguousarray(a).view(np.int16).reshape(a.shape) & SIGN
    below = np.maximum(bits - np.int16(1), np.int16(0)).view(a.dtype)
    return np.abs(single(a)) - single(below)


def change(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The size of the change; for integers, whether they changed."""
    return a != b if b.dtype.kind in "biu" else np.abs(single(a) - single(b))
