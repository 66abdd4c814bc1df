"""Elementwise steps in loops: over all elements of a group without an anchor, or at the place that an anchor has just
computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rushlight.compile.graph import Value
from rushlight.compile.native.elements import computed
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.places import Place
from rushlight.compile.native.schedule import Group
from rushlight.compile.passes.simplify import uniform
from rushlight.loops import llvm
from rushlight.loops.llvm import TYPES, Function, Number, Symbol

if TYPE_CHECKING:
    from rushlight.compile.native.lowering import Step


@dataclass
class Lanes:
    """Where a vector lies in a space: `at`, a coordinate for each dimension; the `count` lanes run along the dimension
    `along`, and the first `valid` exist."""

    at: Sequence[Number]
    along: int
    count: int
    valid: int


class Pieces:
    """The arrays of a group in one space: loads of operands, elementwise steps, and the store of the result.

    `shape`: the space; `merge`: groups of adjacent dimensions that count as one dimension (the anchor's)."""

    def __init__(
        self, step: Step, group: Group, shape: tuple[int, ...], merge: Sequence[tuple[int, ...]] | None = None
    ):
        self.step, self.group, self.f = step, group, step.f
        self.merge = merge or [(d,) for d in range(len(shape))]
        self.reads = [v for v in group.reads() if v.kind != "constant" or uniform(v) is None]
        self.strides = {v: self.strides_of(step.place(v), shape) for v in self.reads}
        out = group.out
        self.out = step.place(out)
        self.out_strides = self.strides_of(self.out, shape)

    def strides_of(self, place: Place, shape: tuple[int, ...]) -> tuple[int, ...]:
        found = [joint_stride(place, shape, dims) for dims in self.merge]
        if None in found:
            raise NotNative("dimensions that count as one lie apart")
        return tuple([s or 0 for s in found])

    def element(self, v: Value, lanes: Lanes) -> llvm.Value:
        """The elements of an operand: one number where all lanes have the same element."""
        place, strides = self.step.place(v), self.strides[v]
        where = index(place.offset, lanes.at, strides)
        stride = strides[lanes.along] if lanes.count else 0
        return load(self.f, self.step.pointer(place), where, TYPES[v.dtype.name], stride, lanes)

    def finish(self, made: dict[Value, llvm.Value], lanes: Lanes) -> None:
        """Compute the elementwise steps from the values of the anchor, and store the result."""
        known = made | {v: self.element(v, lanes) for v in self.reads}
        out = self.group.out
        found = computed(self.f, self.group.steps, known)[out]
        if not found.lanes and lanes.count:
            found = llvm.repeated(found, lanes.count)
        where = index(self.out.offset, lanes.at, self.out_strides)
        stride = self.out_strides[lanes.along] if lanes.count else 0
        store(self.f, found, self.step.pointer(self.out), where, stride, lanes)


def joint_stride(place: Place, shape: tuple[int, ...], dims: tuple[int, ...]) -> int | None:
    """The stride of adjacent dimensions that count as one; None if the elements do not lie at even distances."""
    spread = place.spread(shape)
    left = [d for d in dims if shape[d] > 1]
    if any(spread[a] != spread[b] * shape[b] for a, b in zip(left, left[1:])):
        return None
    return spread[left[-1]] if left else 0


def index(offset: int, at: Sequence[Number], strides: Sequence[int]) -> Number:
    """offset + sum of at[d] strides[d]."""
    known, found = offset, None
    for i, s in zip(at, strides):
        if isinstance(i, int):
            known += i * s
        elif s:
            found = i * s if found is None else found + i * s
    return known if found is None else found + known


def load(f: Function, pointer: llvm.Value, where: Number, kind: Any, stride: int, lanes: Lanes) -> llvm.Value:
    """A number if the stride is 0, a vector of neighbours if it is 1, otherwise a vector of single elements."""
    if stride == 0 or not lanes.count:
        return f.load(pointer, where, kind)
    if stride == 1:
        return f.load(pointer, where, kind, lanes.count, lanes.valid)
    numbers = [f.load(pointer, where + k * stride, kind) for k in range(lanes.valid)]
    return llvm.stacked(numbers + numbers[:1] * (lanes.count - lanes.valid))


def store(f: Function, x: llvm.Value, pointer: llvm.Value, where: Number, stride: int, lanes: Lanes) -> None:
    if stride == 1 or not lanes.count:
        return f.store(x, pointer, where, lanes.valid)
    for k in range(lanes.valid):
        f.store(llvm.lane(x, k), pointer, where + k * stride)


def over_elements(step: Step, group: Group) -> None:
    """All elements of a group without an anchor: loops over the dimensions in the order of the result's memory;
    neighbouring dimensions that lie alike in all arrays are one loop."""
    pieces = Pieces(step, group, group.out.shape)
    over_space(step, group.out.shape, [pieces.out_strides, *pieces.strides.values()], partial(pieces.finish, {}))


def over_space(
    step: Step,
    shape: tuple[int, ...],
    strides: list[tuple[int, ...]],
    body: Callable[[Lanes], None],
    line: Callable[[list[Number], int | None], None] | None = None,
) -> None:
    """body(lanes) for all places of a space. `strides`: of the arrays, first the array whose order the loops take.
    `line(at, along)` runs before each innermost loop, where the coordinate `along` is 0; None if there is no loop."""
    if 0 not in shape:
        order = sorted([d for d in range(len(shape)) if shape[d] > 1], key=lambda d: -strides[0][d])
        lanes_along(step, shape, merged(order, shape, strides), body, line or (lambda at, along: None))


def merged(order: list[int], shape: Sequence[int], strides: list[tuple[int, ...]]) -> list[tuple[int, int]]:
    """(size, dimension of the smallest stride) of each loop, from the outermost."""
    loops: list[tuple[int, int]] = []
    for d in order:
        if loops and all(s[loops[-1][1]] == s[d] * shape[d] for s in strides):
            loops[-1] = loops[-1][0] * shape[d], d
        else:
            loops.append((shape[d], d))
    return loops


def over_vectors(
    f: Function, part: tuple[Number, Number], size: Number, body: Callable[[Number, int, int], None]
) -> None:
    """body(i, lanes, valid lanes) for a part of `size` elements: whole vectors, then the elements that are left, as one
    vector, or one by one if their number is not known."""
    (start, stop), width = part, f.module.target.lanes
    vector = lambda i: body(i, width, width)
    if isinstance(stop, int) and isinstance(start, int):
        whole = start + (stop - start) // width * width
        f.loop(start, whole, width, vector)
        if whole < stop:
            body(whole, width, stop - whole)
    elif isinstance(size, Symbol) and not size.divisible(width):
        whole = stop - (f.whole(stop) - start) % width
        f.loop(start, whole, width, vector)
        f.loop(whole, stop, 1, lambda i: body(i, 0, 1))
    else:
        f.loop(start, stop, width, vector)


def lanes_along(
    step: Step, shape: tuple[int, ...], loops: list[tuple[int, int]], body: Callable, line: Callable
) -> None:
    """The loops, with vectors along the innermost."""
    f = step.f
    at: list[Number] = [0] * len(shape)
    if not loops:
        step.alone(lambda: (line(at, None), body(Lanes(at, 0, 0, 1))))
        return
    *outer, (size, along) = loops
    width = f.module.target.lanes

    def inner(start: Number, stop: Number) -> None:
        at[along] = 0
        line([*at], along)
        over_vectors(f, (start, stop), size, place)

    def place(i: Number, count: int, valid: int) -> None:
        at[along] = i
        body(Lanes([*at], along, count, valid))

    def nested(depth: int) -> None:
        if depth == len(outer):
            inner(0, size)
            return
        count, d = outer[depth]

        def one(i: Number) -> None:
            at[d] = i
            nested(depth + 1)

        start, stop = step.share(count) if depth == 0 else (0, count)
        f.loop(start, stop, 1, one)

    if outer:
        nested(0)
    elif isinstance(size, Symbol):
        start, stop = step.share((f.whole(size) + (width - 1)) // width)
        inner(f.whole(start) * width, llvm.smaller(f.whole(stop) * width, size))
    elif size >= step.parallel_from and size % width == 0:
        start, stop = step.share(size // width)
        inner(step.f.whole(start) * width, step.f.whole(stop) * width)
    else:
        step.alone(lambda: inner(0, size))
