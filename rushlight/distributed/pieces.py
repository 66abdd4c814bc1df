"""A tensor divided over the ranks of a group along dimension 0, like torch.chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.comm.collectives import all_gather_into_tensor
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.tensor import Tensor, from_array
from rushlight.creation.factories import empty
from rushlight.ops.grad_mode import no_grad


class Piece:
    """The rows that each rank of `group` has of a tensor of this shape.

    `rows`: the number of rows of a part; the last parts may have fewer. `size`: the number of elements of `rows` rows.
    `replicas`: the group of the ranks with the same rows; None if there is only one such rank."""

    def __init__(self, shape: Sequence[int], group: ProcessGroup, replicas: ProcessGroup | None = None):
        self.shape, self.group, self.replicas = tuple(shape), group, replicas
        length = self.shape[0] if self.shape else 1
        self.rows = -(-length // group.size())
        self.size = self.rows * (int(np.prod(self.shape)) // length if length else 0)
        self.first = min(group.rank() * self.rows, length)
        self.rows_here = min(self.rows, length - self.first)

    @property
    def first_replica(self) -> bool:
        """Whether this rank is the first of the ranks with the same rows."""
        return self.replicas is None or self.replicas.rank() == 0

    def part(self, whole: Tensor) -> Tensor:
        """A copy of the rows of this rank."""
        if whole.is_meta:
            return empty(self.rows_here, *self.shape[1:], dtype=whole.dtype, device="meta")
        array = whole._array.reshape(self.shape if self.shape else (1,))
        return from_array(array[self.first : self.first + self.rows_here].copy())

    def padded(self, part: np.ndarray, into: np.ndarray) -> None:
        """Write a part into an array of `size` elements, padded with zeros."""
        into[: part.size] = part.reshape(-1)
        into[part.size :] = 0

    def whole(self, parts: np.ndarray) -> np.ndarray:
        """The whole tensor. `parts`: the padded parts of all ranks, (ranks, size)."""
        count = int(np.prod(self.shape))
        return np.ascontiguousarray(parts).reshape(-1)[:count].reshape(self.shape)

    def gathered(self, part: Any) -> Tensor:
        """The whole tensor from the rows of all ranks: a parameter, a gradient, or a tensor of the optimizer. All ranks
        of the group call this method."""
        mine = np.empty(self.size, part.dtype)
        self.padded(part, mine)
        every = np.empty((self.group.size(), self.size), part.dtype)
        with no_grad():
            all_gather_into_tensor(from_array(every), from_array(mine), self.group)
        return from_array(self.whole(every))


def piece_of(tensor: Any) -> Any:
    """The Piece of a divided tensor; None for other tensors."""
    return getattr(tensor, "_piece", None)
