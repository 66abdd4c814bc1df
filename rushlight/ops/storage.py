"""The memory under a tensor, as torch's programs ask for it: `x.untyped_storage()` in bytes, `x.storage()` in elements."""
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from rushlight import dtypes
from rushlight.autograd.grad_mode import mode
from rushlight.device import device
from rushlight.errors import explain
from rushlight.ops.build import MORE
from rushlight.ops.strided import as_strided
from rushlight.size import in_order
from rushlight.tensor import Tensor, from_array, method, noticed


class UntypedStorage:
    """Bytes that tensors stand on; what is written here is seen in them."""

    def __init__(self, memory: ndarray):
        self.memory = memory                      # (n,) uint8
        self.device = device("cpu")

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, read where they are needed; with `shared` what is written goes into the file."""
        return cls(in_file(filename, shared, nbytes))

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    @property
    def __array_interface__(self) -> dict:
        return np.asarray(self.memory).__array_interface__

    def is_shared(self) -> bool:
        """Whether the processes that this one forks see each other's writes, as after `share_memory_` of a tensor."""
        return between_processes(self.memory)

    def nbytes(self) -> int:
        return self.memory.size

    size = nbytes

    def data_ptr(self) -> int:
        return self.memory.ctypes.data

    def element_size(self) -> int:
        return 1

    def tolist(self) -> list[int]:
        return self.memory.tolist()

    def __len__(self) -> int:
        return self.memory.size

    def __iter__(self) -> Iterator[int]:
        return iter(self.memory.tolist())

    def __getitem__(self, index: Any) -> Any:
        found = self.memory[index]
        return UntypedStorage(found) if isinstance(found, ndarray) else int(found)

    def __setitem__(self, index: Any, value: int) -> None:
        self.memory[index] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self.data_ptr() == other.data_ptr() and len(self) == len(other)

    __hash__ = None                               # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.memory)
        return f"{lines}[torch.storage.UntypedStorage(device=cpu) of size {len(self)}]"


class TypedStorage:
    """The same in elements of a dtype; older than `untyped_storage`."""

    def __init__(self, memory: ndarray, dtype: dtypes.dtype):
        self.elements, self.dtype, self.device = memory.view(dtype.numpy), dtype, device("cpu")

    def untyped(self) -> UntypedStorage:
        return UntypedStorage(self.elements.view(np.uint8))

    def is_shared(self) -> bool:
        return self.untyped().is_shared()

    def nbytes(self) -> int:
        return self.elements.nbytes

    def size(self) -> int:
        return self.elements.size

    def element_size(self) -> int:
        return self.elements.itemsize

    def data_ptr(self) -> int:
        return self.elements.ctypes.data

    def tolist(self) -> list:
        return self.elements.tolist()

    def __len__(self) -> int:
        return self.elements.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.elements.tolist())

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError(explain("slices are only supported in UntypedStorage.__getitem__"))
        return self.elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.elements[index] = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.untyped() == other.untyped() and self.dtype is other.dtype

    __hash__ = None                               # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.elements.tolist())
        return f"{lines}[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {len(self)}]"


def between_processes(array: Any) -> bool:
    """Whether the memory under an array is shared with the processes that this one forks."""
    while isinstance(array, ndarray):
        array = array.base
    return type(array).__name__ == "mmap"


def in_file(filename: str, shared: bool, nbytes: int) -> ndarray:
    """The first bytes of a file, or all, (n,) uint8; with `shared` what is written goes there, and it grows if need be."""
    mode = ("r+" if os.path.exists(filename) else "w+") if shared else "c"
    if mode == "c" and nbytes > os.path.getsize(filename):
        raise RuntimeError(explain(f"unable to mmap {nbytes} bytes from file <{filename}>: it has "
                                   f"{os.path.getsize(filename)}", "shared=True lets it grow"))
    return np.asarray(np.memmap(filename, np.uint8, mode, shape=(nbytes,) if nbytes else None))


def from_file(filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: dtypes.dtype | None = None,
              requires_grad: bool = False) -> Tensor:
    """A tensor of the first `size` numbers of a file, read where they are needed; with `shared` what is written into it goes
    into the file, which is made, and grows, if need be.

    RuntimeError if there are not as many. `numpy.ndarray.tofile` writes such files.
    """
    dtype = dtype or dtypes.get_default_dtype()
    made = in_file(filename, bool(shared), size * dtype.itemsize) if size else np.empty(0, np.uint8)
    return from_array(made.view(dtype.numpy)).requires_grad_(requires_grad)


def bytes_of(x: Tensor) -> ndarray:
    """The bytes of the array that owns the tensor's memory, (n,) uint8."""
    noticed(x)
    owner = x.array
    while isinstance(base := beneath(owner), ndarray):
        owner = base
    inner_first = owner.transpose(np.argsort([-step for step in owner.strides], kind="stable"))
    if not inner_first.flags.c_contiguous:
        raise RuntimeError(explain(f"the memory of this tensor has gaps: shape {tuple(x.shape)}", "x.contiguous() has none"))
    return inner_first.reshape(-1).view(np.uint8)


def beneath(array: ndarray) -> Any:
    """What an array's memory belongs to; not what only carries the steps, ours or that of NumPy's as_strided."""
    base = array.base
    return base if isinstance(base, ndarray) else getattr(base, "owner", getattr(base, "base", None))


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes of the memory that the tensor, and all views of it, stand on.

    >>> x = rushlight.arange(6.)
    >>> x[2:].untyped_storage().nbytes()
    24
    """
    return UntypedStorage(bytes_of(self))


@method
def storage(self: Tensor) -> TypedStorage:
    """The elements of the memory that the tensor, and all views of it, stand on.

    >>> rushlight.arange(3.)[1:].storage().tolist()
    [0.0, 1.0, 2.0]
    """
    return TypedStorage(bytes_of(self), self.dtype)


@method
def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Sequence[int] | None = None,
         stride: Sequence[int] | None = None) -> Tensor:
    """The tensor itself on other memory: that of a tensor or a storage, whole or from an element on, in a size and steps;
    without a source on none. Returns the tensor.

    RuntimeError for a tensor that requires grad, for one of another dtype, and for a place behind the memory's end.

    >>> rushlight.tensor([]).set_(rushlight.arange(6.).storage(), 1, (2,), (3,))
    tensor([1., 4.])
    """
    if self.node is not None and mode().grad:
        raise RuntimeError(explain("set_(): a tensor that requires grad keeps its memory", "detach() it, or use no_grad()"))
    if isinstance(source, Tensor) and source.dtype is not self.dtype:
        raise RuntimeError(explain(f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}",
                                   "convert it with .to(dtype)"))
    if isinstance(source, Tensor) and size is None:
        made = source.detach()  # type: ignore[attr-defined]
    else:
        memory = np.empty(0, np.uint8) if source is None else bytes_of(source) if isinstance(source, Tensor) else \
            source.untyped().memory
        made = from_array(memory.view(self.dtype.numpy))
        if size is not None:
            made = as_strided(made, tuple(size), in_order(tuple(size)) if stride is None else tuple(stride), storage_offset)
    self.data = made
    self.viewing, self.writes = made.viewing, made.writes
    return self


def is_storage(obj: Any) -> bool:
    """Whether it is the memory of a tensor."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


MORE.update(UntypedStorage=UntypedStorage, TypedStorage=TypedStorage, is_storage=is_storage, from_file=from_file)
