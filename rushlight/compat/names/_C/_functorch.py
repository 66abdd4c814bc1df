"""torch._C._functorch: batched tensors, for libraries that map their own containers of tensors."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import TENSORS
from rushlight.func.batching import Batch, Level, Part, wrap


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether the tensor has the shape of one sample inside `vmap`."""
    return isinstance(tensor._array, Batch)


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor of all samples, with the batch in dimension 0."""
    array: Any = tensor._array
    if not isinstance(array, Batch):
        raise runtime_error("No wrappers present!")
    return array.value


def maybe_get_level(tensor: Tensor) -> int:
    """The level of vmap of a batched tensor, from 1 on. -1 for other tensors."""
    array: Any = tensor._array
    return array.level.depth if isinstance(array, Batch) else -1


def maybe_get_bdim(tensor: Tensor) -> int:
    """The dimension of the batch in `get_unwrapped(tensor)`: 0. -1 for other tensors."""
    return 0 if is_batchedtensor(tensor) else -1


def _add_batch_dim(tensor: Tensor, dim: int, level: int) -> Tensor:
    """The batched tensor of `tensor`, for a running vmap; `dim` is the dimension of its samples."""
    return wrap(TENSORS["movedim"](tensor, dim, 0), running(level))


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """The tensor of all samples with the batch in dimension `out_dim`. A tensor that all samples share is expanded."""
    return TENSORS["movedim"](Part(tensor, running(level)).whole(), 0, out_dim)


def running(level: int) -> Level:
    """The running vmap with that number. RuntimeError if there is none."""
    found: Level | None = mode().batch
    while found is not None and found.depth != level:
        found = found.outer
    if found is None:
        raise runtime_error(f"no vmap of level {level} runs")
    return found
