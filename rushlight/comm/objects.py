"""The collectives of Python objects. Objects are pickled, so a rank must trust the other ranks."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from rushlight.base.errors import value_error
from rushlight.comm.arrays import check_tensor
from rushlight.comm.collectives import all_gather, broadcast, gather, scatter
from rushlight.comm.groups import member, root_in
from rushlight.comm.messages import recv, send
from rushlight.comm.process_group import ProcessGroup
from rushlight.core.tensor import Tensor, from_array

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip


def packed(value: Any) -> Tensor:
    """The bytes of a pickled object."""
    return from_array(np.frombuffer(bytearray(pickle.dumps(value)), np.uint8))


def unpacked(tensor: Tensor, size: int) -> Any:
    return pickle.loads(tensor._array[:size].tobytes())


def numbers(values: Any) -> Tensor:
    return from_array(np.array(values, np.int64))


def empty(size: int) -> Tensor:
    return from_array(np.empty(size, np.uint8))


def padded(tensor: Tensor, size: int) -> Tensor:
    """The bytes, padded to `size`: collectives need the same size on all ranks."""
    longer = empty(size)
    longer._array[: tensor.numel()] = tensor._array
    return longer


def sizes_of(own: ProcessGroup, tensor: Tensor) -> list[int]:
    """The number of bytes in the tensor of each rank."""
    sizes = [numbers([0]) for _ in own.ranks]
    all_gather(sizes, numbers([tensor.numel()]), own)
    return [int(size._array[0]) for size in sizes]


def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """object_list[i] = the object of rank i."""
    if (own := member(group)) is None:
        return
    if len(object_list) < own.size():
        raise value_error(f"object_list needs {own.size()} places, one for each rank")
    mine = packed(obj)
    sizes = sizes_of(own, mine)
    parts = [empty(max(sizes)) for _ in sizes]
    all_gather(parts, padded(mine, max(sizes)), own)
    object_list[: own.size()] = map(unpacked, parts, sizes)


def gather_object(
    obj: Any, object_gather_list: list | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """On rank `dst`, object_gather_list[i] = the object of rank i."""
    if (own := member(group)) is None:
        return
    root = root_in(own, dst, group_dst, "dst")
    at_root = own.rank() == root
    if at_root and object_gather_list is None:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    mine = packed(obj)
    sizes = sizes_of(own, mine)
    parts = [empty(max(sizes)) for _ in sizes] if at_root else None
    gather(padded(mine, max(sizes)), parts, group=own, group_dst=root)
    if parts is not None and object_gather_list is not None:
        object_gather_list[: own.size()] = map(unpacked, parts, sizes)


def broadcast_object_list(
    object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """object_list = the objects of rank `src`, on all ranks."""
    if (own := member(group)) is None:
        return
    root = root_in(own, src, group_src, "src")
    at_root = own.rank() == root
    parts = [packed(one) for one in object_list] if at_root else []
    sizes = numbers([part.numel() for part in parts] if at_root else [0] * len(object_list))
    broadcast(sizes, group=own, group_src=root)
    whole = empty(int(sizes._array.sum()))
    if at_root and parts:
        whole = from_array(np.concatenate([part._array for part in parts]))
    broadcast(whole, group=own, group_src=root)
    if not at_root:
        fill_list(object_list, whole, sizes._array.tolist())


def fill_list(object_list: list, whole: Tensor, sizes: list[int]) -> None:
    """object_list = the objects in `whole`, the concatenated pickles of these sizes."""
    at = 0
    for i, size in enumerate(sizes):
        object_list[i] = pickle.loads(whole._array[at : at + size].tobytes())
        at += size


def scatter_object_list(
    scatter_object_output_list: list, scatter_object_input_list: list | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """scatter_object_output_list[0] = scatter_object_input_list[own rank] of rank `src`."""
    if (own := member(group)) is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = root_in(own, src, group_src, "src")
    at_root = own.rank() == root
    if at_root and len(scatter_object_input_list or ()) != own.size():
        raise value_error("scatter_object_input_list needs an object for each rank")
    parts = [packed(one) for one in scatter_object_input_list or ()] if at_root else []
    sizes = numbers([part.numel() for part in parts] if at_root else [0] * own.size())
    broadcast(sizes, group=own, group_src=root)
    most = int(sizes._array.max())
    mine = empty(most)
    scatter(mine, [padded(part, most) for part in parts] if at_root else None, group=own, group_src=root)
    scatter_object_output_list[0] = unpacked(mine, int(sizes._array[own.rank()]))


def send_object_list(
    object_list: list, dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None,
    use_batch: bool = False,
) -> None:  # fmt: skip
    """Send the objects to rank `dst`, which calls `recv_object_list`."""
    parts = [packed(one) for one in object_list]
    send(numbers([part.numel() for part in parts]), dst, group, group_dst=group_dst)
    whole = from_array(np.concatenate([part._array for part in parts]))
    send(check_tensor(whole, "object_list"), dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None,
    use_batch: bool = False,
) -> int:  # fmt: skip
    """Receive the objects of `send_object_list`. Returns the sender's rank."""
    sizes = numbers([0] * len(object_list))
    source = recv(sizes, src, group, group_src=group_src)
    if source < 0:
        return source
    whole = empty(int(sizes._array.sum()))
    recv(whole, source, group)
    fill_list(object_list, whole, sizes._array.tolist())
    return source
