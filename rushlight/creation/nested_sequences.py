"""Nested lists of numbers: their types, depth and dtype, tensors inside them, errors for uneven lengths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import explain, runtime_error, type_error, value_error
from rushlight.core.tensor import Tensor, noticed

NUMBERS = (bool, int, float, complex)
PLAIN = frozenset(NUMBERS)
INTEGERS = frozenset((int, bool))
MAX_NDIM = 64  # the largest number of dimensions of a NumPy array


def dtype_of(data: Any, types: set[type], array: np.ndarray) -> dtypes.dtype:
    """The dtype of nested lists of floating-point numbers: the default dtype, or promoted from tensors and NumPy
    numbers.

    `types`: the types of the elements. `array`: the data as NumPy converts it."""
    if types <= PLAIN or all(issubclass(t, NUMBERS) and not issubclass(t, np.generic) for t in types):
        return default(array.dtype.kind == "c")
    own = {
        x.dtype if isinstance(x, Tensor) else dtypes.of(x.dtype) if hasattr(x, "dtype") else dtypes.of_scalar(x)
        for x in leaves(data)
    }
    return reduce(dtypes.promote_types, own)


def types_in(data: Any) -> set[type]:
    """The types of the elements of nested lists. `set(map(type, ...))` per list is faster than a loop over elements."""
    if not isinstance(data, (list, tuple)):
        return {type(data)}
    found = set(map(type, data))
    if found <= PLAIN:
        return found
    return set().union(*map(types_in, data)) if any(issubclass(t, (list, tuple)) for t in found) else found


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
    """Nested lists with each tensor replaced by nested lists of its elements. `depth`: nesting depth so far."""
    if isinstance(data, Tensor):
        return numbers_of(data, depth)
    if isinstance(data, (list, tuple)) and any(issubclass(t, (Tensor, list, tuple)) for t in set(map(type, data))):
        return [plain_lists(x, depth - 1) for x in data]
    return data


def depth_of(data: Any) -> int:
    """The nesting depth of lists, along the first element of each. A tensor counts as a number."""
    depth, kind = 0, type(data).__name__
    while isinstance(data, (list, tuple)) and data:
        data, depth = data[0], depth + 1
        if depth > MAX_NDIM:  # a list that contains itself has no end
            raise value_error(f"too many dimensions '{kind}'", f"use at most {MAX_NDIM} dimensions")
    return depth + (data.ndim if isinstance(data, np.ndarray) else 0)


def numbers_of(x: Tensor, depth: int) -> np.ndarray:
    """The numbers of a tensor inside nested lists, as an array of `depth` dimensions; other dimensions must have size
    1."""
    noticed(x)
    shape = x._array.shape
    if depth > len(shape):
        raise type_error("not a sequence", "nest all lists to the same depth", shape=tuple(shape))
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
    """The error for the first nested list whose length differs from the others at its level; None if all agree."""
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
                    else type_error("not a sequence", "nest all lists to the same depth")
                )
            if len(part) != n:
                return value_error(
                    f"expected sequence of length {n} at dim {dim} (got {len(part)})", "pad the shorter ones"
                )
        level = [one for part in level for one in part]
    return None


def first_leaf(data: Any) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def held(numbers: Any, given: Any, dtype: dtypes.dtype) -> np.ndarray:
    """The numbers as an array of a dtype. torch's error for the first element of `given`, the data of the user, that
    the dtype does not hold."""
    d = dtypes.as_dtype(dtype)
    try:
        return dtypes.holding(numbers, d)
    except RuntimeError as error:
        raise next(filter(None, (refusal(x, d) for x in leaves(given))), error) from None


def numbers_in(array: np.ndarray, given: Any, dtype: dtypes.dtype | None) -> np.ndarray:
    """The numbers of an array of objects, of integers beyond 64 bits. torch's error for other elements."""
    first = first_leaf(given)
    if isinstance(first, str) and first and first is not given:
        raise value_error("too many dimensions 'str'", "give numbers")
    for x in leaves(given):
        if isinstance(x, (str, bytes)):
            raise type_error(f"new(): invalid data type '{type(x).__name__}'", "give numbers")
        if dtype is not None and (error := refusal(x, dtypes.as_dtype(dtype))):
            raise error
        if not isinstance(x, (*NUMBERS, np.generic)):
            raise runtime_error(f"Could not infer dtype of {type(x).__name__}", "give numbers")
    if types_in(given) <= INTEGERS and dtype is None:
        raise unpacking(given)
    return array if dtype is not None else array.astype(of_objects(given))


def of_objects(given: Any) -> type:
    """complex if an element is complex, else float."""
    return complex if any(isinstance(x, complex) for x in leaves(given)) else float


def refusal(x: Any, d: dtypes.dtype) -> Exception | None:
    """torch's error for an element that a dtype cannot hold; None for one that `dtypes.holding` checks."""
    real, name = d.numpy.kind in "iufb", type(x).__name__
    if isinstance(x, complex) and d.numpy.kind in "iuf" or not isinstance(x, (*NUMBERS, np.generic, Tensor)):
        whole = real and d.numpy.kind != "f"
        return type_error(
            f"'{name}' object cannot be interpreted as an integer" if whole else f"must be real number, not {name}",
            "give numbers; .real is the real part" if isinstance(x, complex) else "give numbers",
        )
    if isinstance(x, int) and d.numpy.kind in "iu" and not -(2**63) <= x < 2**63:
        return OverflowError("int too big to convert") if d is dtypes.uint64 else unpacking(x)
    return None


def unpacking(given: Any) -> ValueError:
    """torch's error for a Python integer beyond int64."""
    value = next((x for x in leaves(given) if isinstance(x, int) and not -(2**63) <= x < 2**63), 0)
    return value_error(
        "Overflow when unpacking long long",
        "int64 holds -2**63 to 2**63 - 1: give a float, or dtype=torch.float64",
        got=f"{float(value):.4g}" if value.bit_length() < 1000 else "more",
    )
