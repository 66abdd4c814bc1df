"""The arrays of the tensors that collectives read and write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error, type_error, value_error
from rushlight.core.node import stamp
from rushlight.core.tensor import Tensor, noticed, writes_of


def check_tensor(value: Any, name: str) -> Tensor:
    """The value, which must be a tensor with elements (not meta)."""
    if not isinstance(value, Tensor):
        raise type_error(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )
    noticed(value)
    if value.is_meta:
        raise value_error("a meta tensor has no elements to send")
    return value


def check_list(values: Any, name: str, size: int | None = None) -> list[Tensor]:
    """The tensors of a list of `size` tensors, one for each rank; None: of any length."""
    if not isinstance(values, (list, tuple)):
        raise type_error(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but "
            f"got {type(values)} instead."
        )
    if size not in (None, len(values)):
        raise runtime_error(
            f"invalid tensor list `{name}` (expected length {size}, got {len(values)})",
            "one tensor for each rank of the group",
        )
    return [check_tensor(value, name) for value in values]


def check_same(tensors: Sequence[Tensor], like: Tensor, name: str) -> None:
    """ValueError for tensors that differ from `like` in dtype or number of elements."""
    for i, t in enumerate(tensors):
        if t.dtype != like.dtype:
            raise value_error(
                f"Tensors in a collective must have the same dtype: `{name}` has {t.dtype}, not {like.dtype}"
            )
        if t.numel() != like.numel():
            raise value_error(
                f"invalid tensor at index {i} of `{name}`: expected shape {tuple(like.shape)}, got {tuple(t.shape)}"
            )


def text(tensor: Tensor) -> str:
    """The dtype and shape, for errors and to compare the calls of the ranks."""
    return f"{tensor._array.dtype} {tensor._array.shape}"


def raw(array: np.ndarray) -> np.ndarray:
    """The bytes of an array in C order: a view if the array is contiguous, otherwise a copy."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def written(tensor: Tensor) -> None:
    """Note a write to the tensor's memory."""
    stamp(writes_of(tensor), None)


def into(tensor: Tensor, array: np.ndarray) -> Callable[[], None]:
    """A function that copies `array`, which MPI has filled, into the tensor."""

    def finish() -> None:
        own = tensor._array
        if not np.may_share_memory(own, array):
            value = array if array.dtype == own.dtype else array.astype(own.dtype)
            own[...] = value.reshape(own.shape)
        written(tensor)

    return finish


def into_bytes(tensors: Sequence[Tensor], array: np.ndarray) -> Callable[[], None]:
    """A function that copies `array`, which MPI has filled with the tensors' concatenated bytes, into the tensors."""

    def finish() -> None:
        at = 0
        for tensor in tensors:
            own = tensor._array
            part = array[at : at + own.nbytes]
            at += own.nbytes
            if not np.may_share_memory(own, part):
                own[...] = part.view(own.dtype).reshape(own.shape)
            written(tensor)

    return finish


def joined(tensors: Sequence[Tensor]) -> np.ndarray:
    """The bytes of several tensors in one array."""
    return np.concatenate([raw(t._array) for t in tensors])


def space(nbytes: int) -> np.ndarray:
    """Memory to receive bytes."""
    return np.empty(nbytes, np.uint8)
