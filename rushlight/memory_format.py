"""`memory_format`: in which order the dimensions of a tensor lie in memory."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import ndarray

from rushlight.errors import explain


class memory_format:
    """An order of dimensions in memory: `contiguous_format`, `preserve_format`, `channels_last`, `channels_last_3d`.

    >>> x = rushlight.empty(1, 2, 3, 4, memory_format=rushlight.channels_last)
    >>> x.shape, x.stride()
    (torch.Size([1, 2, 3, 4]), (24, 1, 8, 2))
    """

    __slots__ = ("name", "ndim")
    name: str
    ndim: int | None                              # of the tensors that can lie so; None: of all

    def __init__(self, name: str, ndim: int | None = None):
        self.name, self.ndim = name, ndim

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name                          # the name of a global: copying and unpickling give the same object


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last", 4)
channels_last_3d = memory_format("channels_last_3d", 5)
FORMATS = {f.name: f for f in (contiguous_format, preserve_format, channels_last, channels_last_3d)}


def order_of(form: memory_format, ndim: int) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost: (0, 2, 3, 1) for channels_last.

    RuntimeError if tensors with so many dimensions cannot lie so.
    """
    if form.ndim is None:
        return tuple(range(ndim))
    if form.ndim != ndim:
        raise RuntimeError(explain(f"required rank {form.ndim} tensor to use {form.name} format",
                                   "channels_last is for (N, C, H, W), channels_last_3d for (N, C, D, H, W)", rank=ndim))
    return 0, *range(2, ndim), 1


def lies_so(array: ndarray, form: memory_format) -> bool:
    """Whether the elements lie in memory in this order, without gaps."""
    if form.ndim is not None and form.ndim != array.ndim:
        return False
    array = array if isinstance(array, ndarray) else array.first()        # of a batch of vmap
    return form is preserve_format or array.transpose(order_of(form, array.ndim)).flags.c_contiguous


def room_for(shape: tuple[int, ...], dtype: np.dtype, form: memory_format) -> ndarray:
    """An array whose elements will lie in this order."""
    order = order_of(form, len(shape))
    return np.empty([shape[d] for d in order], dtype).transpose(np.argsort(order) if order else ())


def order_of_expanded(x: ndarray) -> tuple:
    """The order of dimensions in memory, the outermost first, that a copy has of an array with strides of 0, as torch's:
    such dimensions stay where they are, the others are sorted by their strides. (NumPy's order "K" puts them innermost.)"""
    order = [*range(x.ndim)][::-1]                # the innermost first
    for i in range(1, x.ndim):
        at = i
        for j in range(i - 1, -1, -1):
            near, far = (x.strides[order[j]], x.shape[order[j]]), (x.strides[order[at]], x.shape[order[at]])
            if 0 in (near[0], far[0]) or near == far:
                continue                          # no word on these two: the next decides
            if near < far:
                break
            order[j], order[at] = order[at], order[j]
            at = j
    return tuple(order[::-1])


def room_like(array: ndarray, dtype: np.dtype, make: Callable[..., ndarray] = np.empty) -> ndarray:
    """An array from `make`, np.empty or np.zeros, whose elements lie as a copy's of another one do, in torch."""
    if 0 not in array.strides or not isinstance(array, ndarray):        # a batch of vmap, a tensor on "meta"
        return (np.zeros_like if make is np.zeros else np.empty_like)(array, dtype)
    order = order_of_expanded(array)
    return make([array.shape[d] for d in order], dtype).transpose(np.argsort(order))


def copy_of(array: ndarray) -> ndarray:
    """A copy, its elements lying as `room_like` says."""
    if 0 not in array.strides:
        return array.copy("K")
    r = room_like(array, array.dtype)
    r[...] = array
    return r
