"""The mode: whether ops are recorded, and who observes them. One immutable `Mode` per thread and asyncio task.

A `ContextVar` holds the mode: it is faster than a `threading.local`, and right in coroutines, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar, Token
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable)


class Watcher:
    """An observer of ops: while a watcher is `mode().watch`, its methods are called for each event.

    Watchers are the compiler's tracer, forward mode's levels, saved-tensor hooks.
    """

    records = False  # True: backward runs as ops, so that the watcher sees the ops of backward
    differentiates = False  # True: composite ops run as their parts, for forward mode
    snapshots = False  # True: the watcher keeps inputs of ops, so an in-place op reads a copy of its input

    def on_op(self, op: Any, args: tuple, out: Any) -> None:
        """An op of the table has run on `args` (canonical order) and returned `out`."""

    def on_function_start(self, node: Any, args: tuple) -> None:
        """A user's Function is about to run."""

    def on_function(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        """A user's Function has run, and its context has saved these tensors."""
        self.on_op(type(node).function, args, out)

    def on_create(self, tensor: Any) -> None:
        """The tensor's elements come from no op: from a creation function, or from a Python number."""

    def on_write_start(self, tensor: Any) -> None:
        """The tensor's memory is about to be written to."""

    def on_write(self, tensor: Any, value: Any) -> None:
        """`value`'s elements have been written into `tensor`'s memory."""

    def on_move(self, to: Any, tensor: Any) -> None:
        """`to` takes over the value and the node of `tensor`: `t_()` makes a tensor a view of its old value."""

    def on_set_data(self, tensor: Any) -> None:
        """The tensor's array is about to be replaced: `p.data = x`."""

    def generator_for(self, generator: Any) -> Any:
        """The default generator is about to draw. Returns the generator to draw from."""
        return generator

    def on_draw(self, tensor: Any) -> None:
        """A generator has drawn the tensor's elements."""
        self.on_read(tensor)

    def on_backward(self, nodes: Iterable) -> None:
        """Backward is about to begin at these nodes."""

    def on_read(self, tensor: Any) -> None:
        """Python is about to read the tensor's elements (`item`, `if`, `numpy`)."""

    def on_assert(self, tensor: Any) -> None:
        """The program raises an error unless all elements of the tensor are true."""
        self.on_read(tensor)

    def on_error(self, op: Any, args: Any, error: Exception) -> None:
        """An op of the table has raised this error on `args`."""

    def on_seed(self) -> None:
        """A generator's state is about to be set, so its stream of numbers does not continue."""

    def predates(self, tensor: Any) -> bool:
        """Whether the tensor existed before the watcher was entered: backward adds to such a gradient in place."""
        return False


class Inner(Watcher):
    """A watcher that forwards every event to the watcher around it, `outer`. Overriding methods call super() first."""

    outer: Watcher | None = None

    def enclosed(self) -> dict[str, Any]:
        """The fields of the mode inside this watcher; the present watcher becomes `outer`."""
        self.outer = mode().watch
        self.records = self.outer is not None and self.outer.records
        self.differentiates = self.outer is not None and self.outer.differentiates
        self.snapshots = type(self).snapshots or (self.outer is not None and self.outer.snapshots)
        return {"watch": self}


def forwarding(event: str) -> Callable:
    """The method of `Inner` for one event of `Watcher`."""

    def forward(self: Inner, *args: Any) -> Any:
        return getattr(self.outer or UNWATCHED, event)(*args)

    return forward


UNWATCHED = Watcher()  # receives the events if there is no outer watcher
for event in [name for name, value in vars(Watcher).items() if isinstance(value, FunctionType)]:
    setattr(Inner, event, forwarding(event))


def innermost(kind: type, watch: Any) -> Any:
    """The first watcher of class `kind`, from `watch` outward; None if there is none."""
    while watch is not None and not isinstance(watch, kind):
        watch = getattr(watch, "outer", None)
    return watch


class Mode:
    """The state that decides what an op does besides computing. A mode is never changed: `but` makes another.

    `grad`: whether ops make nodes. `inference`: the number of open `inference_mode` blocks, negated while a transform
    takes a derivative inside them (ops are recorded then). `watch`: a `Watcher` or None. `checks`: the values that
    anomaly detection looks for ("", "nan" or "nan or inf"). `batch`: the innermost vmap that runs (func/batching.py),
    or None. `derivative`: the innermost derivative of rushlight.func that is being computed, or None; a hook registered
    inside it runs in its backward only. `targeted`: whether a backward runs that computes the gradients of some inputs
    only (`inputs=`, `grad`). `transposes`: whether forward mode records the temporary graph of one op to transpose the
    op's rule; pack hooks skip that graph."""

    __slots__ = ("grad", "inference", "watch", "checks", "batch", "derivative", "targeted", "transposes")

    def __init__(self) -> None:
        self.grad, self.inference, self.checks = True, 0, ""
        self.watch: Watcher | None = None
        self.batch = self.derivative = None
        self.targeted = self.transposes = False

    def but(self, **changes: Any) -> Mode:
        """A copy with some fields changed."""
        m = object.__new__(Mode)
        m.grad, m.inference, m.watch = self.grad, self.inference, self.watch
        m.checks, m.batch, m.derivative = self.checks, self.batch, self.derivative
        m.targeted, m.transposes = self.targeted, self.transposes
        for name, value in changes.items():
            setattr(m, name, value)
        return m


current: ContextVar[Mode] = ContextVar("mode", default=Mode())  # noqa: B039  (a Mode is never changed)
mode = current.get


class Setting:
    """A context manager: inside it, fields of the mode are changed."""

    changes: dict[str, Any] = {}

    def __enter__(self) -> Any:
        self.tokens: list[Token]
        self.__dict__.setdefault("tokens", []).append(current.set(mode().but(**self.changes)))
        return self

    def __exit__(self, *exc: object) -> None:
        current.reset(self.tokens.pop())


class within(Setting):
    """`with within(field=value, ...)`."""

    def __init__(self, **changes: Any):
        self.changes = changes
