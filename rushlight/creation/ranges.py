"""Ranges of numbers: arange, range, linspace, logspace; indices of triangles: tril_indices, triu_indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import not_implemented_error, runtime_error, suggesting, type_error, value_error, warn
from rushlight.base.placeholder import sample_by_sample
from rushlight.base.public_function import MORE
from rushlight.core.arguments import number_of
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import MAX_ELEMENTS, Dtype, made, of_dtype, room
from rushlight.creation.nested_sequences import default

# dtype -> n such that the dtype holds all integers up to n exactly
WHOLE = {dtypes.bfloat16: 2**8, dtypes.float16: 2**11, dtypes.float32: 2**24, dtypes.float64: 2**53}


def numeric(d: dtypes.dtype, name: str) -> dtypes.dtype:
    """The dtype. NotImplementedError for bool and complex dtypes, which have no ranges."""
    if d is dtypes.bool_ or d.is_complex and name != "linspace":
        raise not_implemented_error(
            f"\"{name}_cpu\" not implemented for '{d.scalar_type}'", "make it with integers, and convert it"
        )
    return d


def arange(
    start: Any = 0, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Dtype = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ..., not including end. The dtype is int64 for integers, else the default dtype.

    >>> rushlight.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if end is None:
        start, end = 0, start
    start, end, step = bounds("arange", start, end, step)
    whole = all(isinstance(v, int) for v in (start, end, step))
    d = numeric(of_dtype(dtype, out, dtypes.int64 if whole else None), "arange")
    check_range(start, end, step)
    if d is dtypes.int64:  # as in torch, an int64 range is counted in integers
        start, end, step = map(int, (start, end, step))
        whole = True
        if step == 0:
            raise value_error("step must be nonzero", "the step becomes 0 in an integer dtype")
    n = -(-(end - start) // step) if whole else math.ceil((end - start) / step)
    if d.category < dtypes.FLOATING:
        start, step = int(start), int(step)
    if n >= MAX_ELEMENTS:
        raise runtime_error("invalid size, possible overflow?", f"{float(n):.3g} numbers")
    count = (
        in_registers if d.category == dtypes.FLOATING and d.itemsize > 1 and not exact(start, step, n, d) else counted
    )
    array = count(start, step, n, d) if count is counted else few_or_many(count, start, step, n, d)
    if out is not None and out._array.size not in (0, array.size):
        shape = out._array.shape
        warn(
            f"The number of elements in the out tensor of shape {list(shape)} is {out._array.size} which does not "
            f"match the computed number of elements {array.size}. Note that this may occur as a result of rounding "
            f"error. The out tensor will be resized to a tensor of shape ({array.size},)."
        )
    return placed(array, out, requires_grad, device)


def placed(array: np.ndarray, out: Tensor | None, requires_grad: bool, device: Any) -> Tensor:
    """The numbers as a tensor, or written to `out`; an `out` with the same number of elements keeps its shape."""
    if out is not None and out._array.size == array.size:
        array = array.reshape(out._array.shape)
    return made(array, None, requires_grad, device, out)


MAX_CACHED = 256  # ranges of up to this many numbers are cached


def few_or_many(count: Callable, first: Any, second: Any, n: int, *how: Any) -> np.ndarray:
    """count(first, second, n, *how), through a cache if n is small. The key contains the signs of the two numbers,
    because 0.0 and -0.0 are equal.
    """
    if n > MAX_CACHED or first.__class__ is complex or second.__class__ is complex:
        return count(first, second, n, *how)
    signs = math.copysign(1, first), math.copysign(1, second)
    return remembered(count, signs, first, second, n, *how).copy()


@lru_cache(maxsize=64, typed=True)
def remembered(count: Callable, signs: Any, *how: Any) -> np.ndarray:
    return count(*how)


def exact(start: Any, step: Any, n: int, d: dtypes.dtype) -> bool:
    """Whether all numbers of the range are integers that the dtype holds exactly: then nothing is rounded."""
    return start % 1 == 0 and step % 1 == 0 and max(abs(start), abs(start + n * step)) <= WHOLE.get(d, 0)


def in_registers(start: Any, step: Any, n: int, d: dtypes.dtype) -> np.ndarray:
    """start + k step, with the last bits of torch's loops over registers of 32 bytes.

    The first element of a register is start + k step, rounded to the dtype; the other elements are counted from it.
    Elements at the end that do not fill two registers are counted from `start`. Product and sum are fused, with one
    rounding, except for bfloat16."""
    working, wide = (np.float32, np.float64) if d.itemsize == 2 else (np.float64, np.longdouble)
    lanes = 32 // d.itemsize
    by, full = wide(working(step)), n - n % (2 * lanes)
    places = np.concatenate((np.arange(0, full, lanes), np.arange(full, n))).astype(wide)
    line = (wide(working(start)) + by * places).astype(working)
    first, moves = line[: full // lanes].astype(d.numpy).astype(wide)[:, None], by * np.arange(lanes).astype(wide)
    moves = moves.astype(working) if d is dtypes.bfloat16 else moves
    return np.concatenate(((first + moves).astype(working).reshape(-1), line[full // lanes :])).astype(d.numpy)


def counted(start: Any, step: Any, n: int, d: dtypes.dtype) -> np.ndarray:
    """start + k step for k < n, computed exactly for integers, else in float64, and rounded to the dtype."""
    if d.category < dtypes.FLOATING or exact(start, step, n, d):
        start, step = int(start), int(step)
        return np.arange(start, start + n * step, step).astype(d.numpy, copy=False)
    return (np.arange(n) * float(step) + start).astype(d.numpy)


def check_range(start: Any, end: Any, step: Any) -> None:
    """RuntimeError for a zero step, an infinite range, or a step of the wrong sign."""
    if step == 0:
        raise runtime_error("step must be nonzero", arange=(start, end, step))
    if not (math.isfinite(start) and math.isfinite(end)):
        raise runtime_error(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise runtime_error("upper bound and lower bound inconsistent with step sign", arange=(start, end, step))


def closed_range(
    start: Any = 0, end: Any = None, step: Any = 1, *, out: Tensor | None = None, dtype: Dtype = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """start, start + step, ..., including end, in the default dtype. torch advises `arange` instead.

    >>> rushlight.range(1, 3)
    tensor([1., 2., 3.])
    """
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    if end is None:
        start, end = 0, start
    start, end, step = bounds("range", start, end, step)
    d = numeric(of_dtype(dtype, out), "range")
    check_range(start, end, step)
    return placed(counted(start, step, math.floor((end - start) / step) + 1, d), out, requires_grad, device)


def check_steps(name: str, start: Any, end: Any, steps: Any) -> tuple[Any, Any, int]:
    """(start, end, steps) as Python numbers. TypeError or RuntimeError if they cannot be converted, or steps < 0."""
    if not hasattr(steps, "__index__"):
        got = ", ".join(type(v).__name__ for v in (start, end, steps))
        raise type_error(
            f"{name}() received an invalid combination of arguments - got ({got}), but expected one of: (Number "
            "start, Number end, int steps)",
            "steps must be an integer",
        )
    if any(isinstance(v, Tensor) and v._array.ndim for v in (start, end)):
        dims = [v._array.ndim if isinstance(v, Tensor) else 0 for v in (start, end)]
        raise runtime_error(
            f"{name} only supports 0-dimensional start and end tensors, but got start with {dims[0]} dimension(s) "
            f"and end with {dims[1]} dimension(s)."
        )
    if (steps := index(steps)) < 0:
        raise runtime_error("number of steps must be non-negative", op=name)
    return plain_number(start), plain_number(end), steps


def plain_number(value: Any) -> Any:
    """The number; for a tensor, its element. As in torch, the tensor gets no gradient."""
    return value.item() if isinstance(value, Tensor) else value


def bounds(function: str, start: Any, end: Any, step: Any) -> list:
    """The given numbers, which may be tensors of one element that do not require grad."""
    given = {"start": start, "end": end, "step": step}
    return [number_of(value, function, name) for name, value in given.items()]


@sample_by_sample
def linspace(
    start: Any, end: Any, steps: int, *, out: Tensor | None = None, dtype: Dtype = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` numbers from start to end, both included, evenly spaced.

    >>> rushlight.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    start, end, steps = check_steps("linspace", start, end, steps)
    d = dtype_between("linspace", start, end, dtype, out)
    return placed(
        few_or_many(evenly_spaced, start, end, steps, numeric(d, "linspace")).astype(d.numpy, copy=False),
        out,
        requires_grad,
        device,
    )


def dtype_between(name: str, start: Any, end: Any, dtype: Dtype, out: Tensor | None) -> dtypes.dtype:
    """The dtype of numbers between start and end. RuntimeError for a real dtype between complex numbers."""
    found = default(isinstance(start, complex) or isinstance(end, complex))
    d = of_dtype(dtype, out, found)
    if found.is_complex and not d.is_complex:
        raise runtime_error(
            f"torch.{name}(): inferred dtype {found.scalar_type} can't be safely cast to passed dtype {d.scalar_type}",
            "pass a complex dtype",
        )
    return d


def evenly_spaced(start: Any, end: Any, steps: int, d: dtypes.dtype) -> np.ndarray:
    """`steps` numbers from start to end, with torch's last bits.

    The first half is counted from start, the second half from end, with the step rounded to the dtype. For float32 and
    float64, product and sum are fused, with one rounding. float16 does not hold large counts, so long ranges are
    computed in float32."""
    kind = d.numpy.type
    if kind is np.float16 and steps > np.finfo(kind).max:
        return evenly_spaced(start, end, steps, dtypes.float32).astype(kind)
    if d.category < dtypes.FLOATING:  # for integers: integer ends, and steps in float64
        start, end, kind = int(start), int(end), np.float64
    if steps == 1:
        return np.asarray([start], kind)
    step = (kind(end) - kind(start)) / kind(max(steps - 1, 1))
    wide: Any = {np.float32: np.float64, np.float64: np.longdouble}.get(kind, kind)
    half, out = steps // 2, room(np.empty, (steps,), kind)
    first, last, step = wide(kind(start)), wide(kind(end)), wide(step)
    counted = np.arange(half).astype(wide)
    out[:half] = np.add(first, np.multiply(step, counted, out=counted), out=counted)
    counted = np.arange(steps - half - 1, -1, -1).astype(wide)
    out[half:] = np.subtract(last, np.multiply(step, counted, out=counted), out=counted)
    return out


@sample_by_sample
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, out: Tensor | None = None, dtype: Dtype = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` numbers from base^start to base^end, evenly spaced in their logarithm.

    >>> rushlight.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    start, end, steps = check_steps("logspace", start, end, steps)
    d = dtype_between("logspace", start, end, dtype, out)
    wide = dtypes.complex128 if d.is_complex else dtypes.float64 if d.category == dtypes.FLOATING else d
    powers = evenly_spaced(start, end, steps, numeric(wide, "logspace"))
    return placed(np.power(plain_number(base), powers).astype(d.numpy), out, requires_grad, device)


def triangle(name: str, of: Callable, row: int, col: int, offset: int, dtype: Dtype, device: Any) -> Tensor:
    """The indices from the function `of`, as a tensor of two rows."""
    for side, size in (("row", row), ("col", col)):
        if size < 0:
            raise runtime_error(f"{side} must be non-negative, got{size}", op=name)
    row, col = index(row), index(col)
    array = triangle_of_few(of, row, index(offset), col).copy() if row * col <= MAX_CACHED else of(row, offset, col)
    return made(array, dtype, False, device)


@lru_cache(maxsize=64)
def triangle_of_few(of: Callable, row: int, offset: int, col: int) -> np.ndarray:
    return of(row, offset, col)


def lower(rows: int, offset: int, columns: int) -> np.ndarray:
    """np.tril_indices without a matrix: 12 us instead of 95 for 256 x 8."""
    ends = np.clip(np.arange(rows) + (offset + 1), 0, columns)
    return between(np.zeros_like(ends), ends)


def upper(rows: int, offset: int, columns: int) -> np.ndarray:
    begins = np.clip(np.arange(rows) + offset, 0, columns)
    return between(begins, np.full_like(begins, columns))


def between(begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The row and column of each element of a matrix, from column begins[i] to ends[i] of row i."""
    sizes = ends - begins
    rows = np.arange(len(sizes)).repeat(sizes)
    columns = np.arange(rows.size) - (np.cumsum(sizes) - sizes - begins).repeat(sizes)
    return np.stack((rows, columns))


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Dtype = dtypes.int64, device: Any = None, layout: Any = None
) -> Tensor:
    """The row and column indices of a matrix's lower triangle, as two rows. `offset`: the number of places by which the
    diagonal moves up.

    RuntimeError for a negative size.

    >>> rushlight.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return triangle("tril_indices", lower, row, col, offset, dtype, device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Dtype = dtypes.int64, device: Any = None, layout: Any = None
) -> Tensor:
    """The row and column indices of a matrix's upper triangle, as two rows. `offset`: the number of places by which the
    diagonal moves up.

    RuntimeError for a negative size.

    >>> rushlight.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return triangle("triu_indices", upper, row, col, offset, dtype, device)


MORE.update(
    {
        f.__name__: suggesting(f, home="rushlight", always=True)
        for f in (arange, linspace, logspace, tril_indices, triu_indices)
    }
    | {"range": closed_range}
)
