"""The graph for those who reach into it: hooks on what nodes save, notes of writes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from rushlight.autograd.clock import stamp
from rushlight.autograd.engine import tensors_in
from rushlight.autograd.grad_mode import Inner, Setting, innermost, mode, taken, transposing
from rushlight.autograd.node import Handle, Node, Packed, hooks_of, unpacked
from rushlight.autograd.views import as_it_is
from rushlight.errors import explain
from rushlight.tensor import TANGENTS, Tensor, from_array, writes_of

__all__ = ["GradientEdge", "Handle", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks(Setting, Inner):
    """saved = unpack_hook(pack_hook(tensor)): what nodes save inside it goes through the one, and in backward the other.

    >>> def pack(x):
    ...     print("saves", x.item())
    ...     return x
    >>> with rushlight.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
    ...     y = rushlight.tensor([3.], requires_grad=True).square()
    saves 3.0
    """

    snapshots = True                              # the pack hook may keep the tensor itself
    waiting: list | None = None                   # results whose nodes are packed later: `packed_at_the_end`

    def __init__(self, pack_hook: Callable, unpack_hook: Callable):
        self.pack, self.unpack = pack_hook, unpack_hook

    @property
    def changes(self) -> dict:  # type: ignore[override]
        disabled = innermost(disable_saved_tensors_hooks, mode().watch)
        if disabled is not None:
            raise RuntimeError(disabled.message)
        return self.enclosed()

    def again(self) -> saved_tensors_hooks:
        return type(self)(self.pack, self.unpack)

    def ran(self, op: Any, args: tuple, out: Any) -> None:
        self.pack_saved(out)                      # before the hooks around these, which leave alone what is packed
        super().ran(op, args, out)

    def applied(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        self.pack_saved(out)
        super().applied(node, args, out, saved)

    def pack_saved(self, out: Any) -> None:
        """Send what the node of an op's result has saved through the pack hook."""
        if transposing.get():
            return
        if self.waiting is not None:
            self.waiting.append(out)
            return
        first = out if isinstance(out, Tensor) else next((t for t in out if isinstance(t, Tensor) and t.node), None)
        node = None if first is None or first.node is None else first.node.source()[0]
        if node is None or node.leaf or not node.saved or any(isinstance(s, Packed) for s in node.saved):
            return
        names = node.op.saves if node.op is not None else ()
        node.saved = tuple(self.packed(item, names[i:i + 1] == ("out",)) for i, item in enumerate(node.saved))
        hooks_of(node).unpack = self.restore

    def packed(self, item: Any, is_out: bool) -> Any:
        if isinstance(item, Tensor):
            number = item.array.ndim == 0 and item.node is None              # as in x ** 3: kept as it is
            return item if number else Packed(self, self.pack_one(item), item.node, item.__dict__.get(TANGENTS))
        if not is_out or item is None:            # None: this rule does not need the result (x ** 2)
            return item
        return Packed(self, self.pack_one(from_array(item)), raw=ref(item))

    def pack_one(self, t: Tensor) -> Any:
        before = t._version
        value = unwatched(self.pack, t)
        if t._version != before:
            raise RuntimeError(explain("A saved tensor pack hook is modifying its input in place.",
                                       "let it work on a clone()"))
        return value

    def restore(self, node: Node) -> None:
        """Put the tensors back before the node's rules run."""
        if node.saved is not None:
            packed, node.saved = node.saved, tuple(map(unpacked, node.saved))
            if any(isinstance(p, Packed) and p.raw and apart(p.raw(), now) for p, now in zip(packed, node.saved)):
                noted = getattr(node, "writes", ())                      # of its output: a write to that changes no copy
                node.writes = [pair for pair in noted if pair[0] != "out"] if noted.__class__ is list else []

    def unpacked(self, packed: Packed) -> Any:
        """What a rule finds: the tensor with its place in the graph, or of a result the array."""
        t = unwatched(self.unpack, packed.value)
        if packed.raw is not None:
            return t.array
        fresh = from_array(t.array)
        fresh.node = packed.node
        if packed.tangents:
            fresh.__dict__[TANGENTS] = packed.tangents
        return fresh


