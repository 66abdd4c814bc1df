"""x[key] and x[key] = value: keys of integers, slices, None, Ellipsis, lists, masks and index tensors."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index as as_integer
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight.base.dtypes import holding
from rushlight.base.errors import explain, index_error, runtime_error, type_error, value_error, warn
from rushlight.core.build import unrecorded
from rushlight.core.tensor import Tensor, created, from_array, method, noticed
from rushlight.core.views import assign, wrote
from rushlight.kernels.index import HERE
from rushlight.ops.index.index_tensors import index, write_at
from rushlight.ops.shape.view_functions import unbind
from rushlight.ops.shape.views import flip, getitem


def parse(key: Any) -> tuple[tuple, list[Tensor]]:
    """The key in NumPy's terms, with HERE in the place of each index tensor, and the index tensors."""
    parts = key if isinstance(key, tuple) or key.__class__ is list and stands_for_tuple(key) else (key,)
    found: list[Any] = []
    tensors: list[Tensor] = []
    elided = False
    for part in parts:
        if part is None or part.__class__ is int:
            found.append(part)
        elif part.__class__ is slice:
            found.append(whole_slice(part))
        elif part is Ellipsis:
            found.append(part)
            elided = True
        else:
            index_tensor = as_index(part)
            if index_tensor is None:
                found.append(part.__index__())
            else:
                found.append(HERE)
                tensors.append(index_tensor)
    if not elided:
        found.append(Ellipsis)  # so that NumPy returns a view even for a single element
    return tuple(found), tensors


def stands_for_tuple(key: list) -> bool:
    """True if torch treats a list as a tuple: x[[[0, 1], [1, 0]]] is x[[0, 1], [1, 0]], as in old versions of NumPy."""
    parts = (Tensor, list, tuple, slice, range, ndarray)
    stands = len(key) < 32 and any(part is None or part is Ellipsis or isinstance(part, parts) for part in key)
    if stands:
        warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
            "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
            "x[torch.tensor(seq)], which will result either in an error or a different result"
        )
    return stands


def integers_first(x: Tensor, parts: tuple, tensors: list[Tensor]) -> tuple[Tensor, tuple]:
    """The view selected by the plain integers of a key, and the rest of the key. NumPy would treat the integers as
    index tensors: for x of shape (2, 3, 4), x[0, :, [1, 2]] has shape (2, 3) in NumPy and (3, 2) in torch. If they are
    adjacent, both agree.
    """
    if len(tensors) > 1 and parts[-1] is not ...:
        parts = closed(x, parts, tensors)
    places = [i for i, part in enumerate(parts) if part is HERE or part.__class__ is int]
    if places[-1] - places[0] < len(places) or len(places) == len(tensors):
        return x, parts
    chosen: list[Any] = []
    rest = iter(tensors)
    for part in parts:
        if part is HERE:
            index = next(rest)._array  # a mask indexes one dimension for each of its own
            chosen.extend([slice(None)] * (index.ndim if index.dtype.kind == "b" else 1))
        elif part is not None:
            chosen.append(slice(None) if part.__class__ is slice else part)
    return getitem(x, tuple(chosen)), tuple([part for part in parts if part.__class__ is not int])


def closed(x: Tensor, parts: tuple, tensors: list[Tensor]) -> tuple:
    """The key without its ellipsis if the ellipsis stands for no dimension (an ellipsis at the end changes nothing).
    NumPy would take the ellipsis for a separator between index tensors.
    """
    dims = sum([t._array.ndim if t._array.dtype.kind == "b" else 1 for t in tensors])
    dims += sum([part.__class__ in (int, slice) for part in parts])
    return (*[part for part in parts if part is not ...], ...) if dims == x._array.ndim else parts


def whole_slice(s: slice) -> slice:
    """The slice with Python ints. ValueError for a negative step, which views cannot have in torch."""
    start, stop, step = s.start, s.stop, s.step
    if step is None and (start is None or start.__class__ is int) and (stop is None or stop.__class__ is int):
        return s
    try:
        start, stop, step = [None if v is None else as_integer(v) for v in (start, stop, step)]
    except TypeError:
        raise type_error(f"slice indices must be integers or None or have an __index__ method, not {s}") from None
    if step is not None and step <= 0:
        raise value_error("step must be greater than zero", "use .flip(dim) for the opposite order")
    return slice(start, stop, step)


def as_index(part: Any) -> Tensor | None:
    """A part of a key as an index tensor; None if it is a plain integer."""
    if isinstance(part, Tensor):
        part = choosing(part)
        array = part._array
        if array.dtype.kind in "iu" and array.ndim == 0 and isinstance(array, ndarray):  # not a batch of vmap
            return None
        check_kind(array)
        return part
    if isinstance(part, (bool, np.bool_)):
        return created(from_array(np.asarray(part)))
    if isinstance(part, (list, tuple, range, ndarray)):
        array = np.asarray(
            [p.item() if isinstance(p, Tensor) else p for p in part] if isinstance(part, (list, tuple)) else part
        )
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(np.int64)
        check_kind(array)
        return created(from_array(array))
    if hasattr(part, "__index__"):
        return None
    kind = TypeError if isinstance(part, str) else IndexError
    raise kind(
        explain(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(part).__name__})"
        )
    )


