"""Traces of a model for several sizes of its dynamic dimensions.

Some sizes are near the example's: they show how numbers follow from sizes, and all dimensions change at once. For each
dimension there is a trace in which it is far from the example's: near sizes may share a number such as size // 32."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from rushlight.compile.graph import Graph
from rushlight.onnx.to_onnx.conversion import resized_alike
from rushlight.onnx.to_onnx.dynamic_dims import SMALLEST, STEPS, Dimension
from rushlight.onnx.to_onnx.example import Example
from rushlight.onnx.to_onnx.sizes import Ambiguous, NotExpressed, deciding

FAR = 2.0  # times the example's size, for far sizes
NEAR = 4  # traces of near sizes; two dimensions are even and odd in all combinations
SPARE = 4  # near sizes in place of those whose trace cannot be compared
Sizes = tuple[int, ...]


class Traces(NamedTuple):
    """`sizes` of the dynamic dimensions, the recorded graph of each trace, and the plan of the result."""

    sizes: list[Sizes]
    graphs: list[Graph]
    plan: Any


def traces_of(example: Example, dims: list[Dimension], more: Sequence[Sizes] = ()) -> Traces:
    """The traces of a model, with traces of `more` sizes.

    A trace in which a resizing does nothing, because the sizes are equal, is left out."""
    count = NEAR if dims else 1
    found: dict[int, list[tuple]] = {}  # number of resizings -> traces
    near = near_sizes(example, dims, count)
    needed = [*islice(near, count)]
    needed += [*far_sizes(example, dims), *more]
    for k, now in enumerate(chain(needed, near)):
        if k >= len(needed) and max(map(len, found.values())) >= count:
            break
        graph, plan = example.trace(dims, now)
        found.setdefault(resized_alike(graph), []).append((now, graph, plan))
    best = max(found.values(), key=len)
    if len(best) < count:
        raise NotExpressed("the model resizes differently for other sizes of its dynamic dimensions")
    return Traces([now for now, *_ in best], [graph for _, graph, _ in best], best[0][2])


def near_sizes(example: Example, dims: list[Dimension], count: int) -> Iterator[Sizes]:
    """`count` sizes with which the model runs, and some further ones."""
    if not dims:
        yield ()
        return
    if not fit(dims, count) or not works(example, dims, [dim.sizes(k, count)[1] for k, dim in enumerate(dims)]):
        example.run([], [])  # an error of the example itself
        for number, dim in enumerate(dims):
            choose_step(example, dims, number, dim, count)
    for k in range(count + SPARE):
        now = tuple([dim.sizes(number, k + 1)[k] for number, dim in enumerate(dims)])
        if k < count or fit(dims, k + 1) and works(example, dims, now):
            yield now


def far_sizes(example: Example, dims: list[Dimension]) -> Iterator[Sizes]:
    """For each dimension, sizes in which it is larger than the example's; or smaller, if the model allows no larger
    ones."""
    for number, dim in enumerate(dims):
        for size in (dim.far(FAR), dim.far(1 / FAR)):
            now = with_size(dims, number, size)
            if dim.allows(size) and works(example, dims, now):
                yield now
                break


def with_size(dims: list[Dimension], number: int, size: int) -> Sizes:
    """Sizes with a given size of one dimension; the other dimensions are near the example's."""
    base = [dim.sizes(k, 2)[1] for k, dim in enumerate(dims)]
    return (*base[:number], size, *base[number + 1 :])


def deciding_sizes(example: Example, dims: list[Dimension], traces: Traces, open_: Ambiguous) -> Sizes | None:
    """Sizes of a further trace that decides between formulas; None if there are none."""
    each = [*zip(*traces.sizes)]
    size = deciding(open_.sizes, open_.candidates)
    if open_.sizes not in each:
        return None
    number = each.index(open_.sizes)
    now = with_size(dims, number, size)
    return now if dims[number].allows(size) and now not in traces.sizes and works(example, dims, now) else None


def fit(dims: list[Dimension], count: int) -> bool:
    """Whether the user allows all near sizes."""
    return all(dim.fits(k, count) for k, dim in enumerate(dims))


def choose_step(example: Example, dims: list[Dimension], number: int, dim: Dimension, count: int) -> None:
    """Set `dim.step` to the first step with which the model runs: a U-Net may need multiples of 4, an embedding of
    positions may allow only smaller sizes."""
    others = [max(d.size, SMALLEST) for d in dims]
    for step in STEPS:
        dim.step = step
        if not dim.fits(number, count):
            continue
        found = sorted({*dim.sizes(number, count)} - {others[number]})
        trials = [[*others[:number], size, *others[number + 1 :]] for size in (found[0], found[-1])]
        if not any(problem(partial(example.run, dims, sizes)) for sizes in trials):
            return
    one = others[number] + 1
    reason = problem(lambda: example.run(dims, [*others[:number], one, *others[number + 1 :]]))
    raise NotExpressed(f"the model takes no other size of {dim.name!r} than {dim.size}; for {one}: {reason}")


def works(example: Example, dims: list[Dimension], sizes: Sequence[int]) -> bool:
    """Whether the model runs with these sizes. Its run is a trace."""
    return not problem(lambda: example.trace(dims, sizes))


def problem(run: Callable) -> str:
    """The error that a run of the model raises; "" if there is none."""
    try:
        run()
    except NotExpressed:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return ""
