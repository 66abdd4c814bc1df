"""`memory_format`: the order of a tensor's dimensions in memory; and the strides that torch gives to results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy import ndarray

from rushlight.base.errors import runtime_error


class memory_format:
    """An order of dimensions in memory: `contiguous_format`, `preserve_format`, `channels_last`, `channels_last_3d`.

    >>> x = rushlight.empty(1, 2, 3, 4, memory_format=rushlight.channels_last)
    >>> x.shape, x.stride()
    (torch.Size([1, 2, 3, 4]), (24, 1, 8, 2))
    """

    __slots__ = ("name", "ndim")
    name: str
    ndim: int | None  # the number of dimensions that the format applies to; None: any

    def __init__(self, name: str, ndim: int | None = None):
        self.name, self.ndim = name, ndim

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # the name of a global: copying and unpickling give the same object


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last", 4)
channels_last_3d = memory_format("channels_last_3d", 5)
FORMATS = {f.name: f for f in (contiguous_format, preserve_format, channels_last, channels_last_3d)}


def order_of(form: memory_format, ndim: int) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost: (0, 2, 3, 1) for channels_last.

    RuntimeError if the format applies to another number of dimensions.
    """
    if form.ndim is None:
        return tuple(range(ndim))
    if form.ndim != ndim:
        raise runtime_error(
            f"required rank {form.ndim} tensor to use {form.name} format",
            "channels_last needs (N, C, H, W), channels_last_3d (N, C, D, H, W)",
            rank=ndim,
        )
    return 0, *range(2, ndim), 1


def lies_so(array: ndarray, form: memory_format) -> bool:
    """Whether the array is dense in this memory format."""
    if form.ndim is not None and form.ndim != array.ndim:
        return False
    array = array if isinstance(array, ndarray) else array.first()  # a Batch of vmap
    return form is preserve_format or array.transpose(order_of(form, array.ndim)).flags.c_contiguous


def room_for(shape: tuple[int, ...], dtype: np.dtype, form: memory_format) -> ndarray:
    """An uninitialized array, dense in this memory format."""
    order = order_of(form, len(shape))
    return np.empty([shape[d] for d in order], dtype).transpose(np.argsort(order) if order else ())


def dense(shape: tuple[int, ...], strides: tuple[int, ...], order: Sequence[int]) -> bool:
    """Whether the strides, in elements, are dense in this order of dimensions, outermost first."""
    span = 1
    for d in reversed(order):
        if shape[d] != 1:
            if strides[d] != span:
                return False
            span *= shape[d]
    return True


def strides_in(shape: tuple[int, ...], order: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a dense array with this order of dimensions, outermost first."""
    strides, span = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = span
        span *= max(shape[d], 1)
    return tuple(strides)


def order_of_strides(shape: tuple[int, ...], *operands: tuple[int, ...]) -> list[int]:
    """The order of dimensions, outermost first, of torch's result of an elementwise op on operands with these strides.

    An insertion sort, as in TensorIterator::reorder_dimensions. The first operand decides the order of two dimensions;
    if it repeats elements (stride 0), or the strides are equal, the next operand decides."""

    def inside(near: int, far: int) -> int:
        for strides in operands:
            a, b = strides[near], strides[far]
            if a and b and a != b:
                return -1 if a < b else 1
            if a and b and shape[near] > shape[far]:
                return 1
        return 0

    order = [*range(len(shape))][::-1]  # innermost first
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            found = inside(order[j], order[at])
            if found < 0:
                break
            if found:
                order[j], order[at] = order[at], order[j]
                at = j
    return order[::-1]


@lru_cache(maxsize=1024)
def elementwise_strides(shape: tuple[int, ...], operands: tuple[tuple, ...]) -> tuple[int, ...]:
    """The strides, in elements, of torch's result of an elementwise op. `operands`: (shape, strides in elements) of
    each."""
    ndim, first = len(shape), operands[0][1]
    if all([own == shape for own, _ in operands]):
        orders = [tuple(range(ndim))] + ([(0, *range(2, ndim), 1)] if ndim in (4, 5) else [])
        for order in orders:
            if all([dense(shape, strides, order) for _, strides in operands]):
                return strides_in(shape, order)
        if all([strides == first for _, strides in operands]) and dense(shape, first, order_of_strides(shape, first)):
            return first
    aligned = [
        (0,) * (ndim - len(own))
        + tuple([0 if n == 1 != shape[d - len(own)] else step for d, (n, step) in enumerate(zip(own, strides))])
        for own, strides in operands
    ]
    return strides_in(shape, order_of_strides(shape, *aligned))


def strides_like(*arrays: ndarray, shape: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """The strides, in elements, of torch's result of an elementwise op on these arrays."""
    return elementwise_strides(
        arrays[0].shape if shape is None else shape,
        tuple([(a.shape, tuple([step // a.itemsize for step in a.strides])) for a in arrays]),
    )


def room_with(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> ndarray:
    """An uninitialized array with these strides, in elements, without gaps."""
    item = dtype.itemsize
    return ndarray(shape, dtype, strides=tuple([step * item for step in strides]))


def room_like(array: ndarray, dtype: np.dtype, make: Callable[..., ndarray] = np.empty) -> ndarray:
    """An array from `make` (np.empty or np.zeros) with the strides that a copy of `array` has in torch."""
    if not isinstance(array, ndarray):  # a Batch of vmap, or a tensor on "meta"
        return (np.zeros_like if make is np.zeros else np.empty_like)(array, dtype)
    if array.flags.c_contiguous or not array.size:
        return make(array.shape, dtype)
    strides = kept_strides(array.shape, tuple([step // array.itemsize for step in array.strides]))
    if make is np.empty:
        return room_with(array.shape, strides, dtype)
    order = sorted(range(array.ndim), key=lambda d: -strides[d])
    return make([array.shape[d] for d in order], dtype).transpose(np.argsort(order))


@lru_cache(maxsize=1024)
def kept_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a copy: the same strides if they are dense, else dense in the same order."""
    order = order_of_strides(shape, strides)
    return strides if dense(shape, strides, order) else strides_in(shape, order)


def copy_of(array: ndarray) -> ndarray:
    """A copy with the strides of `room_like`."""
    if array.flags.c_contiguous:
        return array.copy()
    r = room_like(array, array.dtype)
    r[...] = array
    return r
