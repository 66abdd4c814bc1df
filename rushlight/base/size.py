"""`Size`: the shape of a tensor; and functions for strides."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index
from typing import Any, SupportsIndex, overload


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions: a tuple of ints whose slices, sums and multiples are Sizes, too.

    TypeError unless all elements are ints or convert to ints, such as NumPy's integers and 0-d integer tensors.
    `tuple.__new__(Size, shape)` skips this check, for a shape that holds Python ints.

    >>> shape = rushlight.Size([2, 3])
    >>> shape, shape.numel(), shape[1:] + (4,)
    (torch.Size([2, 3]), 6, torch.Size([3, 4]))
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = ()) -> Size:
        values = tuple(sizes)
        try:
            return tuple.__new__(cls, map(int, map(index, values)))
        except TypeError:
            raise TypeError(_misfit(values)) from None

    def numel(self) -> int:
        """The number of a tensor's elements: the product of the sizes, 1 for 0-d."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Size: ...
    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return tuple.__new__(Size, found) if isinstance(key, slice) else found

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        if not isinstance(other, tuple):
            raise TypeError(
                f"can only concatenate tuple (not {type(other).__name__}) to torch.Size: write size + tuple(...)"
            )
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[int, ...]) -> Size:
        # Python calls a subclass's __radd__ first, so tuple + Size calls this method.
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Size:
        repeated = tuple.__mul__(self, times)
        return NotImplemented if repeated is NotImplemented else tuple.__new__(Size, repeated)

    __rmul__ = __mul__


def _misfit(values: tuple[Any, ...]) -> str:
    misfits = [(place, value) for place, value in enumerate(values) if not _is_integer(value)]
    place, value = misfits[0]
    return f"torch.Size() takes an iterable of 'int' (item {place} is '{type(value).__name__}'): convert it with int()"


def _is_integer(value: Any) -> bool:
    try:
        index(value)
    except TypeError:
        return False
    return True


def in_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """torch's strides, in elements, of a C-contiguous array; a dimension of size 0 counts as size 1."""
    return tuple([math.prod([max(n, 1) for n in shape[i + 1 :]]) for i in range(len(shape))])


def steps_of(a: Any) -> tuple[int, ...]:
    """torch's strides of an array, in elements.

    These strides differ from NumPy's for an array without elements (C order), and for a dimension of size 1 with
    NumPy's stride 0, as in `x[None]`: its stride is the span of the next dimension."""
    if a.size == 0:
        return in_order(a.shape)
    steps, span = [step // a.itemsize for step in a.strides], 1
    for i in reversed(range(a.ndim)):
        if a.shape[i] == 1 and not steps[i]:
            steps[i] = span
        span = a.shape[i] * steps[i]
    return tuple(steps)
