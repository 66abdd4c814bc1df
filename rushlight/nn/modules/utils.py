"""One value for each dimension, under the names that modules of others import."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """A function from one value to n of it; what is iterable it makes a tuple."""
    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n
    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (_ntuple(n, name) for n, name in (
    (1, "_single"), (2, "_pair"), (3, "_triple"), (4, "_quadruple")))


def _reverse_repeat_tuple(t: tuple, n: int) -> tuple:
    """The elements from the last to the first, each n times: settings of a convolution as F.pad takes them."""
    return tuple(x for x in reversed(t) for _ in range(n))
