"""Memory shared between processes: `share_memory_()`, and tensors sent to other processes.

A tensor in shared memory is pickled for another process by reference: the process maps the same memory, even if it was
not forked. Python's multiprocessing sends the file descriptor (on Windows a name), so no file is left if processes are
killed.
"""

from __future__ import annotations

from mmap import mmap
from multiprocessing import heap, reduction
from typing import Any

import numpy as np

from rushlight.base.array_memory import address, owner
from rushlight.core.tensor import Tensor
from rushlight.ops.tensor.tensor_copy_pickle import rebuild


class SharedBlock(mmap):
    """A mapping of an arena; multiprocessing passes it to other processes."""

    arena: heap.Arena


def block_of(arena: heap.Arena) -> SharedBlock:
    """The memory of an arena; it lives as long as the block."""
    fd = getattr(arena, "fd", -1)
    name = {} if fd != -1 else {"tagname": arena.name}  # type: ignore[attr-defined]  # Windows
    block = SharedBlock(fd, arena.size, **name)
    block.arena = arena
    return block


def moved(array: np.ndarray) -> np.ndarray:
    """A copy of an array in shared memory."""
    made = np.ndarray(array.shape, array.dtype, block_of(heap.Arena(max(array.nbytes, 1))))
    made[...] = array
    return made


def send_by_reference(*types: type) -> None:
    """Let multiprocessing pickle tensors of these types by `reduce`, in queues, pipes and arguments of processes."""
    for type in (Tensor, *types):
        reduction.ForkingPickler.register(type, reduce)


def reduce(tensor: Tensor) -> Any:
    """The reduction of a tensor for another process: by reference if the memory is shared.

    A tensor with a history is pickled in the ordinary way, which raises the error.
    """
    array = tensor._array
    block = owner(array).base if isinstance(array, np.ndarray) else None
    if not isinstance(block, SharedBlock) or tensor.grad_fn is not None:
        return tensor.__reduce_ex__(4)
    start = address(array) - address(np.frombuffer(block, np.uint8))
    parts = start, array.shape, array.dtype, array.strides
    return attach, (type(tensor), block.arena, parts, tensor.requires_grad, dict(tensor.__dict__))


def attach(type: type, arena: heap.Arena, parts: tuple, requires_grad: bool, attributes: dict) -> Tensor:
    """The tensor of `reduce`, on the same memory."""
    start, shape, dtype, strides = parts
    send_by_reference(type)
    array = np.ndarray(shape, dtype, block_of(arena), start, strides)
    return rebuild(type, array, requires_grad, None, attributes)
