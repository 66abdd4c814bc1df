"""A recorded graph as one function of machine code that needs neither Python nor rushlight.

    int NAME([int64_t samples,] const float *x, ..., float *y, ..., void *workspace)

The function fills the table of addresses of the native program (compile/native/lowering.py) on the stack, and calls
`run`. Arrays made of parameters (packed weights) are constants of the library. With `samples` the program is lowered
for one sample, and the function runs the program for each sample."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from rushlight.base.dependencies import has_llvmlite
from rushlight.base.errors import index_error, not_implemented_error
from rushlight.compile.capture.input_sources import find
from rushlight.compile.export.recorded import empty_like
from rushlight.compile.graph import Graph, Value
from rushlight.compile.native import anchors  # noqa: F401
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.lowering import Lowering
from rushlight.compile.native.places import SLACK_BYTES
from rushlight.loops.llvm import BYTE, INT32, POINTER, Function, Module, Number, Target, host
from rushlight.loops.llvm import Value as Emitted

ALIGN = 64
BARRIER_BYTES = 128  # the memory of a native program's barrier, which one thread reads but does not use
LEVELS = {"x86-64-v2": (4, 16, False), "x86-64-v3": (8, 16, True), "x86-64-v4": (16, 32, True)}


class Array(NamedTuple):
    """An argument of the function. `shape`: of one sample, without the dimension of samples, if `sampled`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    sampled: bool

    @property
    def bytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return self.dtype + "".join([f"[{n}]" for n in (("samples",) if self.sampled else ()) + self.shape])


class Library(NamedTuple):
    """A module whose only public function is `name`. `title`: the kind of model. `samples`: whether the function has
    the argument `samples`. `workspace`: bytes of memory that the caller lends. `fails`: whether the function returns 1
    for a wrong input."""

    name: str
    title: str
    module: Module
    inputs: list[Array]
    outputs: list[Array]
    samples: bool
    workspace: int
    fails: bool


def processor(cpu: str) -> Target:
    """The processor "native" (this machine's), or a level of x86-64."""
    if cpu == "native":
        return host()
    if cpu not in LEVELS:
        raise not_implemented_error(f"cpu={cpu!r}", f'use "native" or {", ".join(LEVELS)}')
    triple = host().triple if host().triple.startswith("x86_64") else "x86_64-unknown-linux-gnu"
    return Target(triple, cpu, "", *LEVELS[cpu])


def library(
    graph: Graph, arguments: Sequence[Array], results: Sequence[tuple[str, int]], name: str, title: str, target: Target
) -> Library:
    """The library of a graph. `arguments`: all tensors that the model is given; `results`: the name and number of each
    result. NotImplementedError if the graph has no native function."""
    samples = any(a.sampled for a in arguments)
    try:
        refuse(graph)
        low = Lowering(graph, target, empty_like(graph), False)
    except NotNative as error:
        raise not_implemented_error(f"export: the model has no native function, since {error}", HINT) from None
    low.module.functions["run"].private = True
    outputs = []
    for path, number in results:
        v = graph.results[number]
        outputs.append(Array(path, v.dtype.name, v.shape[1:] if samples else v.shape, samples))
    workspace, fails = low.memory.settled()[1] + BARRIER_BYTES, low.fail_slot is not None
    made = Library(name, title, low.module, [*arguments], outputs, samples, workspace, fails)
    Entry(made, low, graph, [number for _, number in results]).write()
    return made


HINT = 'export it with kind="numpy", which needs only NumPy'


def refuse(graph: Graph) -> None:
    """NotNative for a graph that has no native function, whatever its ops."""
    from rushlight.compile.run.native_way import refusal

    if not has_llvmlite():
        raise NotNative("llvmlite is not installed")
    if reason := refusal(graph, (), {}):
        raise NotNative(reason)


def constants(low: Lowering, graph: Graph) -> list[tuple[int, np.ndarray]]:
    """(slot in the table, array) of each array that is made of parameters."""
    known: dict[Value, np.ndarray] = {}
    for v in graph.inputs:
        if v.source[0] == "state":
            known[v] = find(v.source, [])._array

    def array(v: Value) -> np.ndarray:
        return known[v] if v in known else np.asarray(v._array)

    for step in low.schedule.steady:
        known[step.out] = np.asarray(step.function(*map(array, step.given)))
    made = []
    for function, given, buffer in low.bound:
        if buffer in low.slots:
            made.append((low.slots[buffer], np.ascontiguousarray(function(*map(array, given)))))
    return made


