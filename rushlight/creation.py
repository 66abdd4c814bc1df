"""Tensors from nothing, from numbers and from other arrays."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from operator import index
from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.device import device as device_type
from rushlight.errors import explain
from rushlight.ops.families import into
from rushlight.tensor import Tensor, created, from_array, method

Dtype = dtypes.dtype | None
NUMBERS = (bool, int, float, complex)


def made(array: Any, dtype: Any, requires_grad: bool, device: Any = None, out: Tensor | None = None) -> Tensor:
    """A leaf on a fresh array."""
    if device is not None:
        device_type(device)
    if dtype is not None:
        array = np.asarray(array, dtypes.as_dtype(dtype).numpy)
    t = created(from_array(np.asarray(array)))
    if requires_grad:
        t.requires_grad_()
    return t if out is None else into(out, t)


def tensor(data: Any, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
    """A new tensor with the numbers of `data`: a number, nested lists, an array or a tensor; always a copy.

    Python floats become the default dtype (float32), integers int64, arrays keep theirs. ValueError for lists of
    uneven length, TypeError for what is no number, RuntimeError if an integer tensor is to require grad.

    >>> rushlight.tensor([[1., 2.], [3., 4.]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    array = np.array(array_of(data, dtype))
    return made(array, dtype, requires_grad, device)


def array_of(data: Any, dtype: Dtype) -> Any:
    """The data as an array in the dtype that torch would give it."""
    if isinstance(data, Tensor):
        return data.array
    if isinstance(data, (np.ndarray, np.generic)):
        dtypes.of(data.dtype)
        return data
    if dtype is not None and isinstance(data, (bool, int, float, complex)):
        return np.asarray(data).astype(dtypes.as_dtype(dtype).numpy)
    try:
        array = np.array(plain_lists(data))
    except ValueError as error:
        raise ValueError(explain("expected sequences of equal length at every dimension", "pad the shorter ones",
                                 numpy_says=error)) from error
    if array.dtype.kind == "O":
        raise RuntimeError(explain(f"Could not infer dtype of {type(first_leaf(data)).__name__}", "give numbers"))
    if array.dtype.kind in "USV" and array.dtype.names is None:
        raise TypeError(explain(f"new(): invalid data type '{type(first_leaf(data)).__name__}'", "give numbers"))
    if dtype is not None or array.dtype.kind in "biu":
        return array
    return array.astype(dtype_of(data, array).numpy)


def dtype_of(data: Any, array: np.ndarray) -> dtypes.dtype:
    """The dtype of lists of floating-point numbers: the default, unless tensors or NumPy's numbers bring their own."""
    flat = list(leaves(data))
    if all(issubclass(t, NUMBERS) and not issubclass(t, np.generic) for t in set(map(type, flat))):
        return default(array.dtype.kind == "c")
    own = {x.dtype if isinstance(x, Tensor) else dtypes.of(x.dtype) if hasattr(x, "dtype") else dtypes.of_scalar(x)
           for x in flat}
    return reduce(dtypes.promote_types, own)


def leaves(data: Any) -> Iterator[Any]:
    """What stands in nested lists."""
    if isinstance(data, (list, tuple)):
        for x in data:
            yield from leaves(x) if isinstance(x, (list, tuple)) else (x,)
    else:
        yield data


def default(complex_numbers: bool) -> dtypes.dtype:
    d = dtypes.get_default_dtype()
    return d.to_complex() if complex_numbers else d


def plain_lists(data: Any) -> Any:
    """Lists in which every tensor has become an array; no deeper than the data is."""
    if isinstance(data, Tensor):
        return data.array
    if isinstance(data, (list, tuple)) and any(isinstance(x, (Tensor, list, tuple)) for x in data):
        return [plain_lists(x) for x in data]
    plain = isinstance(data, (list, tuple, str, bytes, dict)) or not hasattr(data, "__getitem__")
    return data if plain else list(data)


def first_leaf(data: Any) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def as_tensor(data: Any, dtype: Dtype = None, device: Any = None) -> Tensor:
    """The data as a tensor, without a copy where that is possible: an array's memory is shared."""
    if isinstance(data, Tensor):
        return data if dtype is None or dtype is data.dtype else data.to(dtype)  # type: ignore[attr-defined]
    array = data if isinstance(data, np.ndarray) else array_of(data, dtype)
    dtypes.of(array.dtype)
    return made(array, dtype, False, device)


asarray = as_tensor


def from_numpy(array: np.ndarray) -> Tensor:
    """The tensor on a NumPy array's memory: a write to either shows in both. TypeError for dtypes torch lacks.

    >>> a = np.zeros(2)
    >>> rushlight.from_numpy(a)[0] = 1
    >>> a
    array([1., 0.])
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(explain(f"expected np.ndarray (got {type(array).__name__})", "use torch.tensor(...)"))
    dtypes.of(array.dtype)
    return from_array(array)


def from_dlpack(other: Any) -> Tensor:
    """The tensor on the memory of another library's array, by the DLPack protocol."""
    return from_array(np.from_dlpack(other))


def frombuffer(buffer: Any, *, dtype: dtypes.dtype, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Tensor:
    """The tensor on the bytes of a buffer."""
    return made(np.frombuffer(buffer, dtype.numpy, count, offset), None, requires_grad)


def shape_of(size: tuple) -> tuple[int, ...]:
    """A shape given as numbers or as one sequence."""
    try:
        if len(size) == 1 and not hasattr(size[0], "__index__"):
            size = tuple(size[0])
        shape = tuple(index(n) for n in size)
    except TypeError:
        raise TypeError(explain(f"a size is made of whole numbers, not {size}", "give ints, or one tuple of ints")) from None
    if any(n < 0 for n in shape):
        raise RuntimeError(explain(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"))
    return shape


def filled(name: str, fill: Callable, what: str) -> Callable:
    def create(*shape: Any, size: Any = None, out: Tensor | None = None, dtype: Dtype = None, layout: Any = None,
               device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
               memory_format: Any = None) -> Tensor:
        d = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        return made(fill(shape_of(shape if size is None else (size,)), d.numpy), None, requires_grad, device, out)
    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"""A tensor of the given size {what}; default dtype unless told.

    >>> rushlight.{name}(2, 3).shape
    torch.Size([2, 3])
    """
    return create


def filled_like(name: str, fill: Callable, what: str) -> Callable:
    def create(input: Tensor, *, dtype: Dtype = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, memory_format: Any = None, pin_memory: bool = False) -> Tensor:
        d = input.array.dtype if dtype is None else dtypes.as_dtype(dtype).numpy
        return made(fill(input.array, d), None, requires_grad, device)
    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"A tensor of the input's shape and dtype {what}."
    return create


zeros = filled("zeros", np.zeros, "full of 0")
ones = filled("ones", np.ones, "full of 1")
empty = filled("empty", np.empty, "with whatever was in memory")
zeros_like = filled_like("zeros_like", np.zeros_like, "full of 0")
ones_like = filled_like("ones_like", np.ones_like, "full of 1")
empty_like = filled_like("empty_like", np.empty_like, "with whatever was in memory")


def full(size: Any, fill_value: Any, *, out: Tensor | None = None, dtype: Dtype = None, layout: Any = None,
         device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of the given size full of one number, in the number's dtype unless told.

    >>> rushlight.full((2,), 7)
    tensor([7, 7])
    """
    fill_value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    d = dtypes.of_scalar(fill_value) if dtype is None else dtypes.as_dtype(dtype)
    return made(np.full(shape_of((size,)), fill_value, d.numpy), None, requires_grad, device, out)


def full_like(input: Tensor, fill_value: Any, *, dtype: Dtype = None, device: Any = None, requires_grad: bool = False,
              memory_format: Any = None, layout: Any = None) -> Tensor:
    """A tensor of the input's shape and dtype full of one number."""
    return full(input.array.shape, fill_value, dtype=input.dtype if dtype is None else dtype,
                requires_grad=requires_grad)


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Dtype = None,
           layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """start, start + step, ... up to but without end. Integers give int64, a float among the arguments the default.

    >>> rushlight.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in (start, end, step))
    if step == 0 or (end - start) * step < 0:
        what = "step must be nonzero" if step == 0 else "upper bound and lower bound inconsistent with step sign"
        raise RuntimeError(explain(what, arange=(start, end, step)))
    whole = all(isinstance(v, int) for v in (start, end, step))
    d = dtypes.as_dtype(dtype) if dtype is not None else dtypes.int64 if whole else dtypes.get_default_dtype()
    n = -(-(end - start) // step) if whole else math.ceil((end - start) / step)
    wide = np.int64 if whole else np.float64
    return made((np.arange(n, dtype=wide) * step + start).astype(d.numpy), None, requires_grad, device, out)


def linspace(start: Any, end: Any, steps: int, *, out: Tensor | None = None, dtype: Dtype = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """`steps` numbers from start to end, both included, evenly spaced.

    >>> rushlight.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    if steps < 0:
        raise RuntimeError(explain("number of steps must be non-negative"))
    d = dtypes.as_dtype(dtype) if dtype is not None else default(isinstance(start, complex) or isinstance(end, complex))
    return made(evenly_spaced(start, end, steps, d), None, requires_grad, device, out)


def evenly_spaced(start: Any, end: Any, steps: int, d: dtypes.dtype) -> np.ndarray:
    """Counted from the nearer end and in the dtype itself, as torch does, so that the last bits agree."""
    if d.category < dtypes.FLOATING:
        return np.trunc(np.linspace(start, end, steps)).astype(d.numpy)
    kind = d.numpy.type
    if steps == 1:
        return np.asarray([start], d.numpy)
    i = np.arange(steps)
    step = (kind(end) - kind(start)) / kind(max(steps - 1, 1))
    low, high = kind(start) + step * i.astype(d.numpy), kind(end) - step * (steps - 1 - i).astype(d.numpy)
    return np.where(i < steps // 2, low, high).astype(d.numpy)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, out: Tensor | None = None, dtype: Dtype = None,
             layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """`steps` numbers from base^start to base^end, evenly spaced in their logarithm."""
    d = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    return made(np.power(base, np.linspace(start, end, steps)).astype(d.numpy), None, requires_grad, device, out)


def eye(n: int, m: int | None = None, *, out: Tensor | None = None, dtype: Dtype = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False) -> Tensor:
    """1 on the diagonal, 0 elsewhere."""
    d = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    rows, columns = shape_of((n, n if m is None else m))
    return made(np.eye(rows, columns, dtype=d.numpy), None, requires_grad, device, out)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype = None, device: Any = None,
                 layout: Any = None) -> Tensor:
    """The rows and columns of a matrix's lower triangle, as two rows."""
    return made(np.stack(np.tril_indices(row, offset, col)), dtype or dtypes.int64, False, device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype = None, device: Any = None,
                 layout: Any = None) -> Tensor:
    """The rows and columns of a matrix's upper triangle, as two rows."""
    return made(np.stack(np.triu_indices(row, offset, col)), dtype or dtypes.int64, False, device)


def complex_from_parts(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Any:
    """real + i imag, of two tensors of one floating-point dtype."""
    if real.dtype is not imag.dtype or not real.dtype.is_floating_point:
        raise RuntimeError(explain("complex(): expected both inputs to be Half, Float or Double tensors of the same dtype, "
                                   f"but got {real.dtype} and {imag.dtype}", "convert them with .to(dtype)"))
    r = real + imag * 1j  # type: ignore[operator]
    return r if out is None else into(out, r)


def is_tensor(obj: Any) -> bool:
    """Whether the object is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floating-point numbers."""
    return input.is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex numbers."""
    return input.is_complex()


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an operation on two operands, tensors or numbers."""
    return dtypes.result_dtype([(t.dtype, 0 if t.array.ndim else 1) if isinstance(t, Tensor) else
                                (dtypes.of_scalar(t), 2) for t in (tensor1, tensor2)])


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def new_like(create: Callable) -> Callable:
    """x.new_zeros(size) and its like: this tensor's dtype unless told."""
    def new(self: Tensor, *size: Any, dtype: Dtype = None, **options: Any) -> Tensor:
        return create(*size, dtype=self.dtype if dtype is None else dtype, **options)
    new.__doc__ = create.__doc__
    return new


for function in (zeros, ones, empty, full, tensor):
    method(new_like(function), f"new_{function.__name__}")

FUNCTIONS = {f.__name__: f for f in (
    tensor, as_tensor, from_numpy, from_dlpack, frombuffer, zeros, ones, empty, zeros_like, ones_like, empty_like, full,
    full_like, arange, linspace, logspace, eye, tril_indices, triu_indices, is_tensor, is_floating_point,
    is_complex, result_type, numel)} | {
    "complex": complex_from_parts,    "asarray": as_tensor}
