"""Nodes of the graph that backward walks: one for each recorded op, and one where each path ends.

Each op of the table has its own subclass (`MulBackward0`), made with the table, which carries the rules:
`arrays(g)` and `tensors(g)` return the gradients of the inputs in the two worlds.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import Any, ClassVar

from rushlight import torch_names
from rushlight.autograd.clock import tick
from rushlight.autograd.grad_mode import taken
from rushlight.errors import ours, place


class User:
    """`code`: the user's function that last made a node, as a rule the one that makes the next: to compare it takes less
    than to look at its file (all of remembering: 110 to 240 ns an op, where it was 216 to 250)."""

    __slots__ = ("code",)
    code: CodeType | None


user = User()
user.code = None


def outside(f: FrameType | None) -> tuple | None:
    """The innermost statement outside rushlight, from a frame on: what a node remembers of where it was made."""
    start = f
    while f is not None:
        code = f.f_code
        if not ours(code.co_filename):
            user.code = code
            return code, f.f_lasti
        f = f.f_back
    return None if start is None else (start.f_code, start.f_lasti)


def remember(node: Node, f: FrameType) -> int:
    """Let a node remember the statement outside rushlight; gives `at`."""
    node.code, at = outside(f)  # type: ignore[misc]  # f is a frame
    return at


class Node:
    """inputs' gradients = node(output's gradient): what an op that is recorded leaves in the graph, a tensor's `grad_fn`.

    `edges`: the inputs' nodes (None: no gradient); `saved`: what the rules need; `seq`: when it was made;
    `shape`: of the output; `code`, `at`: code object and instruction of the statement that made it.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> node = (x * 2 + 1).grad_fn
    >>> isinstance(node, rushlight.autograd.graph.Node), node.name(), node.next_functions[0][0].name()
    (True, 'AddBackward0', 'MulBackward0')
    """

    __slots__ = ("edges", "saved", "seq", "shape", "code", "at", "writes", "extra")

    op: ClassVar[Any] = None                      # the entry of the table
    first: ClassVar[int | None] = 0               # place of an array among what it saves; None if it saves facts alone
    leaf: ClassVar[bool] = False
    hooks: ClassVar[Any] = None                   # `with_hooks` gives a node a class in which this is a `Hooks`
    edges: tuple
    saved: tuple | None
    seq: int
    shape: tuple | None
    code: CodeType | None
    at: int
    writes: Any                                   # the `Writes` of the output's memory; empty slot before the first;
                                                  # of several outputs that are saved [(name, Writes), ...]
    extra: Any                                    # the `Hooks` of a node that has some
    arrays: Callable                              # (node, ndarray) -> gradients of the inputs, ndarrays
    tensors: Callable                             # (node, Tensor) -> gradients of the inputs, Tensors

    def name(self) -> str:
        """The name of its class, as in torch: `MulBackward0`."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple:
        """((node, output number), ...) for each input; (None, 0) where no gradient goes."""
        return tuple(edge.source() if edge is not None else (None, 0) for edge in self.edges)

    def source(self) -> tuple[Node, int]:
        """The node that made this output, and the output's number."""
        return self, 0

    @property
    def where(self) -> tuple[CodeType, int] | None:
        """The statement that made it; None if nobody knows. Stands in two slots: a tuple takes 25 ns more."""
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
        """A place for users' notes about the node."""
        return hooks_of(self).metadata

    def register_hook(self, hook: Callable) -> Handle:
        """Run `hook(grad_inputs, grad_outputs)` after the node's rules; what it returns replaces `grad_inputs`."""
        return hooks_of(self).add("after", hook)

    def register_prehook(self, hook: Callable) -> Handle:
        """Run `hook(grad_outputs)` before the node's rules; what it returns replaces `grad_outputs`."""
        return hooks_of(self).add("before", hook)

    def __repr__(self) -> str:
        return f"<{self.name()} made at {self.made_at}>" if self.where else f"<{self.name()}>"


class Output(Node):
    """One output of a node that has several: hands what arrives to its place in the node's list."""

    __slots__ = ("number",)

    def __init__(self, node: Node, number: int, seq: int, shape: tuple):
        self.edges, self.number, self.seq, self.shape = (node,), number, seq, shape
        self.saved, self.where = (), node.where

    @property
    def writes(self) -> None:  # type: ignore[override]
        """Nobody asks: the node has saved the output, and looks."""

    @writes.setter
    def writes(self, writes: Any) -> None:
        share_writes(self.edges[0], self.number, writes)

    def source(self) -> tuple[Node, int]:
        return self.edges[0], self.number

    def arrays(self, g: Any) -> tuple[Parts]:
        return (Parts({self.number: g}),)

    tensors = arrays