def choosing(index: Tensor) -> Tensor:
    """An index tensor of a key; a uint8 mask (the old kind in torch) becomes a bool mask."""
    if index._array.dtype != np.uint8:
        return index
    warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead: mask.bool()")
    return index != 0


def check_kind(array: ndarray) -> None:
    if array.dtype.kind not in "iub":
        raise index_error(
            "tensors used as indices must be long, int, byte or bool tensors", "convert with .long()", dtype=array.dtype
        )


def read(x: Tensor, key: Any) -> Tensor:
    """x[key]: a view for integers and slices, a copy for index tensors and masks."""
    if key.__class__ is int:
        return getitem(x, (key, ...))
    parts, tensors = parse(key)
    try:
        if not tensors:
            return getitem(x, parts)
        x, parts = integers_first(x, parts, tensors)
        return index(x, tensors, parts)
    except (IndexError, RuntimeError) as error:
        if "at:" in str(error) and "index" in str(error):
            raise IndexError(str(error)) from None
        raise


def write(x: Tensor, key: Any, value: Any) -> None:
    """x[key] = value, in memory and in the graph."""
    if key is False:  # nothing is written: the version does not change
        return
    parts, tensors = parse(key)
    if not tensors and written_at_once(x, parts, value):
        return
    if not isinstance(value, Tensor):
        if value is None or isinstance(value, (str, list, dict)):
            raise type_error(
                f"can't assign a {type(value).__name__} to a torch.{x.dtype.scalar_type}Tensor",
                "convert the text to a number: float(...)"
                if isinstance(value, str)
                else "make it a tensor first: torch.tensor(...)"
                if value is not None
                else "",
            )
        value = created(from_array(holding(value, x.dtype)))
    if value._array.dtype != x._array.dtype:
        # a boolean mask instead of an index
        if tensors and (value._array.size != 1 or any(t._array.dtype.kind != "b" for t in tensors)):
            check_same_dtype(x, value)
        value = value.to(x.dtype)
    if tensors:
        x, parts = integers_first(x, parts, tensors)
        if unrecorded(x, (value,)):
            write_at(x, value, tensors, parts, out=x)
        else:
            assign(x, write_at(x, value, tensors, parts))
        return
    region = getitem(x, parts)
    while value._array.ndim > region._array.ndim and value._array.shape[0] == 1:
        value = value[0]
    assign(region, value)


def written_at_once(x: Tensor, parts: tuple, value: Any) -> bool:
    """Write outside the graph, without a tensor for the region. False for a write that needs `assign`: nothing is
    written then."""
    if value.__class__ is int or value.__class__ is float:
        if not unrecorded(x, ()):
            return False
        array = holding(value, x.dtype)
    elif isinstance(value, Tensor) and unrecorded(x, (value,)):
        array = value._array
    else:
        return False
    memory = x._array
    if array.dtype != memory.dtype or memory.__class__ is not ndarray or array.__class__ is not ndarray:
        return False
    try:
        memory[parts][...] = array
    except (IndexError, ValueError):  # `assign` finds the words
        return False
    wrote(x)
    return True


def check_same_dtype(x: Tensor, value: Tensor) -> None:
    """RuntimeError if index tensors would write values of another dtype than the tensor's."""
    if value._array.dtype != x._array.dtype:
        raise runtime_error(
            f"Index put requires the source and destination dtypes match, got {x.dtype.scalar_type} for the "
            f"destination and {value.dtype.scalar_type} for the source.",
            "convert the values with .to(dtype)",
        )


def iterate(x: Tensor) -> Iterator[Tensor]:
    """The slices along the first dimension."""
    if x._array.ndim == 0:
        raise type_error("iteration over a 0-d tensor")
    return iter(unbind(x, 0))


def contains(x: Tensor, value: Any) -> bool:
    """True if some element equals the value, a number or a tensor. RuntimeError for other values."""
    if not isinstance(value, (Tensor, int, float, complex, np.generic)):
        raise runtime_error(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(value)}.")
    noticed(x)
    return bool((x._array == (value._array if isinstance(value, Tensor) else value)).any())


def backwards(x: Tensor) -> Tensor:
    """reversed(x): the slices along the first dimension in opposite order, as a tensor."""
    return flip(x, (0,)) if x._array.ndim else x


def delete(x: Tensor, key: Any) -> None:
    """del x[key]: TypeError, because elements of a tensor cannot be deleted."""
    raise type_error("Tensor does not support deleting items", "select the elements to keep: x[mask], torch.cat")


method(read, "__getitem__")
method(write, "__setitem__")
method(delete, "__delitem__")
method(iterate, "__iter__")
method(backwards, "__reversed__")
method(contains, "__contains__")
