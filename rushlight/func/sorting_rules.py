"""Batching rules of medians, searches in sorted sequences, and tests of membership (ops/reduce/sorting.py)."""

from __future__ import annotations

from typing import Any

from rushlight.core.table import Op
from rushlight.core.worlds import TENSORS as ops
from rushlight.func.batching import Level
from rushlight.func.batching_families import Parts, call, rule
from rushlight.ops.reduce import sorting


@rule(sorting.median_all, sorting.nanmedian_all)
def median(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    return ops[op.name.replace("all", "dim")](parts[0].value.reshape((level.size, -1)), 1, False)[0]


@rule(sorting.places)
def places(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """One sequence for the values of all samples, or a sequence (B, n) and values (B, m) for each sample."""
    x, values, sorter = parts
    if not x.mapped and x.ndim == 1 and not (sorter and sorter.mapped):
        return call(op, [x.value, values.value, sorter and sorter.value], settings)
    rows = values.whole() if x.ndim > 1 else values.whole().reshape((level.size, -1))
    return call(op, [x.whole(), rows, sorter and sorter.whole()], settings).reshape(values.whole()._array.shape)


@rule(sorting.among)
def among(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """(B, n, 1) compared with (B, 1, m), if each sample has a set of its own."""
    x, y = parts
    if not y.mapped:
        return call(op, [x.value, y.value], settings)
    pairs = x.whole().reshape((level.size, -1, 1)) == y.value.reshape((level.size, 1, -1))
    found = ops["any"](pairs, (2,), False).reshape(x.whole()._array.shape)
    return ops["logical_not"](found) if settings[0] else found
