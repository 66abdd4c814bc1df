"""Tensors from the parts that a file holds: memory, offset, sizes and strides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.array_memory import owner
from rushlight.base.device import device, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from rushlight.base.errors import value_error
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.meta_tensors import Meta
from rushlight.ops.tensor.quantized_tensor import QSCHEMES, QuantizedTensor
from rushlight.ops.tensor.storage_classes import TypedStorage, UntypedStorage
from rushlight.ops.tensor.tensor_copy_pickle import rebuild
from rushlight.serialization.name_map import QUANTIZED, StorageType, compressed_maker, parameter_class, sparse_maker

MAX_EXPANDED_BYTES = 2**24  # elements of a tensor with stride 0 that is read for its values


def storage_on(memory: np.ndarray, type: StorageType) -> TypedStorage:
    """The storage of a memory block, (n,) uint8, with the dtype that the file gives."""
    return TypedStorage(wrap_storage=UntypedStorage.on(memory), dtype=type.dtype or dtypes.uint8)


def check_sizes(size: Any, stride: Any) -> None:
    """ValueError if these are not the sizes and strides of a tensor: ints of 0 or more."""
    for numbers in (size, stride):
        if not isinstance(numbers, (tuple, list)) or not all(isinstance(n, int) and n >= 0 for n in numbers):
            raise value_error("a tensor has sizes and strides of 0 or more")
    if len(size) != len(stride):
        raise value_error(f"a tensor of {len(size)} sizes and {len(stride)} strides cannot be")


def check_elements(*tensors: Tensor) -> None:
    """ValueError if tensors have far more elements than memory: ops on them would allocate memory."""
    for tensor in tensors:
        array = tensor._array
        if array.nbytes > MAX_EXPANDED_BYTES and array.nbytes > owner(array).nbytes:
            raise value_error("a sparse tensor has more elements than its memory holds")


def tensor_on(
    storage: TypedStorage, dtype: dtypes.dtype, offset: int, size: Sequence[int], stride: Sequence[int],
    requires_grad: bool, metadata: Mapping[str, bool] | None,
) -> Tensor:  # fmt: skip
    """A tensor on the storage's memory; offset and strides in elements. ValueError if it reaches outside the
    storage."""
    if not isinstance(storage, TypedStorage):
        raise value_error(f"a tensor needs a storage, not a {type(storage).__name__}")
    check_sizes(size, stride)
    if not isinstance(offset, int) or offset < 0:
        raise value_error("a tensor has an offset of 0 or more")
    item = dtype.itemsize
    # NumPy does not check memory of 0 bytes
    if all(size) and not len(storage.untyped().cells):
        raise value_error("a tensor with elements needs memory")
    strides = tuple(s * item for s in stride)
    array = np.ndarray(tuple(size), dtype.numpy, storage.untyped().cells, offset * item, strides)
    flags = metadata or {}
    if array.size and (flags.get("conj") or flags.get("neg")):  # torch's lazy conjugation, negation
        # elements in memory: an expanded tensor has more elements
        end = 1 + sum((n - 1) * s for n, s in zip(size, stride))
        dense = np.ndarray((end,), dtype.numpy, storage.untyped().cells, offset * item)
        for part, undo in (("conj", np.conj), ("neg", np.negative)):
            dense = undo(dense) if flags.get(part) else dense
        array = np.ndarray(tuple(size), dtype.numpy, dense, 0, strides)
    return rebuild(Tensor, array, bool(requires_grad), None, {})


def rebuild_tensor_v2(
    storage: TypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int], requires_grad: bool = False,
    backward_hooks: Any = None, metadata: Mapping[str, bool] | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of the storage's own dtype."""
    if not isinstance(storage, TypedStorage):
        raise value_error(f"a tensor needs a storage, not a {type(storage).__name__}")
    return tensor_on(storage, storage.dtype, storage_offset, size, stride, requires_grad, metadata)


