"""Storages, torch's classes for the memory of tensors: storages of bytes, and of elements of a dtype."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from numbers import Number
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from rushlight.base import dtypes
from rushlight.base.array_memory import owner, twin
from rushlight.base.device import CPU
from rushlight.base.errors import index_error, runtime_error, type_error, value_error
from rushlight.base.public_function import MORE

# NumPy's sign for the byte order; "=", this machine's order, for all others
BYTE_ORDERS: dict[str | None, Literal["<", ">", "="]] = {"little": "<", "big": ">"}


class Storage:
    """The base of both storages. `cells`: an array (n,), or a `Meta` on the device "meta"."""

    cells: Any
    is_cuda = is_sparse = is_hpu = False

    @classmethod
    def on(cls, cells: Any) -> Any:
        """A storage on the memory of `cells`."""
        self = object.__new__(cls)
        self.cells = cells
        return self

    device = property(
        lambda self: CPU if isinstance(self.cells, ndarray) else self.cells.device, doc="The device of the memory."
    )

    def is_shared(self) -> bool:
        """Whether this process and its forks share the memory, as after `share_memory_` of a tensor."""
        return between_processes(self.cells)

    def nbytes(self) -> int:
        return self.cells.nbytes

    def size(self) -> int:
        return self.cells.size

    def element_size(self) -> int:
        return self.cells.itemsize

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.cells.nbytes

    def data_ptr(self) -> int:
        return self.cells.ctypes.data if isinstance(self.cells, ndarray) else 0

    def tolist(self) -> list:
        return dtypes.plain(self.cells).tolist()

    def __len__(self) -> int:
        return self.cells.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self.cells[self.within(index)] = value

    def within(self, index: Any) -> Any:
        """The checked key, an index or a slice. IndexError for an index out of range, RuntimeError for other types."""
        if isinstance(index, slice):
            return index
        if not hasattr(index, "__index__"):
            raise runtime_error(f"can't index a {type(self)} with {type(index)}", "give an int")
        if not -len(self) <= index < len(self):
            raise index_error(f"index {index} out of range for storage of size {len(self)}")
        return index

    def clone(self) -> Any:
        """The same elements in new memory."""
        return self.on(self.cells.copy())

    def fill_(self, value: Any) -> Any:
        """Write the number to all elements. Returns the storage."""
        self.cells[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Any:
        """Write the numbers of another storage of this size, converted, to this storage. Returns the storage."""
        if len(source) != len(self):
            raise runtime_error(f"size does not match, self was {len(self)} but source was {len(source)}")
        self.cells[...] = source.cells
        return self

    def cpu(self) -> Any:
        """The storage itself."""
        return self

    def __deepcopy__(self, memo: dict) -> Any:
        return memo.setdefault(id(self), self.on(twin(self.cells, memo)[0]))


class UntypedStorage(Storage):
    """The bytes of tensors' memory: a write to the storage changes the tensors.

    The argument is a number of bytes, which are uninitialised, or a list of bytes.

    >>> x = rushlight.tensor([1, 2], dtype=rushlight.uint8)
    >>> x.untyped_storage()[0] = 7
    >>> x
    tensor([7, 2], dtype=torch.uint8)
    """

    def __init__(self, *args: Any, device: Any = None):
        self.cells = numbers(args, dtypes.uint8, type(self))

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0, *,
        dtype: dtypes.dtype = dtypes.uint8,
    ) -> UntypedStorage:  # fmt: skip
        """A copy of the bytes of a buffer. The byte order must be this machine's."""
        return cls.on(read(buffer, byte_order, count, offset, dtype).view(np.uint8))

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file, mapped into memory. `shared`: writes go to the file."""
        return cls.on(in_file(filename, shared, nbytes))

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def in_dtype(self, dtype: dtypes.dtype | None) -> Any:
        """The memory as elements of a dtype. RuntimeError for another dtype than the dtype of a typed storage."""
        return seen(self.cells, dtype or dtypes.int64)

    def type(self) -> str:
        """The name of the storage's type."""
        return "torch.storage.UntypedStorage"

    def new(self) -> UntypedStorage:
        """A new, empty storage."""
        return UntypedStorage()

    @property
    def __array_interface__(self) -> dict:
        return np.asarray(self.cells).__array_interface__

    def __getitem__(self, index: int | slice) -> Any:
        found = self.cells[self.within(index)]
        return UntypedStorage.on(found) if isinstance(found, ndarray) else int(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self.data_ptr() == other.data_ptr() and len(self) == len(other)

    def __hash__(self) -> int:
        return hash((self.data_ptr(), len(self)))

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.cells)
        return f"{lines}[torch.storage.UntypedStorage(device=cpu) of size {len(self)}]"


