"""A graph as a function of machine code that Python calls with arrays.

Arrays made of parameters (packed weights, folded batch norms) are made again when a parameter's memory, or the number
of writes to a parameter, has changed."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
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
from rushlight.compile.native.errors import NotNative, WrongInput
from rushlight.compile.native.lowering import BASE_WORD, Blank, Lowering
from rushlight.compile.native.places import SLACK_BYTES
from rushlight.compile.native.sizes import at
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


class NativeCode:
    """The machine code of a graph, and the arrays that are made of its parameters. For a graph with Sizes, several
    programs share them.

    `sources`: the arguments, in the order of `enter`. `state`: the sources of the parameters."""

    def __init__(self, graph: Graph, likes: list[np.ndarray], threads: bool, layouts: Mapping[Value, tuple] | None):
        self.threads = threads
        # with Sizes, threads have rooms in the arena (`Step.room`), for as many threads as there are now
        self.most_threads = sys.maxsize if layouts is None else cores()
        low = self.lowering = Lowering(graph, host(), likes, threads, layouts)
        self.sources = [v.source for v, _ in low.inputs]
        self.state = [v for v in graph.inputs if v.source[0] == "state"]
        self.tensors = [find(v.source, []) for v in self.state]
        self.steady, self.bound = low.schedule.steady, low.bound
        self.memory, self.slots, self.outputs = low.memory, low.slots, [like for like, _ in low.outputs]
        self.constants = low.constants
        self.samples_slot, self.barrier_slot, self.fail_slot = low.samples_slot, low.barrier_slot, low.fail_slot
        order = {buffer: k for k, (_, buffer) in enumerate(low.outputs)}
        self.results = [order[low.memory.places[v].buffer] for v in low.schedule.results]
        self.in_order = self.results == [*range(len(low.outputs))]
        self.enter = self.entry(low, [low.slots.get(b) for _, b in (*low.inputs, *low.outputs)])
        self.arrays: list[np.ndarray] = []
        self.stamp = 0  # of the last `bind`
        self.versions = [-1] * len(self.tensors)
        self.parameters: list[np.ndarray] = []
        # the words that change if a parameter gets other memory
        words = [id(t) + slot_offset(Tensor, "_array") for t in self.tensors] if supported() else []
        self.moved = Words(words, self.tensors) if words else None

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

    def bind(self, *arrays: np.ndarray) -> None:
        """Make the arrays that depend on parameters, if they are not made; `arrays` in the order of `state`. Raises
        NotNative if code outside of tensors has a parameter's array."""
        if any(map(is_exposed, arrays)):
            raise NotNative("a parameter shares its memory with NumPy")
        versions = [writes_of(t).count for t in self.tensors]
        bound = versions == self.versions and all(a is b for a, b in zip(arrays, self.parameters))
        if self.stamp and bound:
            return
        self.parameters, self.arrays = list(arrays), []
        if self.moved is not None:
            self.moved.copy()
        known = self.steady_arrays()
        for function, given, _ in self.bound:
            made = np.ascontiguousarray(function(*[known[v] if v in known else np.asarray(v._array) for v in given]))
            if function is not np.ascontiguousarray:  # a parameter itself, such as a table of rows, is not copied
                made = padded(made)
            self.arrays.append(made)
        self.stamp += 1
        self.versions = versions

    def let_go(self) -> None:
        """Free what only the comparison with eager needs; code of several sizes keeps it for the next size."""
        if self.samples_slot is None:
            self.lowering = None  # type: ignore[assignment]

    def steady_arrays(self) -> dict[Value, np.ndarray]:
        """The parameters, and the values that depend on parameters alone."""
        known: dict[Value, np.ndarray] = dict(zip(self.state, self.parameters))
        for step in self.steady:
            given = [known[v] if v in known else np.asarray(v._array) for v in step.given]
            known[step.out] = np.asarray(step.function(*given))
        return known


