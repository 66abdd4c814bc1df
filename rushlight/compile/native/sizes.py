"""Sizes that differ from call to call: `slope n + rest`, where n is the number of samples of a call, or a length.

A program for several sizes is made of two traced runs with different sizes: a number that differs between the runs is
a Size (`joined`). A third run fits the program if, for one n, each Size has the number of this run (`fits`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from rushlight.compile.graph import Value
from rushlight.compile.native.errors import NotNative
from rushlight.loops import llvm

SMALLEST = 2  # sizes of 0 and 1 have programs of their own, since they broadcast


@dataclass(frozen=True)
class Size(llvm.Symbol):
    """slope n + rest, for n >= least. Comparisons hold for all these n; NotNative if the answer depends on n."""

    slope: int
    rest: int
    least: int = field(compare=False)

    def at(self, n: int) -> int:
        return self.slope * n + self.rest

    def emitted(self, f: llvm.Function) -> llvm.Value:
        return f.args["samples"] * self.slope + self.rest

    def like(self, slope: int, rest: int) -> Any:
        """slope n + rest; an int if it is the same in each call."""
        return Size(int(slope), int(rest), self.least) if slope else int(rest)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Size):
            return self.like(self.slope + other.slope, self.rest + other.rest)
        return self.like(self.slope, self.rest + other) if isinstance(other, int) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Size):
            raise NotNative("a product of two sizes that differ from call to call")
        return (
            self.like(self.slope * other, self.rest * other) if isinstance(other, (int, np.integer)) else NotImplemented
        )

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Size:
        return self.like(-self.slope, -self.rest)

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, (int, Size)) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if isinstance(other, int) else NotImplemented

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, Size):
            factor, left = divmod(self.slope, other.slope)
            if left or factor * other.rest != self.rest:
                raise NotNative("a quotient of two sizes that differ from call to call")
            return factor
        if self.slope % other or self.rest % other:
            raise NotNative("a quotient depends on a size that differs from call to call")
        return self.like(self.slope // other, self.rest // other)

    def __mod__(self, other: Any) -> int:
        if isinstance(other, Size) or self.slope % other:
            raise NotNative("a remainder depends on a size that differs from call to call")
        return self.rest % other

    def divisible(self, other: int) -> bool:
        """Whether a number divides the size in each call."""
        return not (self.slope % other or self.rest % other)

    def __lt__(self, other: Any) -> bool:
        return sign(self - other) < 0

    def __le__(self, other: Any) -> bool:
        return sign(self - other) <= 0

    def __gt__(self, other: Any) -> bool:
        return sign(self - other) > 0

    def __ge__(self, other: Any) -> bool:
        return sign(self - other) >= 0


def sign(x: Any) -> int:
    """-1, 0 or 1: the sign of a number in each call."""
    if not isinstance(x, Size):
        return (x > 0) - (x < 0)
    least = x.at(x.least)
    if x.slope > 0 and least > 0:
        return 1
    if x.slope < 0 and least < 0:
        return -1
    raise NotNative("a comparison depends on a size that differs from call to call")


def at(x: Any, n: int) -> Any:
    """The number, or the nested tuples, lists and slices of numbers, for one n."""
    if isinstance(x, Size):
        return x.at(n)
    if isinstance(x, slice):
        return slice(at(x.start, n), at(x.stop, n), at(x.step, n))
    return type(x)([at(part, n) for part in x]) if type(x) in (tuple, list) else x


class Numbers(bytes):
    """The numbers of a constant, which may differ from size to size."""


ANY = Numbers()  # in a pattern: numbers that differ


def joined(a: Any, b: Any, n: int, m: int, least: int) -> Any:
    """The numbers that are `a` for n and `b` for m. NotNative if something else differs."""
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        return tuple([joined(x, y, n, m, least) for x, y in zip(a, b)])
    if type(a) is int and type(b) is int and a != b:
        slope, left = divmod(b - a, m - n)
        if left:
            raise NotNative("a size is no multiple of the size that differs from call to call")
        return Size(slope, a - slope * n, least)
    if type(a) is Numbers and type(b) is Numbers and a != b:
        return ANY
    if type(a) is not type(b) or a != b:
        raise NotNative("the steps depend on the sizes")
    return a


def sizes_in(x: Any) -> Iterator[Size]:
    """The Sizes in nested tuples, lists and slices."""
    if isinstance(x, Size):
        yield x
    elif isinstance(x, slice):
        yield from sizes_in((x.start, x.stop, x.step))
    elif type(x) in (tuple, list):
        for part in x:
            yield from sizes_in(part)


def fits(pattern: Any, numbers: Any, n: int) -> bool:
    """Whether the numbers equal a pattern's numbers for this n."""
    if isinstance(pattern, Size):
        return type(numbers) is int and pattern.at(n) == numbers
    if pattern is ANY:
        return type(numbers) is Numbers
    if type(pattern) is tuple:
        same = type(numbers) is tuple and len(pattern) == len(numbers)
        return same and all([fits(p, x, n) for p, x in zip(pattern, numbers)])
    return type(pattern) is type(numbers) and pattern == numbers


def sized(found: Callable[[int], Any], least: int) -> Any:
    """The numbers `found(n)`, which are tuples of ints or None, as Sizes."""
    n, m, third = least + 3, least + 6, least + 11
    made = joined(found(n), found(m), n, m, least)
    if not fits(made, found(third), third):
        raise NotNative("a place is no multiple of the size that differs from call to call")
    return made


class Sized(Value):
    """A value whose shape has Sizes. `_array`: the elements in one traced run."""

    __slots__ = ("sizes",)

    def __init__(self, like: Value, sizes: tuple):
        super().__init__(like._array, like.kind, like.source)
        self.sizes = sizes

    shape = property(lambda self: self.sizes)
    size = property(lambda self: prod(self.sizes))


def new_value(shape: tuple, dtype: Any) -> Value:
    """A value that a step of the program makes."""
    whole = tuple([SMALLEST if isinstance(n, Size) else n for n in shape])
    made = Value(np.broadcast_to(np.zeros((), dtype), whole))
    return made if whole == shape else Sized(made, shape)
