"""Constants of a recorded graph, which may depend on the sizes of dynamic dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.core.tensor import from_array
from rushlight.onnx.to_onnx.conversion import evenly_spaced
from rushlight.onnx.to_onnx.sizes import NotExpressed, together

from .writer import Symbol, Writer

Arrays = Sequence[np.ndarray]


def written_constant(writer: Writer, each: Arrays) -> Symbol:
    """The symbol of a constant, given from each trace."""
    first = each[0]
    if all(a.shape == first.shape and a.tobytes() == first.tobytes() for a in each):
        return writer.constant(first)
    if len({a.ndim for a in each}) == 1:
        for form in (filled, spaced, eye):
            made = form(writer, each, tuple(map(together, zip(*[a.shape for a in each]))))
            if made is not None and all(np.allclose(t._array, a, 1e-6) for t, a in zip(made.tensors, each)):
                return made
    raise NotExpressed("a constant depends on a dynamic dimension, and is neither equal numbers, a range nor eye()")


def dtype_of(each: Arrays) -> Any:
    """The dtype of a constant."""
    return from_array(np.zeros((), each[0].dtype)).dtype


def number_of(numbers: Sequence[Any]) -> Any:
    """A number, given from each trace: itself, or a Size."""
    whole = all(n == int(n) for n in numbers if np.isfinite(n)) and np.isfinite(numbers).all()
    if len({*numbers}) == 1:
        return numbers[0]
    if not whole:
        raise NotExpressed(f"a number is {', '.join(map(str, numbers))}, depending on a dynamic dimension")
    return together([int(n) for n in numbers])


def filled(writer: Writer, each: Arrays, shape: tuple) -> Symbol | None:
    """Equal numbers."""
    if not all(a.size and (a == a.flat[0]).all() for a in each) or each[0].dtype.kind not in "biuf":
        return None
    return writer.call("full.default", [*shape], number_of([a.flat[0].item() for a in each]), dtype=dtype_of(each))


def spaced(writer: Writer, each: Arrays, shape: tuple) -> Symbol | None:
    """start, start + step, ...: integers as a range; other numbers by their ends, or as a range times the step."""
    if len(shape) != 1 or not all(map(evenly_spaced, each)) or min(map(len, each)) < 2:
        return None
    length, wide = shape[0], [a.astype(np.float64) for a in each]
    starts, ends = [[a[k].item() for a in wide] for k in (0, -1)]
    steps = [(end - start) / (len(a) - 1) for a, start, end in zip(wide, starts, ends)]
    call: Callable[..., Any] = writer.call
    if each[0].dtype.kind in "iu":
        start, step = [int(n) if isinstance(n, float) else n for n in (number_of(starts), number_of(steps))]
        return call("arange.start_step", start, length * step + start, step, dtype=dtype_of(each))
    if len({*starts}) == len({*ends}) == 1:
        return call("linspace.default", starts[0], ends[0], length, dtype=dtype_of(each))
    if len({*starts}) > 1 or max(steps) - min(steps) > 1e-6 * abs(steps[0]):
        return None
    count = call("arange.start_step", 0, length, 1, dtype=dtype_of([np.zeros(1)]))
    made = call("add.Scalar", call("mul.Scalar", count, steps[0]), starts[0])
    return call("to.dtype", made, dtype_of(each), False, True)


def eye(writer: Writer, each: Arrays, shape: tuple) -> Symbol | None:
    """The identity."""
    if len(shape) != 2 or shape[0] != shape[1] or not all((a == np.eye(*a.shape, dtype=a.dtype)).all() for a in each):
        return None
    return writer.call("eye.default", shape[0], dtype=dtype_of(each))