def apart(before: Any, now: Any) -> bool:
    """Whether an array that was packed, None if it is no more, has come back in other memory."""
    return before is None or (isinstance(before, np.ndarray) and not np.may_share_memory(before, now))


def packed_at_the_end(function: Callable) -> Callable:
    """A decorator for functions that are one op in torch, and write to buffers: pack hooks run after these writes.

    The hooks of a checkpoint end its second run as soon as all is packed that backward needs.
    """
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        hooks = innermost(saved_tensors_hooks, mode().watch)
        if hooks is None or hooks.waiting is not None:
            return function(*args, **kwargs)
        hooks.waiting = []
        try:
            made = function(*args, **kwargs)
        finally:
            results, hooks.waiting = hooks.waiting, None
        for out in results:
            hooks.pack_saved(out)
        return made
    return call


class Unwatched(Setting):
    """Inside it nobody watches and nothing is recorded: hooks run their own ops unseen."""

    changes = {"watch": None, "grad": False}


def unwatched(hook: Callable, value: Any) -> Any:
    with Unwatched():
        return hook(value)


class save_on_cpu(saved_tensors_hooks):
    """saved tensors lie on the CPU: where they are anyway.

    >>> x = rushlight.tensor([3.], requires_grad=True)
    >>> with rushlight.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu"):
        super().__init__(lambda t: t, lambda t: t)


class disable_saved_tensors_hooks(Setting, Inner):
    """RuntimeError(error_message) for `saved_tensors_hooks` inside it, and where it is entered inside one.

    >>> graph = rushlight.autograd.graph
    >>> try:
    ...     with graph.disable_saved_tensors_hooks("no hooks here"), graph.save_on_cpu():
    ...         rushlight.ones(2, requires_grad=True).exp()
    ... except RuntimeError as error:
    ...     print(error)
    no hooks here
    """

    def __init__(self, error_message: str):
        self.message = error_message

    @property
    def changes(self) -> dict:  # type: ignore[override]
        if innermost(saved_tensors_hooks, mode().watch) is not None:
            raise RuntimeError(self.message)
        return self.enclosed()

    def again(self) -> disable_saved_tensors_hooks:
        return type(self)(self.message)


def increment_version(tensor: Tensor) -> None:
    """version <- version + 1: the tensor's memory was written to, by means that rushlight did not see.

    >>> x = rushlight.zeros(2)
    >>> x.numpy()[0] = 1
    >>> rushlight.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    stamp(writes_of(tensor), None)


# -- several gradients at once -------------------------------------------------------------------------------------------

class Gathering:
    """Gradients of several tensors, until all are there that this run of backward computes."""

    def __init__(self, nodes: list[Node], hook: Callable, first: bool):
        self.nodes, self.hook, self.first, self.taken = nodes, hook, first, taken.get()
        self.walk: Any = None
        self.left, self.found = 0, {}  # type: ignore[var-annotated]

    def gathers(self, node: Node, g: Tensor, walk: Any) -> None:
        """A gradient is there, the first or the last or one in between."""
        if self.taken is not None and self.taken is not taken.get():
            return
        if self.walk is not walk:
            there = set(walk.order) if walk.wanted is None else walk.wanted
            self.walk, self.left, self.found = walk, len(there & set(self.nodes)), {}
            if self.first:
                self.hook(g)
        self.left -= 1
        self.found[node] = g
        if self.left == 0:
            found, self.walk, self.found = [self.found.get(n) for n in self.nodes], None, {}
            if not self.first:
                self.hook(found)