def share_writes(node: Node, number: int, writes: Any) -> None:
    """Let a node know where writes to one of its outputs are noted, if it has saved that."""
    name = node.op and node.op.keeps.get(number)
    if name:
        node.writes = [*getattr(node, "writes", ()), (name, writes)]


class Start(Node):
    """Where a function's input begins, for one who differentiates it: a leaf, which hands what arrives to what the input
    was made from. `open`: until whoever differentiates has done so."""

    __slots__ = ("open",)
    leaf = True

    def __init__(self, origin: Node | None, shape: tuple):
        self.edges, self.saved, self.seq, self.shape, self.where = (origin,), (), tick(), shape, None
        self.open = True

    def tensor(self) -> None:
        """The leaf that accumulates: none."""

    def arrays(self, g: Any) -> tuple:
        return (g,)

    tensors = arrays


class Parts(dict):
    """Gradients of some outputs of one node, by number; adding two brings them together."""

    shape, size = None, 0                         # as the node's: nothing to sum back

    def __add__(self, other: Parts) -> Parts:
        both = self.keys() & other.keys()         # two rules of the node have used the same saved output
        return Parts({**self, **other, **{i: self[i] + other[i] for i in both}})


class Handle:
    """hook = called no more after `remove()`: what registering a hook returns; usable as a context.

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
        """Its key in the dict of hooks."""
        return self.key

    def remove(self) -> None:
        """Take the hook away; again does nothing."""
        self.hooks.pop(self.key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple:
        return self.hooks, self.key, ()           # as torch's: the last are further dicts with the key

    def __setstate__(self, state: tuple) -> None:
        self.hooks, self.key = {} if state[0] is None else state[0], state[1]


torch_names.IN_FILES[Handle] = "torch.utils.hooks", "RemovableHandle"


class Packed:
    """What a node has saved, in the form that `by`, a `saved_tensors_hooks`, gave it, with its node and its tangents;
    `raw`: a weak reference to the array that it was."""

    __slots__ = ("by", "value", "node", "tangents", "raw")

    def __init__(self, by: Any, value: Any, node: Node | None = None, tangents: Any = None, raw: Any = None):
        self.by, self.value, self.node, self.tangents, self.raw = by, value, node, tangents, raw


def unpacked(item: Any) -> Any:
    """What a node has saved, as it was before a hook packed it."""
    return item.by.unpacked(item) if isinstance(item, Packed) else item


class Hooks:
    """The hooks of one node, in order: on its output (`tensor`), before its rules, after them."""

    __slots__ = ("tensor", "before", "after", "done", "retained", "dtype", "metadata", "count", "unpack", "dual")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable] = {}
        self.before: dict[int, Callable] = {}
        self.after: dict[int, Callable] = {}
        self.done: dict[int, Callable] = {}       # after a leaf's gradient has been accumulated
        self.retained: Any = None                 # weak reference to the tensor that keeps its gradient
        self.dtype: Any = None                    # of a tensor with hooks: rules may make float32 of bfloat16
        self.metadata: dict = {}
        self.count = 0
        self.unpack: Callable | None = None       # of `saved_tensors_hooks`
        self.dual: Callable | None = None         # of forward mode: (saved output, its number) -> it with its tangents

    def add(self, kind: str, hook: Any) -> Handle:
        hooks = getattr(self, kind)
        self.count += 1
        alone = taken.get() is None or hasattr(hook, "gathers")            # that one asks itself
        hooks[self.count] = hook if alone else partial(within, taken.get(), hook)
        return Handle(hooks, self.count)


def within(derivative: Any, hook: Callable, *args: Any) -> Any:
    """What a hook returns that was registered while a derivative was taken; None in the backward of others."""
    return hook(*args) if taken.get() is derivative else None


def hooks_of(node: Node, dtype: Any = None) -> Hooks:
    """The node's hooks, made at first use: the node changes its class, so that nodes without hooks pay nothing. `dtype`: of
    the tensor whose gradient they are given."""
    if node.hooks is None:
        node.extra = Hooks()
        node.__class__ = with_hooks(type(node))
    if dtype is not None:
        node.hooks.dtype = dtype
    return node.hooks


HOOKED: dict[type, type] = {}                     # one for each class of node


def with_hooks(cls: type) -> type:
    """The same class, with hooks."""
    if cls not in HOOKED:
        HOOKED[cls] = type(cls.__name__, (cls,), {"__slots__": (), "hooks": property(lambda node: node.extra),
                                                  "__module__": cls.__module__})
    return HOOKED[cls]
