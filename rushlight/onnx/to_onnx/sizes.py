"""Sizes that vary with dynamic dimensions, and the formulas that give them.

A model is traced with several sizes of its dynamic dimensions. An integer that differs between the traces is a
`Size`: one number for each trace. `formula` finds how a Size follows from sizes that the ONNX graph knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, islice
from math import gcd
from typing import Any, NamedTuple

Numbers = tuple[int, ...]
MAX_DIVISOR = 64
MAX_PAIRS = 4000  # products that are tried
# The traces add these multiples of a step to the sizes of the first, second, ... dynamic dimension. Neither column is a
# linear function of another.
GROWTH = ((0, 1, 3, 4, 6, 2), (1, 3, 0, 6, 2, 4), (3, 0, 4, 1, 2, 6), (0, 6, 1, 3, 2, 4), (6, 2, 3, 0, 4, 1))


class NotExpressed(Exception):
    """A file's operators do not express a step with these arguments; the message gives the reason."""


class Ambiguous(NotExpressed):
    """Several quotients of `sizes` give the same numbers in all traces. `candidates`: (divisor, rest) of each."""

    def __init__(self, wanted: Numbers, sizes: Numbers, candidates: list[tuple[int, int]]):
        shown = [f"(size + {rest}) // {divisor}" for divisor, rest in candidates[:3]]
        numbers, given = [", ".join(map(str, several)) for several in (wanted, sizes)]
        super().__init__(f"a size is {numbers} where another is {given}: it may be {' or '.join(shown)}")
        self.sizes, self.candidates = sizes, candidates


class Size:
    """An integer with one value for each trace."""

    __slots__ = ("values",)

    def __init__(self, values: Numbers):
        self.values = values

    def with_each(self, function: Callable[[int, int], int], other: int | Size) -> int | Size:
        others = other.values if isinstance(other, Size) else (other,) * len(self.values)
        return together(tuple([function(a, b) for a, b in zip(self.values, others)]))

    def __add__(self, other: int | Size) -> int | Size:
        return self.with_each(lambda a, b: a + b, other)

    def __sub__(self, other: int | Size) -> int | Size:
        return self.with_each(lambda a, b: a - b, other)

    def __rsub__(self, other: int | Size) -> int | Size:
        return self.with_each(lambda a, b: b - a, other)

    def __mul__(self, other: int | Size) -> int | Size:
        return self.with_each(lambda a, b: a * b, other)

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return f"a size of {', '.join(map(str, self.values))}"


def together(values: Sequence[int]) -> int | Size:
    """The integer, if it is the same in each trace; otherwise a Size."""
    return int(values[0]) if len(set(values)) == 1 else Size(tuple(map(int, values)))


def product(sizes: Iterable[int | Size]) -> int | Size:
    """The product of sizes."""
    total: int | Size = 1
    for size in sizes:
        total = size * total
    return total


def remainder(a: int | Size, n: int | Size) -> int | Size:
    """a modulo n, in each trace; 0 if n is 0."""
    if isinstance(a, Size):
        return a.with_each(lambda x, y: x % y if y else 0, n)
    if isinstance(n, Size):
        return n.with_each(lambda y, x: x % y if y else 0, a)
    return a % n if n else 0


class Formula(NamedTuple):
    """(factor * the product of known sizes + rest) // divisor. `sizes`: the known sizes, as one number for each
    trace."""

    sizes: tuple[Numbers, ...]
    factor: int = 1
    rest: int = 0
    divisor: int = 1


def formula(wanted: Numbers, known: Iterable[Numbers]) -> Formula | None:
    """How a Size follows from known sizes: the simplest of the forms that agree with all traces; None if there is none.
    Ambiguous if the traces do not decide between several quotients."""
    known = list(known)
    if wanted in known:
        return Formula((wanted,))
    for form in (linear, products, quotients):
        if found := next(form(wanted, known), None):
            return found
    return None


