"""torch.autograd.graph: hooks on saved tensors, gradient edges, hooks on several gradients, versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.engine import tensors_in
from rushlight.core.mode import Inner, innermost, mode
from rushlight.core.node import Handle, Node, Packed, hooks_of, stamp, unpacked
from rushlight.core.tensor import TANGENTS, Tensor, from_array, writes_of
from rushlight.core.views import copy_with_node
from rushlight.ops.grad_mode import Decorator

__all__ = [
    "GradientEdge", "Handle", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class saved_tensors_hooks(Decorator, Inner):
    """saved = unpack_hook(pack_hook(tensor)): nodes made inside save the result of pack_hook; backward unpacks it.

    >>> def pack(x):
    ...     print("saves", x.item())
    ...     return x
    >>> with rushlight.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
    ...     y = rushlight.tensor([3.], requires_grad=True).square()
    saves 3.0
    """

    snapshots = True  # the pack hook may keep the tensor itself
    waiting: list | None = None  # outputs whose nodes are packed later (`packed_at_the_end`)

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

    def on_op(self, op: Any, args: tuple, out: Any) -> None:
        self.pack_saved(out)  # before the outer hooks, which skip nodes that are packed
        super().on_op(op, args, out)

    def on_function(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        self.pack_saved(out)
        super().on_function(node, args, out, saved)

    def pack_saved(self, out: Any) -> None:
        """Pass the values saved by the node of an op's output through the pack hook."""
        if mode().transposes:
            return
        if self.waiting is not None:
            self.waiting.append(out)
            return
        first = out if isinstance(out, Tensor) else next((t for t in out if isinstance(t, Tensor) and t._node), None)
        node = None if first is None or first._node is None else first._node.source()[0]
        if node is None or node.leaf or not node.saved or any(isinstance(s, Packed) for s in node.saved):
            return
        names = node.op.saves if node.op is not None else ()
        outs = (out,) if isinstance(out, Tensor) else out
        node.saved = tuple(self.packed(item, names[i : i + 1] == ("out",), outs) for i, item in enumerate(node.saved))
        hooks_of(node).unpack = self.restore

    def packed(self, item: Any, is_out: bool, outs: Any) -> Any:
        if isinstance(item, Tensor):
            # a number, such as the 3 of x ** 3, is not packed
            is_number = item._array.ndim == 0 and item._node is None
            return item if is_number else Packed(self, self.pack_one(item), item._node, item.__dict__.get(TANGENTS))
        if not is_out or item is None:  # None: the rule does not need the output (x ** 2)
            return item
        alias = from_array(item)
        for out in outs:
            if isinstance(out, Tensor) and out._array is item:
                alias._writes = writes_of(out)  # a write to the output is also a write to the packed tensor
        return Packed(self, self.pack_one(alias), raw=ref(item))

    def pack_one(self, t: Tensor) -> Any:
        before = t._version
        value = unwatched(self.pack, t)
        if t._version != before:
            raise runtime_error(
                "A saved tensor pack hook is modifying its input in place.", "use a clone() in the hook"
            )
        return value

    def restore(self, node: Node) -> None:
        """Unpack the node's saved values before its rules run."""
        if node.saved is not None:
            packed, node.saved = node.saved, tuple(map(unpacked, node.saved))
            if any(
                isinstance(p, Packed) and p.raw and copied_memory(p.raw(), now) for p, now in zip(packed, node.saved)
            ):
                # the output's write log: a write to it does not change the copy
                noted = getattr(node, "_writes", ())
                node._writes = [pair for pair in noted if pair[0] != "out"] if noted.__class__ is list else []

    def unpacked(self, packed: Packed) -> Any:
        """The saved value for the rule: the tensor with its node, or the array of a saved output."""
        t = unwatched(self.unpack, packed.value)
        if packed.raw is not None:
            return t._array
        fresh = from_array(t._array)
        fresh._node = packed._node
        if packed.tangents:
            fresh.__dict__[TANGENTS] = packed.tangents
        return fresh


