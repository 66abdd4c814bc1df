"""Short descriptions of arrays for the live page: a histogram and a few numbers, from a bounded number of elements."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

MAX_PICKED = 2048  # of a larger array, this number of elements is read
BINS = 32
LEVELS = 63  # heights of a bar: one character each, from chr(48) to chr(111)


@lru_cache(maxsize=256)
def places(size: int) -> np.ndarray:
    """MAX_PICKED indices below `size`: one at a random place in each of equal parts. They are the same at each step, so
    that differences of the values are differences of the same elements."""
    parts = np.linspace(0, size, MAX_PICKED + 1)
    return (parts[:-1] + np.random.default_rng(0).random(MAX_PICKED) * np.diff(parts)).astype(np.int64)


def picked(array: np.ndarray) -> np.ndarray:
    """A copy of at most MAX_PICKED elements, as float64 (n,); of complex numbers, the absolute values."""
    if array.size <= MAX_PICKED:
        chosen = array.ravel()
    elif array.flags.c_contiguous:
        chosen = array.reshape(-1)[places(array.size)]
    else:
        chosen = array[np.unravel_index(places(array.size), array.shape)]
    return abs(chosen).astype(np.float64) if chosen.dtype.kind == "c" else chosen.astype(np.float64)


def histogram(values: np.ndarray) -> list[Any] | None:
    """[low, high, heights, mean, root mean square, share of zeros, share of nan and inf] of numbers (n,), for JSON;
    None for no numbers. `heights`: BINS characters, "0" for an empty bin, "o" for the largest."""
    finite = values[np.isfinite(values)]
    if not values.size:
        return None
    bad = 1 - finite.size / values.size
    if not finite.size:
        return [0, 0, "0" * BINS, "nan", "nan", 0, 1]
    low, high = float(finite.min()), float(finite.max())
    width = high - low
    if width > 0 and math.isfinite(width):
        bins = ((finite - low) / width * BINS).astype(np.int64)
        counts = np.bincount(np.minimum(bins, BINS - 1), minlength=BINS)
    else:
        counts = np.zeros(BINS, np.int64)
        counts[BINS // 2] = finite.size
    heights = np.ceil(counts * (LEVELS / counts.max())).astype(np.uint8) + 48
    zeros = 1 - np.count_nonzero(finite) / finite.size
    facts = low, high, float(finite.mean()), rms(finite), zeros, bad
    low, high, mean, size, zeros, bad = map(short, facts)
    return [low, high, heights.tobytes().decode("ascii"), mean, size, zeros, bad]


def rms(values: np.ndarray) -> float:
    """The root of the mean of the squares of real numbers."""
    return math.sqrt(float(np.dot(values, values)) / values.size) if values.size else 0.0


def short(value: float) -> Any:
    """A number with five digits, for JSON; nan and inf as text."""
    return float(f"{value:.5g}") if math.isfinite(value) else str(value)