class TypedStorage(Storage):
    """The memory of tensors as elements of one dtype; older than `untyped_storage`.

    The argument is a number of elements, which are uninitialised, or a list of numbers; `wrap_storage`: use the bytes
    of another storage.

    >>> rushlight.TypedStorage([1., 2.], dtype=rushlight.float32).tolist()
    [1.0, 2.0]
    """

    dtype: dtypes.dtype

    def __init__(self, *args: Any, wrap_storage: Any = None, dtype: dtypes.dtype | None = None, device: Any = None):
        if wrap_storage is not None and (args or dtype is None):
            raise runtime_error(
                "TypedStorage.__init__ received an invalid combination of arguments. Expected one of (*, dtype), "
                "(size, *, dtype), (sequence, *, dtype), (*, wrap_storage, dtype)",
                "pass the dtype of the bytes, and omit the elements",
            )
        self.dtype = dtype or dtypes.get_default_dtype()
        if wrap_storage is None:
            self.cells = numbers(args, self.dtype, type(self))
        else:
            self.cells = seen(wrap_storage.untyped().cells, self.dtype)

    @classmethod
    def on(cls, cells: Any) -> TypedStorage:
        self: TypedStorage = super().on(cells)
        self.dtype = dtypes.of(cells.dtype)
        return self

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0) -> TypedStorage:
        """A copy of the bytes of another object as numbers, in the byte order 'native', 'little' or 'big'. Called on a
        class with a dtype, such as FloatStorage."""
        if not isinstance(getattr(cls, "dtype", None), dtypes.dtype):
            raise runtime_error("from_buffer: only supported for subclasses of TypedStorage", "use torch.FloatStorage")
        return TypedStorage.on(read(buffer, byte_order, count, offset, cls.dtype))

    def untyped(self) -> UntypedStorage:
        """The bytes of the storage."""
        cells = self.cells
        return UntypedStorage.on(
            cells.view(np.uint8) if isinstance(cells, ndarray) else type(cells)((cells.nbytes,), np.dtype(np.uint8))
        )

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file, mapped into memory. `shared`: writes go to the file."""
        if not isinstance(getattr(cls, "dtype", None), dtypes.dtype):
            raise runtime_error("from_file can only be called on derived classes", "use torch.FloatStorage")
        return TypedStorage.on(in_file(filename, shared, size * cls.dtype.itemsize).view(cls.dtype.numpy))

    def in_dtype(self, dtype: dtypes.dtype | None) -> Any:
        if dtype not in (None, self.dtype):
            raise runtime_error(
                f"Expected a Storage of type {dtype.scalar_type} or an UntypedStorage, but got "
                f"{self.dtype.scalar_type}",
                "convert the storage, or give its untyped() bytes",
            )
        return self.cells

    def type(self) -> str:
        """The name of the storage's type, 'torch.FloatStorage'."""
        return f"torch.{self.dtype.scalar_type}Storage"

    def converted(self, dtype: dtypes.dtype) -> TypedStorage:
        """The storage with its numbers in another dtype, or the storage itself."""
        return self if dtype is self.dtype else TypedStorage.on(self.cells.astype(dtype.numpy))

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise runtime_error("slices are only supported in UntypedStorage.__getitem__")
        return dtypes.plain(self.cells[self.within(index)].reshape(1))[0].item()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.untyped() == other.untyped() and self.dtype is other.dtype

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.tolist())
        return f"{lines}[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {len(self)}]"


