"""Nodes of the autograd graph: one for each recorded op, and `AccumulateGrad` (tensor.py) for each leaf.

Each op has a subclass (`MulBackward0`), made with the op's first node. Its methods `arrays(g)` and `tensors(g)`,
written at the first backward, return the gradients of the inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from types import CodeType, FrameType
from typing import Any, ClassVar

from rushlight.base import shown_names
from rushlight.base.errors import place
from rushlight.base.higher import Higher
from rushlight.base.tracebacks import ours
from rushlight.core.mode import mode

engine = Higher("rushlight.core.engine")


# -- the clock: numbers nodes and in-place writes in the order in which they happen ------------------

tick = count(1).__next__


class Writes:
    """The write log of one block of memory, made at the first write. Detached aliases share the log.

    `stamp`: the tick of the last write. `count`: the number of writes. `where`: the statement of the last write.
    `memory`: the array of the base, since a detached alias may start at a later address."""

    __slots__ = ("stamp", "count", "where", "memory", "_pending")
    _pending: dict[str, Callable[[], None]]  # of `Watched` only

    def __init__(self) -> None:
        self.stamp, self.count = 0, 0
        self.memory: Any = None
        self.where: tuple[CodeType, int] | None = None


slot: Any = vars(Writes)["count"]


class Watched(Writes):
    """A write log whose next write runs the functions in `_pending`, and then is an ordinary log.

    A subclass keeps this check out of all other writes."""

    __slots__ = ()

    @property
    def count(self) -> int:
        return slot.__get__(self)

    @count.setter
    def count(self, n: int) -> None:
        slot.__set__(self, n)
        pending, self._pending = self._pending, {}
        self.__class__ = Writes  # type: ignore[assignment]
        for function in pending.values():
            function()


def at_next_write(writes: Writes, name: str, function: Callable[[], None]) -> None:
    """Run `function` after the next write to this memory; it replaces one of the same name."""
    if not isinstance(writes, Watched):
        writes._pending, writes.__class__ = {}, Watched
    writes._pending[name] = function


class Clock:
    """`last_write`: the tick of the last write to any memory. Backward checks older nodes only."""

    __slots__ = ("last_write",)
    last_write: int


clock = Clock()
clock.last_write = 0


def stamp(writes: Writes, where: tuple[CodeType, int] | None) -> None:
    """Add a write that has just happened to the log."""
    writes.count += 1
    writes.where = where
    writes.stamp = clock.last_write = tick()


# -- the user's statement --------------------------------------------------------------------------


class User:
    """`code`: the code object of the user's function that last made a node.

    Most nodes are made by the same function as the node before, and comparing a code object is faster than looking up
    whether its file belongs to the library."""

    __slots__ = ("code",)
    code: CodeType | None


user = User()
user.code = None


def outside(f: FrameType | None) -> tuple | None:
    """(code, lasti) of the innermost statement outside rushlight, from frame `f` outward; None without frames."""
    start = f
    while f is not None:
        code = f.f_code
        if not ours(code.co_filename):
            user.code = code
            return code, f.f_lasti
        f = f.f_back
    return None if start is None else (start.f_code, start.f_lasti)


def remember(node: Node, f: FrameType) -> int:
    """Set `node.code` to the user's code object; returns the instruction's offset for `node.at`."""
    node.code, at = outside(f)  # type: ignore[misc]  # f is a frame, so outside() is not None
    return at


# -- nodes -----------------------------------------------------------------------------------------


class Node:
    """inputs' gradients = node(output's gradient). A recorded op makes one node: the `grad_fn` of its output.

    `edges`: the nodes of the inputs, None for an input without gradient. `saved`: the values that the derivative rules
    need. `seq`: the tick of the clock at which the node was made. `shape`: the output's shape. `code`, `at`: the code
    object and the instruction's offset of the user's statement that made the node.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> node = (x * 2 + 1).grad_fn
    >>> isinstance(node, rushlight.autograd.graph.Node), node.name(), node.next_functions[0][0].name()
    (True, 'AddBackward0', 'MulBackward0')
    """

    __slots__ = ("edges", "saved", "seq", "shape", "code", "at", "_writes", "extra")

    op: ClassVar[Any] = None  # the op's entry in the table
    first: ClassVar[int | None] = 0  # index in `saved` of the first array; None: no array to free
    leaf: ClassVar[bool] = False
    hooks: ClassVar[Any] = None  # a `Hooks` in the classes that `with_hooks` makes
    edges: tuple
    saved: tuple | None
    seq: int
    shape: tuple | None
    code: CodeType | None
    at: int
    # The `Writes` of the output's memory; the slot is empty before the first write. A node that saves several of its
    # outputs has [(name of the saved value, Writes), ...].
    _writes: Any
    extra: Any  # the `Hooks` of a node that has hooks
    arrays: Callable  # (node, ndarray) -> gradients of the inputs, ndarrays
    tensors: Callable  # (node, Tensor) -> gradients of the inputs, Tensors

    def name(self) -> str:
        """The name of the node's class, as in torch: `MulBackward0`."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple:
        """(node, output number) for each input; (None, 0) for an input without gradient."""
        return tuple(edge.source() if edge is not None else (None, 0) for edge in self.edges)

    def source(self) -> tuple[Node, int]:
        """(the node of the op, the number of the output that this node stands for)."""
        return self, 0

    def __call__(self, *grads: Any) -> Any:
        """The gradients of the node's inputs, for the gradient of each output. Nothing is freed.

        >>> x, y = (rushlight.tensor(v, requires_grad=True) for v in (3., 4.))
        >>> to_x, to_y = (x * y).grad_fn(rushlight.tensor(1.))
        >>> to_x.item(), to_y.item()
        (4.0, 3.0)
        """
        return engine().run_node(self, grads)

    @property
    def where(self) -> tuple[CodeType, int] | None:
        """(code, at) of the user's statement that made the node, None if unknown. Two slots avoid a tuple per op."""
        return None if self.code is None else (self.code, self.at)

    @where.setter
    def where(self, place: tuple[CodeType, int] | None) -> None:
        self.code, self.at = place or (None, 0)

    @property
    def made_at(self) -> str:
        """The user's file, line and statement that made this node."""
        return place(*self.where) if self.where else "<unknown>"

    @property
    def metadata(self) -> dict:
        """A dict for the user's own data about the node."""
        return hooks_of(self).metadata

    def register_hook(self, hook: Callable) -> Handle:
        """Run `hook(grad_inputs, grad_outputs)` after the node's rules. A result replaces `grad_inputs`."""
        return hooks_of(self).add("after", hook)

    def register_prehook(self, hook: Callable) -> Handle:
        """Run `hook(grad_outputs)` before the node's rules. A result replaces `grad_outputs`."""
        return hooks_of(self).add("before", hook)

    def __repr__(self) -> str:
        return f"<{self.name()} made at {self.made_at}>" if self.where else f"<{self.name()}>"


