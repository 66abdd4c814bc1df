"""Nested lists of numbers: their types, depth and dtype, tensors inside them, errors for uneven
lengths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import explain
from rushlight.core.tensor import Tensor, noticed

NUMBERS = (bool, int, float, complex)
PLAIN = frozenset(NUMBERS)
MAX_NDIM = 64  # of a NumPy array


def dtype_of(data: Any, types: set[type], array: np.ndarray) -> dtypes.dtype:
    """The dtype of nested lists of floating-point numbers: the default dtype, or promoted from
    tensors and NumPy numbers.

    `types`: the types of the elements. `array`: the data as NumPy converts it.
    """
    if types <= PLAIN or all(
        issubclass(t, NUMBERS) and not issubclass(t, np.generic) for t in types
    ):
        return default(array.dtype.kind == "c")
    own = {
        x.dtype
        if isinstance(x, Tensor)
        else dtypes.of(x.dtype)
        if hasattr(x, "dtype")
        else dtypes.of_scalar(x)
        for x in leaves(data)
    }
    return reduce(dtypes.promote_types, own)


def types_in(data: Any) -> set[type]:
    """The types of the elements of nested lists. `set(map(type, ...))` per list is faster than a
    loop over elements."""
    if not isinstance(data, (list, tuple)):
        return {type(data)}
    found = set(map(type, data))
    if found <= PLAIN:
        return found
    return (
        set().union(*map(types_in, data))
        if any(issubclass(t, (list, tuple)) for t in found)
        else found
    )


def leaves(data: Any) -> Iterator[Any]:
    """The elements of nested lists."""
    if isinstance(data, (list, tuple)):
        for x in data:
            yield from leaves(x) if isinstance(x, (list, tuple)) else (x,)
    else:
        yield data


def default(complex_numbers: bool) -> dtypes.dtype:
    d = dtypes.get_default_dtype()
    return d.to_complex() if complex_numbers else d


def plain_lists(data: Any, depth: int) -> Any:
    """Nested lists with each tensor replaced by nested lists of its elements. `depth`: nesting
    depth so far.
    """
    if isinstance(data, Tensor):
        return numbers_of(data, depth)
    if isinstance(data, (list, tuple)) and any(
        issubclass(t, (Tensor, list, tuple)) for t in set(map(type, data))
    ):
        return [plain_lists(x, depth - 1) for x in data]
    return data


def depth_of(data: Any) -> int:
    """The nesting depth of lists, along the first element of each. A tensor counts as a number."""
    depth, kind = 0, type(data).__name__
    while isinstance(data, (list, tuple)) and data:
        data, depth = data[0], depth + 1
        if depth > MAX_NDIM:  # a list that contains itself never ends
            raise ValueError(
                explain(f"too many dimensions '{kind}'", f"use at most {MAX_NDIM} dimensions")
            )
    return depth + (data.ndim if isinstance(data, np.ndarray) else 0)


def numbers_of(x: Tensor, depth: int) -> np.ndarray:
    """The numbers of a tensor inside nested lists, as an array of `depth` dimensions; further
    dimensions must have size 1."""
    noticed(x)
    shape = x._array.shape
    if depth > len(shape):
        raise TypeError(
            explain("not a sequence", "nest all lists to the same depth", shape=tuple(shape))
        )
    if x._array.size == prod(shape[:depth]):
        return dtypes.plain(x._array.reshape(shape[:depth]))
    whole = x._array.dtype.kind in "iu"
    raise (TypeError if whole else ValueError)(
        explain(
            "only integer tensors of a single element can be converted to an index"
            if whole
            else "only one element tensors can be converted to Python scalars",
            "torch.stack joins several tensors",
            shape=tuple(x.shape),
        )
    )


def uneven(data: Any) -> Exception | None:
    """The error for the first nested list whose length differs from the others at its level; None
    if all agree."""
    sizes, level = [], data
    while isinstance(level, (list, tuple)):
        sizes.append(len(level))
        level = level[0] if level else None
    level = [data]
    for dim, n in enumerate(sizes):
        for part in level:
            if hasattr(part, "tolist"):  # a tensor or an array
                part = part.tolist()
            if not isinstance(part, (list, tuple)):
                return (
                    None
                    if hasattr(part, "__len__")
                    else TypeError(explain("not a sequence", "nest all lists to the same depth"))
                )
            if len(part) != n:
                return ValueError(
                    explain(
                        f"expected sequence of length {n} at dim {dim} (got {len(part)})",
                        "pad the shorter ones",
                    )
                )
        level = [one for part in level for one in part]
    return None


def first_leaf(data: Any) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data
