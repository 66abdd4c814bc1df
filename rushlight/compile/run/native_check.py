"""Compare a native function with eager: each group of steps with the ops' own kernels on the same inputs, then the
results.

For the comparison each value between steps has memory of its own, so all values exist after the run."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

import numpy as np

from rushlight.compile.graph import Call, Value, values_in, with_each
from rushlight.compile.lower.runtime import aligned
from rushlight.compile.native.native_program import NativeProgram
from rushlight.compile.native.places import Buffer, Place
from rushlight.compile.native.schedule import Group
from rushlight.compile.native.sizes import Sized, at
from rushlight.compile.run.tolerance import Noise
from rushlight.compile.run.verify import FLOATS, anew, compare, computed, name_of


def check_groups(native: NativeProgram, arrays: list[np.ndarray], parameters: list[np.ndarray]) -> list[np.ndarray]:
    """The results of a run. Raises Mismatch if a group's result differs from its ops' kernels beyond rounding.

    `arrays`: of the arguments, in the order of `native.sources`; `parameters`: in the order of `native.state`."""
    native.bind(*parameters)
    before = native.table.copy()
    rooms = {buffer: aligned(at(buffer.bytes, native.n)) for _, buffer in native.arena}
    for slot, buffer in native.arena:
        rooms[buffer][:] = 255  # nan: memory that is read before it is written shows in a result
        native.table[slot] = rooms[buffer].ctypes.data
    try:
        results = native.call(*arrays)
    finally:
        native.table[:] = before
    bound = {buffer: a for (_, _, buffer), a in zip(native.code.bound, native.code.arrays)}
    memory = rooms | native.constants | bound
    memory.update((buffer, a) for a, (_, buffer) in zip(arrays, native.lowering.inputs))
    memory.update((native.lowering.outputs[k][1], a) for k, a in zip(native.results, results))
    known = Known(native, memory)
    for group in native.lowering.schedule.items:
        if isinstance(group, Group):
            check(group, known)
    return results


class Known:
    """The arrays of values after a run."""

    def __init__(self, native: NativeProgram, memory: dict[Buffer, np.ndarray]):
        self.places, self.memory, self.n = native.lowering.memory.places, memory, native.n
        self.steady = native.code.steady_arrays()

    def array(self, v: Value) -> np.ndarray:
        if v.kind == "constant":
            return np.asarray(v._array)
        if v in self.steady:
            return self.steady[v]
        place = self.places[v].at(self.n)
        if 0 in place.shape:  # no step uses the buffer
            return np.empty(place.shape, place.dtype)
        return shown(place, self.memory[place.buffer])

    def arguments(self, step: Call) -> tuple:
        """The arguments of a step, with numbers for Sizes."""

        def value(v: Value) -> Value:
            if v.kind != "constant" or not isinstance(v, Sized):
                return v
            return Value(np.broadcast_to(v._array.reshape(-1)[:1], at(v.shape, self.n)), "constant")  # of equal numbers

        return with_each(at(tuple(step.args), self.n), value)


def shown(place: Place, memory: np.ndarray) -> np.ndarray:
    """The elements of a place. `memory`: an array that begins at the buffer's first byte."""
    first = memory.__array_interface__["data"][0] + place.offset * place.dtype.itemsize
    extent = 1 + sum([(n - 1) * s for n, s in zip(place.shape, place.strides) if n])
    room: Any = (ctypes.c_char * (extent * place.dtype.itemsize)).from_address(first)
    flat = np.frombuffer(room, place.dtype)
    strides = tuple([s * place.dtype.itemsize for s in place.strides])
    return np.lib.stride_tricks.as_strided(flat, place.shape, strides)


def check(group: Group, known: Known) -> None:
    steps = [Call(s.op, known.arguments(s), s.outs, shares=s.shares) for s in group.all_steps()]
    inside = {v for s in steps for v in s.outs}
    given = {v: known.array(v) for s in steps for v in values_in(s.args) if v not in inside and v.kind != "constant"}
    right = computed(steps, given)
    again = partial(anew, steps, {v: partial(Noise.on, a=a) for v, a in given.items()})
    compare({group.out: known.array(group.out)}, right, again, f"{name_of(steps)}: its machine code gives", FLOATS)
