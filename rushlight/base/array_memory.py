"""The memory of arrays: its owner, an array's position in it, and copies that keep shared memory shared."""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import ref

import numpy as np
from numpy import ndarray

MAX_DEAD = 4096  # exposed arrays, dead or alive, before the dead ones are removed
EXPOSED: dict[int, ref[ndarray]] = {}  # id of an array that owns its memory -> the array


def expose(array: ndarray) -> None:
    """Record that code outside of tensors has the array, so its elements may change without a record of the write."""
    global EXPOSED
    if len(EXPOSED) > MAX_DEAD:
        EXPOSED = {k: r for k, r in EXPOSED.items() if r() is not None}
    own = array if array.base is None else owner(array)
    EXPOSED[id(own)] = ref(own)


def is_exposed(array: ndarray) -> bool:
    """Whether code outside of tensors has, or had, the array or a view of it, or owns its memory (a buffer, a file)."""
    own = owner(array)
    known = EXPOSED.get(id(own))
    return own.base is not None or known is not None and known() is own


def beneath(array: ndarray) -> Any:
    """The object that owns an array's memory; skips the helper objects of as_strided (ours and NumPy's), which only
    hold strides.
    """
    base = array.base
    return base if isinstance(base, ndarray) else getattr(base, "owner", getattr(base, "base", None))


def owner(array: ndarray) -> ndarray:
    """The array that owns the memory of `array`: `array` itself if it is not a view."""
    while isinstance(base := beneath(array), ndarray):
        array = base
    return array


def memory_of(tensor: Any) -> Any:
    """The array of the tensor's base. For a tensor detached from a view, the array of that view's base."""
    root = tensor._root
    first = root._writes.memory if root._writes is not None else None
    return root._array if first is None or owner(first) is not owner(root._array) else first


def extent(array: ndarray) -> tuple[ndarray, ndarray, int, int]:
    """(array, the whole memory under it as (n,) uint8, start, end): its elements are in the bytes start to end - 1.

    An array that torch cannot describe by an offset and non-negative strides in whole elements is copied first.
    """
    flat, item = owner(array).ravel("K"), array.itemsize  # this copies only if the owner itself has gaps
    start = address(array) - address(flat)
    end = start + item + sum((n - 1) * step for n, step in zip(array.shape, array.strides))
    regular = array.size and not start % item and not any(s < 0 or s % item for s in array.strides)
    if not (regular and start >= 0 and end <= flat.nbytes):
        array = array.copy()
        flat, start, end = array.reshape(-1), 0, array.nbytes
    return array, np.asarray(flat).view(np.uint8), start, end


def address(array: ndarray) -> int:
    """The address of the first element."""
    return array.__array_interface__["data"][0]


def twin(array: ndarray, memo: dict) -> tuple[ndarray, Any]:
    """(a copy of the array with its strides, in a copy of the whole memory under it; the key of that memory in `memo`).

    `memo` keeps the copied memory, so that copies of arrays that share memory share memory, too. If no array owns the
    memory (a mapped file), only the bytes of this array are copied."""
    whole = owner(array).base is None
    array, memory, start, end = extent(array)
    memory, start = (memory, start) if whole else (memory[start:end], 0)
    key = "memory", address(memory), len(memory)
    if key not in memo:
        # the original is kept alive, so that its address is not reused
        memo[key] = (memory.copy(), memory)
    return ndarray(array.shape, array.dtype, memo[key][0], start, array.strides), key


@cache
def offset_of_data() -> int | None:
    """The byte of an array object at which the address of the elements lies; None if that byte is unknown."""
    import ctypes  # loaded with the first function of machine code

    offset, a = object.__basicsize__, np.empty(3)
    found = ctypes.c_void_p.from_address(id(a) + offset).value
    return offset if found == a.ctypes.data else None
