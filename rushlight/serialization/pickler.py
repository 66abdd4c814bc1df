"""Pickles in torch's words: a tensor becomes a call of torch._utils._rebuild_tensor_v2 on a numbered storage."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

import numpy as np

from rushlight import dtypes, torch_names
from rushlight.device import Layout, device
from rushlight.memory import address, extent
from rushlight.ops.storages import Storage, UntypedStorage
from rushlight.size import Size
from rushlight.tensor import Tensor, from_array

from .names import PARAMETER_IN_TORCH, STORAGE_NAMES, UNTYPED, Name, name_in_torch

PROTOCOL = 2  # torch's weights_only reader knows this one
_REBUILD = {
    name: Name("torch._utils", name)
    for name in ("_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter", "_rebuild_parameter_with_state",
                 "_rebuild_sparse_tensor", "_rebuild_meta_tensor_no_storage")
}
_FROM_TYPE = Name("torch._tensor", "_rebuild_from_type_v2")
_LAYOUT = Name("torch.serialization", "_get_layout")


Place = tuple[int, int]  # of memory: address and length


class SharedMemory:
    """Memory that is written once, for all tensors on it: (n,) uint8, its number and the dtype of its elements."""

    __slots__ = ("bytes", "key", "dtype")

    def __init__(self, bytes: np.ndarray, key: str, dtype: dtypes.dtype) -> None:
        self.bytes, self.key, self.dtype = bytes, key, dtype

    @property
    def elements(self) -> int:
        """How many there are: of dtypes without a kind of storage, bytes."""
        return len(self.bytes) // (1 if STORAGE_NAMES[self.dtype] is UNTYPED else self.dtype.itemsize)


PurePickler: Any = pickle._Pickler  # the C one does not let a global be written that does not exist here


class Pickler(PurePickler):
    """Writes `dump(obj)` into `content`; what the tensors stand on is then in `memories`, to be written beside it.

    `first` is a Pickler that has dumped the same. It tells which part of each memory is used: the rest of what a slice
    was taken from is not written (torch writes it).
    """

    def __init__(self, first: Pickler | None = None, legacy: bool = False) -> None:
        self.content = io.BytesIO()
        super().__init__(self.content, PROTOCOL)
        self.memories: dict[Place, SharedMemory] = {}
        self.used: dict[Place, tuple[int, int]] = {}
        self.first = first  # which keeps the memory alive, and so its addresses apart
        self.view = (None,) if legacy else ()  # torch before 1.6 had storages that were part of another

    def persistent_id(self, obj: Any) -> Any:
        """Memory is not pickled; it is named."""
        kind = UNTYPED if isinstance(obj, UntypedStorage) else None
        if isinstance(obj, Storage):
            obj = self.share(obj.cells, dtypes.of(obj.cells.dtype))[0]
        if not isinstance(obj, SharedMemory):
            return None
        return "storage", kind or STORAGE_NAMES[obj.dtype], obj.key, "cpu", obj.elements, *self.view

    def reducer_override(self, obj: Any) -> Any:
        """How torch writes what it and rushlight have in common."""
        if isinstance(obj, Tensor):
            return self.reduce_tensor(obj)
        if isinstance(obj, (Name, dtypes.dtype)):
            return obj.name  # and save_global writes it
        if isinstance(obj, FunctionType) and name_in_torch(obj):
            return obj.__name__
        if isinstance(obj, Size):
            return Size, (tuple(obj),)
        if isinstance(obj, device):
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, Layout):
            return _LAYOUT, (repr(obj),)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """A class or function by its name, the one that it has in torch."""
        known = name_in_torch(obj)
        if known is None:
            super().save_global(obj, name)
        else:
            self.write(pickle.GLOBAL + f"{known[0]}\n{known[1]}\n".encode())
            self.memoize(obj)

    # -- tensors -------------------------------------------------------------------------------------------------

    def reduce_tensor(self, tensor: Tensor) -> tuple[Name, tuple]:
        if tensor.is_sparse:
            parts = (tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced())  # type: ignore[attr-defined]
            return _REBUILD["_rebuild_sparse_tensor"], (tensor.layout, parts)
        kind, state = name_in_torch(type(tensor)), dict(tensor.__dict__)
        if tensor.is_meta and kind != PARAMETER_IN_TORCH:
            meta: tuple = (tensor.dtype, tensor.shape, tensor.stride(), tensor.requires_grad)
            return _REBUILD["_rebuild_meta_tensor_no_storage"], meta
        if kind == PARAMETER_IN_TORCH:
            args: tuple = (from_array(tensor.array), tensor.requires_grad, OrderedDict())
            return (_REBUILD["_rebuild_parameter_with_state"], (*args, state)) if state else (
                _REBUILD["_rebuild_parameter"], args)
        make, parts = self.reduce_array(tensor.array, tensor.requires_grad)
        if kind is None and torch_names.home(type(tensor)).startswith("rushlight."):  # nn.Buffer, which loads as a tensor
            return make, parts
        return (_FROM_TYPE, (make, type(tensor), parts, state)) if kind is None or state else (make, parts)

    def reduce_array(self, array: np.ndarray, requires_grad: bool) -> tuple[Name, tuple]:
        """The call that makes a tensor on this array's memory."""
        dtype = dtypes.of(array.dtype)
        memory, offset, strides = self.share(array, dtype)
        parts: tuple = (memory, offset, tuple(array.shape), strides, requires_grad, OrderedDict())
        if STORAGE_NAMES[dtype] is UNTYPED:
            return _REBUILD["_rebuild_tensor_v3"], (*parts, dtype)
        return _REBUILD["_rebuild_tensor_v2"], parts

    def share(self, array: np.ndarray, dtype: dtypes.dtype) -> tuple[SharedMemory, int, tuple[int, ...]]:
        """The memory to write for the array, and the array's offset and strides there, in elements.

        RuntimeError if that memory is to be written with another dtype too.
        """
        array, owner, start, end = extent(array)
        place = (address(owner), len(owner)) if start < end else (0, -len(self.memories))  # empty ones share nothing
        low, high = self.used.get(place, (start, end))
        self.used[place] = min(low, start), max(high, end)
        low, high = self.first.used[place] if self.first and place in self.first.used else (0, len(owner))
        memory = self.memories.setdefault(place, SharedMemory(owner[low:high], str(len(self.memories)), dtype))
        if memory.dtype is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types: "
                               f"{memory.dtype} and {dtype}: save a .clone() of one of them")
        item = array.itemsize
        return memory, (start - low) // item, tuple(s // item for s in array.strides)
