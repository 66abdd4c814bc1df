"""The collectives of tensors: operations that all ranks of a group call.

Each checks its tensors and passes `ProcessGroup.begin` three things: a text with the operation, dtypes and sizes, which
must agree between ranks; the MPI call on the tensors' memory; and a function to call when MPI is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from rushlight.base.errors import runtime_error, value_error
from rushlight.comm.arrays import check_list, check_same, check_tensor, into, into_bytes, joined, raw, space, text
from rushlight.comm.groups import member, root_in
from rushlight.comm.process_group import ProcessGroup
from rushlight.comm.reduce_op import ReduceOp, check_op, op_for, reducible
from rushlight.comm.sparse_reduce import sparse_all_reduce
from rushlight.comm.work import Work
from rushlight.core.tensor import Tensor

__all__ = [
    "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
    "broadcast", "gather", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
]  # fmt: skip


def ended(work: Work, async_op: bool) -> Work | None:
    """The work if `async_op`; otherwise None, after the operation is complete."""
    if async_op:
        return work
    work.wait()
    return None


def run(
    own: ProcessGroup, async_op: bool, what: str, start: Callable[[], Any], finish: Callable[[], None] | None = None,
    outputs: Sequence[Tensor] = (), inputs: Sequence[Tensor] | None = None,
) -> Work | None:  # fmt: skip
    """Begin an operation that is one call of MPI. Returns the work if `async_op`; otherwise waits for its end."""
    return ended(own.begin(what, lambda: [start()], finish, outputs, inputs), async_op)


def averaged(array: np.ndarray, op: ReduceOp, size: int) -> None:
    """Divide a sum by the number of ranks if `op` is the mean."""
    if op is ReduceOp.AVG:
        array /= array.dtype.type(size)


def reduced_in_place(own: ProcessGroup, tensors: Sequence[Tensor], op: ReduceOp) -> Work:
    """Begin to reduce several tensors in place, as one operation."""
    arrays = [reducible(t._array) for t in tensors]
    names = [op_for(op, t._array) for t in tensors]
    writes = [into(t, array) for t, array in zip(tensors, arrays)]

    def start() -> list[Any]:
        parts = [own.transport.all_reduce_parts(x, name) for x, name in zip(arrays, names)]
        return [request for requests in parts for request in requests]

    def finish() -> None:
        for array, write in zip(arrays, writes):
            averaged(array, op, own.size())
            write()

    what = f"all_reduce({', '.join(map(text, tensors))}, {op.name})"
    return own.begin(what, start, finish, tensors)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """tensor = sum of the tensors of all ranks; `op` names another reduction."""
    if isinstance(tensor, Tensor) and tensor.is_sparse:
        if (own := member(group)) is None:
            return None
        return ended(sparse_all_reduce(own, tensor, op), async_op)
    check_tensor(tensor, "tensor")
    if (own := member(group)) is None:
        return None
    check_op(op, tensor._array)
    return ended(reduced_in_place(own, [tensor], op), async_op)


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """tensor = the tensor of rank `src`."""
    check_tensor(tensor, "tensor")
    if (own := member(group)) is None:
        return None
    root = root_in(own, src, group_src, "src")
    array = raw(tensor._array)
    finish = None if root == own.rank() else into_bytes([tensor], array)
    what = f"broadcast({text(tensor)}, src={own.ranks[root]})"
    return run(own, async_op, what, lambda: own.transport.broadcast(array, root), finish, [tensor])


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """On rank `dst`, tensor = sum of the tensors of all ranks; `op` names another reduction."""
    check_tensor(tensor, "tensor")
    if (own := member(group)) is None:
        return None
    check_op(op, tensor._array)
    root = root_in(own, dst, group_dst, "dst")
    array, name = reducible(tensor._array), op_for(op, tensor._array)
    write = into(tensor, array)

    def finish() -> None:
        if own.rank() == root:
            averaged(array, op, own.size())
            write()

    what = f"reduce({text(tensor)}, {op.name}, dst={own.ranks[root]})"
    return run(own, async_op, what, lambda: own.transport.reduce(array, name, root), finish, [tensor])


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """tensor_list[i] = the tensor of rank i."""
    check_tensor(tensor, "tensor")
    if (own := member(group)) is None:
        return None
    outputs = check_list(tensor_list, "tensor_list", own.size())
    check_same(outputs, tensor, "tensor_list")
    out, x = space(tensor._array.nbytes * own.size()), raw(tensor._array)
    what, finish = f"all_gather({text(tensor)})", into_bytes(outputs, out)
    return run(own, async_op, what, lambda: own.transport.all_gather(out, x), finish, outputs, [tensor])


def check_parts(whole: Tensor, part: Tensor, size: int, names: tuple[str, str]) -> None:
    """ValueError unless `whole` has the dtype and the number of elements of `size` parts."""
    if whole.dtype != part.dtype:
        raise value_error(f"{names[0]} must have the same type as {names[1]}: {whole.dtype}, {part.dtype}")
    if whole.numel() != part.numel() * size:
        raise value_error(
            f"{names[0]} size must be equal to world_size times {names[1]} size: {whole.numel()} elements, and "
            f"{size} x {part.numel()}"
        )


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """output_tensor = the input tensors of all ranks, one after the other."""
    check_tensor(output_tensor, "output_tensor")
    check_tensor(input_tensor, "input_tensor")
    if (own := member(group)) is None:
        return None
    check_parts(output_tensor, input_tensor, own.size(), ("output tensor", "input tensor"))
    out, x = raw(output_tensor._array), raw(input_tensor._array)
    if np.may_share_memory(out, x):  # FSDP gathers into the tensor that holds its own part
        x = x.copy()
    what, outputs = f"all_gather_into_tensor({text(input_tensor)})", [output_tensor]
    finish = into_bytes(outputs, out)
    return run(own, async_op, what, lambda: own.transport.all_gather(out, x), finish, outputs, [input_tensor])


def list_at_root(
    own: ProcessGroup, root: int, tensors: Sequence[Tensor] | None, name: str, tensor: Tensor
) -> list[Tensor]:
    """The tensors of the argument `name`, which only the root gives: one like `tensor` for each rank. [] on other
    ranks."""
    side = "destination" if name == "gather_list" else "source"
    if own.rank() != root:
        if tensors:
            raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{side} ranks.")
        return []
    if tensors is None:
        raise ValueError(f"Argument ``{name}`` must be specified on {side} rank.")
    found = check_list(tensors, name, own.size())
    check_same(found, tensor, name)
    return found


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """On rank `dst`, gather_list[i] = the tensor of rank i."""
    check_tensor(tensor, "tensor")
    if (own := member(group)) is None:
        return None
    root = root_in(own, dst, group_dst, "dst")
    outputs = list_at_root(own, root, gather_list, "gather_list", tensor)
    out = space(tensor._array.nbytes * own.size()) if outputs else None
    x = raw(tensor._array)
    what = f"gather({text(tensor)}, dst={own.ranks[root]})"
    finish = None if out is None else into_bytes(outputs, out)
    return run(own, async_op, what, lambda: own.transport.gather(out, x, root), finish, outputs, [tensor])


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """tensor = scatter_list[own rank] of rank `src`."""
    check_tensor(tensor, "tensor")
    if (own := member(group)) is None:
        return None
    root = root_in(own, src, group_src, "src")
    inputs = list_at_root(own, root, scatter_list, "scatter_list", tensor)
    x = joined(inputs) if inputs else None
    out = raw(tensor._array)
    what, finish = f"scatter({text(tensor)}, src={own.ranks[root]})", into_bytes([tensor], out)
    return run(own, async_op, what, lambda: own.transport.scatter(out, x, root), finish, [tensor])


def reduced_part(
    own: ProcessGroup, async_op: bool, what: str, output: Tensor, whole: np.ndarray, op: ReduceOp
) -> Work | None:
    """Reduce `whole`; each rank gets its part in `output`."""
    out, name = reducible(output._array), op_for(op, output._array)
    write = into(output, out)

    def finish() -> None:
        averaged(out, op, own.size())
        write()

    what = f"{what}({text(output)}, {op.name})"
    return run(own, async_op, what, lambda: own.transport.reduce_scatter(out, whole, name), finish, [output])


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """output = sum of input_list[own rank] of all ranks; `op` names another reduction."""
    check_tensor(output, "output")
    if (own := member(group)) is None:
        return None
    check_op(op, output._array)
    inputs = check_list(input_list, "input_list", own.size())
    check_same(inputs, output, "input_list")
    whole = np.concatenate([reducible(t._array).reshape(-1) for t in inputs])
    return reduced_part(own, async_op, "reduce_scatter", output, whole, op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """output = this rank's part of the sum of the inputs of all ranks; `op` names another reduction."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if (own := member(group)) is None:
        return None
    check_op(op, output._array)
    check_parts(input, output, own.size(), ("input tensor", "output tensor"))
    whole = reducible(input._array)
    if np.may_share_memory(whole, output._array):
        whole = whole.copy()
    return reduced_part(own, async_op, "reduce_scatter_tensor", output, whole, op)


