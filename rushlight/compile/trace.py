"""Recording one real run: the ops of forward, backward and update, as they happen, with their shapes and dtypes."""
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

from rushlight.autograd.clock import tick
from rushlight.autograd.engine import reachable
from rushlight.autograd.grad_mode import Watcher, current, innermost, mode
from rushlight.autograd.node import Node
from rushlight.base.text import GENERATED
from rushlight.compile.graph import Call, Graph, Store, Value, is_random, shared, values_in
from rushlight.compile.report import Break, where
from rushlight.errors import PACKAGE, LinAlgError, ours, user_frame
from rushlight.ops import regions  # noqa: F401  (their entries are in the table then)
from rushlight.ops.table import TABLE
from rushlight.tensor import Tensor

ROOM = mmap(-1, 1 << 20)


class CannotCompile(Exception):
    """Why a run cannot be turned into a program; the message names the user's line."""


class Entry(Node):
    """Where the history of an argument begins, as long as a run is watched that does not care for what it was made from."""

    __slots__ = ()

    def __init__(self, origin: Node):
        self.edges, self.saved, self.seq, self.shape, self.where = (origin,), (), tick(), origin.shape, None

    def arrays(self, g: Any) -> tuple:
        tracer = innermost(Tracer, mode().watch)
        if self.edges and tracer is not None:     # a program knows nothing of what lies beyond
            tracer.stop("runs backward into what an argument was made from")
        return (g,)

    tensors = arrays


