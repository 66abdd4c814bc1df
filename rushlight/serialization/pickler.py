"""Pickles in torch's format: a tensor becomes a call of torch._utils._rebuild_tensor_v2 on a numbered storage."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

import numpy as np

from rushlight.base import dtypes, shown_names
from rushlight.base.array_memory import address, extent
from rushlight.base.device import Layout, device, sparse_bsr, sparse_csr, strided
from rushlight.base.errors import runtime_error
from rushlight.base.public_function import private
from rushlight.base.size import Size
from rushlight.core.tensor import Tensor, from_array
from rushlight.ops.tensor.quantized_tensor import QuantizedTensor, qscheme
from rushlight.ops.tensor.storage_classes import Storage, UntypedStorage
from rushlight.serialization.name_map import PARAMETER_IN_TORCH, STORAGE_NAMES, UNTYPED, Name, name_in_torch

PROTOCOL = 2  # the protocol of torch's weights_only reader
_REBUILD = {
    name: Name("torch._utils", name)
    for name in (
        "_rebuild_tensor_v2",
        "_rebuild_tensor_v3",
        "_rebuild_parameter",
        "_rebuild_parameter_with_state",
        "_rebuild_sparse_tensor",
        "_rebuild_qtensor",
        "_rebuild_meta_tensor_no_storage",
    )
}
_FROM_TYPE = Name("torch._tensor", "_rebuild_from_type_v2")
_LAYOUT = Name("torch.serialization", "_get_layout")


Place = tuple[int, int]  # (address, length) of a memory block


class SharedMemory:
    """A memory block, written once for all tensors on it: (n,) uint8, the block's number and the dtype of its
    elements."""

    __slots__ = ("bytes", "key", "dtype")

    def __init__(self, bytes: np.ndarray, key: str, dtype: dtypes.dtype) -> None:
        self.bytes, self.key, self.dtype = bytes, key, dtype

    @property
    def elements(self) -> int:
        """The number of elements; the number of bytes for a dtype without a typed storage."""
        return len(self.bytes) // (1 if STORAGE_NAMES[self.dtype] is UNTYPED else self.dtype.itemsize)


PurePickler: Any = pickle._Pickler  # the C pickler refuses to write names that do not exist here


class Pickler(PurePickler):
    """`dump(obj)` writes into `content`, and collects the memory blocks of the tensors in `memories`.

    `first`: a Pickler that has dumped the same object. It knows which part of each memory block is used: the unused
    rest around a slice is not written (torch writes it)."""

    def __init__(self, first: Pickler | None = None, legacy: bool = False) -> None:
        self.content = io.BytesIO()
        super().__init__(self.content, PROTOCOL)
        self.memories: dict[Place, SharedMemory] = {}
        self.used: dict[Place, tuple[int, int]] = {}
        self.first = first  # keeps the memory blocks alive, so that addresses are not reused
        # an extra field of persistent ids in torch before 1.6, for a storage that is a view of another
        self.view = (None,) if legacy else ()

    def persistent_id(self, obj: Any) -> Any:
        """The persistent id of a memory block, which is written outside the pickle; None for other objects."""
        kind = UNTYPED if isinstance(obj, UntypedStorage) else None
        if isinstance(obj, Storage):
            obj = self.share(obj.cells, dtypes.of(obj.cells.dtype))[0]
        if not isinstance(obj, SharedMemory):
            return None
        return "storage", kind or STORAGE_NAMES[obj.dtype], obj.key, "cpu", obj.elements, *self.view

    def reducer_override(self, obj: Any) -> Any:
        """The reduction of an object that torch writes in its own way."""
        if isinstance(obj, Tensor):
            own = getattr(obj, "_reduce_in_files", None)  # a method of torchao's Int8Tensor
            return self.reduce_tensor(obj) if own is None else own()
        if isinstance(obj, QuantizedTensor):
            return self.reduce_quantized(obj)
        if isinstance(obj, (Name, dtypes.dtype, qscheme)):
            return obj.name  # save_global writes the name
        if isinstance(private(obj), FunctionType) and name_in_torch(obj):
            return obj.__name__
        if isinstance(obj, Size):
            return Size, (tuple(obj),)
        if isinstance(obj, device):
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, Layout):
            return _LAYOUT, (repr(obj),)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a class or function under its name in torch."""
        known = name_in_torch(obj)
        if known is None:
            super().save_global(obj, name)
        else:
            self.write(pickle.GLOBAL + f"{known[0]}\n{known[1]}\n".encode())
            self.memoize(obj)

    # -- tensors -----------------------------------------------------------------------------------

    def reduce_tensor(self, tensor: Tensor) -> tuple[Name, tuple]:
        if tensor.is_sparse:
            parts = (tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced())  # type: ignore[attr-defined]
            return _REBUILD["_rebuild_sparse_tensor"], (tensor.layout, parts)
        if tensor.layout is not strided:
            row = tensor.layout in (sparse_csr, sparse_bsr)
            names = ("crow_indices", "col_indices") if row else ("ccol_indices", "row_indices")
            indices = [getattr(tensor, name)() for name in names]
            compressed = (*indices, tensor.values().detach(), tensor.shape)
            return _REBUILD["_rebuild_sparse_tensor"], (tensor.layout, compressed)
        kind, state = name_in_torch(type(tensor)), dict(tensor.__dict__)
        if tensor.is_meta and kind != PARAMETER_IN_TORCH:
            meta: tuple = (tensor.dtype, tensor.shape, tensor.stride(), tensor.requires_grad)
            return _REBUILD["_rebuild_meta_tensor_no_storage"], meta
        if kind == PARAMETER_IN_TORCH:
            args: tuple = (from_array(tensor._array), tensor.requires_grad, OrderedDict())
            return (
                (_REBUILD["_rebuild_parameter_with_state"], (*args, state))
                if state
                else (_REBUILD["_rebuild_parameter"], args)
            )
        make, parts = self.reduce_array(tensor._array, tensor.requires_grad)
        # nn.Buffer, which loads as a tensor
        if kind is None and shown_names.home(type(tensor)).startswith("rushlight."):
            return make, parts
        return (_FROM_TYPE, (make, type(tensor), parts, state)) if kind is None or state else (make, parts)

    def reduce_quantized(self, tensor: QuantizedTensor) -> tuple[Name, tuple]:
        """The call that makes a quantized tensor: memory, shape, and how the tensor is quantized."""
        memory, offset, strides = self.share(tensor._values, tensor.dtype)
        scales, zeros = (from_array(a) for a in (tensor._scales, tensor._zeros))
        one = tensor._axis is None
        how: tuple = (tensor.q_scale(), tensor.q_zero_point()) if one else (scales, zeros, tensor._axis)
        parts: tuple = (memory, offset, tuple(tensor.shape), strides, (tensor.qscheme(), *how), False, OrderedDict())
        return _REBUILD["_rebuild_qtensor"], parts

    def reduce_array(self, array: np.ndarray, requires_grad: bool) -> tuple[Name, tuple]:
        """The call that makes a tensor on this array's memory."""
        dtype = dtypes.of(array.dtype)
        memory, offset, strides = self.share(array, dtype)
        parts: tuple = (memory, offset, tuple(array.shape), strides, requires_grad, OrderedDict())
        if STORAGE_NAMES[dtype] is UNTYPED:
            return _REBUILD["_rebuild_tensor_v3"], (*parts, dtype)
        return _REBUILD["_rebuild_tensor_v2"], parts

    def share(self, array: np.ndarray, dtype: dtypes.dtype) -> tuple[SharedMemory, int, tuple[int, ...]]:
        """(the memory block of the array, the array's offset in it, the array's strides), offset and strides in
        elements.

        RuntimeError if the block is also used with another dtype.
        """
        array, owner, start, end = extent(array)
        # arrays without elements share no memory
        place = (address(owner), len(owner)) if start < end else (0, -len(self.memories))
        low, high = self.used.get(place, (start, end))
        self.used[place] = min(low, start), max(high, end)
        low, high = self.first.used[place] if self.first and place in self.first.used else (0, len(owner))
        memory = self.memories.setdefault(place, SharedMemory(owner[low:high], str(len(self.memories)), dtype))
        if memory.dtype is not dtype:
            raise runtime_error(
                "Cannot save multiple tensors or storages that view the same data as different types: "
                f"{memory.dtype} and {dtype}: save a .clone() of one of them"
            )
        item = array.itemsize
        return memory, (start - low) // item, tuple(s // item for s in array.strides)
