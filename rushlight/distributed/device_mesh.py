"""torch.distributed.device_mesh: the ranks as an array, and a process group for each of its rows.

With 8 ranks, `mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicas", "shards"))` and
`mesh["shards"].get_group()` is the group of the four ranks of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.base.errors import explain, runtime_error
from rushlight.comm.groups import get_rank, get_world_size, new_group
from rushlight.core.tensor import Tensor, from_array


class DeviceMesh:
    """An array of ranks with a name for each dimension. All ranks of the world make it."""

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None,
        groups: Sequence[Any] | None = None,
    ):  # fmt: skip
        array = mesh._array if isinstance(mesh, Tensor) else np.asarray(mesh)
        self.device_type, self.ranks = device_type, array.astype(np.int64)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        place = np.argwhere(self.ranks == get_rank())
        self.coordinate = place[0].tolist() if len(place) else None
        made = [self.groups_along(dim) for dim in range(array.ndim)] if groups is None else groups
        self.groups = list(made)

    def groups_along(self, dim: int) -> Any:
        """The group of this rank along a dimension. The groups of the other ranks are made, too."""
        own = None
        for row in np.moveaxis(self.ranks, dim, -1).reshape(-1, self.ranks.shape[dim]).tolist():
            made = new_group(row)
            if get_rank() in row:
                own = made
        return own

    @property
    def mesh(self) -> Tensor:
        """The ranks."""
        return from_array(self.ranks)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return self.ranks.shape

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, or the size of a dimension."""
        return self.ranks.size if mesh_dim is None else self.ranks.shape[mesh_dim]

    def number(self, dim: int | str | None) -> int:
        """The number of a dimension that is given by number or name."""
        if isinstance(dim, str):
            if dim not in (self.mesh_dim_names or ()):
                raise KeyError(explain(f"the mesh has the dimensions {self.mesh_dim_names}"))
            return self.mesh_dim_names.index(dim)  # type: ignore[union-attr]
        if dim is None and self.ndim > 1:
            raise runtime_error(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be "
                "specified when device_mesh.ndim > 1."
            )
        return dim or 0

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The process group of this rank along a dimension."""
        return self.groups[self.number(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The process groups of this rank."""
        return list(self.groups)

    def get_rank(self) -> int:
        """The rank in the world."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The rank along a dimension."""
        return get_rank(self.get_group(mesh_dim))

    def get_coordinate(self) -> list[int] | None:
        """The indices of this rank in the mesh; None if it is not in the mesh."""
        return self.coordinate

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh that contains this rank and has only these dimensions."""
        wanted = (names,) if isinstance(names, str) else names
        dims = [self.number(name) for name in wanted]
        at: list[Any] = list(self.coordinate or [0] * self.ndim)
        for dim in dims:
            at[dim] = slice(None)
        part = self.ranks[tuple(at)].transpose(np.argsort(np.argsort(dims)))
        groups = [self.groups[dim] for dim in dims]
        return DeviceMesh(self.device_type, part, mesh_dim_names=wanted, groups=groups)

    def __repr__(self) -> str:
        return f"DeviceMesh({self.device_type!r}, {self.ranks.tolist()}, {self.mesh_dim_names})"


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None, **options: Any
) -> DeviceMesh:
    """All ranks of the world in the shape of `mesh_shape`."""
    if int(np.prod(mesh_shape)) != get_world_size():
        raise runtime_error(
            f"Mesh should not be bigger than default world size {get_world_size()}, but found "
            f"{int(np.prod(mesh_shape))} ranks!"
        )
    if mesh_dim_names is not None and len(mesh_dim_names) != len(mesh_shape):
        raise runtime_error("mesh_shape and mesh_dim_names should have same length!")
    ranks = np.arange(get_world_size()).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)


__all__ = ["DeviceMesh", "init_device_mesh"]
