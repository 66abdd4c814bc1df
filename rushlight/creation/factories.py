"""Functions that create tensors: from sizes, numbers and other arrays. Ranges are in creation/ranges.py."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from operator import index
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.array_memory import expose
from rushlight.base.device import CPU, on_meta, present, strided
from rushlight.base.errors import (
    describe,
    not_implemented_error,
    out_of_memory,
    overflow,
    overflowed,
    runtime_error,
    suggesting,
    type_error,
    value_error,
    warn,
)
from rushlight.base.higher import Higher
from rushlight.base.intp import as_int64
from rushlight.base.memory_format import memory_format, preserve_format, room_for, room_like
from rushlight.core.arguments import number_of
from rushlight.core.tensor import Tensor, created, from_array, method, noticed
from rushlight.core.views import into
from rushlight.creation.nested_sequences import (
    INTEGERS,
    PLAIN,
    depth_of,
    dtype_of,
    held,
    numbers_in,
    plain_lists,
    types_in,
    uneven,
    unpacking,
)
from rushlight.creation.type_queries import is_complex, is_floating_point, is_tensor, numel, result_type
from rushlight.kernels.layout import Memory, lie

Dtype = dtypes.dtype | None
MAX_ELEMENTS = 2**60  # 2**60 elements of 16 bytes exceed every address space
MAX_PLAIN_DIMS, MAX_PLAIN_SIZE = 4, 2**15  # such shapes have at most MAX_ELEMENTS elements


meta_tensors = Higher()  # arrays without elements


def made(array: Any, dtype: Any, requires_grad: bool, device: Any = None, out: Tensor | None = None) -> Tensor:
    """A leaf on a new array, or `out` filled with the array."""
    if dtype is not None:
        array = np.asarray(array, dtypes.as_dtype(dtype).numpy)
    # an array-like; vmap's Batch, which has `run`, is kept
    if array.__class__ is not np.ndarray and not hasattr(type(array), "run"):
        array = np.asarray(array)
    t = created(from_array(array))
    if device is not CPU and on_meta(device):
        t._array = blank(t._array.shape, t._array.dtype, t._array.strides)
    if requires_grad:
        t.requires_grad_()
    if out is not None and out._array.shape != t._array.shape:
        out.resize_(0)  # without a warning, as in torch
    return t if out is None else into(out, t)


def of_dtype(dtype: Dtype, out: Tensor | None, otherwise: dtypes.dtype | None = None) -> dtypes.dtype:
    """`dtype`, else the dtype of `out`, else `otherwise`, else the default. RuntimeError if `dtype` differs from
    `out`'s."""
    if dtype is None:
        return out.dtype if out is not None else otherwise or dtypes.get_default_dtype()
    d = dtypes.as_dtype(dtype)
    if out is not None and out.dtype is not d:
        raise runtime_error(f"dtype {d} does not match dtype of out parameter ({out.dtype})", "omit dtype=")
    return d


def room(make: Callable, shape: tuple, *how: Any) -> np.ndarray:
    """make(shape, ...). RuntimeError for a shape that is too large for the address space."""
    try:
        return make(shape, *how)
    except (ValueError, OverflowError):
        raise overflowed(shape) from None
    except MemoryError as error:
        raise out_of_memory(error) from None


def blank(shape: tuple, dtype: np.dtype, strides: tuple | None = None) -> Any:
    """The array of a tensor on the device "meta". Loads ops/meta/meta_tensors.py on first use."""
    return meta_tensors().Meta(shape, dtype, strides)


