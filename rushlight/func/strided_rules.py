"""Batching rules of as_strided and its derivatives (ops/shape/as_strided.py)."""

from __future__ import annotations

from typing import Any

from rushlight.core.table import Op
from rushlight.func.batching import Level
from rushlight.func.batching_families import Parts, call, rule
from rushlight.kernels.layout import reach
from rushlight.ops.shape import as_strided


@rule(as_strided.lie)
def lie(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    """The strides of a sample, after the stride from one sample to the next; the first sample starts at the start of
    the values.
    """
    value, (size, stride, start, own) = parts[0].value, settings
    step = value.stride(0)
    return call(op, [value], ((level.size, *size), (step, *stride), start, (step, *own)))


@rule(as_strided.unlie)
def unlie(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    shape, size, stride, start, own = settings
    step = beyond((shape, own, 0), (size, stride, start))
    return call(
        op, [parts[0].whole()], ((level.size, *shape), (level.size, *size), (step, *stride), start, (step, *own))
    )


@rule(as_strided.lie_again)
def lie_again(op: Op, level: Level, parts: Parts, settings: tuple) -> Any:
    x, (size, stride, start, own) = parts[0].whole(), settings
    step = beyond((x._array.shape[1:], own, 0), (size, stride, start))
    return call(op, [x], ((level.size, *size), (step, *stride), start, (step, *own)))


def beyond(*regions: tuple) -> int:
    """A stride between samples that is larger than the memory of one sample."""
    found = [reach(*region) for region in regions if 0 not in region[0]]
    return max([high for _, high in found], default=0) - min([low for low, _ in found], default=0)
