"""The tracer: records the ops of one real run (forward, backward, update) with their shapes and dtypes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from mmap import mmap
from types import CodeType
from typing import Any
from weakref import ref

import numpy as np

from rushlight.base import dtypes
from rushlight.base.errors import LinAlgError
from rushlight.base.text import GENERATED
from rushlight.base.tracebacks import PACKAGE, ours, user_frame
from rushlight.compile.capture.input_sources import keyed
from rushlight.compile.capture.origins import Origins
from rushlight.compile.graph import Call, Graph, Store, Value, is_random, shared, values_in
from rushlight.compile.report import Break, where
from rushlight.core.engine import reachable
from rushlight.core.mode import Watcher, current, innermost, mode
from rushlight.core.node import Node, tick
from rushlight.core.table import TABLE
from rushlight.core.tensor import Tensor
from rushlight.ops.index.index_tensors import index
from rushlight.ops.nn.dropout import dropout_mask
from rushlight.ops.shape.views import overwrite
from rushlight.ops.tensor import traced_writes  # noqa: F401  (puts the region ops into the table)

ADDRESS_SPACE = mmap(-1, 1 << 20)


class CannotCompile(Exception):
    """A run that cannot be turned into a program; the message gives the reason and the user's line."""


class Entry(Node):
    """The node of an argument during a traced run: hides the graph that computed the argument."""

    __slots__ = ()

    def __init__(self, origin: Node):
        self.edges, self.saved, self.seq, self.shape, self.where = (origin,), (), tick(), origin.shape, None

    def arrays(self, g: Any) -> tuple:
        tracer = innermost(Tracer, mode().watch)
        if self.edges and tracer is not None:  # a program does not contain the ops before the call
            tracer.stop("runs backward into what an argument was made from")
        return (g,)

    tensors = arrays


