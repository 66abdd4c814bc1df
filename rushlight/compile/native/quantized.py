"""Linear maps of int8 weights (ops/nn/quantized.py): the functions of fast/int8_code.py, as part of the module."""

from __future__ import annotations

from functools import partial

import numpy as np

from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.lowering import Lowering, Step, anchor
from rushlight.compile.native.places import Buffer, Place, row_major
from rushlight.compile.native.schedule import Group
from rushlight.fast import int8_code
from rushlight.fast.int8_loops import filled
from rushlight.kernels.int8 import INPUTS, Int8Weight
from rushlight.loops.llvm import FLOAT, INT64, Value
from rushlight.ops.nn.quantized import int8_linear

HEAD_BYTES = 8  # of a row before its numbers: the scale and the zero point


@anchor(int8_linear)
def linear(low: Lowering, group: Group) -> None:
    """x (..., K) -> (..., N): one step quantizes all rows, the next multiplies."""
    x, weight, most = group.anchor.args
    if x.dtype != np.float32 or weight.zeros is not None or not x.size:
        raise NotNative("an int8 linear layer of other numbers")
    written = Group(group.anchor, [], group.anchor.outs[0]) if group.steps else group
    source, rows = low.contiguous(x), x.size // weight.shape[1]
    panels, quads = weight.tiles.shape[:2]
    quantized = low.memory.scratch(rows * (HEAD_BYTES + quads * INPUTS), np.uint8)
    place = low.make(written.out)
    if place.strides != row_major(place.shape):
        raise NotNative("the result of an int8 linear layer is not in C order")
    tables = [low.derived(lambda made=made: made, ()) for made in arrays_of(weight)]

    def given(step: Step) -> list[Value]:
        places = first(step, source), step.pointer(quantized), first(step, place)
        return [table(step, tables, weight), *places, *map(step.f.whole, (rows, weight.shape[1], most))]

    for name, write in (("by_tensor", int8_code.by_tensor), ("multiplied", int8_code.multiply)):
        if name not in low.module.functions:
            write(low.module)
    step = low.step()
    step.alone(partial(step.f.call, "by_tensor", *given(step)))
    step = low.step()
    step.f.call("multiplied", *given(step), *map(step.f.whole, step.share(panels)))
    low.write_rest(group, written)


def first(step: Step, place: Place) -> Value:
    """The address of a place's first element."""
    return step.f.at(step.pointer(place), place.offset, FLOAT)


def arrays_of(weight: Int8Weight) -> list[np.ndarray]:
    """The arrays of a weight's table, in the order of int8_code.TABLE."""
    bias = np.zeros(weight.shape[0], np.float32) if weight.bias is None else weight.bias
    scales = np.broadcast_to(weight.scales, weight.shape[:1])
    return [weight.tiles, filled(scales), filled(weight.sums), filled(bias)]


def table(step: Step, buffers: list[Buffer], weight: Int8Weight) -> Value:
    """A weight's table on the stack: addresses, the number of outputs, and of groups of 4 inputs."""
    f = step.f
    room = f.room(len(buffers) + 2, INT64)
    for k, buffer in enumerate(buffers):
        f.store(step.pointer(buffer), room, k)
    for k, n in enumerate((weight.shape[0], weight.tiles.shape[1])):
        f.store(f.whole(n), room, len(buffers) + k)
    return room
