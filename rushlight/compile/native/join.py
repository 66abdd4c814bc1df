"""Concatenations and paddings: boxes of the result, each of which is an array or one number.

A part whose only home is the result is written there by its own step (`parts_in`, `Lowering.make`); the other parts are
copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rushlight.compile.graph import Value
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import Lanes, Pieces, index, over_space
from rushlight.compile.native.loop_nest import load as load_lanes
from rushlight.compile.native.lowering import Lowering, anchor
from rushlight.compile.native.places import Place
from rushlight.compile.native.schedule import Group
from rushlight.loops.llvm import TYPES
from rushlight.ops.shape import pad, views

Shape = tuple[int, ...]


@dataclass
class Part:
    """A box of a value. `start`: the coordinates of its first element; `dims`: the dimensions of the whole that the
    part has."""

    whole: Value
    start: Shape
    dims: Shape

    def first(self, whole: Place) -> int:
        return whole.offset + sum([i * s for i, s in zip(self.start, whole.strides)])

    def strides(self, whole: Place) -> Shape:
        return tuple([whole.strides[d] for d in self.dims])


@dataclass
class Box:
    """`source`: the elements; None for the number. `shape`: in the space of the result; `dims`: the dimensions of the
    result that the source has."""

    source: Place | None
    start: Shape
    shape: Shape
    dims: Shape

    def strides(self) -> Shape:
        """Of the source, in the space of the result."""
        own = () if self.source is None else self.source.strides
        found = dict(zip(self.dims, own))
        return tuple([found.get(d, 0) for d in range(len(self.shape))])


def parts_in(group: Group) -> Iterator[tuple[Value, Part]]:
    """The arguments of a concatenation or a padding that may lie inside the result."""
    call = group.anchor
    if call is None or group.steps:
        return
    out = call.outs[0]
    if call.runs(views.cat, views.stack):
        given = [v for v, _, _ in pieces_of(call)]
        for v, start, dims in pieces_of(call):
            if v.dtype == out.dtype and sum(v is other for other in given) == 1:
                yield v, Part(out, start, dims)
    elif call.runs(pad.constant_pad) and min([a for pair in call.args[1] for a in pair], default=0) >= 0:
        yield call.args[0], Part(out, tuple([a for a, _ in call.args[1]]), tuple(range(len(out.shape))))


def pieces_of(call: object) -> list[tuple[Value, Shape, Shape]]:
    """(value, start, dims) of the tensors of `cat` or `stack`."""
    tensors, *dim = call.args  # type: ignore[attr-defined]
    n = len(call.outs[0].shape)  # type: ignore[attr-defined]
    along = (dim[0] if dim else 0) % max(n, 1)
    stacks = call.runs(views.stack)  # type: ignore[attr-defined]
    found, place = [], 0
    for v in tensors:
        if not stacks and v.shape == (0,):
            continue
        start = tuple([place if d == along else 0 for d in range(n)])
        found.append((v, start, tuple([d for d in range(n) if d != along or not stacks])))
        place += 1 if stacks else v.shape[along]
    return found


@anchor(views.cat, views.stack)
def join(low: Lowering, group: Group) -> None:
    out = group.anchor.outs[0]
    boxes = []
    for v, start, dims in pieces_of(group.anchor):
        if v.dtype != out.dtype:
            raise NotNative("a concatenation of several dtypes")
        sizes = dict(zip(dims, v.shape))
        boxes.append(Box(low.place(v), start, tuple([sizes.get(d, 1) for d in range(len(out.shape))]), dims))
    write(low, group, boxes, 0)


@anchor(pad.constant_pad)
def constant_pad(low: Lowering, group: Group) -> None:
    v, amounts, value = group.anchor.args
    shape = group.anchor.outs[0].shape
    n = len(shape)
    start = tuple([max(a, 0) for a, _ in amounts])
    inner = tuple([m - max(a, 0) - max(b, 0) for m, (a, b) in zip(shape, amounts)])
    if any([m < 0 for m in inner]):
        raise NotNative("a padding that crops more than there is")
    x = low.place(v)
    moved = x.offset + sum([max(-a, 0) * s for (a, _), s in zip(amounts, x.strides)])
    source = Place(x.buffer, inner, x.dtype, x.strides, moved)
    boxes = [Box(source, start, inner, tuple(range(n)))]
    for d, (_, after) in enumerate(amounts):
        for first, size in ((0, start[d]), (shape[d] - max(after, 0), max(after, 0))):
            if size:
                box = (*inner[:d], size, *shape[d + 1 :])
                boxes.append(Box(None, (*start[:d], first, *(0,) * (n - d - 1)), box, ()))
    write(low, group, boxes, value)


def write(low: Lowering, group: Group, boxes: Sequence[Box], value: float) -> None:
    """The boxes that do not lie in the result yet. `value`: of the boxes without a source."""
    out, n = group.out, len(group.out.shape)
    if out not in low.memory.places:
        first = next((b.source for b in boxes if b.source is not None and len(b.dims) == n), None)
        own = None if first is None or out in low.likes else first.strides
        low.make(out, own and tuple(sorted(range(n), key=lambda d: (-own[d], d))), [])
    whole = low.place(out)
    left = [box for box in boxes if 0 not in box.shape and not (not group.steps and lies_in(box, whole))]
    if not left:
        return
    step = low.step()
    pieces, made = Pieces(step, group, out.shape), group.anchor.outs[0]
    for box in left:
        copy_box(low, pieces, box, made, value)


def lies_in(box: Box, whole: Place) -> bool:
    """Whether the elements of a box are in the result's memory already."""
    source = box.source
    if source is None or source.buffer is not whole.buffer:
        return False
    alike = all(a == b for a, b, n in zip(box.strides(), whole.strides, box.shape) if n > 1)
    return alike and source.offset == whole.offset + sum([i * s for i, s in zip(box.start, whole.strides)])


def copy_box(low: Lowering, pieces: Pieces, box: Box, made: Value, value: float) -> None:
    step, source, strides, kind = pieces.step, box.source, box.strides(), TYPES[made.dtype.name]
    if source is not None:
        low.memory.use(source.buffer)
    pointer = None if source is None else step.pointer(source)

    def vector(lanes: Lanes) -> None:
        if pointer is None or source is None:
            x = step.f.number(kind, value, lanes.count)
        else:
            where = index(source.offset, lanes.at, strides)
            x = load_lanes(step.f, pointer, where, kind, strides[lanes.along], lanes)
        at = [i + s if s else i for i, s in zip(lanes.at, box.start)]
        pieces.finish({made: x}, Lanes(at, lanes.along, lanes.count, lanes.valid))

    over_space(step, box.shape, [pieces.out_strides, strides, *pieces.strides.values()], vector)
