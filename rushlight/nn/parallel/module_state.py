"""Make the parameters and buffers of a module the same on all ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rushlight.base.errors import runtime_error
from rushlight.comm.arrays import written
from rushlight.comm.collectives import broadcast
from rushlight.comm.objects import all_gather_object
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.tensor import Tensor, from_array


def check_same_model(parameters: Sequence[tuple[str, Tensor]], group: ProcessGroup) -> None:
    """Raise if the parameters of another rank have other names, shapes or dtypes."""
    mine = [(name, tuple(p.shape), str(p.dtype)) for name, p in parameters]
    models: list = [None] * group.size()
    all_gather_object(models, mine, group)
    for rank, model in zip(group.ranks, models):
        if len(model) != len(mine):
            raise runtime_error(
                f"DDP expects same model across all ranks, but Rank {group.world.rank} has {len(mine)} params, "
                f"while rank {rank} has inconsistent {len(model)} params."
            )
        for (name, *here), (other, *there) in zip(mine, model):
            if here != there:
                raise runtime_error(
                    f"[Rank {group.world.rank}]: params[{name}] in this process with {here[1]}{here[0]} appears "
                    f"not to match {other} of rank {rank}: {there[1]}{there[0]}"
                )


def broadcast_all(tensors: Sequence[Tensor], group: ProcessGroup, root: int = 0) -> None:
    """Copy the tensors of rank `root` of the group to all ranks, in one message for each dtype."""
    if group.size() == 1:
        return
    by_dtype: dict[np.dtype, list[Tensor]] = {}
    for t in tensors:
        by_dtype.setdefault(t._array.dtype, []).append(t)
    for same in by_dtype.values():
        flat = np.concatenate([t._array.reshape(-1) for t in same])
        broadcast(from_array(flat), group=group, group_src=root)
        if group.rank() == root:
            continue
        at = 0
        for t in same:
            t._array[...] = flat[at : at + t.numel()].reshape(t._array.shape)
            written(t)
            at += t.numel()