def rebuild_tensor_v3(
    storage: TypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int], requires_grad: bool,
    backward_hooks: Any, dtype: dtypes.dtype, metadata: Mapping[str, bool] | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of a dtype without a typed storage."""
    return tensor_on(storage, dtype, storage_offset, size, stride, requires_grad, metadata)


def rebuild_meta_tensor(dtype: dtypes.dtype, size: Sequence[int], stride: Sequence[int], requires_grad: bool) -> Tensor:
    """A tensor on the device "meta", without elements."""
    if not isinstance(dtype, dtypes.dtype):
        raise value_error(f"a tensor has a dtype, not a {type(dtype).__name__}")
    check_sizes(size, stride)
    array: Any = Meta(tuple(size), dtype.numpy, tuple(step * dtype.itemsize for step in stride))
    return rebuild(Tensor, array, bool(requires_grad), None, {})


def rebuild_parameter(
    data: Tensor, requires_grad: bool = True, backward_hooks: Any = None, state: Mapping[str, Any] | None = None
) -> Tensor:
    """An nn.Parameter on the memory of `data`, with the attributes of `state`."""
    return rebuild(parameter_class(), data._array, bool(requires_grad), None, dict(state or {}))


def rebuild_sparse_tensor(kind: Any, parts: Sequence[Any]) -> Tensor:
    """A sparse tensor from indices, values and size. All are checked, and so is the flag `coalesced`."""
    if kind is not sparse_coo:
        starts, places, values, size = parts
        check_sizes(size, size)
        check_elements(starts, places, values)
        return compressed_maker()(starts, places, values, tuple(size), layout=kind)
    indices, values, size, *coalesced = parts
    check_sizes(size, size)
    check_elements(indices, values)
    made = sparse_maker()(indices, values, tuple(size))
    return made.coalesce() if coalesced and coalesced[0] else made


def rebuild_quantized(
    storage: TypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int], how: Sequence[Any],
    requires_grad: bool = False, backward_hooks: Any = None,
) -> QuantizedTensor:  # fmt: skip
    """A quantized tensor. `how`: the qscheme, then scale and zero point, or scales, zero points and the axis."""
    values = rebuild_tensor_v2(storage, storage_offset, size, stride)._array
    dtype = {d.numpy: q for q, d in QUANTIZED.items()}.get(values.dtype)
    kind, scales, zeros, *axis = how
    if dtype is None or kind not in QSCHEMES:
        raise value_error("a quantized tensor has a qscheme, and elements of 8 bits")
    if not axis:
        return QuantizedTensor(values, np.array([float(scales)]), np.array([int(zeros)]), None, dtype)
    place = axis[0]
    check_elements(scales, zeros)
    if not isinstance(place, int) or not 0 <= place < values.ndim:
        raise value_error("a quantized tensor has scales along one of its dimensions")
    if not scales._array.shape == zeros._array.shape == (values.shape[place],):
        raise value_error("a quantized tensor has a scale and a zero point for each index of a dimension")
    return QuantizedTensor(values, scales._array, zeros._array, place, dtype)


def rebuild_from_type_v2(function: Callable[..., Tensor], type: type, args: tuple, state: Any) -> Tensor:
    """A tensor with attributes, or of a subclass."""
    if function not in TENSOR_MAKERS:
        raise value_error("only tensors are rebuilt with a type")
    made = function(*args)
    attributes = state if isinstance(state, Mapping) else {}
    if type is Tensor or not issubclass(type, Tensor):
        made.__dict__.update(attributes)
        return made
    return rebuild(type, made._array, made.requires_grad, None, dict(attributes))


def make_device(*args: Any) -> device:
    """The CPU, for any device in the file."""
    cpu = bool(args) and isinstance(args[0], str) and args[0] == "cpu"
    return device(*args) if cpu else device("cpu")


def layout(name: str) -> Any:
    """torch.strided, torch.sparse_coo and so on."""
    found = isinstance(name, str) and {
        "torch.strided": strided,
        "torch.sparse_coo": sparse_coo,
        "torch.sparse_csr": sparse_csr,
        "torch.sparse_csc": sparse_csc,
        "torch.sparse_bsr": sparse_bsr,
        "torch.sparse_bsc": sparse_bsc,
    }.get(name)
    if not found:
        raise value_error("the file refers to a layout that is not supported")
    return found


TENSOR_MAKERS = (rebuild_tensor_v2, rebuild_tensor_v3, rebuild_meta_tensor, rebuild_parameter)
REBUILDERS: dict[tuple[str, str], Callable] = {
    ("torch._utils", "_rebuild_tensor"): rebuild_tensor_v2,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): rebuild_tensor_v3,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): rebuild_meta_tensor,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): rebuild_parameter,
    ("torch._utils", "_rebuild_sparse_tensor"): rebuild_sparse_tensor,
    ("torch._utils", "_rebuild_qtensor"): rebuild_quantized,
    ("torch._tensor", "_rebuild_from_type_v2"): rebuild_from_type_v2,
    ("torch.serialization", "_get_layout"): layout,
    ("torch", "device"): make_device,
    ("torch", "Size"): Size,
}