class storagetype(type):
    """A type of storages of one dtype, older than TypedStorage: FloatStorage.

    >>> rushlight.FloatStorage([1., 2.]).tolist()
    [1.0, 2.0]
    """

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, wrap_storage: Any = None) -> TypedStorage:
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, TypedStorage) and other.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def seen(cells: Any, dtype: dtypes.dtype) -> Any:
    """The bytes as elements of another dtype, without an incomplete last element."""
    if isinstance(cells, ndarray):
        return cells[: cells.size // dtype.itemsize * dtype.itemsize].view(dtype.numpy)
    return type(cells)((cells.nbytes // dtype.itemsize,), dtype.numpy)


def numbers(given: tuple, dtype: dtypes.dtype, kind: Any) -> ndarray:
    """The cells of a storage made from no argument, a size or a sequence."""
    data, name = given[0] if given else 0, f"torch.{kind.__name__}()"
    if len(given) > 1:
        raise runtime_error(f"{name}: takes one size or one sequence of numbers, not {len(given)} arguments")
    if hasattr(data, "__index__"):
        if data < 0:
            raise runtime_error(f"{name}: the size must not be negative, but it is {data}")
        return np.zeros(data, dtype.numpy)
    if isinstance(data, str) or not isinstance(data, (Sequence, ndarray, Storage)):
        raise type_error(
            f"{name}: new(): invalid data type '{type(data).__name__}'", "give a size or a list of numbers"
        )
    data = data.tolist() if isinstance(data, Storage) else data
    for value in data:
        if not isinstance(value, Number if dtype.category >= dtypes.FLOATING else (int, np.integer)):
            raise runtime_error(
                f"{name}: tried to construct a storage from a sequence ({type(data).__name__}), but one of the "
                f"items was of type {type(value).__name__} instead of int"
            )
    return np.array(data, dtype.numpy)


def read(buffer: Any, byte_order: str | None, count: int, offset: int, dtype: dtypes.dtype) -> ndarray:
    """Numbers of a buffer from a byte offset on, (count,), converted to this machine's byte order."""
    if byte_order is None and dtype.itemsize > 1:
        raise runtime_error("function missing required argument 'byte_order' (pos 2)", "'native', 'little' or 'big'")
    if byte_order not in (None, "native", "little", "big"):
        raise value_error(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    there = BYTE_ORDERS.get(byte_order, "=")
    if dtype.numpy.kind == "V":  # bfloat16 has no byte order in NumPy: swap its bits as integers
        bits = np.frombuffer(buffer, np.dtype(np.uint16).newbyteorder(there), count, offset)
        return bits.astype(np.uint16).view(dtype.numpy)
    return np.frombuffer(buffer, dtype.numpy.newbyteorder(there), count, offset).astype(dtype.numpy)


def in_file(filename: str, shared: bool, nbytes: int) -> ndarray:
    """The first bytes of a file, or all, (n,) uint8. `shared`: writes go to the file, which grows if necessary."""
    mode: Literal["r+", "w+", "c"] = "c"
    if shared:
        mode = "r+" if os.path.exists(filename) else "w+"
    if mode == "c" and nbytes > os.path.getsize(filename):
        raise runtime_error(
            f"unable to mmap {nbytes} bytes from file <{filename}>: it has {os.path.getsize(filename)}",
            "pass shared=True to extend the file",
        )
    return np.asarray(np.memmap(filename, np.uint8, mode, shape=(nbytes,) if nbytes else None))


def between_processes(array: Any) -> bool:
    """True if this process shares the memory under an array with its forks."""
    mapped = sys.modules.get("mmap")  # not imported before the first mapping
    return mapped is not None and isinstance(array, ndarray) and isinstance(owner(array).base, mapped.mmap)


def converter(dtype: dtypes.dtype) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self.converted(dtype)

    convert.__doc__ = f"The numbers in {dtype}."
    return convert


STORAGES = {f"{d.scalar_type}Storage": d for d in dtypes.NAMES.values() if d.scalar_type[:4] != "UInt"}
MORE.update(
    (
        name,
        storagetype(
            name,
            (TypedStorage,),
            {
                "dtype": d,
                "__doc__": f"""s = {name}(numbers): memory of {d}.

    Older than `untyped_storage`, as all typed storages. NotImplementedError for numbers of a dtype that is only a name.

    >>> rushlight.{name}.dtype
    {d}
    """,
            },
        ),
    )
    for name, d in STORAGES.items()
)
for name in ("float", "double", "half", "int", "long", "short", "char", "byte", "bool", "bfloat16"):
    of = {"char": dtypes.int8, "byte": dtypes.uint8}.get(name) or dtypes.NAMES[name]
    setattr(TypedStorage, name, converter(of))