def copied_memory(before: Any, now: Any) -> bool:
    """Whether the unpacked array `now` has other memory than the packed one; `before` is None if that was freed."""
    return before is None or (isinstance(before, np.ndarray) and not np.may_share_memory(before, now))


def all_hooks() -> list[saved_tensors_hooks]:
    """The pack hooks that are entered, the innermost first."""
    found: list[saved_tensors_hooks] = []
    hooks = innermost(saved_tensors_hooks, mode().watch)
    while hooks is not None:
        found.append(hooks)
        hooks = innermost(saved_tensors_hooks, hooks.outer)
    return found


def packed_at_the_end(function: Callable) -> Callable:
    """A decorator for functions that are one op in torch and write to buffers: pack hooks run after these writes.

    Without it, a checkpoint would miss the writes: its hooks stop the recomputation once all saved tensors are
    packed."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        hooks = [h for h in all_hooks() if h.waiting is None]
        for h in hooks:
            h.waiting = []
        waiting = [h.waiting for h in hooks]
        try:
            made = function(*args, **kwargs)
        finally:
            for h in hooks:
                h.waiting = None
        # the innermost hooks first: outer hooks skip nodes that are packed
        for h, results in zip(hooks, waiting):
            for out in results or ():
                h.pack_saved(out)
        return made

    return call


class Unwatched(Decorator):
    """Without a watcher and without grad mode: the ops of a hook are neither observed nor recorded."""

    changes = {"watch": None, "grad": False}


def unwatched(hook: Callable, value: Any) -> Any:
    with Unwatched():
        return hook(value)


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors on the CPU; changes nothing, since all tensors are on the CPU.

    >>> x = rushlight.tensor([3.], requires_grad=True)
    >>> with rushlight.autograd.graph.save_on_cpu():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu"):
        super().__init__(lambda t: t, lambda t: t)


class disable_saved_tensors_hooks(Decorator, Inner):
    """Entering `saved_tensors_hooks` inside raises RuntimeError(error_message); so does entering this inside such
    hooks.

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
    """version <- version + 1: declares a write to the tensor's memory that rushlight did not observe.

    >>> x = rushlight.zeros(2)
    >>> x.numpy()[0] = 1
    >>> rushlight.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    stamp(writes_of(tensor), None)


# -- hooks on several gradients --------------------------------------------------------------------


class Gathering:
    """Collects the gradients of several tensors in one backward, and calls the hook when all have arrived.

    `nodes`: the nodes of the tensors. `first`: call the hook with the first gradient instead."""

    def __init__(self, nodes: list[Node], hook: Callable, first: bool):
        self.nodes, self.hook, self.first, self.derivative = nodes, hook, first, mode().derivative
        self.walk: Any = None
        self.left, self.found = 0, {}  # type: ignore[var-annotated]

    def gathers(self, node: Node, g: Tensor, walk: Any) -> None:
        """Called by the engine with the gradient `g` of `node`. `walk`: the running backward."""
        if self.derivative is not None and self.derivative is not mode().derivative:
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
    """The handles of several hooks as one handle."""

    def __init__(self, handles: list[Handle]):
        self.handles = handles

    def remove(self) -> None:
        """Unregister the hooks."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> Handles:
    """Call `fn(gradients)` once backward has computed the gradients of all these tensors.

    `gradients` has None for a tensor that this backward does not reach. mode="any": call `fn(gradient)` with the first
    gradient. ValueError for another mode, RuntimeError for a tensor that does not require a gradient.

    >>> a, b = rushlight.ones(1, requires_grad=True), rushlight.ones(1, requires_grad=True)
    >>> handle = rushlight.autograd.graph.register_multi_grad_hook((a, b), lambda gs: print(len(gs), "gradients"))
    >>> (a * b).backward()
    2 gradients
    """
    if mode not in ("all", "any"):
        raise value_error(f"Expects mode to be one of ('all', 'any') but got {mode}")
    nodes = [get_gradient_edge(t).key for t in tensors]
    gathering = Gathering(nodes, fn, mode == "any")
    return Handles([hooks_of(node).add("tensor", gathering) for node in dict.fromkeys(nodes)])