class Tracer(Watcher):
    """Records every op, write and read of one run.

    Arrays are identified by `id`, since `detach()` and saved tensors make new tensors on the same array. `cells` maps
    the id of an array to the `Value` that the array holds now. Values are immutable: a write gives the array another
    value. The tracer keeps no arrays alive: for a value made by an op it stores only shape, dtype and layout.
    """

    records = True  # backward consists of ops, so that they are recorded

    def __init__(self, known: dict[int, Any], apart: frozenset = frozenset()):
        """`known`: id of an array that existed before the run -> (array, its source: the place where the next run finds
        the array).

        `apart`: code objects of functions that must not run, because compile/guards/guard_set.py has not recorded the
        state that they read.
        """
        self.known, self.apart, self.began = known, apart, tick()
        self.cells: dict[int, Value] = {}
        self.steps: list[Call | Store] = []
        self.inputs: list[Value] = []
        # id of a known array that was read or written -> its input value
        self.external: dict[int, Value] = {}
        self.fresh: list[Value] = []  # values without an op: constants, if two runs have the same values
        # id of a view's array -> the array that owns the memory
        self.owner: dict[int, np.ndarray] = {}
        self.born: dict[int, int] = {}  # id of a view's array -> len(steps) when the view was made
        self.outside: dict[int, bool] = {}  # ids of arrays that creation functions made
        self.written: dict[int, int] = {}  # id of an array -> len(steps) at the last write
        # both: source of a known array that was written to -> the array, and a copy of its elements before the first
        # write
        self.overwritten_arrays: dict[Any, np.ndarray] = {}
        self.overwritten: dict[Any, np.ndarray] = {}
        # id of an array of random numbers -> (generator's method, args, kwargs, array)
        self.draws: dict[int, tuple] = {}
        # id -> weak reference to the array. When an array dies, its id leaves all tables, since ids are reused.
        self.alive: dict[int, ref] = {}
        self.tables = self.cells, self.owner, self.born, self.outside, self.written
        self.problem: str | None = None  # the first reason why the run cannot be a program
        self.breaks: list[Break] = []
        self.stops: list[tuple] = []  # for each graph break the user's frames, innermost first
        # (tensor, line, frames) for each `t.data = ...`
        self.replaced_data: list[tuple[Tensor, str, tuple]] = []
        self.late = False  # True during the backward that the caller may run later
        # values of the function's own tensors that decide the shape of a result -> (tensor, its bytes)
        self.deciding: dict[Value, tuple[Tensor, bytes]] = {}
        self.origins = Origins()

    # -- events ------------------------------------------------------------------------------------

    def on_op(self, op: Any, args: tuple, out: Any) -> None:
        if op.options.get("sparse_gradient"):
            self.records, self.problem = False, f"has sparse gradients, at {where(line())}"
            return self.stops.clear()
        if self.problem is not None:
            return
        values = self.values(args)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        made = tuple(self.made(t) for t in outs)
        if op.is_view and out._array is args[0]._array:  # flatten() of a 1-d tensor
            self.cells[id(out._array)] = values[0]
            return
        if op.is_view or op.options.get("list") and isinstance(args[0], Tensor):
            self.keep_owner(args[0]._array, outs)
        if self.apart and any(code in self.apart for code, _ in frames()):
            self.stop("calls the function that it is a piece of")
        if (deciding := shaping(op, args)) and not self.steady([self.value(t) for t in deciding]):
            self.stop("makes a tensor whose shape depends on numbers")
        name, values, arrays = self.as_recorded(op, args, values, made)
        shares = shared(name, arrays, [t._array for t in outs])
        here = line()
        origin = self.origins.of(op, outs, here)
        self.steps.append(Call(name, values, made, here, self.late, shares, origin))

    def as_recorded(self, op: Any, args: tuple, values: tuple, made: tuple) -> tuple:
        """(name, values, arrays) of the call that a program makes in place of the op's call."""
        arrays = [t._array for t in tensors_in(args)]
        if op is dropout_mask.op:  # dropout draws in memory order: pass an array of the same layout
            return op.name, (layout_of(args[0]._array), *values[1:]), arrays
        if op is overwrite.op and values[1].dtype == made[0].dtype:
            # only the shape of the overwritten tensor matters
            return "clone", (self.spread(values[1], made[0]),), arrays[1:]
        return op.name, values, arrays

    def keep_owner(self, array: np.ndarray, outs: Iterable[Tensor]) -> None:
        """Record that these arrays are views of an array's memory, and the current step."""
        for t in outs:
            if np.may_share_memory(t._array, array):
                self.owner[id(t._array)] = self.owner.get(id(array), array)
                self.born[id(t._array)] = len(self.steps)

    def on_function(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        self.stop(f"calls {type(node).function.__name__}, an autograd.Function, whose backward is Python")

    def on_create(self, tensor: Tensor) -> None:
        self.register(tensor._array)
        self.outside[id(tensor._array)] = True

    def on_write_start(self, tensor: Tensor) -> None:
        root = self.owner.get(id(tensor._array), tensor._array)
        if id(root) in self.known:
            array, source = self.known[id(root)]
            if not array.flags.writeable and array.size:
                self.stop("writes to an expanded tensor")
            elif keyed(source) not in self.overwritten:
                self.overwritten_arrays[keyed(source)] = array
                self.overwritten[keyed(source)] = array.copy("K")

    def on_write(self, tensor: Tensor, value: Tensor) -> None:
        if self.problem is not None or not isinstance(tensor._array, np.ndarray):
            return  # a batched tensor of vmap: the write to its values has been recorded
        target, v = self.value(tensor), self.value(value)
        if v.dtype != target.dtype or v.shape != target.shape:
            v = self.fitted(v, target)
        self.cells[id(tensor._array)] = v
        root = self.owner.get(id(tensor._array), tensor._array)
        place = id(root)
        if root is not tensor._array:  # a write through a view: the base gets a new value, too
            if (where := self.region(tensor._array, root)) is None:
                return
            v = self.cells[place] = self.call("with_region", (self.current(root), v, *where), root)
        self.written[place] = self.born[id(tensor._array)] = len(self.steps)
        if place in self.known:
            self.steps.append(Store(self.external[place], v, line()))

    def generator_for(self, generator: Any) -> Any:
        return RecordingGenerator(generator, self.draws, self.stop)

    def on_draw(self, tensor: Tensor) -> None:
        """Record a step that draws these random numbers again."""
        method, args, named, made = self.draws.pop(id(tensor._array), (None,) * 4)
        if made is None or not all(a.flags.c_contiguous for a in args if isinstance(a, np.ndarray)):
            # a draw in memory order depends on the layout of its arguments
            return self.on_read(tensor)
        args = tuple(self.current(a) if isinstance(a, np.ndarray) else a for a in args)
        self.steps.append(Call("draw", (method, args, named), (self.made(tensor),), line(), self.late))

    def on_set_data(self, tensor: Tensor) -> None:
        self.replaced_data.append((tensor, where(line()), tuple(frames())))

    def left(self, tensors: list[Tensor]) -> str:
        """The reason why a run that replaced the memory of these tensors cannot be a program. Adds the statements to
        `stops`.
        """
        found = [(place, stop) for t, place, stop in self.replaced_data if any(t is other for other in tensors)]
        self.stops += [stop for _, stop in found]
        return "replaces the memory of a tensor that it has not made" + (f", at {found[0][0]}" if found else "")

    def on_backward(self, nodes: Iterable) -> None:
        """Stop if backward enters nodes made before the run. The nodes of arguments are hidden behind an `Entry`."""
        own = [n for n in reachable(nodes, self.began) if type(n) is not Entry]
        if any([edge and not edge.leaf and edge.seq < self.began for n in own for edge in n.edges]):
            self.stop("runs backward into what was made before it")

    def on_read(self, tensor: Tensor) -> None:
        self.stop("looks at the numbers of a tensor")

    def on_assert(self, tensor: Tensor) -> None:
        if not tensor._array.all():
            self.on_read(tensor)
        elif self.problem is None:
            self.steps.append(Call("check_true", (self.value(tensor),), (), line(), self.late))

    def on_error(self, op: Any, args: Any, error: Exception) -> None:
        """Stop if the error depends on the numbers: the user may catch it, and another run may not raise it."""
        if isinstance(error, LinAlgError) or not fails_on_zeros(op.kernel, args):
            self.stop("meets an error that depends on the numbers of a tensor")

    def on_seed(self) -> None:
        self.stop("sets the state of a generator of random numbers")

    def predates(self, tensor: Tensor) -> bool:
        return id(tensor._array) in self.known

    def stop(self, what: str) -> None:
        """Record a graph break: this run cannot become a program. The run itself continues."""
        if not self.records:
            return
        found = Break(what, where(line()))
        self.breaks.append(found)
        self.stops.append(tuple(frames()))
        if self.problem is None:
            self.problem = f"{found.reason}, at {found.where}"

    # -- values ------------------------------------------------------------------------------------

    def values(self, args: Any) -> tuple:
        """The arguments with each tensor replaced by its value."""
        return tuple(
            self.value(a) if isinstance(a, Tensor) else self.values(a) if type(a) in (tuple, list) else a for a in args
        )

    def value(self, tensor: Tensor) -> Value:
        """The value that the tensor's array holds now."""
        return self.current(tensor._array)

    def current(self, array: np.ndarray) -> Value:
        """The value that an array holds now. If a view's memory was written since, the view is read again from its
        base."""
        v, place = self.cells.get(id(array)), id(array)
        if v is None:
            v = self.cells[place] = self.found(array)
        elif place in self.owner and self.written.get(id(self.owner[place]), -1) > self.born[place]:
            root = self.owner[place]
            where = self.region(array, root)
            if where is not None:
                v = self.cells[place] = self.call("region", (self.current(root), *where, array.flags.writeable), array)
                self.born[place] = len(self.steps)
        return v

    def steady(self, values: list[Value]) -> bool:
        """Whether the values are the same in each run: computed from constants and the function's own tensors only.

        Adds these tensors to `deciding`, so that the program checks that they have not changed."""
        made_of: dict[Value, set[Value] | None] = {v: {v} for v in self.inputs if v.source[0] == "state"}

        def together(values: Iterable[Value]) -> set[Value] | None:
            found = [set() if v.kind == "constant" else made_of.get(v) for v in values]
            return None if None in found else set().union(*found)  # type: ignore[arg-type]

        for s in self.steps:
            made_of.update(dict.fromkeys(s.outs, None if is_random(s) else together(values_in(s.args))))
        found = together(values)
        if found is None or any(id(v._array) in self.written for v in found):
            return False
        self.deciding.update((v, (v.source[1], v._array.tobytes())) for v in found if v not in self.deciding)
        return True

    def region(self, array: np.ndarray, root: np.ndarray) -> tuple | None:
        """The (shape, strides, offset) of a view in its base `root`, in elements. If there is none, records a graph
        break and returns None."""
        if array.dtype != root.dtype or not root.flags.c_contiguous:
            self.stop("writes through a view of memory with gaps or of another dtype")
            return None
        item = root.itemsize
        start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        return array.shape, tuple(step // item for step in array.strides), start // item

    def found(self, array: np.ndarray) -> Value:
        """The value of an array that no op of this run has made."""
        self.register(array)
        if id(array) in self.known:
            v = self.external[id(array)] = Value(array, "input", self.known[id(array)][1])
            self.inputs.append(v)
            return v
        v = Value(array.copy(), "constant")
        if not (array.ndim == 0 and not array.flags.writeable):
            self.fresh.append(v)
            # computed by NumPy, without an op: it may depend on the inputs
            if id(array) not in self.outside:
                self.stop("uses numbers that no op of the table has made")
        return v

    def made(self, tensor: Tensor) -> Value:
        """A new value for the array of an op's output."""
        self.register(tensor._array)
        v = self.cells[id(tensor._array)] = Value(without_memory(tensor._array))
        return v

    def register(self, array: np.ndarray) -> None:
        """Register an array whose id becomes a key of the tables: the id is removed when the array dies."""
        key = id(array)
        known = self.alive.get(key)
        if known is None or known() is not array:
            self.alive[key] = ref(array, partial(forget_id, key, self.tables))

    def fitted(self, v: Value, target: Value) -> Value:
        """The written value `v`, converted to the dtype and shape of the target."""
        if v.dtype != target.dtype:
            v = self.call("to", (v, dtype_of(target._array)), np.broadcast_to(np.zeros((), target.dtype), v.shape))
        return v if v.shape == target.shape else self.call("clone", (self.spread(v, target),), target._array)

    def spread(self, v: Value, target: Value) -> Value:
        """The written value `v`, expanded to the target's shape."""
        if v.shape == target.shape:
            return v
        return self.call("expand", (v, target.shape), np.broadcast_to(v._array, target.shape))

    def call(self, name: str, args: tuple, array: np.ndarray) -> Value:
        assert name in TABLE
        v = Value(without_memory(array))
        self.steps.append(Call(name, args, (v,), line(), self.late, ()))
        return v

    def seed(self, array: np.ndarray, number: int) -> None:
        """Register an array as the gradient of result `number`, given by the caller of backward."""
        self.register(array)
        v = self.cells[id(array)] = Value(array, "input", ("seed", number))
        self.inputs.append(v)

    def graph(self, results: list[Value], grads: list[tuple[Tensor, Value | None]]) -> Graph:
        """The recorded run as a graph; if an input is written several times, only the last write is kept."""
        last: dict[Value, int] = {s.target: i for i, s in enumerate(self.steps) if isinstance(s, Store)}
        steps = [s for i, s in enumerate(self.steps) if not isinstance(s, Store) or last[s.target] == i]
        number = count(1)
        for s in steps:
            for v in s.outs:
                v.traced = next(number)
        return Graph(steps, list(self.inputs), results, grads)


class RecordingGenerator:
    """A generator of random numbers that records each draw in `draws`."""

    def __init__(self, generator: Any, draws: dict[int, tuple], stop: Callable[[str], None]):
        self.asked, self.draws, self.stop = generator, draws, stop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.asked, name)

        def draw(*args: Any, **named: Any) -> Any:
            try:
                made = method(*args, **named)
            except RuntimeError:  # invalid probabilities: valid ones would not raise
                self.stop("meets an error that depends on the numbers of a tensor")
                raise
            if isinstance(made, np.ndarray) and not any(isinstance(a, np.ndarray) for a in named.values()):
                self.draws[id(made)] = name, args, tuple(named.items()), made
            return made

        return draw if callable(method) else method


def layout_of(array: np.ndarray) -> Value:
    """A constant of zeros with the layout of an array; it takes no memory if the array is C-contiguous."""
    if array.flags.c_contiguous:
        return Value(np.broadcast_to(np.zeros((), array.dtype), array.shape), "constant")
    return Value(np.zeros_like(array, subok=False), "constant")


def without_memory(array: np.ndarray) -> np.ndarray:
    """An array of the same shape, dtype and layout that takes no memory. In C order all elements have one address."""
    if array.flags.c_contiguous:
        return np.ndarray(array.shape, array.dtype, ADDRESS_SPACE, 0, (0,) * array.ndim)
    order = sorted(range(array.ndim), key=lambda d: -abs(array.strides[d]))
    steps, step = [0] * array.ndim, array.itemsize
    for d in reversed(order):
        steps[d] = step
        step *= array.shape[d]
    return np.ndarray(array.shape, array.dtype, address_space(step), 0, steps)


def address_space(size: int) -> mmap:
    """Address space of at least `size` bytes. No program writes to it, so it takes no physical memory."""
    global ADDRESS_SPACE
    if len(ADDRESS_SPACE) < size:
        ADDRESS_SPACE = mmap(-1, 2 * size)
    return ADDRESS_SPACE


def forget_id(key: int, tables: tuple[dict, ...], gone: Any) -> None:
    """Remove the id of an array that has died from all tables."""
    for table in tables:
        table.pop(key, None)


def shaping(op: Any, args: tuple) -> list[Tensor]:
    """The tensors whose elements decide the shape of an op's output: boolean masks, and inputs of `nonzero`."""
    if op is index.op:
        return [t for t in args[1] if t._array.dtype.kind == "b"]
    return [args[0]] if op.options.get("batched") == "dynamic" else []


def with_zeros(a: Any) -> Any:
    """An argument, or a list of arguments, with each tensor replaced by an array of zeros."""
    if isinstance(a, Tensor):
        return np.zeros_like(a._array)  # of the same layout, since `view` depends on it
    return [with_zeros(x) for x in a] if type(a) in (list, tuple) else a


def fails_on_zeros(kernel: Callable, args: Any) -> bool:
    """Whether the kernel raises an error for zeros, too: then the error does not depend on the numbers."""
    try:
        with np.errstate(all="ignore"):
            kernel(*with_zeros(args))
    except Exception:
        return True
    return False


def tensors_in(args: Any) -> Iterator[Tensor]:
    """The tensors among the arguments, in the order in which `values_in` gives their values."""
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from tensors_in(a)


def dtype_of(array: np.ndarray) -> Any:
    return dtypes.of(array.dtype)


def line() -> Any:
    """(code, lasti) of the user's statement that runs now, or None."""
    frame = user_frame(2)
    while frame is not None and frame.f_code.co_filename.startswith((GENERATED, PACKAGE)):
        frame = frame.f_back
    return (frame.f_code, frame.f_lasti) if frame is not None else None


def frames() -> Iterator[tuple[CodeType, int]]:
    """The user's functions that run inside the traced one: (code, instruction), innermost first."""
    frame = user_frame(2)
    while frame is not None and frame.f_code is not traced.__code__:
        if not ours(frame.f_code.co_filename):
            yield frame.f_code, frame.f_lasti
        frame = frame.f_back


def traced(function: Callable, args: tuple, kwargs: dict, tracer: Tracer) -> Any:
    """Call the function while the tracer records; returns its result."""
    before, output = mode(), sys.stdout
    token = current.set(before.but(watch=tracer))
    sys.stdout = watched = output and WatchedStdout(output, tracer)
    try:
        return function(*args, **kwargs)
    finally:
        now = mode().but(watch=before.watch)  # the function may have called set_grad_enabled(False)
        current.reset(token)
        if (now.grad, now.inference, now.checks) != (before.grad, before.inference, before.checks):
            tracer.stop("changes what is recorded")
            current.set(now)
        if sys.stdout is watched:
            sys.stdout = output


class WatchedStdout:
    """A stdout that reports prints to the tracer, since a program would not print."""

    def __init__(self, output: Any, tracer: Tracer):
        self.output, self.tracer = output, tracer

    def write(self, text: str) -> Any:
        if mode().watch is self.tracer:
            self.tracer.stop("prints")
        return self.output.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.output, name)
