"""From a graph to a module: a function for each group, and `run`, which calls these functions in order.

    run(table, part, parts)

`table`: addresses of the arena, of inputs, outputs and arrays made of parameters. `parts` threads call `run` together;
each step divides its outermost loop among them, and all parts wait for each other after each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rushlight.base.threads import cores
from rushlight.compile.graph import Call, Graph, Value, is_reshape, values_in
from rushlight.compile.native.errors import NotNative
from rushlight.compile.native.loop_nest import joint_stride, over_elements
from rushlight.compile.native.places import Buffer, Memory, Place, row_major
from rushlight.compile.native.schedule import Group, Schedule
from rushlight.compile.native.sizes import Sized, at, new_value
from rushlight.compile.passes.simplify import uniform
from rushlight.core.table import TABLE, Op
from rushlight.fast.rule_text import TYPES
from rushlight.loops.llvm import FLOAT, INT32, INT64, POINTER, Function, Module, Number, Target, smaller
from rushlight.loops.llvm import Value as Emitted
from rushlight.ops.shape.views import clone, contiguous

if TYPE_CHECKING:
    from rushlight.compile.native.join import Part

# op -> writes the steps of a group that begins with a call of the op
ANCHORS: dict[Op, Callable[[Lowering, Group], None]] = {}
PARALLEL_FROM_ELEMENTS = 1 << 15  # a loop over fewer elements runs in one part
BASE_WORD = 8  # the word of the barrier's memory with the counter's value before the run
SPINS = 2000  # rounds of waiting for another part before the system may run another thread


def anchor(*functions: Any) -> Callable[[Callable], Callable]:
    """The decorated function lowers groups that begin with a call of one of these ops."""

    def register(function: Callable) -> Callable:
        ANCHORS.update((f.op, function) for f in functions)
        return function

    return register


class Blank(NamedTuple):
    """A result with Sizes. `axes`: its dimensions from the outermost in memory."""

    shape: tuple[Any, ...]
    dtype: np.dtype
    axes: list[int]


class Step:
    """One function of the module, between two barriers."""

    parallel_from = PARALLEL_FROM_ELEMENTS

    def __init__(self, low: Lowering, name: str):
        given = "part parts samples" if low.samples_slot is not None else "part parts"
        self.low, self.f = low, Function(low.module, name, f"table {given}", given, private=True)
        self.pointers: dict[Buffer, Emitted] = {}

    def place(self, v: Value) -> Place:
        """The place of a value, which this step uses."""
        return self.low.place(v)

    def pointer(self, place: Place | Buffer) -> Emitted:
        """The address of a buffer: an argument of the function, so that equal steps on other buffers share it."""
        buffer = place.buffer if isinstance(place, Place) else place
        self.low.memory.use(buffer)
        if buffer not in self.pointers:
            self.low.slot(buffer)
            name = f"address{len(self.pointers)}"
            self.f.args[name] = self.pointers[buffer] = Emitted(self.f, f"%{name}", POINTER)
        return self.pointers[buffer]

    def room(self, count: Number) -> Emitted:
        """Memory for `count` float32 numbers of this step, for each thread: on the stack if the count is known, else in
        the arena. Without threads in the arena, since WebAssembly has a small stack."""
        if self.low.threads and isinstance(count, int):
            return self.f.room(count, FLOAT)
        if not self.low.threads:
            return self.pointer(self.low.memory.scratch(count, np.float32))
        all_rooms = self.pointer(self.low.memory.scratch(count * cores(), np.float32))
        return self.f.at(all_rooms, self.f.args["part"] * self.f.whole(count), FLOAT)

    def share(self, count: Number) -> tuple[Number, Number]:
        """The range of this part of `count` rounds."""
        if not self.low.threads:
            return 0, count
        f, count = self.f, count if isinstance(count, int) else self.f.whole(count)
        part, parts = f.args["part"], f.args["parts"]
        return part * count // parts, (part + 1) * count // parts

    def share_tiles(self, rows: Number, tile: int) -> tuple[Number, Number]:
        """The range of this part of `rows` rows, in whole tiles."""
        known = rows if isinstance(rows, int) else self.f.whole(rows)
        start, stop = self.share((known + (tile - 1)) // tile)
        if isinstance(stop, int):
            return 0, rows
        return start * tile, smaller(stop * tile, rows)

    def alone(self, body: Callable[[], Any]) -> None:
        """body() in the first part only."""
        if self.low.threads:
            self.f.when(self.f.args["part"] == 0, body)
        else:
            body()


class Lowering:
    """`likes`: eager's arrays of the results, whose layout the results get. `layouts`, for a graph with Sizes: the
    strides of inputs in bytes. `run`: the name of the whole function."""

    def __init__(
        self,
        graph: Graph,
        target: Target,
        likes: list[np.ndarray],
        threads: bool = False,
        layouts: Mapping[Value, tuple] | None = None,
    ):
        self.module, self.threads = Module(target), threads
        self.schedule = Schedule(graph)
        self.memory = Memory()
        self.slots: dict[Buffer, int] = {}
        # of the number in the table that the Sizes depend on
        self.samples_slot = None if layouts is None else self.slot(Buffer("samples", 8))
        self.steps: list[Step] = []
        # the arrays of each "bound" buffer: computed from steady values, or parameters
        self.bound: list[tuple[Callable[..., np.ndarray], tuple[Value, ...], Buffer]] = []
        self.raw: dict[Value, Place] = {}
        self.inputs: list[tuple[Value, Buffer]] = []
        self.constants: list[Buffer] = []  # of constants that differ from size to size
        self.outputs: list[tuple[np.ndarray | Blank, Buffer]] = []
        self.fail_slot: int | None = None  # of the number in the table that a step sets to 1 (`fail`)
        for v in graph.inputs:
            self.add_input(v, (layouts or {}).get(v, v._array.strides))
        self.likes = self.layouts_of_results(likes)
        self.halos = halos(self.schedule)
        self.parts = parts_of(self.schedule, self.halos)
        # values with a border that is not written yet -> the number of steps before their memory was made
        self.bordered: list[tuple[Value, int]] = []
        for item in self.schedule.items:
            self.memory.now += 1
            self.write_item(item)
            self.clear_borders(last=True)
        self.memory.now += 1
        self.copy_results()
        self.finish()

    # -- buffers --

    def slot(self, buffer: Buffer) -> int:
        """The number of the buffer's address in the table."""
        return self.slots.setdefault(buffer, len(self.slots))

    def add_input(self, v: Value, strides: tuple[Any, ...]) -> None:
        item = v.dtype.itemsize
        if v.dtype not in TYPES or any(s % item or s < 0 for s in strides):
            raise NotNative(f"an input is {v.dtype} with strides {strides}")
        if v.source[0] == "state":
            return
        if v.source[0] == "constant":
            self.constants.append(Buffer("constant", 0))
            self.memory.places[v] = Place(self.constants[-1], v.shape, v.dtype, row_major(v.shape))
            return
        if v.source[0] != "argument":
            raise NotNative(f"an input is a {v.source[0]}")
        buffer = Buffer("input", v._array.nbytes)
        self.inputs.append((v, buffer))
        self.memory.places[v] = Place(buffer, v.shape, v.dtype, tuple([s // item for s in strides]))

    def layouts_of_results(self, likes: list[np.ndarray]) -> dict[Value, np.ndarray]:
        results = self.schedule.results
        if len({*results}) < len(results) or len(likes) < len(results):
            raise NotNative("two results are one value")
        return dict(zip(results, likes))

    def derived(self, function: Callable[..., np.ndarray], given: tuple[Value, ...]) -> Buffer:
        """The buffer of an array that is computed from parameters when they change."""
        buffer = Buffer("bound", 0)
        self.bound.append((function, given, buffer))
        return buffer

    def place(self, v: Value) -> Place:
        """The place of a value that exists; a parameter, or a steady value, in C order."""
        if v in self.memory.places:
            found = self.memory.places[v]
            self.memory.use(found.buffer)
            return found
        if not self.schedule.is_known(v):
            raise NotNative("a value has no place")
        if v not in self.raw:
            if v.dtype not in TYPES:
                raise NotNative(f"a parameter is {v.dtype}")
            if isinstance(v, Sized):  # a constant of equal numbers
                number = np.array(uniform(v))
                self.raw[v] = Place(self.derived(lambda: number, ()), v.shape, v.dtype, (0,) * len(v.shape))
            else:
                buffer = self.derived(np.ascontiguousarray, (v,))
                self.raw[v] = Place(buffer, v.shape, v.dtype, row_major(v.shape))
        return self.raw[v]

    def make(
        self, v: Value, order: tuple[int, ...] | None = None, merge: Sequence[tuple[int, ...]] | None = None
    ) -> Place:
        """Memory for a value. `order`: its dimensions from the outermost in memory; a convolution's input gets a border
        of zeros around its pixels (`halos`).

        A result gets its own memory, unless `order` has other neighbours: then it is copied at the end.

        `merge`: dimensions that the writer counts as one; a part of a concatenation then lies inside the whole, if each
        of these dimensions has one stride there. None: the writer needs memory of its own."""
        if v in self.likes and (order is None or not self.turned(v, order)):
            return self.make_result(v)
        inside = None if merge is None or v not in self.parts else self.inside(v, order, merge)
        if inside is not None:
            self.memory.places[v] = inside
            return inside
        halo = self.halos.get(v)
        if halo is not None:
            order = channels_last(len(v.shape))
        order = order or tuple(range(len(v.shape)))
        sizes = [n + 2 * p for n, p in zip(v.shape, halo or (0,) * len(v.shape))]
        lengths = row_major([sizes[d] for d in order])
        strides = tuple([lengths[order.index(d)] for d in range(len(order))])
        offset = sum([p * s for p, s in zip(halo or (), strides)])
        buffer = self.memory.scratch(prod(sizes), v.dtype)
        self.memory.places[v] = Place(buffer, v.shape, v.dtype, strides, offset)
        if halo is not None:
            self.bordered.append((v, len(self.steps)))
        return self.memory.places[v]

    def inside(self, v: Value, order: tuple[int, ...] | None, merge: Sequence[tuple[int, ...]]) -> Place | None:
        """The place of a part in the memory of the whole."""
        part = self.parts[v]
        if part.whole not in self.memory.places:
            self.make(part.whole, order if len(part.whole.shape) == len(v.shape) else None, [])
        whole = self.place(part.whole)
        place = Place(whole.buffer, v.shape, v.dtype, part.strides(whole), part.first(whole))
        return None if any(joint_stride(place, v.shape, dims) is None for dims in merge) else place

    def turned(self, v: Value, order: tuple[int, ...]) -> bool:
        """Whether the neighbours in a result's memory are not the neighbours in this order."""
        shape, strides = v.shape, self.likes[v].strides
        like = next((d for d, (n, s) in enumerate(zip(shape, strides)) if n > 1 and s == v.dtype.itemsize), None)
        inner = next((d for d in reversed(order) if shape[d] > 1), None)
        return v.dtype == np.float32 and like != inner

    def make_result(self, v: Value) -> Place:
        like = self.likes[v]
        if isinstance(v, Sized):
            return self.make_sized_result(v, like)
        axes = sorted(range(like.ndim), key=lambda d: -like.strides[d] if like.shape[d] > 1 else -(2**62))
        if like.shape != v.shape or like.dtype != v.dtype or not like.transpose(axes).flags.c_contiguous:
            raise NotNative("a result has gaps")
        buffer = Buffer("output", like.nbytes)
        made = np.empty_like(like, subok=False)
        self.outputs.append((made, buffer))
        strides = tuple([s // v.dtype.itemsize for s in made.strides])
        self.memory.places[v] = Place(buffer, v.shape, v.dtype, strides)
        return self.memory.places[v]

    def make_sized_result(self, v: Value, like: np.ndarray) -> Place:
        """Memory for a result with Sizes, in the order of dimensions in memory that `like` has."""
        axes = sorted(range(like.ndim), key=lambda d: -like.strides[d])
        if like.dtype != v.dtype or not like.transpose(axes).flags.c_contiguous:
            raise NotNative("a result of several sizes has gaps")
        buffer = Buffer("output", 0)
        lengths = row_major([v.shape[d] for d in axes])
        self.outputs.append((Blank(v.shape, v.dtype, axes), buffer))
        strides = tuple([lengths[axes.index(d)] for d in range(like.ndim)])
        self.memory.places[v] = Place(buffer, v.shape, v.dtype, strides)
        return self.memory.places[v]

    # -- items --

    def step(self) -> Step:
        """A new function for the part of the program that follows."""
        self.clear_borders()
        if self.steps:
            self.memory.now += 1
        made = Step(self, f"step_{len(self.steps)}")
        self.steps.append(made)
        return made

    def fail(self, step: Step, condition: Emitted) -> None:
        """If the condition is true, `NativeProgram.call` raises WrongInput after all steps. The steps must not access
        other memory in this case. An address may have 4 bytes, so the number has 4 bytes."""
        if self.fail_slot is None:
            self.fail_slot = self.slot(Buffer("failed", 8))
        f, number = step.f, self.fail_slot
        f.when(condition, lambda: f.store(f.number(INT32, 1), f.at(f.args["table"], number, POINTER), 0))

    def write_item(self, item: Group | Call) -> None:
        if isinstance(item, Call):
            self.write_view(item)
            return
        first = item.anchor
        if first is None:
            self.elements(item)
        elif first.entry in ANCHORS:
            ANCHORS[first.entry](self, item)
        else:
            raise NotNative(f"{first.op} is not lowered")

    def elements(self, group: Group) -> None:
        """A group of elementwise steps alone, in the layout of its largest operand."""
        out = group.out
        reads = [v for v in group.reads() if v.shape == out.shape and v in self.memory.places]
        order = None
        if reads:
            strides = self.place(reads[0]).strides
            order = tuple(sorted(range(len(out.shape)), key=lambda d: (-strides[d], d)))
        self.make(out, None if out in self.likes else order, [])
        step = self.step()
        over_elements(step, group)

    def apart(self, group: Group, merge: tuple[tuple[int, ...], ...]) -> Group:
        """The group, if its elementwise steps can run behind an anchor that counts the dimensions `merge` as one;
        otherwise the anchor alone, and its elementwise steps are written after the anchor (`write_rest`)."""
        shape = group.out.shape
        reads = [v for v in group.reads() if v.kind != "constant" or uniform(v) is None]
        if all(joint_stride(self.place(v), shape, dims) is not None for v in reads for dims in merge):
            return group
        return Group(group.anchor, [], group.anchor.outs[0])

    def write_rest(self, group: Group, written: Group) -> None:
        """The elementwise steps of a group that did not run behind its anchor."""
        if written is not group:
            self.elements(Group(None, group.steps, group.out))

    def write_view(self, call: Call) -> None:
        """The place of a view, or of a copy if no strides fit the elements."""
        x = call.args[0]
        place = self.place(x)
        if is_reshape(call) and len(call.outs) == 1:
            found = place.reshaped(call.outs[0].shape)
            if found is None:
                found = self.contiguous(x).reshaped(call.outs[0].shape)
            assert found is not None
            self.memory.places[call.outs[0]] = found
            return
        if call.runs(contiguous):
            self.memory.places[call.outs[0]] = self.contiguous(x)
            return
        if [*values_in(call.args)] != [x]:
            raise NotNative(f"{call.op} has several arrays")

        def views(array: np.ndarray, n: int) -> list[np.ndarray]:
            try:
                made = TABLE[call.op].kernel(array, *at(call.args[1:], n))
            except RuntimeError as error:  # as_strided of a value that lies in another order
                raise NotNative(str(error)) from None
            made = [*made] if isinstance(made, (list, tuple)) else [made]
            if not all(np.may_share_memory(array, a) or not a.size for a in made):
                raise NotNative(f"{call.op} copies")
            return made

        self.memory.places.update(zip(call.outs, place.viewed(views, call.args[1:]) or ()))

    def contiguous(self, v: Value) -> Place:
        """The elements of a value in C order, copied if necessary."""
        place = self.place(v)
        if place.strides == row_major(v.shape):
            return place
        target = Place(self.memory.scratch(v.size, v.dtype), v.shape, v.dtype, row_major(v.shape))
        self.copy(place, target)
        return target

    def copy(self, source: Place, target: Place) -> None:
        """A step that copies elements."""
        from rushlight.compile.native.turned_copy import TurnedCopy, turned_dims

        v, out = (new_value(source.shape, source.dtype) for _ in range(2))
        self.memory.places.update({v: source, out: target})
        step = self.step()
        self.memory.use(source.buffer), self.memory.use(target.buffer)
        dims = turned_dims(source, target)
        if dims is not None and 0 not in v.shape and all(isinstance(v.shape[d], int) for d in dims):
            TurnedCopy(step, source, target, dims).write()
            return
        over_elements(step, Group(None, [Call(clone.op.name, (v,), (out,), shares=())], out))

    def clear_borders(self, last: bool = False) -> None:
        """Zeros around the pixels of convolutions' inputs, by the last step that has written such an input. `last`: no
        other step of the item follows."""
        if last and any(len(self.steps) == number for _, number in self.bordered):
            waiting, self.bordered = self.bordered, []
            self.step()  # all parts of the value lie in its memory already
            self.bordered = waiting
        left = []
        for v, number in self.bordered:
            if len(self.steps) > number:
                clear_border(self.steps[-1], self.place(v), self.halos[v])
            else:
                left.append((v, number))
        self.bordered = left

    def copy_results(self) -> None:
        for v in self.schedule.results:
            if v in self.memory.places and self.memory.places[v].buffer.kind == "output":
                continue
            if self.schedule.is_known(v) or self.place(v).buffer.kind == "input":
                raise NotNative("a result is an input")
            source = self.place(v)
            if source.buffer.kind == "output":
                raise NotNative("a result is a view of another result")
            self.copy(source, self.make_result(v))

    # -- the whole --

    def finish(self) -> None:
        for step in self.steps:
            step.f.end()
        self.barrier_slot = self.slot(Buffer("barrier", 128))
        whole = Function(self.module, "run", "table part parts", "part parts")
        given = [*whole.args.values()]
        if self.samples_slot is not None:
            given.append(whole.load(whole.args["table"], self.samples_slot, INT64))
        counter = whole.load(whole.args["table"], self.barrier_slot, POINTER)
        base = whole.load(counter, BASE_WORD, INT64)
        names: dict[str, str] = {}
        for number, step in enumerate(self.steps):
            addresses = [whole.load(whole.args["table"], self.slot(b), POINTER) for b in step.pointers]
            whole.call(self.name_of(step, names), *given, *addresses)
            if self.threads:
                goal = base + whole.args["parts"] * (number + 1)
                whole.when(whole.args["parts"] > 1, partial(self.barrier, whole, counter, goal))
        whole.end()

    def name_of(self, step: Step, names: dict[str, str]) -> str:
        """The name of the step's function. A function with the same instructions stands for it, as in the layers of a
        deep model. `names`: instructions -> name."""
        own = step.f.name
        text = step.f.text().replace(f"@{own}(", "@(", 1)
        if text in names:
            del self.module.functions[own]
        return names.setdefault(text, own)

    def barrier(self, f: Function, counter: Emitted, goal: Emitted) -> None:
        """Wait until all parts have come here. The counter only grows: the caller stores its value before the run."""
        f.put(f"atomicrmw add ptr {counter.v}, i64 1 seq_cst", INT64)
        head, wait, rest, done = f.label(), f.label(), f.label(), f.label()
        before = f.block
        f.jump(head)
        f.begin(head)
        spins = f.put("phi", INT64)
        place = len(f.lines) - 1
        arrived = f.put(f"load atomic i64, ptr {counter.v} seq_cst, align 8", INT64)
        f.branch(arrived >= goal, done, wait)
        f.begin(wait)
        f.pause()
        more = spins + 1
        f.branch(more < SPINS, head, rest)
        f.begin(rest)
        f.foreign("sched_yield", INT32, [])
        f.jump(head)
        f.begin(done)
        f.lines[place] = f"{spins.v} = phi i64 [ 0, %{before} ], [ {more.v}, %{wait} ], [ 0, %{rest} ]"


def channels_last(n: int) -> tuple[int, ...]:
    """The order of dimensions in which the pixels' channels are neighbours: (0, 2, 3, 1)."""
    return (0, *range(2, n), 1)


def halos(schedule: Schedule) -> dict[Value, tuple[int, ...]]:
    """For each value that is made for convolutions with padding alone: the width of the border, for each dimension."""
    from rushlight.compile.native.convolution import padding_of
    from rushlight.compile.native.transposed import border_of

    found: dict[Value, tuple[int, ...]] = {}
    made = {item.out for item in schedule.items if isinstance(item, Group)}
    for item in schedule.items:
        if isinstance(item, Group) and item.anchor is not None:
            padding = padding_of(item.anchor) or border_of(item.anchor)
            x = item.anchor.args[0]
            if padding and x in made and x not in schedule.results:
                found[x] = tuple(map(max, found.get(x, (0,) * len(padding)), padding))
    return {v: p for v, p in found.items() if any(p)}


def parts_of(schedule: Schedule, halos: dict[Value, tuple[int, ...]]) -> dict[Value, Part]:
    """The values that may be written where a concatenation, or a padding, needs the values."""
    from rushlight.compile.native.join import parts_in

    groups = [item for item in schedule.items if isinstance(item, Group)]
    made = {g.out for g in groups}
    found: dict[Value, Part] = {}
    for group in groups:
        for v, part in parts_in(group):
            free = v in made and v not in schedule.results and v not in found and v not in halos
            if free and v.size and (part.whole not in schedule.results or schedule.uses[v] == 1):
                found[v] = part
    return found


def clear_border(step: Step, place: Place, halo: tuple[int, ...]) -> None:
    """Write zeros to the border around the pixels of a value in channels-last order."""
    from rushlight.compile.native.convolution import write_zeros

    step.alone(lambda: write_zeros(step, place, halo))
