"""Previews of arrays: all numbers of a small array, a summary and a small picture of a large one."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

MAX_SHOWN = 16  # arrays of up to this many numbers are shown in full
ROWS, COLUMNS = 6, 16  # cells of the picture of a larger one
LEVELS = 26  # shades for each sign


def describe(array: Any) -> dict[str, Any]:
    """An array as JSON: its shape and exact `values`; for a large array `min`, `mean`, `max` and `cells`."""
    array = np.asarray(array)
    shape = list(array.shape)
    if array.size <= MAX_SHOWN:
        return {"shape": shape, "values": [exact(v) for v in array.reshape(-1)]}
    if array.dtype.kind not in "fiub":
        return {"shape": shape, "values": [exact(v) for v in array.reshape(-1)[:MAX_SHOWN]], "cut": True}
    wide = array.astype(np.float64)
    facts = {"min": wide.min(), "mean": wide.mean(), "max": wide.max()}
    return {"shape": shape, **{name: exact(np.float32(v)) for name, v in facts.items()}, **picture(wide)}


def exact(value: Any) -> Any:
    """A NumPy number as the shortest JSON number that round-trips; nan, inf and complex numbers as text."""
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, np.complexfloating) or not np.isfinite(value):
        return str(value)
    return float(str(value))


def picture(array: np.ndarray) -> dict[str, Any]:
    """A coarse picture: means of blocks, a letter each. 'A'..'Z' are shades above zero, 'a'..'z' below; 'Z' is the mean
    `top`. `table`: the rows and columns that were averaged."""
    table = array.reshape(prod(array.shape[:-1]), array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
    if not np.isfinite(table).all():
        return {}
    rows, columns = cuts(table.shape[0], ROWS), cuts(table.shape[1], COLUMNS)
    sums = np.add.reduceat(np.add.reduceat(table, rows, 0), columns, 1)
    counts = np.outer(np.diff([*rows, table.shape[0]]), np.diff([*columns, table.shape[1]]))
    means = sums / counts
    top = np.abs(means).max()
    levels = np.rint(means / top * LEVELS).astype(int) if top else np.zeros(means.shape, int)
    return {
        "cells": ["".join(map(letter, row)) for row in levels],
        "top": exact(np.float32(top)),
        "table": list(table.shape),
    }


def cuts(size: int, most: int) -> list[int]:
    """The boundaries that divide `size` into at most `most` parts of nearly equal length."""
    parts = min(size, most)
    return [size * i // parts for i in range(parts)]


def letter(level: int) -> str:
    return "." if not level else chr(64 + level) if level > 0 else chr(96 - level)


def rounded(value: Any) -> str:
    """A number, or nested lists of them, to four digits; fractions above 1000 keep one decimal: 1317.5."""
    if isinstance(value, list):
        return f"[{', '.join(map(rounded, value))}]"
    if isinstance(value, (bool, int)):
        return str(value)
    long = not isinstance(value, complex) and 1000 <= abs(value) < 1e4 and value % 1
    return f"{value:.1f}" if long else f"{value:.4g}"