class Handles:
    """Several hooks' handles as one."""

    def __init__(self, handles: list[Handle]):
        self.handles = handles

    def remove(self) -> None:
        """Take the hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> Handles:
    """Call `fn(gradients)` once backward has computed the gradients of all these tensors.

    Those that a run of backward does not reach come as None and are not waited for. mode="any": `fn(gradient)` with the
    first that is there. ValueError for another mode, RuntimeError for a tensor that does not require a gradient.

    >>> a, b = rushlight.ones(1, requires_grad=True), rushlight.ones(1, requires_grad=True)
    >>> handle = rushlight.autograd.graph.register_multi_grad_hook((a, b), lambda gs: print(len(gs), "gradients"))
    >>> (a * b).backward()
    2 gradients
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = [get_gradient_edge(t).key for t in tensors]
    gathering = Gathering(nodes, fn, mode == "any")
    return Handles([hooks_of(node).add("tensor", gathering) for node in dict.fromkeys(nodes)])


class GradientEdge(NamedTuple):
    """(node, output_nr): a tensor's place in the graph, what made it (or accumulates its gradient), and which output it is.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> edge = rushlight.autograd.graph.get_gradient_edge(x)
    >>> rushlight.autograd.grad(x * x, edge)
    (tensor(6.),)
    """

    node: Node
    output_nr: int
    ownership_token: Any = None

    @property
    def key(self) -> Node:
        """The node of this very output."""
        return self.ownership_token if self.ownership_token is not None else self.node


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where a tensor stands in the graph. RuntimeError if it requires no gradient.

    >>> rushlight.autograd.graph.get_gradient_edge(rushlight.ones(1, requires_grad=True) * 2).node.name()
    'MulBackward0'
    """
    if tensor.node is None:
        raise RuntimeError(explain("It is not possible to get the gradient edge for a Tensor that does not require "
                                   "gradients", "call requires_grad_() on it before it is used"))
    return GradientEdge(*tensor.node.source(), tensor.node)


# -- writes to what is saved ---------------------------------------------------------------------------------------------

class allow_mutation_on_saved_tensors(Setting, Inner):
    """Inside it, what nodes have saved is copied before somebody writes to it: backward sees what it was.

    >>> with rushlight.autograd.graph.allow_mutation_on_saved_tensors():
    ...     a = rushlight.ones(2, requires_grad=True)
    ...     b = a * 3
    ...     out = (b ** 2).sum()
    ...     _ = b.sin_()
    ...     out.backward()
    >>> a.grad
    tensor([18., 18.])
    """

    def __init__(self) -> None:
        self.users: dict[int, tuple[Tensor, list[Node]]] = {}      # by id of a memory's owner: the nodes that saved it

    @property
    def changes(self) -> dict:  # type: ignore[override]
        return self.enclosed()

    def again(self) -> allow_mutation_on_saved_tensors:
        return type(self)()

    def __exit__(self, *exc: object) -> None:
        self.users.clear()
        super().__exit__(*exc)

    def note(self, out: Any) -> None:
        """Remember what the node of an op's result has saved."""
        for t in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(t, Tensor) and t.node is not None and not t.node.leaf:
                node = t.node.source()[0]
                for kept in (t, *tensors_in(node.saved or ())):
                    self.users.setdefault(id(kept.root), (kept.root, []))[1].append(node)

    def ran(self, op: Any, args: tuple, out: Any) -> None:
        super().ran(op, args, out)
        self.note(out)

    def applied(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        super().applied(node, args, out, saved)
        self.note(out)

    def writing(self, tensor: Tensor) -> None:
        super().writing(tensor)
        writes_of(tensor)                         # made now, as its making would give it to the node again
        root, nodes = self.users.pop(id(tensor.root), (None, []))
        for node in dict.fromkeys(nodes):
            node.saved = tuple([self.copied(item, root) for item in node.saved or ()]) if node.saved else node.saved
            node.writes = []                      # what it keeps now nobody writes to

    def copied(self, item: Any, root: Any) -> Any:
        """What a node has saved, or a copy of it if its memory is the root's."""
        if isinstance(item, Tensor):
            with Unwatched():
                return as_it_is(item) if item.root is root else item
        if isinstance(item, (list, tuple)) and any(isinstance(part, Tensor) for part in item):
            return type(item)([self.copied(part, root) for part in item])
        return item.copy() if isinstance(item, np.ndarray) and np.may_share_memory(item, root.array) else item