def check_splits(tensor: Tensor, splits: Sequence[int] | None, size: int, name: str) -> list[int]:
    """The bytes of each rank's part of dimension 0."""
    length = tensor.shape[0] if tensor.ndim else 1
    row = tensor._array.nbytes // length if length else 0
    if not splits:
        if length % size:
            raise runtime_error("Tensor's dim 0 does not divide equally across group size")
        splits = [length // size] * size
    if len(splits) != size:
        raise runtime_error(f"Number of tensor splits not equal to group size: {name}")
    if sum(splits) != length:
        raise runtime_error(f"Split sizes doesn't match total dim 0 size: {name}")
    return [n * row for n in splits]


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """output = part number `own rank` of each rank's input, concatenated in the order of the ranks."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if (own := member(group)) is None:
        return None
    counts = check_splits(input, input_split_sizes, own.size(), "input")
    out_counts = check_splits(output, output_split_sizes, own.size(), "output")
    out, x = raw(output._array), raw(input._array)
    what, finish = f"all_to_all_single({output._array.dtype})", into_bytes([output], out)
    start = partial(own.transport.all_to_all, out, x, out_counts, counts)
    return run(own, async_op, what, start, finish, [output], [input])


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """output_tensor_list[i] = input_tensor_list[own rank] of rank i."""
    if (own := member(group)) is None:
        return None
    outputs = check_list(output_tensor_list, "output_tensor_list", own.size())
    inputs = check_list(input_tensor_list, "input_tensor_list", own.size())
    out_counts = [t._array.nbytes for t in outputs]
    counts = [t._array.nbytes for t in inputs]
    out, x = space(sum(out_counts)), joined(inputs)
    what, finish = f"all_to_all({outputs[0]._array.dtype})", into_bytes(outputs, out)
    start = partial(own.transport.all_to_all, out, x, out_counts, counts)
    return run(own, async_op, what, start, finish, outputs, inputs)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all ranks are here."""
    if (own := member(group)) is None:
        return None
    return run(own, async_op, "barrier", own.transport.barrier)
