"""Sequences (lists) and optional values (None where empty)."""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight as torch

from .control import as_known, stacked
from .table import Scalar, Value, operator


@operator("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> list[Any]:
    """An empty list."""
    return []


@operator("SequenceConstruct")
def sequence_construct(*items: Value) -> list[Any]:
    """A list of the values."""
    return list(items)


@operator("SequenceLength")
def sequence_length(items: Value) -> np.ndarray:
    """The length of a list."""
    return as_known(len(items))


@operator("SequenceAt")
def sequence_at(items: Value, at: Scalar) -> Any:
    """An item."""
    return items[int(at)]


@operator("SequenceInsert")
def sequence_insert(items: Value, item: Value, at: Scalar | None = None) -> list[Any]:
    """The list with one more item, at the end by default."""
    place = len(items) if at is None else int(at)
    return [*items[:place], item, *items[place:]]


@operator("SequenceErase")
def sequence_erase(items: Value, at: Scalar | None = None) -> list[Any]:
    """The list without an item, the last by default."""
    place = (len(items) - 1 if at is None else int(at)) % len(items)
    return [*items[:place], *items[place + 1 :]]


@operator("SplitToSequence")
def split_to_sequence(x: Value, sizes: Value | None = None, *, axis: int = 0, keepdims: int = 1) -> list[Any]:
    """Parts of a tensor along an axis: of one size, of these sizes, or of size 1."""
    whole = x.shape[axis]
    if sizes is None:
        each = [1] * whole
    elif sizes.shape == ():
        size = int(sizes.item())
        each = [min(size, whole - i) for i in range(0, whole, size)]
    else:
        each = [int(size) for size in sizes.tolist()]
    if isinstance(x, np.ndarray):
        parts = list(np.split(x, np.cumsum(each)[:-1], axis))
    else:
        parts = list(x.split(each, axis))
    return parts if keepdims or sizes is not None else [part.squeeze(axis) for part in parts]


@operator("ConcatFromSequence")
def concat_from_sequence(items: Value, *, axis: int, new_axis: int = 0) -> Any:
    """The items, joined or stacked along an axis."""
    if new_axis:
        return stacked(items, axis)
    return np.concatenate(items, axis) if isinstance(items[0], np.ndarray) else torch.cat(items, axis)


@operator("Optional")
def optional(x: Value | None = None, *, type: Any = None) -> Any:
    """An optional value: x, or None."""
    return x


@operator("OptionalHasElement")
def optional_has_element(x: Value | None = None) -> np.ndarray:
    """Whether the value exists."""
    return as_known(x is not None)


@operator("OptionalGetElement")
def optional_get_element(x: Value) -> Any:
    """The value of an optional."""
    return x
