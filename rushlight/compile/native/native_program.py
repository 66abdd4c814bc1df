"""A graph as a function of machine code that Python calls with arrays.

Arrays made of parameters (packed weights, folded batch norms) are made again when a parameter's memory, or the number
of writes to a parameter, has changed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.base.array_memory import is_exposed, offset_of_data
from rushlight.base.buffer_pool import MIN_ARRAY_BYTES, memory
from rushlight.base.threads import cores
from rushlight.compile.capture.input_sources import find
from rushlight.compile.graph import Graph, Value
from rushlight.compile.guards.memory_words import Words, slot_offset, supported
from rushlight.compile.lower.runtime import aligned
from rushlight.compile.native import anchors  # noqa: F401
from rushlight.compile.native.lowering import BASE_WORD, Lowering
from rushlight.compile.native.places import SLACK_BYTES, NotNative, WrongInput
from rushlight.core.node import clock
from rushlight.core.tensor import Tensor, writes_of
from rushlight.loops.llvm import BYTE, POINTER, Function, host
from rushlight.loops.spin_pool import pool
from rushlight.ops.linalg.matmul import linear, mm
from rushlight.ops.nn.attention import attention
from rushlight.ops.nn.conv import convolution

# multiply-adds, about 0.3 ms on one core: from here on a call waits for threads that sleep
WAKE_FROM_WORK = 20_000_000
PARALLEL_FROM_WORK = 2_000_000  # multiply-adds, about 30 us on one core: from here on all cores share the steps


def work_of(graph: Graph) -> int:
    """About how many multiply-adds the graph takes: for a product, the elements of the result times the length of the
    sums; for another step, four for each element of the result."""
    return sum([step.outs[0].size * terms(step) for step in graph.steps if step.outs])


def terms(step: Any) -> int:
    """The length of the sums in a convolution or product."""
    if step.runs(convolution):
        weight = step.args[1]
        return weight.size // max(weight.shape[0], 1)
    if step.runs(attention):
        return 2 * step.args[0][1].shape[-2]  # the keys
    return step.args[0].shape[-1] if step.runs(linear, mm) else 4


class NativeProgram:
    """`sources`: the arguments, in the order of `call`. `state`: the sources of the parameters."""

    def __init__(self, graph: Graph, likes: list[np.ndarray]):
        work = work_of(graph)
        self.threads, self.long = cores() > 1 and work >= PARALLEL_FROM_WORK, work >= WAKE_FROM_WORK
        low = Lowering(graph, host(), likes, self.threads)
        self.lowering = low
        self.steady_arrays: dict[Value, np.ndarray] = {}  # of the last `bind`
        self.sources = [v.source for v, _ in low.inputs]
        self.state = [v for v in graph.inputs if v.source[0] == "state"]
        self.tensors = [find(v.source, []) for v in self.state]
        self.steady, self.bound = low.schedule.steady, low.bound
        self.slots = [low.slots.get(buffer) for _, _, buffer in low.bound]
        self.make_table(low)
        self.arrays: list[np.ndarray] = []
        order = {id(buffer): k for k, (_, buffer) in enumerate(low.outputs)}
        places = [low.memory.places[v] for v in low.schedule.results]
        self.results = [order[id(p.buffer)] for p in places]
        self.templates = [template(a) for a, _ in low.outputs]
        self.in_order = self.results == [*range(len(self.templates))]
        used = [low.slots.get(b) for _, b in (*low.inputs, *low.outputs)]
        self.enter = self.entry(low, used)
        self.seen, self.versions = -1, [-1] * len(self.tensors)
        self.parameters: list[np.ndarray] = []
        # the words that change if a parameter gets other memory
        words = [id(t) + slot_offset(Tensor, "_array") for t in self.tensors] if supported() else []
        self.moved = Words(words, self.tensors) if words else None

    def make_table(self, low: Lowering) -> None:
        """The table of addresses, the arena and the barrier."""
        self.table = np.zeros(len(low.slots), np.int64)
        self.address = self.table.ctypes.data
        self.kept = [aligned(low.arena_bytes), aligned(128)]
        self.barrier = (ctypes.c_int64 * 16).from_address(self.kept[1].ctypes.data)
        self.arena = [(slot, b) for b, slot in low.slots.items() if b.kind == "arena"]
        for slot, buffer in self.arena:
            self.table[slot] = self.kept[0].ctypes.data + buffer.index
        self.fail_slot = low.fail_slot
        self.table[low.barrier_slot] = self.kept[1].ctypes.data

    def entry(self, low: Lowering, slots: list[int | None]) -> Callable[..., None]:
        """`call(table, objects...)`: reads the addresses of arrays from Python's objects, and runs the program."""
        offset = offset_of_data()
        names = [f"object{k}" for k in range(len(slots))]
        f = Function(low.module, "call", " ".join(["table", *names]))
        table = f.args["table"]
        for slot, name in zip(slots, names):
            if slot is not None:
                given = f.args[name]
                f.store(given if offset is None else f.load(f.at(given, offset, BYTE), 0, POINTER), table, slot)
        if low.fail_slot is not None:
            f.store(f.whole(0), table, low.fail_slot)
        if not self.threads:
            f.call("run", table, f.whole(0), f.whole(1))
        f.end()
        self.engine = low.module.compiled()
        self.run_address = self.engine.get_function_address("run")
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(self.run_address)
        kind = ctypes.c_void_p if offset is None else ctypes.py_object
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[kind] * len(slots))
        made = call(self.engine.get_function_address("call"))
        if offset is not None:
            return made
        return lambda table, *arrays: made(table, *[a.ctypes.data for a in arrays])

    def run_parts(self) -> None:
        """Run the program on all cores; a short program runs on one if threads sleep, and wakes the threads."""
        if cores() == 1 or not pool.lock.acquire(blocking=False):
            self.run(self.address, 0, 1)
            return
        try:
            parts = 1
            if pool.ready() or self.long:
                self.barrier[BASE_WORD] = self.barrier[0]
                parts = pool.post(self.run_address, self.address)
            self.run(self.address, 0, parts)
            if parts > 1:
                pool.wait()
        finally:
            pool.lock.release()

    def bind(self, *arrays: np.ndarray) -> tuple:
        """Make the arrays that depend on parameters; `arrays` in the order of `state`."""
        if any(map(is_exposed, arrays)):
            raise NotNative("a parameter shares its memory with NumPy")
        self.parameters = list(arrays)
        if self.moved is not None:
            self.moved.copy()
        known: dict[Value, np.ndarray] = dict(zip(self.state, arrays))

        def array(v: Value) -> np.ndarray:
            return known[v] if v in known else np.asarray(v._array)

        for step in self.steady:
            known[step.out] = np.asarray(step.function(*map(array, step.given)))
        self.steady_arrays, self.arrays = known, []
        for (function, given, _), slot in zip(self.bound, self.slots):
            made = np.ascontiguousarray(function(*map(array, given)))
            if function is not np.ascontiguousarray:  # a parameter itself, such as a table of rows, is not copied
                room = aligned(made.nbytes + SLACK_BYTES)[: made.nbytes]
                room[:] = made.reshape(-1).view(np.uint8)
                made = room
            self.arrays.append(made)
            if slot is not None:
                self.table[slot] = made.ctypes.data
        self.seen, self.versions = clock.last_write, [writes_of(t).count for t in self.tensors]
        return ()

    def let_go(self) -> None:
        """Free what only the comparison with eager needs."""
        self.steady_arrays, self.lowering = {}, None  # type: ignore[assignment]

    def refresh(self) -> None:
        """Bind again if a parameter was written to since it was bound. Raises NotNative if code outside of tensors has
        a parameter's array."""
        if any(map(is_exposed, self.parameters)):
            raise NotNative("a parameter shares its memory with NumPy")
        if self.versions != [writes_of(t).count for t in self.tensors]:
            self.bind(*self.parameters)
        self.seen = clock.last_write

    def call(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """The results for the arrays of the arguments, in the order of `sources`; WrongInput if a step has failed."""
        if clock.last_write != self.seen:
            self.refresh()
        made = [new(shape, dtype) for new, shape, dtype in self.templates]
        self.enter(self.address, *inputs, *made)
        if self.threads:
            self.run_parts()
        if self.fail_slot is not None and self.table[self.fail_slot]:
            raise WrongInput("an input that eager refuses")
        return made if self.in_order else [made[k] for k in self.results]


def template(a: np.ndarray) -> tuple[Callable[..., np.ndarray], Any, Any]:
    """(function, arguments...) that makes an array like `a`: of the same shape, dtype and strides."""
    if a.flags.c_contiguous:
        return memory.take if a.nbytes >= MIN_ARRAY_BYTES else np.empty, a.shape, a.dtype
    return (lambda like, dtype: np.empty_like(like)), a, a.dtype