class Output(Node):
    """One output of a node with several outputs: passes the gradient on as `Parts({number: gradient})`."""

    __slots__ = ("number",)

    def __init__(self, node: Node, number: int, seq: int, shape: tuple):
        self.edges, self.number, self.seq, self.shape = (node,), number, seq, shape
        self.saved, self.where = (), node.where

    @property
    def _writes(self) -> None:
        """Unused: the op's own node checks the outputs that it has saved (`share_writes`)."""

    @_writes.setter
    def _writes(self, writes: Any) -> None:
        share_writes(self.edges[0], self.number, writes)

    def source(self) -> tuple[Node, int]:
        return self.edges[0], self.number

    def arrays(self, g: Any) -> tuple[Parts]:
        return (Parts({self.number: g}),)

    tensors = arrays


def share_writes(node: Node, number: int, writes: Any) -> None:
    """Give a node the write log of its output `number`, if the node has saved that output."""
    name = node.op and node.op.saved_outputs.get(number)
    if name:
        node._writes = [*getattr(node, "_writes", ()), (name, writes)]


class Start(Node):
    """The node of an input of a function that a transform differentiates: a leaf inside the transform.

    Passes the gradient on to `origin`, the node of the tensor that the input was made from. `open`: True until the
    transform has taken its derivative."""

    __slots__ = ("open",)
    leaf = True

    def __init__(self, origin: Node | None, shape: tuple):
        self.edges, self.saved, self.seq = (origin,), (), tick()
        self.shape, self.where = shape, None
        self.open = True

    def tensor(self) -> None:
        """None: no leaf accumulates here (AccumulateGrad.tensor returns its leaf)."""

    def arrays(self, g: Any) -> tuple:
        return (g,)

    tensors = arrays


