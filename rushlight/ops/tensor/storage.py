"""The memory of a tensor, through torch's functions: `x.untyped_storage()` in bytes, `x.storage()` in elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.array_memory import owner
from rushlight.base.errors import invalid_combination, runtime_error
from rushlight.base.public_function import MORE
from rushlight.base.size import in_order
from rushlight.core.mode import mode
from rushlight.core.tensor import Tensor, from_array, handed_out, method, noticed
from rushlight.ops.shape.as_strided import as_strided
from rushlight.ops.tensor.storage_classes import Storage, TypedStorage, UntypedStorage, in_file


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: dtypes.dtype | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of the first `size` elements of a file, which is mapped into memory. `shared`: writes go to the file,
    which is created or extended as needed.

    RuntimeError if the file is shorter. `numpy.ndarray.tofile` writes such files.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers")
    >>> rushlight.tensor([1., 2., 3.]).numpy().tofile(path)
    >>> rushlight.from_file(path, size=2)
    tensor([1., 2.])
    """
    dtype = dtype or dtypes.get_default_dtype()
    made = in_file(filename, bool(shared), size * dtype.itemsize) if size else np.empty(0, np.uint8)
    return from_array(made.view(dtype.numpy)).requires_grad_(requires_grad)


def bytes_of(x: Tensor) -> Any:
    """The bytes of the array that owns the tensor's memory, (n,) uint8; for a meta tensor a `Meta`."""
    noticed(x)
    if x.is_meta:
        return type(x._root._array)((x._root.nbytes,), np.dtype(np.uint8))
    all_of_it = owner(x._array)
    inner_first = all_of_it.transpose(np.argsort([-step for step in all_of_it.strides], kind="stable"))
    if not inner_first.flags.c_contiguous:
        raise runtime_error(f"the memory of this tensor has gaps: shape {tuple(x.shape)}", "call contiguous() first")
    return inner_first.reshape(-1).view(np.uint8)


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes of the memory of the tensor and of all its views.

    >>> x = rushlight.arange(6.)
    >>> x[2:].untyped_storage().nbytes()
    24
    """
    handed_out(self)
    return UntypedStorage.on(bytes_of(self))


@method
def storage(self: Tensor) -> TypedStorage:
    """The elements of the memory of the tensor and of all its views.

    >>> rushlight.arange(3.)[1:].storage().tolist()
    [0.0, 1.0, 2.0]
    """
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


@method
def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Point the tensor to other memory: a tensor's or a storage's, with this offset, size and strides; without a
    source, to empty memory. Returns the tensor.

    RuntimeError for a tensor that requires grad, for a source of another dtype, and for offsets beyond the memory's
    end.

    >>> rushlight.tensor([]).set_(rushlight.arange(6.).storage(), 1, (2,), (3,))
    tensor([1., 4.])
    """
    if self._node is not None and mode().grad:
        raise runtime_error("set_(): a tensor that requires grad keeps its memory", "detach() it, or use no_grad()")
    if source is not None and not isinstance(source, (Tensor, TypedStorage, UntypedStorage)):
        raise invalid_combination("set_", (source,), {})
    if isinstance(source, (Tensor, TypedStorage)) and source.dtype is not self.dtype:
        raise runtime_error(
            f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}",
            "convert it with .to(dtype)",
        )
    if isinstance(source, Tensor) and size is None:
        made = source.detach()
    else:
        memory = (
            np.empty(0, np.uint8)
            if source is None
            else bytes_of(source)
            if isinstance(source, Tensor)
            else source.untyped().cells
        )
        made = from_array(memory.view(self.dtype.numpy))
        if size is not None:
            made = as_strided(
                made, tuple(size), in_order(tuple(size)) if stride is None else tuple(stride), storage_offset
            )
    self.data = made
    self._viewing, self._writes = made._viewing, made._writes
    return self


method(storage, "_typed_storage")


def is_storage(obj: Any) -> bool:
    """True if the object is the memory of a tensor.

    >>> x = rushlight.zeros(2)
    >>> rushlight.is_storage(x.untyped_storage()), rushlight.is_storage(x)
    (True, False)
    """
    return isinstance(obj, Storage)


MORE.update(UntypedStorage=UntypedStorage, TypedStorage=TypedStorage, is_storage=is_storage, from_file=from_file)
