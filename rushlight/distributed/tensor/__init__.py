"""torch.distributed.tensor, as far as libraries use it: placements can be described, but a tensor
is on one machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rushlight.base.errors import Absent
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh

WHY = "tensors lie in one process; hint: omit the distribution of tensors"


class DTensor(Absent):
    """A tensor on several machines."""

    because = WHY


class Placement:
    """How a tensor would lie on several machines."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is cut, along `dim` if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether what each has adds up to it."""
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
    """The values of the ranks are to be added, or reduced as `reduce_op` says."""

    reduce_op: str = "sum"


def distribute_tensor(
    tensor: Any, device_mesh: Any = None, placements: Any = None, **options: Any
) -> Any:
    """NotImplementedError: a tensor is in one process."""
    raise NotImplementedError(f"torch.distributed.tensor.distribute_tensor is not supported: {WHY}")


__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_tensor",
    "init_device_mesh",
]
