"""The memory under arrays: what they stand on, where they lie in it, and copies that share as they do."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray


def beneath(array: ndarray) -> Any:
    """What an array's memory belongs to; not what only carries the steps, ours or that of NumPy's as_strided."""
    base = array.base
    return base if isinstance(base, ndarray) else getattr(base, "owner", getattr(base, "base", None))


def owner(array: ndarray) -> ndarray:
    """The array of whose memory this one is a part: itself, if of no other."""
    while isinstance(base := beneath(array), ndarray):
        array = base
    return array


def memory_of(tensor: Any) -> Any:
    """The array at which the tensor's memory begins: its base's; of what was detached from a view, that view's base's."""
    root = tensor.root
    first = root.writes.memory if root.writes is not None else None
    return root.array if first is None or owner(first) is not owner(root.array) else first


def extent(array: ndarray) -> tuple[ndarray, ndarray, int, int]:
    """The array, all memory on which it stands, (n,) uint8, and where its elements begin and end there.

    Where torch could not describe it, by an offset and strides of whole elements that are not negative, its copy.
    """
    flat, item = owner(array).ravel("K"), array.itemsize  # a copy only if the owner itself has gaps
    start = address(array) - address(flat)
    end = start + item + sum((n - 1) * step for n, step in zip(array.shape, array.strides))
    regular = array.size and not start % item and not any(s < 0 or s % item for s in array.strides)
    if not (regular and start >= 0 and end <= flat.nbytes):
        array = array.copy()
        flat, start, end = array.reshape(-1), 0, array.nbytes
    return array, np.asarray(flat).view(np.uint8), start, end


def address(array: ndarray) -> int:
    """Where the first element lies."""
    return array.__array_interface__["data"][0]


def twin(array: ndarray, memo: dict) -> tuple[ndarray, Any]:
    """A copy of the array as it lies, in a copy of all memory on which it stands, which `memo` keeps for other arrays
    there; and the key under which it does.

    Of what no array owns, as a file that is mapped, only the part where the array lies is copied.
    """
    whole = owner(array).base is None
    array, memory, start, end = extent(array)
    memory, start = (memory, start) if whole else (memory[start:end], 0)
    key = "memory", address(memory), len(memory)
    if key not in memo:
        memo[key] = memory.copy(), memory         # kept alive, for its address to be its own
    return ndarray(array.shape, array.dtype, memo[key][0], start, array.strides), key