class NativeProgram:
    """The machine code with memory of its own. `graph`: with the sizes of this program. `n`: for the code's Sizes;
    `constants`: the constants that differ from size to size."""

    def __init__(self, code: NativeCode, graph: Graph, n: int = 0, constants: Sequence[np.ndarray] = ()):
        self.code, self.n = code, n
        self.sources, self.state, self.moved, self.results = code.sources, code.state, code.moved, code.results
        self.long = work_of(graph) >= WAKE_FROM_WORK
        self.table = np.zeros(len(code.slots), np.int64)
        self.address = self.table.ctypes.data
        first, size = code.memory.settled(n)
        self.kept = [aligned(size), aligned(128)]
        self.barrier = (ctypes.c_int64 * 16).from_address(self.kept[1].ctypes.data)
        begin = dict(zip(code.memory.arena, first))
        self.arena = [(slot, b) for b, slot in code.slots.items() if b.kind == "arena"]
        for slot, buffer in self.arena:
            self.table[slot] = self.kept[0].ctypes.data + begin[buffer]
        self.table[code.barrier_slot] = self.kept[1].ctypes.data
        self.constants = dict(zip(code.constants, map(padded, constants)))
        for buffer, array in self.constants.items():
            if buffer in code.slots:
                self.table[code.slots[buffer]] = array.ctypes.data
        if code.samples_slot is not None:
            self.table[code.samples_slot] = n
        self.bound = [(k, code.slots[b]) for k, (_, _, b) in enumerate(code.bound) if b in code.slots]
        self.templates = [template(like, n) for like in code.outputs]
        self.seen, self.stamp = -1, 0  # when the parameters were last looked at; the code's stamp then

    @property
    def lowering(self) -> Lowering:
        return self.code.lowering

    def bind(self, *arrays: np.ndarray) -> tuple:
        """Bind the code to parameters; `arrays` in the order of `state`."""
        self.code.bind(*arrays)
        for k, slot in self.bound:
            self.table[slot] = self.code.arrays[k].ctypes.data
        self.seen, self.stamp = clock.last_write, self.code.stamp
        return ()

    def call(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """The results for the arrays of the arguments, in the order of `sources`; WrongInput if a step has failed."""
        code = self.code
        if clock.last_write != self.seen or self.stamp != code.stamp:
            self.bind(*code.parameters)
        made = [new(shape, dtype) for new, shape, dtype in self.templates]
        code.enter(self.address, *inputs, *made)
        if code.threads:
            self.run_parts()
        if code.fail_slot is not None and self.table[code.fail_slot]:
            raise WrongInput("an input that eager refuses")
        return made if code.in_order else [made[k] for k in self.results]

    def run_parts(self) -> None:
        """Run the program on all cores; a short program runs on one if threads sleep, and wakes the threads."""
        run, address = self.code.run, self.code.run_address
        if not 1 < cores() <= self.code.most_threads or not pool.lock.acquire(blocking=False):
            run(self.address, 0, 1)
            return
        try:
            parts = 1
            if pool.ready() or self.long:
                self.barrier[BASE_WORD] = self.barrier[0]
                parts = pool.post(address, self.address)
            run(self.address, 0, parts)
            if parts > 1:
                pool.wait()
        finally:
            pool.lock.release()


def template(like: np.ndarray | Blank, n: int) -> tuple[Callable[..., np.ndarray], Any, Any]:
    """(function, arguments...) that makes an array like an array, or a result with Sizes: of the same shape, dtype and
    order in memory."""
    if isinstance(like, Blank):
        shape = at(like.shape, n)
        a = np.empty([shape[d] for d in like.axes], like.dtype).transpose(np.argsort(like.axes))
    else:
        a = like
    if a.flags.c_contiguous:
        return memory.take if a.nbytes >= MIN_ARRAY_BYTES else np.empty, a.shape, a.dtype
    return (lambda like, dtype: np.empty_like(like)), a, a.dtype


def padded(a: np.ndarray) -> np.ndarray:
    """A copy in C order, behind which vectors may read."""
    room = aligned(a.nbytes + SLACK_BYTES)[: a.nbytes]
    room[:] = np.ascontiguousarray(a).reshape(-1).view(np.uint8)
    return room