class Parts(dict):
    """{output number: gradient} for some outputs of one node; the sum of two `Parts` has the outputs of both."""

    shape, size = None, 0  # shape None as the node's: broadcasting is not undone
    is_sparse = False

    def __add__(self, other: Parts) -> Parts:
        both = self.keys() & other.keys()  # rules of two nodes have used the same saved output
        return Parts({**self, **other, **{i: self[i] + other[i] for i in both}})


class Handle:
    """The result of registering a hook: `remove()` unregisters the hook. Also a context manager.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> handle = x.register_hook(lambda g: 10 * g)
    >>> handle.remove()
    >>> (2 * x).backward()
    >>> x.grad
    tensor(2.)
    """

    __slots__ = ("hooks", "key")

    def __init__(self, hooks: dict, key: int):
        self.hooks, self.key = hooks, key

    @property
    def id(self) -> int:
        """The hook's key in the dict of hooks."""
        return self.key

    def remove(self) -> None:
        """Unregister the hook. A second call does nothing."""
        self.hooks.pop(self.key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple:
        # torch's format; the tuple holds further dicts that have the key
        return (self.hooks, self.key, ())

    def __setstate__(self, state: tuple) -> None:
        self.hooks, self.key = {} if state[0] is None else state[0], state[1]


shown_names.IN_FILES[Handle] = "torch.utils.hooks", "RemovableHandle"


class Packed:
    """A saved value after the pack hook of `by`, a `saved_tensors_hooks`.

    `value`: the hook's result. `node`, `tangents`: of the saved tensor. `raw`: a weak reference to the saved array
    of an output; None for other values."""

    __slots__ = ("by", "value", "_node", "tangents", "raw")

    def __init__(self, by: Any, value: Any, node: Node | None = None, tangents: Any = None, raw: Any = None):
        self.by, self.value, self._node, self.tangents, self.raw = by, value, node, tangents, raw


def unpacked(item: Any) -> Any:
    """A saved value as the rules need it: unpacked if a hook has packed it."""
    return item.by.unpacked(item) if isinstance(item, Packed) else item


class Hooks:
    """The hooks of one node. Backward calls those on the output (`tensor`), then `before`, the rules, `after`."""

    __slots__ = ("tensor", "before", "after", "done", "retained", "dtype", "metadata", "count", "unpack", "dual")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable] = {}
        self.before: dict[int, Callable] = {}
        self.after: dict[int, Callable] = {}
        self.done: dict[int, Callable] = {}  # called after a leaf's gradient has been accumulated
        self.retained: Any = None  # weak reference to the tensor on which retain_grad() was called
        self.dtype: Any = None  # the tensor's dtype: the rules may return float32 for bfloat16
        self.metadata: dict = {}
        self.count = 0
        self.unpack: Callable | None = None  # saved_tensors_hooks: unpacks `node.saved` before the rules run
        self.dual: Callable | None = None  # forward mode: (saved output, its number) -> the output with its tangents

    def add(self, kind: str, hook: Any) -> Handle:
        hooks = getattr(self, kind)
        self.count += 1
        # A hook registered inside a transform runs in that transform's backward only. `Gathering` (graph.py) checks it.
        derivative = mode().derivative
        unbound = derivative is None or hasattr(hook, "gathers")
        hooks[self.count] = hook if unbound else partial(in_own_derivative, derivative, hook)
        return Handle(hooks, self.count)


def in_own_derivative(derivative: Any, hook: Callable, *args: Any) -> Any:
    """The hook's result in the backward of `derivative`, inside which it was registered; None in any other backward."""
    return hook(*args) if mode().derivative is derivative else None


def hooks_of(node: Node, dtype: Any = None) -> Hooks:
    """The node's `Hooks`, made at first use. The node then changes its class, so that nodes without hooks cost nothing.

    `dtype`: the dtype of the tensor whose gradient the hooks receive.
    """
    if node.hooks is None:
        node.extra = Hooks()
        node.__class__ = with_hooks(type(node))
    if dtype is not None:
        node.hooks.dtype = dtype
    return node.hooks


HOOKED: dict[type, type] = {}  # class of a node -> the same class with hooks


def with_hooks(cls: type) -> type:
    """A subclass of `cls` of the same name whose `hooks` is the `Hooks` in the node's slot `extra`."""
    if cls not in HOOKED:
        HOOKED[cls] = type(
            cls.__name__,
            (cls,),
            {"__slots__": (), "hooks": property(lambda node: node.extra), "__module__": cls.__module__},
        )
    return HOOKED[cls]
