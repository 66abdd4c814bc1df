"""torch.distributed.tensor: the names that libraries import. Placements can be named, but no tensor
is distributed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rushlight.base.errors import Absent

WHY = "tensors cannot be distributed over processes; hint: use plain tensors"


class DTensor(Absent):
    """A tensor on several machines."""

    because = WHY


class DeviceMesh(Absent):
    """Several machines."""

    because = WHY


class Placement:
    """The placement of a tensor on several machines."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the placement is sharded, along `dim` if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether the tensor is the sum of the processes' values."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Replicate(Placement):
    """Each has all of it."""


@dataclass(frozen=True)
class Shard(Placement):
    """It is cut along `dim`."""

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """It is cut along `dim` twice."""

    split_factor: int = 1


@dataclass(frozen=True)
class Partial(Placement):
    """The processes' values are summed, or reduced by another operation."""

    reduce_op: str = "sum"


def distribute_tensor(
    tensor: Any, device_mesh: Any = None, placements: Any = None, **options: Any
) -> Any:
    """NotImplementedError: tensors belong to one process."""
    raise NotImplementedError(f"torch.distributed.tensor.distribute_tensor is not supported: {WHY}")


__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_tensor",
]