def tensor(
    data: Any, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with the numbers of `data`: a number, nested lists, an array or a tensor; always a copy.

    Python floats get the default dtype (float32), integers int64; arrays keep their dtype. ValueError for lists of
    uneven length, TypeError for an element that is not a number, RuntimeError for an integer tensor that requires grad.

    >>> rushlight.tensor([[1., 2.], [3., 4.]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if data.__class__ is list or data.__class__ is tuple:
        return made(of_lists(data, dtype), dtype, requires_grad, device)  # new memory
    if isinstance(data, Tensor):
        warn(COPIES.format("torch.tensor(sourceTensor)"))
    return made(np.array(array_of(data, dtype)), dtype, requires_grad, device)


COPIES = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than {}."
)


def array_of(data: Any, dtype: Dtype) -> Any:
    """The data as an array, in the dtype that torch gives to such data."""
    if isinstance(data, Tensor):
        noticed(data)
        return data._array
    if isinstance(data, (np.ndarray, np.generic)):
        dtypes.of(data.dtype)
        return data
    if hasattr(data, "untyped"):  # a storage
        return data.in_dtype(None if dtype is None else dtypes.as_dtype(dtype))
    if hasattr(data, "__array_interface__"):  # an array of another library
        return np.asarray(data)
    if (
        hasattr(data, "__getitem__")
        and hasattr(data, "__len__")
        and not isinstance(data, (list, tuple, str, bytes, dict))
    ):
        data = list(data)  # any other sequence: a deque, a range
    if dtype is not None and isinstance(data, (bool, int, float, complex)):
        return held(data, data, dtype)
    return of_lists(data, dtype)


def of_lists(data: Any, dtype: Dtype) -> np.ndarray:
    """Nested lists of numbers as an array. torch's errors for lists of uneven length and for elements that the dtype
    does not hold."""
    depth, given, types = depth_of(data), data, types_in(data)
    if not types <= PLAIN:  # lists of plain numbers skip the search for tensors
        data = plain_lists(data, depth)
    try:
        array = np.array(data)
    except ValueError as error:
        raise (
            uneven(data)
            or type_error(
                "'list' object cannot be interpreted as an integer",
                "nest all lists to the same depth",
                numpy_says=error,
            )
        ) from None
    if array.dtype.kind in "OUSV" and array.dtype.names is None:
        array = numbers_in(array, given, dtype)
    if dtype is not None:
        return held(array, given, dtype)
    if array.dtype.kind in "uf" and types and types <= INTEGERS:
        raise unpacking(given)
    if array.dtype.kind in "biu":
        return integers(array, types)
    return array.astype(dtype_of(given, types, array).numpy)


def integers(array: np.ndarray, types: set[type]) -> np.ndarray:
    """An array of Python integers as int64: NumPy makes int32 of them on 32-bit systems."""
    return as_int64(array) if int in types and array.dtype == np.intp else array


def as_tensor(data: Any, dtype: Dtype = None, device: Any = None) -> Tensor:
    """The data as a tensor; shares the memory of an array if dtype and device allow it.

    >>> rushlight.as_tensor([1, 2], dtype=rushlight.float64)
    tensor([1., 2.], dtype=torch.float64)
    """
    if isinstance(data, Tensor):
        return data.to(device, dtype)
    array = data if isinstance(data, np.ndarray) else array_of(data, dtype)
    dtypes.of(array.dtype)
    if isinstance(array, np.ndarray):  # not a NumPy scalar
        expose(array)
    return made(array, dtype, False, device)


def asarray(
    obj: Any, *, dtype: Dtype = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """The object as a tensor. `copy`: True always copies; False shares memory or raises ValueError.

    `requires_grad`: None keeps the object's place in the graph.

    >>> import numpy as np
    >>> rushlight.asarray(np.zeros(2), copy=True)
    tensor([0., 0.], dtype=torch.float64)
    """
    t = as_tensor(obj, dtype, device)
    shares = isinstance(obj, (Tensor, np.ndarray)) and np.may_share_memory(t._array, np.asarray(array_of(obj, None)))
    if copy is False and not shares:
        what = (
            f"tensor with dtype '{obj.dtype}' into dtype '{dtype}'"
            if isinstance(obj, (Tensor, np.ndarray))
            else "arbitrary sequence into a tensor"
        )
        raise value_error(f"can't alias {what}.", "omit copy=")
    if copy and shares:
        t = t.clone()
    if requires_grad is None or requires_grad == t.requires_grad:
        return t
    return t.requires_grad_() if requires_grad else t.detach()


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares a NumPy array's memory: a write to one changes both. TypeError for dtypes that torch lacks.

    >>> import numpy as np
    >>> a = np.zeros(2)
    >>> rushlight.from_numpy(a)[0] = 1
    >>> a
    array([1., 0.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise type_error(f"expected np.ndarray (got {type(ndarray).__name__})", "use torch.tensor(...)")
    dtypes.of(ndarray.dtype)
    if any(step % ndarray.itemsize for step in ndarray.strides):
        raise value_error(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
            "reallocate the memory.",
            "array.copy()",
        )
    if any(step < 0 for step in ndarray.strides):
        raise value_error(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    expose(ndarray)
    return from_array(ndarray)


def from_dlpack(other: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array, by the DLPack protocol; a copy if `copy`. Also takes
    a DLPack capsule. `device`: the CPU.

    >>> import numpy as np
    >>> a = np.zeros(2)
    >>> x = rushlight.from_dlpack(a)
    >>> a[0] = 1
    >>> x
    tensor([1., 0.], dtype=torch.float64)
    """
    if device is not None:
        present(device)
    shared = on_shared_memory(other)
    return from_array(shared._array.copy()) if copy else shared


def on_shared_memory(other: Any) -> Tensor:
    """A tensor on the memory of an array with `__dlpack__`, or of a capsule."""
    if isinstance(other, Tensor) and other._node is None and isinstance(other._array, np.ndarray):
        return from_array(other._array)  # NumPy has no DLPack for bfloat16
    if hasattr(other, "__dlpack__"):
        return from_array(np.from_dlpack(other))
    # NumPy makes a read-only array from a capsule: make a writable array on its memory
    array = np.from_dlpack(Capsule(other))
    facts = array.__array_interface__
    return from_array(np.asarray(Memory(array, {**facts, "data": (facts["data"][0], False)})))


class Capsule:
    """An object with today's DLPack protocol, made from a capsule (`to_dlpack` in older programs)."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # DLPack's (kDLCPU, device 0)


def frombuffer(
    buffer: Any, *, dtype: dtypes.dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A tensor that shares the bytes of a buffer.

    >>> rushlight.frombuffer(bytearray([1, 2, 3]), dtype=rushlight.uint8, offset=1)
    tensor([2, 3], dtype=torch.uint8)
    """
    return made(np.frombuffer(buffer, dtype.numpy, count, offset), None, requires_grad)


def shape_of(size: tuple) -> tuple[int, ...]:
    """A shape, from several ints or one sequence."""
    given = size[0] if len(size) == 1 and size[0].__class__ is tuple else size
    if len(given) <= MAX_PLAIN_DIMS:
        for n in given:
            if n.__class__ is not int or not 0 <= n < MAX_PLAIN_SIZE:
                break
        else:
            return given
    try:
        if len(size) == 1 and not hasattr(size[0], "__index__"):
            size = tuple(size[0])
        shape = tuple([index(n) for n in size])
    except TypeError:
        raise type_error(f"a size consists of integers, not {size}", "pass ints, or one tuple of ints") from None
    if shape:
        check_sizes(shape)
    return shape


def check_sizes(shape: tuple[int, ...]) -> None:
    """TypeError for a size of more than 64 bits, RuntimeError for a negative one, or for a shape of more elements than
    an address space has."""
    if min(shape) >= 0 and prod(shape) < MAX_ELEMENTS:
        return
    if max(shape) >= 2**63 or min(shape) < -(2**63):
        place = next(i for i, n in enumerate(shape, 1) if not -(2**63) <= n < 2**63)
        raise overflow("argument 'size'", place)
    if min(shape) < 0:
        raise runtime_error(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    raise overflowed(shape)


def refuse(layout: Any) -> None:
    raise not_implemented_error(
        f"tensors that are filled have layout torch.strided here, not {layout}",
        "for a sparse tensor of zeros: torch.sparse_coo_tensor(size)",
    )


def filled(name: str, fill: Callable, what: str) -> Callable:
    def create(
        *shape: Any, size: Any = None, out: Tensor | None = None, dtype: Dtype = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        if layout is not None and layout is not strided:
            refuse(layout)
        d = of_dtype(dtype, out)
        sizes = shape_of(shape if size is None else (size,))
        if on_meta(device) and memory_format is None:
            return made(blank(sizes, d.numpy), None, requires_grad, device, out)
        array = room(fill, sizes, d.numpy)
        if memory_format is not None:
            array, numbers = room_for(sizes, d.numpy, memory_format), array
            array[...] = numbers
            return made(array, None, requires_grad, device, out)
        return made(array, None, requires_grad, CPU, out)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"""A tensor of the given size {what}; default dtype unless told.

    >>> rushlight.{name}(2, 3).shape
    torch.Size([2, 3])
    """
    return create


def filled_like(name: str, number: int | None, what: str) -> Callable:
    def create(
        input: Tensor, *, dtype: Dtype = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
        memory_format: memory_format = preserve_format, pin_memory: bool = False,
    ) -> Tensor:  # fmt: skip
        if layout is not None and layout is not strided:
            refuse(layout)
        if input.layout is not strided:
            if layout is None and number != 1:
                return input.emptied(dtype).requires_grad_(requires_grad)  # type: ignore[attr-defined]
            input = input.to_dense() if layout is strided else input
        return made(like(input._array, dtype, memory_format, number), None, requires_grad, device or input.device)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"""A tensor of the input's shape, dtype and order in memory, unless told, {what}.

    >>> rushlight.{name}(rushlight.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return create


def like(array: np.ndarray, dtype: Dtype, form: memory_format | None, number: Any = None) -> np.ndarray:
    """An array with the shape and layout of another; filled with `number`, or uninitialized for None."""
    d = array.dtype if dtype is None else dtypes.as_dtype(dtype).numpy
    kept = form is None or form is preserve_format
    if kept and number == 0:
        # np.zeros gets zeroed pages from the system, without a write
        return room_like(array, d, np.zeros)
    r = room_like(array, d) if kept else beside(array, room_for(array.shape, d, form))  # type: ignore[arg-type]
    if number is not None:
        r[...] = number
    return r if number is not None or not FILLING else unset(r)


def beside(like: Any, array: Any) -> Any:
    """The new array for a tensor created like another: batched inside vmap, without elements on "meta"."""
    return array if isinstance(like, np.ndarray) else like.spread(array)


# {"empty"} while uninitialized memory must be filled (deterministic algorithms), else empty
FILLING: set[str] = set()


def unset(array: np.ndarray) -> np.ndarray:
    """Fill an array with nan, the largest integer or True if deterministic algorithms require it (settings.py)."""
    kind = array.dtype.kind
    array[...] = True if kind == "b" else np.iinfo(array.dtype).max if kind in "iu" else np.nan
    return array


def room_unset(shape: Any, d: Any) -> np.ndarray:
    array = np.empty(shape, d)
    return unset(array) if FILLING else array


zeros = filled("zeros", np.zeros, "full of 0")
ones = filled("ones", np.ones, "full of 1")
empty = filled("empty", room_unset, "with whatever was in memory")
zeros_like = filled_like("zeros_like", 0, "full of 0")
ones_like = filled_like("ones_like", 1, "full of 1")
empty_like = filled_like("empty_like", None, "with whatever was in memory")


def full(
    size: Any, fill_value: Any, *, out: Tensor | None = None, dtype: Dtype = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of the given size filled with one number, in the number's dtype unless `dtype` is given.

    >>> rushlight.full((2,), 7)
    tensor([7, 7])
    """
    if isinstance(size, int):
        raise type_error(
            "full(): argument 'size' (position 1) must be tuple of ints, not int",
            f"give it as a tuple: torch.full(({size},), {describe(fill_value)})",
        )
    fill_value = number_of(fill_value, "full", "fill_value")
    d = of_dtype(dtype, out, dtypes.of_scalar(fill_value))
    array = room(np.full, shape_of((size,)), dtypes.holding(fill_value, d), d.numpy)
    return made(array, None, requires_grad, device, out)


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False,
    memory_format: memory_format = preserve_format, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of the input's shape and dtype filled with one number.

    >>> rushlight.full_like(rushlight.zeros(2), 7)
    tensor([7., 7.])
    """
    fill_value = number_of(fill_value, "full_like", "fill_value")
    fill_value = dtypes.holding(fill_value, input.dtype if dtype is None else dtypes.as_dtype(dtype))
    return made(like(input._array, dtype, memory_format, fill_value), None, requires_grad, device or input.device)


def scalar_tensor(
    s: Any, *, dtype: Dtype = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A 0-d tensor of one number, in the default dtype unless `dtype` is given.

    >>> rushlight.scalar_tensor(3)
    tensor(3.)
    """
    if not isinstance(s, (bool, int, float, complex, np.number, Tensor)):
        raise type_error(f"scalar_tensor(): argument 's' (position 1) must be Number, not {type(s).__name__}")
    d = dtypes.or_default(dtype)
    return full((), s, dtype=d, device=device, requires_grad=requires_grad)


def empty_strided(
    size: Any, stride: Any, *, dtype: Dtype = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """An uninitialized tensor of the given size and strides, in elements.

    >>> rushlight.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, steps = shape_of((size,)), shape_of((stride,))
    if len(shape) != len(steps):
        raise runtime_error(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(steps)})"
        )
    d = dtypes.or_default(dtype).numpy
    n = 0 if 0 in shape else 1 + sum((k - 1) * step for k, step in zip(shape, steps))
    return made(lie(room(room_unset, (n,), d), shape, steps, 0), None, requires_grad, device)


def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Dtype = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """An uninitialized tensor whose dimensions have this order in memory, outermost first.

    >>> rushlight.empty_permuted((1, 2, 3, 3), (0, 2, 3, 1)).stride()
    (18, 1, 6, 2)
    """
    shape, order = shape_of((size,)), tuple(physical_layout)
    if len(order) != len(shape):
        raise runtime_error(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    if any(not 0 <= d < len(shape) for d in order):
        bad = next(d for d in order if not 0 <= d < len(shape))
        raise runtime_error(f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {bad})")
    if len(set(order)) < len(order):
        raise runtime_error("Duplicate dim not allowed", physical_layout=order)
    d = dtypes.or_default(dtype).numpy
    array = room_unset([shape[k] for k in order], d).transpose(np.argsort(order) if order else ())
    return made(array, None, requires_grad, device)


def eye(
    n: int, m: int | None = None, *, out: Tensor | None = None, dtype: Dtype = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """1 on the diagonal, 0 elsewhere.

    >>> rushlight.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    for name, size in (("n", n), ("m", m)):
        if size is not None and not hasattr(size, "__index__"):
            raise type_error(f"eye(): argument '{name}' must be int, not {type(size).__name__}")
        if size is not None and size < 0:
            raise runtime_error(f"{name} must be greater or equal to 0, got {size}", op="eye")
    d = of_dtype(dtype, out)
    array = room(lambda shape: np.eye(*shape, dtype=d.numpy), (n, n if m is None else m))
    return made(array, None, requires_grad, device, out)


def new_like(create: Callable) -> Callable:
    """The method x.new_zeros(size), from zeros: with the dtype of x unless `dtype` is given."""

    def new(self: Tensor, *size: Any, dtype: Dtype = None, **options: Any) -> Tensor:
        t = create(*size, dtype=self.dtype if dtype is None else dtype, **options)
        # in vmap, the samples share the numbers of `tensor`
        chosen = "device" in options if self.is_meta else create is tensor
        if not chosen:
            t._array = beside(self._array, t._array)
        return t

    new.__doc__ = create.__doc__
    return new


for function in (zeros, ones, empty, full, tensor, empty_strided):
    method(new_like(function), f"new_{function.__name__}")

FUNCTIONS = {
    f.__name__: suggesting(f, home="rushlight", always=True)
    for f in (
        tensor, as_tensor, asarray, from_numpy, from_dlpack, frombuffer, zeros, ones, empty, zeros_like, ones_like,
        empty_like, full, full_like, scalar_tensor, empty_strided, empty_permuted, eye, is_tensor, is_floating_point,
        is_complex, result_type, numel,
    )
}  # fmt: skip