class GradientEdge(NamedTuple):
    """(node, output_nr): the node that made a tensor, or accumulates its gradient, and the number of the output.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> edge = rushlight.autograd.graph.get_gradient_edge(x)
    >>> rushlight.autograd.grad(x * x, edge)
    (tensor(6.),)
    """

    node: Node
    output_nr: int
    ownership_token: Any = None

    def __eq__(self, other: object) -> bool:
        """Whether the nodes and the numbers are equal: programs find an edge of `get_gradient_edge` among the
        `next_functions` of another node."""
        return isinstance(other, GradientEdge) and self[:2] == other[:2]

    def __hash__(self) -> int:
        return hash(self[:2])

    @property
    def _node(self) -> Node:
        """The node, under the name that tensors have for theirs."""
        return self.node

    @property
    def key(self) -> Node:
        """The node that receives this output's gradient: an `Output` if `node` has several outputs."""
        return self.ownership_token if self.ownership_token is not None else self.node


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The `GradientEdge` of a tensor. RuntimeError if the tensor does not require grad.

    >>> rushlight.autograd.graph.get_gradient_edge(rushlight.ones(1, requires_grad=True) * 2).node.name()
    'MulBackward0'
    """
    if tensor._node is None:
        raise runtime_error(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients",
            "call requires_grad_() on the tensor before it is used",
        )
    return GradientEdge(*tensor._node.source(), tensor._node)


# -- writes to saved tensors -----------------------------------------------------------------------


class allow_mutation_on_saved_tensors(Decorator, Inner):
    """Inside, a saved tensor is copied before a write to it: backward uses the values from before the write.

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
        # id of a tensor that owns memory -> (the tensor, the nodes that have saved it or a view of it)
        self.users: dict[int, tuple[Tensor, list[Node]]] = {}

    @property
    def changes(self) -> dict:  # type: ignore[override]
        return self.enclosed()

    def again(self) -> allow_mutation_on_saved_tensors:
        return type(self)()

    def __exit__(self, *exc: object) -> None:
        self.users.clear()
        super().__exit__(*exc)

    def note(self, out: Any) -> None:
        """Remember the tensors that the node of an op's output has saved."""
        for t in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(t, Tensor) and t._node is not None and not t._node.leaf:
                node = t._node.source()[0]
                for kept in (t, *tensors_in(node.saved or ())):
                    self.users.setdefault(id(kept._root), (kept._root, []))[1].append(node)

    def on_op(self, op: Any, args: tuple, out: Any) -> None:
        super().on_op(op, args, out)
        self.note(out)

    def on_function(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        super().on_function(node, args, out, saved)
        self.note(out)

    def on_write_start(self, tensor: Tensor) -> None:
        super().on_write_start(tensor)
        writes_of(tensor)  # made now: the write would make the log and give it to the node again
        root, nodes = self.users.pop(id(tensor._root), (None, []))
        for node in dict.fromkeys(nodes):
            node.saved = tuple([self.copied(item, root) for item in node.saved or ()]) if node.saved else node.saved
            node._writes = []  # the node now holds a copy that no program writes to

    def copied(self, item: Any, root: Any) -> Any:
        """A saved value, or a copy of it if it shares the root's memory."""
        if isinstance(item, Tensor):
            with Unwatched():
                return copy_with_node(item) if item._root is root else item
        if isinstance(item, (list, tuple)) and any(isinstance(part, Tensor) for part in item):
            return type(item)([self.copied(part, root) for part in item])
        return item.copy() if isinstance(item, np.ndarray) and np.may_share_memory(item, root._array) else item
