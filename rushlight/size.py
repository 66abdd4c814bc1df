"""`Size`: the shape of a tensor; and its steps in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index
from typing import Any, SupportsIndex, overload


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions: a tuple of ints whose slices, sums and multiples are Sizes too.

    TypeError unless all are ints or convert to them, as NumPy's integers and 0-d integer tensors do. Where a
    shape is known to hold Python ints, `tuple.__new__(Size, shape)` makes a Size without looking at them.

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
        """The product of the sizes, which is the number of a tensor's elements: 1 for 0-d."""
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
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size: "
                            "write size + tuple(...)")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: tuple[int, ...]) -> Size:
        # Python asks a subclass first, so that tuple + Size arrives here.
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Size:
        repeated = tuple.__mul__(self, times)
        return NotImplemented if repeated is NotImplemented else tuple.__new__(Size, repeated)

    __rmul__ = __mul__


def _misfit(values: tuple[Any, ...]) -> str:
    misfits = [(place, value) for place, value in enumerate(values) if not _is_integer(value)]
    place, value = misfits[0]
    return (f"torch.Size() takes an iterable of 'int' (item {place} is '{type(value).__name__}'): convert it with int()")


def _is_integer(value: Any) -> bool:
    try:
        index(value)
    except TypeError:
        return False
    return True


def in_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Steps in elements of an array that lies in C order, by torch's count: a size of 0 is passed over like one of 1."""
    return tuple([math.prod([max(n, 1) for n in shape[i + 1:]]) for i in range(len(shape))])


def steps_of(a: Any) -> tuple[int, ...]:
    """Steps in elements from one index to the next, by torch's count: without elements as if it lay in order; a dimension of
    size 1 that NumPy gives no step, as of `x[None]`, has what the next one spans."""
    if a.size == 0:
        return in_order(a.shape)
    steps, span = [step // a.itemsize for step in a.strides], 1
    for i in reversed(range(a.ndim)):
        if a.shape[i] == 1 and not steps[i]:
            steps[i] = span
        span = a.shape[i] * steps[i]
    return tuple(steps)
