"""torch.distributed.tensor, the part that `fully_shard` and checkpoints need: a tensor whose rows are divided over the
ranks, or that each rank has whole. For ops on such tensors see `DTensor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rushlight.base.errors import explain, not_implemented_error, value_error
from rushlight.base.size import Size
from rushlight.comm.collectives import all_reduce
from rushlight.comm.groups import get_world_size
from rushlight.comm.process_group import ProcessGroup
from rushlight.comm.reduce_op import ReduceOp
from rushlight.core.tensor import Tensor, from_array
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.pieces import Piece, piece_of
from rushlight.nn import Parameter
from rushlight.nn.parallel.module_state import broadcast_all
from rushlight.ops.tensor.tensor_copy_pickle import disabled


class Placement:
    """The distribution of a tensor along a dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is divided, along `dim` if it is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each rank has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether the tensor is the sum of the ranks' tensors."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor."""


@dataclass(frozen=True)
class Shard(Placement):
    """The tensor is divided along `dim`."""

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """The tensor is divided along `dim` twice."""

    split_factor: int = 1


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is the reduction of the ranks' tensors by `reduce_op`."""

    reduce_op: str = "sum"


class DTensor(Tensor):
    """The rows of this rank of a tensor that is divided over the ranks of a group.

    `full_tensor()` is the whole tensor and `to_local()` the rows. `shape` and `numel()` describe the whole tensor. Ops
    work on the rows and return plain tensors, which is right for elementwise ops, in-place ops and optimizers; methods
    that mix rows raise NotImplementedError. `norm()` is the norm of the whole tensor.
    """

    __slots__ = ()
    __torch_function__ = staticmethod(disabled)
    _piece: Piece

    def __new__(cls, *args: Any, **options: Any) -> Any:
        raise not_implemented_error("making a DTensor of a local tensor is not supported", "distribute_tensor")

    from_local = classmethod(__new__)

    def _finish_parameter(self, parameter: Parameter) -> DTensor:
        """The parameter with this tensor's memory, divided like this tensor."""
        return divided(parameter, self._piece)

    @property
    def shape(self) -> Size:
        """The size of each dimension of the whole tensor."""
        return Size(self._piece.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape of the whole tensor, or the size of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """The number of elements of the whole tensor."""
        return self.shape.numel()

    nelement = numel

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        rows, placements = self.to_local(), self.placements
        return f"DTensor({rows}, whole={self.shape}, placements={placements})"

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that have the rows: a row for each replica if there are several."""
        group, replicas = self._piece.group, self._piece.replicas
        if replicas is None:
            return DeviceMesh("cpu", group.ranks, groups=[group])
        step = np.array(replicas.ranks) - replicas.ranks[replicas.rank()]
        ranks = np.array(group.ranks)[None, :] + step[:, None]
        return DeviceMesh("cpu", ranks, groups=[replicas, group])

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placement for each dimension of the mesh."""
        return (Shard(0),) if self._piece.replicas is None else (Replicate(), Shard(0))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled as a plain tensor with the rows of this rank, since a group belongs to its process."""
        return self.detach().__reduce_ex__(protocol)

    def to_local(self, **options: Any) -> Tensor:
        """The rows of this rank, in the same memory."""
        return self.detach()

    def full_tensor(self, **options: Any) -> Tensor:
        """The whole tensor, without history. All ranks of the mesh call this."""
        return self._piece.gathered(self._array)

    def norm(self, p: Any = 2.0, *args: Any, **options: Any) -> Tensor:
        """|whole tensor|_p, on all ranks. All ranks of the mesh call this."""
        order = 2.0 if p in (None, "fro") else float(p)
        size, biggest = np.abs(self._array).astype(np.float64), order == np.inf
        here = size.max(initial=0) if biggest else (size**order).sum()
        total = from_array(np.array(here))
        all_reduce(total, ReduceOp.MAX if biggest else ReduceOp.SUM, self._piece.group)
        value = total.item() if biggest else total.item() ** (1.0 / order)
        return from_array(np.array(value, self._array.dtype))


def refusal(name: str) -> Callable:
    """A method of DTensor that is not supported."""

    def method(self: DTensor, *args: Any, **options: Any) -> Any:
        raise not_implemented_error(
            f"DTensor.{name} needs rows of other ranks",
            f"x.full_tensor().{name}(...), or x.to_local() for the rows of this rank",
            rows_here=self._array.shape,
            whole=self._piece.shape,
        )

    method.__name__ = name
    return method


MIXING_ROWS = (
    *("sum", "mean", "prod", "max", "min", "std", "var", "argmax", "argmin", "softmax", "cumsum"),
    *("mm", "matmul", "__matmul__", "__rmatmul__", "view", "flatten", "t", "transpose"),
    *("permute", "__getitem__", "redistribute", "tolist"),
)
for one in MIXING_ROWS:
    setattr(DTensor, one, refusal(one))


class ShardedParameter(DTensor, Parameter):  # type: ignore[misc]
    """A parameter that is divided."""

    __slots__ = ()


def divided(tensor: Tensor, piece: Piece) -> DTensor:
    """The tensor, which has the rows of this rank, made a DTensor in place."""
    tensor.__class__ = ShardedParameter if isinstance(tensor, Parameter) else DTensor
    tensor._piece = piece  # type: ignore[attr-defined]
    return tensor  # type: ignore[return-value]


def groups_of(mesh: Any, placements: Sequence[Any]) -> tuple[ProcessGroup, ProcessGroup | None]:
    """(the group that a tensor is divided over, the group of its replicas or None). NotImplementedError for other
    placements than Shard(0) and Replicate().
    """
    if len(placements) != mesh.ndim:
        raise value_error(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    cut = [i for i, placement in enumerate(placements) if placement == Shard(0)]
    others = [p for i, p in enumerate(placements) if i not in cut]
    if len(cut) != 1 or len(others) > 1 or not all(p == Replicate() for p in others):
        raise not_implemented_error(
            f"a tensor is not distributed as {list(placements)}",
            "[Shard(0)], or on a mesh of two dimensions [Replicate(), Shard(0)]",
        )
    return mesh.get_group(cut[0]), mesh.get_group(1 - cut[0]) if others else None


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> Tensor:  # fmt: skip
    """The tensor of the mesh's first rank, divided by `placements`: [Shard(0)] returns a DTensor with some rows on each
    rank; [Replicate()], the default, returns a plain tensor. With src_data_rank=None, each rank takes the rows of its
    own tensor. NotImplementedError for other placements."""
    mesh = device_mesh or init_device_mesh("cpu", (get_world_size(),))
    wanted = placements or [Replicate()] * mesh.ndim
    value = from_array(tensor._array.copy()) if not tensor.is_meta else tensor
    if src_data_rank is not None and not tensor.is_meta:
        for group in reversed(mesh.get_all_groups()):
            broadcast_all([value], group)
    if all(placement == Replicate() for placement in wanted):
        return value.requires_grad_(tensor.requires_grad)
    piece = Piece(tensor.shape, *groups_of(mesh, wanted))
    return divided(piece.part(value).requires_grad_(tensor.requires_grad), piece)


__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor", "init_device_mesh",
    "piece_of",
]  # fmt: skip
