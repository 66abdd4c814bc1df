"""Sizes that follow from a program's dynamic dimensions: as expressions of torch's schema, and as nodes that compute
them.

A `Size` has one number for each trace of the model (rushlight/onnx/to_onnx/sizes.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rushlight.onnx.to_onnx.sizes import (
    MAX_DIVISOR,
    Ambiguous,
    Formula,
    NotExpressed,
    Numbers,
    Size,
    deciding,
    formula,
    together,
)


class SizeName(NamedTuple):
    """An integer of the graph: the name of the node that computes it."""

    name: str


class Number(NamedTuple):
    """An integer in a program: the name of a node or a known integer, a value for each trace, and an expression."""

    symbol: SizeName | int
    value: int | Size
    text: str


def text_of(n: int) -> str:
    """An integer as an expression."""
    return f"Integer({n})"


def expression(text: str, hint: int) -> dict[str, Any]:
    """An expression as JSON, with its value in the example."""
    return {"as_expr": {"expr_str": text, "hint": {"as_int": int(hint)}}}


class Sum(NamedTuple):
    """The sum of two sizes, or their difference (`factor` -1)."""

    first: Numbers
    second: Numbers
    factor: int


class DynamicSizes:
    """The sizes that a program has expressions for. `dims`: {name of a symbol: the sizes of its dimension}."""

    def __init__(self, dims: dict[str, Numbers]):
        self.base = {numbers: name for name, numbers in dims.items()}
        self.texts = {n: f"Symbol('{name}', positive=True, integer=True)" for n, name in self.base.items()}
        self.formulas: dict[Numbers, Formula | Sum] = {}

    def text(self, size: int | Size) -> str:
        """The expression of a size."""
        if not isinstance(size, Size):
            return text_of(size)
        if size.values not in self.texts:
            found = self.found(size.values)
            if found is None:
                raise NotExpressed(f"a size is {', '.join(map(str, size.values))}, depending on a dynamic dimension")
            self.formulas[size.values] = found
            self.texts[size.values] = self.composed(found)
        return self.texts[size.values]

    def found(self, wanted: Numbers) -> Formula | Sum | None:
        """How a size follows from known sizes; None if there is no formula."""
        return formula(wanted, self.texts) or self.quotient_of(wanted) or self.sum_of(wanted)

    def quotient_of(self, wanted: Numbers) -> Formula | None:
        """(size + rest) // divisor with any rest: a convolution with a large kernel and a stride. Ambiguous if the
        traces do not decide between several."""
        for sizes in self.texts:
            candidates = []
            for divisor in range(2, MAX_DIVISOR + 1):
                least = [m * divisor - n for n, m in zip(sizes, wanted)]  # the rest is at least this in each trace
                candidates += [(divisor, rest) for rest in range(max(least), min(least) + divisor)]
            if len(candidates) > 1 and deciding(sizes, candidates):
                raise Ambiguous(wanted, sizes, candidates)
            if candidates:
                return Formula((sizes,), 1, candidates[0][1], candidates[0][0])
        return None

    def sum_of(self, wanted: Numbers) -> Sum | None:
        """The sum or the difference of two known sizes: the length of a concatenation."""
        for factor in (1, -1):
            for first in self.texts:
                second = tuple([(n - m) * factor for n, m in zip(wanted, first)])
                if second in self.texts:
                    return Sum(first, second, factor)
        return None

    def composed(self, found: Formula | Sum) -> str:
        """(factor * the product of known sizes + rest) // divisor, or a sum, as an expression."""
        if isinstance(found, Sum):
            second = self.texts[found.second]
            return f"Add({self.texts[found.first]}, {f'Mul({text_of(-1)}, {second})' if found.factor < 0 else second})"
        text = self.product(map(Size, found.sizes))
        text = f"Mul({text_of(found.factor)}, {text})" if found.factor != 1 else text
        text = f"Add({text}, {text_of(found.rest)})" if found.rest else text
        return f"FloorDiv({text}, {text_of(found.divisor)})" if found.divisor != 1 else text

    def product(self, sizes: Iterable[int | Size]) -> str:
        """The product of sizes as an expression."""
        texts = [self.text(size) for size in sizes if size != 1]
        return f"Mul({', '.join(texts)})" if len(texts) > 1 else texts[0] if texts else text_of(1)

    def computed(self, size: Size, dimension: Callable[[str], SizeName], node: Callable[..., Number]) -> Number:
        """The integer that a program computes for a size. `dimension(name)`: the node that reads a dynamic dimension;
        `node(operator, a, b)`: a node that computes with two numbers."""
        text = self.text(size)
        if size.values in self.base:
            return Number(dimension(self.base[size.values]), size, text)
        found = self.formulas[size.values]
        if isinstance(found, Sum):
            first, second = [self.computed(Size(n), dimension, node) for n in found[:2]]
            minus = Number(-1, -1, text_of(-1))
            return node("add", first, node("mul", second, minus) if found.factor < 0 else second)
        made = self.computed(Size(found.sizes[0]), dimension, node)
        for numbers in found.sizes[1:]:
            made = node("mul", made, self.computed(Size(numbers), dimension, node))
        for operator, n, neutral in (("mul", found.factor, 1), ("add", found.rest, 0), ("floordiv", found.divisor, 1)):
            if n != neutral:
                made = node(operator, made, Number(n, n, text_of(n)))
        return made


OPERATORS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "mul": ("Mul", lambda a, b: a * b), "add": ("Add", lambda a, b: a + b),
    "floordiv": ("FloorDiv", lambda a, b: a // b),
}  # fmt: skip


def result_of(operator: str, a: Number, b: Number) -> tuple[int | Size, str]:
    """(value, expression) of a computation with two numbers."""
    title, function = OPERATORS[operator]
    count = max(len(each.value.values) if isinstance(each.value, Size) else 1 for each in (a, b))
    values = together([function(in_trace(a.value, k), in_trace(b.value, k)) for k in range(count)])
    return values, f"{title}({a.text}, {b.text})"


def in_trace(value: Any, k: int) -> Any:
    """A setting in trace k: integers in place of sizes."""
    if isinstance(value, Size):
        return value.values[k]
    if isinstance(value, slice):
        return slice(*[in_trace(end, k) for end in (value.start, value.stop, value.step)])
    return value
