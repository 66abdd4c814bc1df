"""Which dimensions of a model's inputs are dynamic, and inputs of other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor, from_array
from rushlight.onnx.to_onnx.sizes import GROWTH

FORM = 'dynamic_shapes={"x": {0: "batch"}}, with an entry for each argument of the model'
SMALLEST = 2  # a size of 1 is broadcast, so a trace of it holds for no other size
STEPS = (1, -1, 2, 4, 8, 16, 32, 64, -2, -4, -8)  # the sizes of the traces differ by multiples of one of these


@dataclass
class Dimension:
    """A dynamic dimension: its `places` (number of a tensor, axis), and its size in the example. Sizes of the traces
    grow by `step`."""

    name: str
    size: int
    places: list[tuple[int, int]] = field(default_factory=list)
    least: int = 0
    most: float = float("inf")
    step: int = 1

    def sizes(self, number: int, count: int) -> list[int]:
        """The sizes in `count` traces, for the dynamic dimension `number`."""
        column: tuple[int, ...] = GROWTH[number % len(GROWTH)]
        if number >= len(GROWTH):  # more dimensions than columns: other multiples
            column = tuple([(n * (number + 1)) % 13 for n in (1, 2, 4, 7, 9, 11)])
        base = max(self.size, SMALLEST)
        return [base + self.step * column[k % len(column)] + 7 * (k // len(column)) * self.step for k in range(count)]

    def far(self, times: float) -> int:
        """About `times` the example's size, at a multiple of the step from the example's size."""
        step, base = abs(self.step), max(self.size, SMALLEST)
        away = int(base * abs(times - 1)) // step * step
        return base + away + step if times > 1 else max(base - away, SMALLEST)

    def allows(self, n: int) -> bool:
        """Whether the user allows a size."""
        return max(self.least, 1) <= n <= self.most

    def fits(self, number: int, count: int) -> bool:
        """Whether all sizes of the traces are allowed."""
        return all(map(self.allows, self.sizes(number, count)))


def dimensions(
    specs: Iterator[tuple[int, Any]], tensors: Sequence[np.ndarray], names: Sequence[str]
) -> list[Dimension]:
    """The dynamic dimensions of the inputs. `specs`: (number of a tensor, its specification)."""
    found: dict[str, Dimension] = {}
    for number, spec in specs:
        for axis, dim in axes_of(spec, tensors[number].ndim, names[number]):
            axis = axis % tensors[number].ndim
            name, least, most = named(dim, f"{names[number]}_dim_{axis}")
            size = tensors[number].shape[axis]
            known = found.setdefault(name, Dimension(name, size, least=least, most=most))
            if known.size != size:
                raise value_error(f"export: {name!r} is both {known.size} and {size} in the example", FORM)
            if not size:
                raise value_error(f"export: {name!r} is 0 in the example", "pass an example with elements")
            known.places.append((number, axis))
    return [*found.values()]


def axes_of(spec: Any, ndim: int, name: str) -> Iterator[tuple[int, Any]]:
    """(axis, dimension) of each dynamic dimension that a tensor's specification names."""
    if spec is None:
        return
    if isinstance(spec, Mapping):
        pairs = [*spec.items()]
    elif isinstance(spec, (tuple, list)):
        pairs = [*enumerate(spec)]
    else:
        raise value_error(f"export: the dynamic dimensions of {name} are {spec!r}", FORM)
    for axis, dim in pairs:
        if not isinstance(axis, int) or not -ndim <= axis < ndim:
            raise value_error(f"export: {name} has {ndim} dimensions, but no dimension {axis!r}", FORM)
        if dim is None or type(dim) is int or getattr(dim, "static", False):
            continue
        yield axis, dim


def named(dim: Any, otherwise: str) -> tuple[str, int, float]:
    """(name, least, most) of a dimension: a text, a torch.export.Dim, or Dim.AUTO and Dim.DYNAMIC without a name."""
    if isinstance(dim, str):
        return dim, 0, float("inf")
    name = getattr(dim, "__name__", None) or otherwise
    least, most = getattr(dim, "min", None), getattr(dim, "max", None)
    return name, least or 0, float("inf") if most is None else most


def specifications(dynamic: Any, given: Sequence[tuple[str, Any]], names: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """(number of a tensor, its specification), for `dynamic_shapes` in the form of the arguments.

    `dynamic`: a tuple with an entry for each argument, or a dict by their names. `given`: (name, value) of the
    arguments. `names`: the names of the model's parameters, `*args` among them."""
    if isinstance(dynamic, Mapping):
        each = by_names(dynamic, [name for name, _ in given], names)
    elif isinstance(dynamic, (tuple, list)):
        each = [*dynamic]
    else:
        raise value_error(f"export: dynamic_shapes is a {type(dynamic).__name__}", FORM)
    each += [None] * (len(given) - len(each))
    numbers = count()
    for (_, value), spec in zip(given, each):
        yield from inside(value, spec, numbers)


def by_names(dynamic: Mapping, given: list[str], names: Sequence[str]) -> list[Any]:
    """The specification of each argument; for `*args` a sequence for all further arguments."""
    several = [name for name in names if name in dynamic and name not in given]
    unknown = [key for key in dynamic if key not in given and key not in several]
    if unknown:
        raise value_error(f"export: dynamic_shapes names {unknown[0]!r}; the arguments are {', '.join(given)}", FORM)
    each = [dynamic.get(name) for name in given]
    return [*each[: names.index(several[0])], *dynamic[several[0]]] if several else each


def inside(value: Any, spec: Any, numbers: Iterator[int]) -> Iterator[tuple[int, Any]]:
    """(number of a tensor, its specification) for the tensors of an argument, in order."""
    if isinstance(value, Tensor):
        yield next(numbers), spec
    elif isinstance(value, (tuple, list)):
        specs = spec if isinstance(spec, (tuple, list)) and len(spec) == len(value) else [None] * len(value)
        for part, each in zip(value, specs):
            yield from inside(part, each, numbers)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from inside(part, spec.get(key) if isinstance(spec, Mapping) else None, numbers)


def grown(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """The example's elements, repeated or cut to a size along an axis: each is a valid index if it was one before."""
    return np.ascontiguousarray(np.take(array, np.arange(size) % array.shape[axis], axis))


def resized(arrays: Sequence[np.ndarray], dims: Sequence[Dimension], sizes: Sequence[int]) -> list[Tensor]:
    """The inputs with these sizes of the dynamic dimensions."""
    made = [*arrays]
    for dim, size in zip(dims, sizes):
        for number, axis in dim.places:
            made[number] = grown(made[number], axis, size)
    return [from_array(a) for a in made]