class Returning(Function):
    """A function that returns an int."""

    def text(self) -> str:
        return super().text().replace("define void", "define i32", 1)

    def give(self, result: Emitted) -> None:
        self.lines.append(f"ret i32 {result.v}")


class Entry:
    """Writes the public function of a library."""

    def __init__(self, library: Library, low: Lowering, graph: Graph, numbers: list[int]):
        self.library, self.low, self.graph, self.numbers = library, low, graph, numbers
        inputs, outputs = (
            [f"{kind}{k}" for k in range(len(found))]
            for kind, found in (("in", library.inputs), ("out", library.outputs))
        )
        names = ["samples"] * library.samples + [*inputs, *outputs, "workspace"]
        self.f = Returning(low.module, library.name, " ".join(names), "samples")
        # the buffer of each input and output, its argument and its description
        buffers = {v.source[1]: buffer for v, buffer in low.inputs}
        self.given = [(buffers.get(k), name, a) for k, (name, a) in enumerate(zip(inputs, library.inputs))]
        places = [low.memory.places[graph.results[number]] for number in numbers]
        self.given += [(p.buffer, name, a) for p, name, a in zip(places, outputs, library.outputs)]

    def write(self) -> None:
        f, low = self.f, self.low
        table, workspace = f.room(max(len(low.slots), 1), POINTER), f.args["workspace"]
        f.store(workspace, table, low.barrier_slot)
        for buffer, first in zip(low.memory.arena, low.memory.settled()[0]):
            if buffer in low.slots:
                f.store(f.at(workspace, BARRIER_BYTES + first, BYTE), table, low.slots[buffer])
        failed = None if low.fail_slot is None else f.at(table, low.fail_slot, POINTER)
        if failed is not None:
            f.store(f.number(INT32, 0), failed, 0)
        self.write_constants(table)
        self.write_arguments(table, 0, False)
        if self.library.samples:
            f.loop(0, f.args["samples"], 1, lambda i: self.run(table, i))
        else:
            self.run(table, 0)
        f.give(f.number(INT32, 0) if failed is None else f.load(failed, 0, INT32))

    def write_constants(self, table: Any) -> None:
        """The weights as a constant of the module, and their addresses in the table."""
        found, data = constants(self.low, self.graph), bytearray()
        if not found:
            return
        weights = Emitted(self.f, "@weights", POINTER)
        for slot, array in found:
            self.f.store(self.f.at(weights, len(data), BYTE), table, slot)
            data += array.tobytes()
            data += bytes(SLACK_BYTES + -(len(data) + SLACK_BYTES) % ALIGN)
        text = "\\" + data.hex("\\")
        self.low.module.globals.append(f'@weights = internal constant [{len(data)} x i8] c"{text}", align {ALIGN}')

    def write_arguments(self, table: Any, i: Number, sampled: bool) -> None:
        """The addresses of the arguments that are `sampled`, at sample i, or of the others."""
        for buffer, name, a in self.given:
            if a.sampled is sampled and buffer in self.low.slots:
                self.f.store(self.f.at(self.f.args[name], i * a.bytes, BYTE), table, self.low.slots[buffer])

    def run(self, table: Any, i: Number) -> None:
        """Run the program for sample i."""
        self.write_arguments(table, i, True)
        self.f.call("run", table, self.f.whole(0), self.f.whole(1))


def answers(made: Library, arrays: Sequence[np.ndarray], samples: int = 1) -> list[np.ndarray]:
    """The results of a library's function, compiled for this machine: the same instructions, other machine code."""
    target = made.module.target
    made.module.target = target._replace(**{k: getattr(host(), k) for k in ("triple", "cpu", "features")})
    try:
        engine = made.module.compiled()
    finally:
        made.module.target = target
    outs = [np.empty(((samples,) if a.sampled else ()) + a.shape, a.dtype) for a in made.outputs]
    workspace = np.empty(made.workspace, np.uint8)
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (*arrays, *outs, workspace)]
    kinds = [ctypes.c_int64] * made.samples + [ctypes.c_void_p] * len(pointers)
    function = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(engine.get_function_address(made.name))
    if function(*[samples] * made.samples, *pointers):
        raise index_error("export: an index of the example is out of range")
    return outs