def linear(wanted: Numbers, known: list[Numbers]) -> Iterator[Formula]:
    """factor * size + rest, with integers; the smallest factors first. Two numbers are always on a line, so the size
    must have three."""
    found = [(line, sizes) for sizes in known if (line := line_through(sizes, wanted)) and len({*sizes}) > 2]
    for (factor, rest), sizes in sorted(found, key=lambda pair: abs(pair[0][0]) + (pair[0][1] != 0)):
        yield Formula((sizes,), factor, rest)


def line_through(x: Numbers, y: Numbers) -> tuple[int, int] | None:
    """(a, b) with y = a x + b for all pairs, as integers; None if there is no such line, or it is flat."""
    k = next((k for k in range(1, len(x)) if x[k] != x[0]), None)
    if k is None or (y[k] - y[0]) % (x[k] - x[0]):
        return None
    a = (y[k] - y[0]) // (x[k] - x[0])
    b = y[0] - a * x[0]
    return (a, b) if a and all(a * n + b == m for n, m in zip(x, y)) else None


def products(wanted: Numbers, known: list[Numbers]) -> Iterator[Formula]:
    """The product of two or three sizes; then factor * product + rest."""
    several = [pair for count in (2, 3) for pair in islice(combinations_with_replacement(known, count), MAX_PAIRS)]
    yield from (Formula(pair) for pair in several if multiplied(pair) == wanted)
    for pair in several:
        line = line_through(multiplied(pair), wanted)
        if line and len({*multiplied(pair)}) > 2:
            yield Formula(pair, *line)


def quotients(wanted: Numbers, known: list[Numbers]) -> Iterator[Formula]:
    """(size + rest) // divisor, for the first size with such a formula."""
    for sizes in known:
        found = [
            (divisor, rest)
            for divisor in range(2, MAX_DIVISOR + 1)
            for rest in range(-divisor, 2 * divisor)
            if all((n + rest) // divisor == m for n, m in zip(sizes, wanted))
        ]
        if len(found) > 1 and deciding(sizes, found):
            raise Ambiguous(wanted, sizes, found)
        if found:
            yield Formula((sizes,), 1, found[0][1], found[0][0])


def deciding(sizes: Numbers, candidates: list[tuple[int, int]]) -> int:
    """The size for which the candidates (divisor, rest) give the most different numbers; 0 if all agree for all sizes
    of the traces' kind: a U-Net may take multiples of 4 only."""
    step = gcd(*[n - sizes[0] for n in sizes]) or 1
    possible = range(sizes[0] % step + step, 4 * max(sizes), step)

    def results(n: int) -> int:
        return len({(n + rest) // divisor for divisor, rest in candidates})

    best = max(possible, key=results, default=0)
    return best if best and results(best) > 1 else 0


def multiplied(several: Sequence[Numbers]) -> Numbers:
    """The products of the numbers of each trace."""
    product = several[0]
    for numbers in several[1:]:
        product = tuple([a * b for a, b in zip(product, numbers)])
    return product


def merged(each: Sequence[Any]) -> Any:
    """A setting of a step, from each trace: an integer that differs becomes a Size, also inside tuples and slices.

    ValueError if anything else differs."""
    first = each[0]
    if isinstance(first, (tuple, list)):
        if any(type(a) is not type(first) or len(a) != len(first) for a in each):
            raise ValueError("the number of its settings varies")
        inside = [merged(several) for several in zip(*each)]
        return type(first)(inside) if not hasattr(first, "_make") else first._make(inside)
    if isinstance(first, slice):
        return slice(*[merged([getattr(s, end) for s in each]) for end in ("start", "stop", "step")])
    if all(type(a) is type(first) and (a is first or a == first or a != a) for a in each):
        return first
    if all(type(a) is int for a in each):
        return Size(tuple(each))
    if all(type(a) is float for a in each):
        return Varying(tuple(each))
    raise ValueError(f"its setting is {', '.join(map(repr, each))}")


class Varying(NamedTuple):
    """A float with one value for each trace."""

    values: tuple[float, ...]