class Tracer(Watcher):
    """Sees every op, write and read of one run.

    Arrays are told apart by identity: `detach()` and saved tensors make new tensors on the same array. `cells` holds
    the value that is in each array now: a write gives the array another value, no value ever changes. Arrays live and die
    as they would unwatched: of a value that an op made only shape, dtype and layout are kept.
    """

    records = True                                # backward runs as ops

    def __init__(self, known: dict[int, Any], apart: frozenset = frozenset()):
        """`known`: id of an array that existed before -> (array, where to find it at the next run); `apart`: codes of
        functions that must not run (guards.py has not looked at what they read)."""
        self.known, self.apart, self.began = known, apart, tick()
        self.cells: dict[int, Value] = {}
        self.steps: list[Call | Store] = []
        self.inputs: list[Value] = []
        self.external: dict[int, Value] = {}      # the input of each known array that was read or written
        self.fresh: list[Value] = []              # made during the run, but by no op: constants, if they stay the same
        self.owner: dict[int, np.ndarray] = {}    # id of a view's array -> the array whose memory it views
        self.born: dict[int, int] = {}            # id of a view's array -> number of steps when it was made
        self.outside: dict[int, bool] = {}        # ids of arrays that creation functions made
        self.written: dict[int, int] = {}         # id of an array -> number of steps when it was last written
        self.draws: dict[int, tuple] = {}         # id of an array of random numbers -> what was asked for, and it
        self.alive: dict[int, ref] = {}           # of arrays whose ids stand in some book; it is struck when they die
        self.books = self.cells, self.owner, self.born, self.outside, self.written
        self.problem: str | None = None
        self.breaks: list[Break] = []
        self.stops: list[tuple] = []              # the user's frames at each of them, innermost first
        self.handed: list[tuple[Tensor, str, tuple]] = []       # who was given other memory, and where in the user's code
        self.late = False                         # whether it is backward that runs, for a caller who may ask for it
        self.deciding: dict[Value, tuple[Tensor, bytes]] = {}     # the function's own whose numbers decide a shape

    # -- what the mode tells ---------------------------------------------------------------------------------------

    def ran(self, op: Any, args: tuple, out: Any) -> None:
        if op.name == "lookup":                   # recorded backward would make them dense: all runs as it is
            self.records, self.problem = False, f"has sparse gradients, at {where(line())}"
            return self.stops.clear()
        if self.problem is not None:
            return
        values = self.values(args)
        outs = out if isinstance(out, (tuple, list)) else (out,)
        made = tuple(self.made(t) for t in outs)
        if op.family.__name__ == "view":
            seen, array = id(args[0].array), out.array
            if id(array) == seen:                 # nothing was done: flatten() of what is flat
                self.cells[seen] = values[0]
                return
        if op.family.__name__ == "view" or op.options.get("list") and isinstance(args[0], Tensor):
            for t in outs:
                if np.may_share_memory(t.array, args[0].array):
                    self.owner[id(t.array)] = self.owner.get(id(args[0].array), args[0].array)
                    self.born[id(t.array)] = len(self.steps)
        if self.apart and any(code in self.apart for code, _ in frames()):
            self.stop("calls the function that it is a piece of")
        if (deciding := shaping(op, args)) and not self.steady([self.value(t) for t in deciding]):
            self.stop("makes a tensor whose shape depends on numbers")
        name, arrays = op.name, [t.array for t in tensors_in(args)]
        if name == "dropout_mask":                # drawn in the order in which eager has the array
            values = (layout_of(args[0].array), *values[1:])
        if name == "overwrite" and values[1].dtype == made[0].dtype:      # what is overwritten counts by its shape alone
            name, values, arrays = "clone", (self.spread(values[1], made[0]),), arrays[1:]
        shares = shared(name, arrays, [t.array for t in outs])
        self.steps.append(Call(name, values, made, line(), self.late, shares))

    def applied(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        self.stop(f"calls {type(node).function.__name__}, an autograd.Function, whose backward is Python")

    def created(self, tensor: Tensor) -> None:
        self.noted(tensor.array)
        self.outside[id(tensor.array)] = True

    def wrote(self, tensor: Tensor, value: Tensor) -> None:
        if self.problem is not None or not isinstance(tensor.array, np.ndarray):
            return                                # of a batch (vmap), the write to its values has been seen
        target, v = self.value(tensor), self.value(value)
        if v.dtype != target.dtype or v.shape != target.shape:
            v = self.fitted(v, target)
        self.cells[id(tensor.array)] = v
        root = self.owner.get(id(tensor.array), tensor.array)
        place = id(root)
        if root is not tensor.array:              # a write through a view: the whole has another part
            if (where := self.region(tensor.array, root)) is None:
                return
            v = self.cells[place] = self.call("with_region", (self.current(root), v, *where), root)
        self.written[place] = self.born[id(tensor.array)] = len(self.steps)
        if place in self.known:
            self.steps.append(Store(self.external[place], v, line()))

    def generator(self, generator: Any) -> Any:
        return Noted(generator, self.draws, self.stop)

    def drew(self, tensor: Tensor) -> None:
        """Numbers that a generator has just made become a step that asks it again."""
        method, args, named, made = self.draws.pop(id(tensor.array), (None,) * 4)
        if made is None or not all(a.flags.c_contiguous for a in args if isinstance(a, np.ndarray)):
            return self.read(tensor)              # in another order the same numbers would go elsewhere
        args = tuple(self.current(a) if isinstance(a, np.ndarray) else a for a in args)
        self.steps.append(Call("draw", (method, args, named), (self.made(tensor),), line(), self.late))

    def given(self, tensor: Tensor) -> None:
        self.handed.append((tensor, where(line()), tuple(frames())))

    def left(self, tensors: list[Tensor]) -> str:
        """Why there is no program of a run that has left these with other memory; the statements are its stops."""
        found = [(place, stop) for t, place, stop in self.handed if any(t is other for other in tensors)]
        self.stops += [stop for _, stop in found]
        return "gives a tensor that it has not made other memory" + (f", at {found[0][0]}" if found else "")

    def walks(self, nodes: Iterable) -> None:
        """What was made before the run is no part of a program; arguments that were begin with an `Entry`."""
        if any([edge is not None and not edge.leaf and edge.seq < self.began
                for n in reachable(nodes, self.began) if type(n) is not Entry for edge in n.edges]):
            self.stop("runs backward into what was made before it")

    def read(self, tensor: Tensor) -> None:
        self.stop("looks at the numbers of a tensor")

    def relied_on(self, tensor: Tensor) -> None:
        if not tensor.array.all():
            self.read(tensor)
        elif self.problem is None:
            self.steps.append(Call("check_true", (self.value(tensor),), (), line(), self.late))

    def failed(self, op: Any, args: Any, error: Exception) -> None:
        """Somebody may catch it: where it would not come with other numbers, another run goes on otherwise."""
        if isinstance(error, LinAlgError) or not fails_on_zeros(op.kernel, args):
            self.stop("meets an error that depends on the numbers of a tensor")

    def seeded(self) -> None:
        self.stop("sets the state of a generator of random numbers")

    def existed(self, tensor: Tensor) -> bool:
        return id(tensor.array) in self.known

    def stop(self, what: str) -> None:
        """This run cannot become a program; it goes on as it is."""
        if not self.records:
            return
        found = Break(what, where(line()))
        self.breaks.append(found)
        self.stops.append(tuple(frames()))
        if self.problem is None:
            self.problem = f"{found.reason}, at {found.where}"

    # -- values ----------------------------------------------------------------------------------------------------

    def values(self, args: Any) -> tuple:
        """The arguments with values in place of tensors."""
        return tuple(self.value(a) if isinstance(a, Tensor) else
                     self.values(a) if type(a) in (tuple, list) else a for a in args)

    def value(self, tensor: Tensor) -> Value:
        """What is in the tensor's array now."""
        return self.current(tensor.array)

    def current(self, array: np.ndarray) -> Value:
        """What is in an array now; a view of memory that was written since it was made is looked at again."""
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
        """Whether values are the same at each run: made of constants and of the function's own tensors, which a program then
        compares with what they were."""
        made_of: dict[Value, set[Value] | None] = {v: {v} for v in self.inputs if v.source[0] == "state"}

        def together(values: Iterable[Value]) -> set[Value] | None:
            found = [set() if v.kind == "constant" else made_of.get(v) for v in values]
            return None if None in found else set().union(*found)  # type: ignore[arg-type]
        for s in self.steps:
            made_of.update(dict.fromkeys(s.outs, None if is_random(s) else together(values_in(s.args))))
        found = together(values)
        if found is None or any(id(v.array) in self.written for v in found):
            return False
        self.deciding.update((v, (v.source[1], v.array.tobytes())) for v in found if v not in self.deciding)
        return True

    def region(self, array: np.ndarray, root: np.ndarray) -> tuple | None:
        """Where a view lies in its memory: size, steps, beginning, in elements."""
        if array.dtype != root.dtype or not root.flags.c_contiguous:
            self.stop("writes through a view of memory with gaps or of another dtype")
            return None
        item = root.itemsize
        start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        return array.shape, tuple(step // item for step in array.strides), start // item

    def found(self, array: np.ndarray) -> Value:
        """The value of an array that no op of this run has made."""
        self.noted(array)
        if id(array) in self.known:
            v = self.external[id(array)] = Value(array, "input", self.known[id(array)][1])
            self.inputs.append(v)
            return v
        v = Value(array.copy(), "constant")
        if not (array.ndim == 0 and not array.flags.writeable):
            self.fresh.append(v)
            if id(array) not in self.outside:     # a function has gone round the ops: from what, nobody knows
                self.stop("uses numbers that no op of the table has made")
        return v

    def made(self, tensor: Tensor) -> Value:
        """A new value, in the array of an op's result."""
        self.noted(tensor.array)
        v = self.cells[id(tensor.array)] = Value(blank(tensor.array))
        return v

    def noted(self, array: np.ndarray) -> None:
        """An array that the books speak of by its id, until it dies and the id is another one's."""
        key = id(array)
        known = self.alive.get(key)
        if known is None or known() is not array:
            self.alive[key] = ref(array, partial(strike, key, self.books))

    def fitted(self, v: Value, target: Value) -> Value:
        """What is written, in the dtype and shape of where it is written to."""
        if v.dtype != target.dtype:
            v = self.call("to", (v, dtype_of(target.array)), np.broadcast_to(np.zeros((), target.dtype), v.shape))
        return v if v.shape == target.shape else self.call("clone", (self.spread(v, target),), target.array)

    def spread(self, v: Value, target: Value) -> Value:
        """What is written, as often as it is written: without memory of its own."""
        if v.shape == target.shape:
            return v
        return self.call("expand", (v, target.shape), np.broadcast_to(v.array, target.shape))

    def call(self, name: str, args: tuple, array: np.ndarray) -> Value:
        assert name in TABLE
        v = Value(blank(array))
        self.steps.append(Call(name, args, (v,), line(), self.late, ()))
        return v

    def seed(self, array: np.ndarray, number: int) -> None:
        """A gradient that comes from outside."""
        self.noted(array)
        v = self.cells[id(array)] = Value(array, "input", ("seed", number))
        self.inputs.append(v)

    def graph(self, results: list[Value], grads: list[tuple[Tensor, Value | None]]) -> Graph:
        """The recorded run; of several writes into one input only the last one counts."""
        last: dict[Value, int] = {s.target: i for i, s in enumerate(self.steps) if isinstance(s, Store)}
        steps = [s for i, s in enumerate(self.steps) if not isinstance(s, Store) or last[s.target] == i]
        number = count(1)
        for s in steps:
            for v in s.outs:
                v.traced = next(number)
        return Graph(steps, list(self.inputs), results, grads)


class Noted:
    """A generator that writes down what it is asked for."""

    def __init__(self, generator: Any, draws: dict[int, tuple], stop: Callable[[str], None]):
        self.asked, self.draws, self.stop = generator, draws, stop

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.asked, name)

        def draw(*args: Any, **named: Any) -> Any:
            try:
                made = method(*args, **named)
            except RuntimeError:                  # of chances that are none: with others it would have gone on
                self.stop("meets an error that depends on the numbers of a tensor")
                raise
            if isinstance(made, np.ndarray) and not any(isinstance(a, np.ndarray) for a in named.values()):
                self.draws[id(made)] = name, args, tuple(named.items()), made
            return made
        return draw if callable(method) else method


def layout_of(array: np.ndarray) -> Value:
    """A constant that lies in memory as an array does; without memory of its own where it is in order."""
    return Value(np.broadcast_to(np.zeros((), array.dtype), array.shape) if array.flags.c_contiguous else
                 np.zeros_like(array, subok=False), "constant")


def blank(array: np.ndarray) -> np.ndarray:
    """An array that lies in memory as this one does, but has none of its own worth speaking of."""
    if array.flags.c_contiguous:
        return np.ndarray(array.shape, array.dtype, ROOM, 0, (0,) * array.ndim)
    order = sorted(range(array.ndim), key=lambda d: -abs(array.strides[d]))
    steps, step = [0] * array.ndim, array.itemsize
    for d in reversed(order):
        steps[d] = step
        step *= array.shape[d]
    return np.ndarray(array.shape, array.dtype, room(step), 0, steps)


def room(size: int) -> mmap:
    """Memory that is never touched: the system hands it out page by page, when somebody writes."""
    global ROOM
    if len(ROOM) < size:
        ROOM = mmap(-1, 2 * size)
    return ROOM


def strike(key: int, books: tuple[dict, ...], gone: Any) -> None:
    """An array has died: its id means nothing any more."""
    for book in books:
        book.pop(key, None)


def shaping(op: Any, args: tuple) -> list[Tensor]:
    """The tensors whose numbers decide the shape of an op's result: masks, and what is counted."""
    if op.name == "index":
        return [t for t in args[1] if t.array.dtype.kind == "b"]
    return [args[0]] if op.options.get("batched") == "dynamic" else []


def with_zeros(a: Any) -> Any:
    """An argument, or several, with arrays of zeros in place of tensors."""
    if isinstance(a, Tensor):
        return np.zeros_like(a.array)              # which lies as it does: `view` asks
    return [with_zeros(x) for x in a] if type(a) in (list, tuple) else a


def fails_on_zeros(kernel: Callable, args: Any) -> bool:
    """Whether a kernel raises an error whatever the numbers are."""
    try:
        with np.errstate(all="ignore"):
            kernel(*with_zeros(args))
    except Exception:
        return True
    return False


def tensors_in(args: Any) -> Iterator[Tensor]:
    """The tensors among arguments, as `values_in` finds their values."""
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from tensors_in(a)


def dtype_of(array: np.ndarray) -> Any:
    from rushlight import dtypes
    return dtypes.of(array.dtype)


def line() -> Any:
    """The user's statement that is running."""
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
    """The function's result, with the tracer watching."""
    before, output = mode(), sys.stdout
    token = current.set(before.but(watch=tracer))
    sys.stdout = heard = output and Heard(output, tracer)
    try:
        return function(*args, **kwargs)
    finally:
        now = mode().but(watch=before.watch)      # set_grad_enabled(False) may have been meant to stay
        current.reset(token)
        if (now.grad, now.inference, now.checks) != (before.grad, before.inference, before.checks):
            tracer.stop("changes what is recorded")
            current.set(now)
        if sys.stdout is heard:
            sys.stdout = output


class Heard:
    """An output that tells a tracer what is printed while it watches: a program would print nothing."""

    def __init__(self, output: Any, tracer: Tracer):
        self.output, self.tracer = output, tracer

    def write(self, text: str) -> Any:
        if mode().watch is self.tracer:
            self.tracer.stop("prints")
        return self.output.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.output, name)
