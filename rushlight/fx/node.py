"""One step of a traced program: the called function, its arguments, and the nodes that use the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.base.errors import type_error
from rushlight.core.tensor import Tensor
from rushlight.fx.functions import path_of

Target = Callable | str  # types for annotations: the target of a node, and arguments
Argument = BaseArgumentTypes = Any
OPCODES = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")


def map_arg(a: Any, f: Callable[[Node], Any]) -> Any:
    """f(node) for each node in nested lists, tuples, dicts and slices; other values stay.

    >>> graph = rushlight.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> rushlight.fx.node.map_arg([x, 1], lambda node: node.name)
    ['x', 1]
    """
    if isinstance(a, Node):
        return f(a)
    if isinstance(a, tuple):
        parts = [map_arg(x, f) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [map_arg(x, f) for x in a]
    if isinstance(a, dict):
        return {key: map_arg(value, f) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(map_arg(a.start, f), map_arg(a.stop, f), map_arg(a.step, f))
    return a


def nodes_in(*arguments: Any) -> list[Node]:
    """The nodes among arguments, each once, in order."""
    found: dict[Node, None] = {}
    map_arg(arguments, lambda node: found.setdefault(node))
    return list(found)


def shown(a: Any) -> str:
    """An argument as shown in graphs: %name for a node."""
    if isinstance(a, list):
        return "[" + ", ".join(map(shown, a)) + "]"
    if isinstance(a, tuple):
        return "(" + ", ".join(map(shown, a)) + "," * (len(a) == 1) + ")"
    if isinstance(a, dict):
        return "{" + ", ".join(f"{key}: {shown(value)}" for key, value in a.items()) + "}"
    return f"%{a.name}" if isinstance(a, Node) else str(a)


class Node:
    """One step of a graph: out = target(*args, **kwargs).

    `op`: placeholder, get_attr, call_function, call_method, call_module or output. `target`: the function, or the name
    of an attribute, method or module. `args` and `kwargs`: nodes represent values. `users`: the nodes that use this
    one. `meta`: a dict for notes.

    >>> f = rushlight.fx.symbolic_trace(lambda x: x.relu())
    >>> [(node.op, node.target) for node in f.graph.nodes]
    [('placeholder', 'x'), ('call_method', 'relu'), ('output', 'output')]
    """

    def __init__(self, graph: Any, name: str, op: str, target: Any, args: tuple, kwargs: dict, type_expr: Any = None):
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, type_expr
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple = ()
        self._kwargs: dict = {}
        self._uses(args, kwargs)

    def _uses(self, args: tuple, kwargs: dict) -> None:
        for node in nodes_in(self._args, self._kwargs):
            node.users.pop(self, None)
        self._args, self._kwargs = args, kwargs
        for node in nodes_in(args, kwargs):
            node.users.setdefault(self)

    @property
    def args(self) -> tuple:
        """The positional arguments; can be set."""
        return self._args

    @args.setter
    def args(self, value: tuple) -> None:
        self._uses(tuple(value), self._kwargs)

    @property
    def kwargs(self) -> dict:
        """The keyword arguments; can be set."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict) -> None:
        self._uses(self._args, dict(value))

    next = property(lambda self: self._next, doc="The node after it; the graph's root after the last.")
    prev = property(lambda self: self._prev, doc="The node before it.")

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among its arguments, each once."""
        return nodes_in(self._args, self._kwargs)

    def _remove(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Move `x` to the place before this node."""
        x._remove()
        x._prev, x._next = self._prev, self
        self._prev._next = self._prev = x

    def append(self, x: Node) -> None:
        """Move `x` to the place after this node."""
        self._next.prepend(x)

    def update_arg(self, i: int, arg: Any) -> None:
        """Replace the argument at index i."""
        self.args = (*self._args[:i], arg, *self._args[i + 1 :])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace the argument of that name."""
        self.kwargs = {**self._kwargs, key: arg}

    def insert_arg(self, i: int, arg: Any) -> None:
        """Insert an argument at index i."""
        self.args = (*self._args[:i], arg, *self._args[i:])

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace `old_input` by `new_input` among the arguments."""

        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._uses(map_arg(self._args, other), map_arg(self._kwargs, other))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Replace this node by `replace_with` in all its users; returns the changed nodes."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether dead code elimination must keep the node: placeholders, outputs and in-place writes."""
        return (
            self.op in ("placeholder", "output")
            or self.op == "call_method"
            and self.target.endswith("_")
            or self.op == "call_function"
            and getattr(self.target, "__name__", "").endswith("_")
        )

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None
    ) -> str:
        """The node's line in the graph's text."""
        if self.op == "output":
            return f"return {self._said()}"
        users = f"[num_users={len(self.users)}]"
        head = f"%{self.name} : {type_said(self.type)}{users} = {self.op}[target={self._pretty()}]"
        if self.op == "placeholder":
            return head + (f"(default={self._args[0]})" if self._args else "")
        return head if self.op == "get_attr" else f"{head}(args = {shown(self._args)}, kwargs = {shown(self._kwargs)})"

    def _pretty(self) -> str:
        return self.target if isinstance(self.target, str) else path_of(self.target)

    def _said(self) -> str:
        return repr(self._args[0]) if self._args else ""

    def __iter__(self) -> Iterator:
        raise type_error("a Node of a graph has no value: it cannot be iterated")

    def __repr__(self) -> str:
        return self.name


def type_said(annotation: Any) -> str:
    """An annotation and a space, as torch writes it; nothing for None."""
    if annotation is None:
        return ""
    if annotation is Tensor:
        return "torch.Tensor "
    if not isinstance(annotation, type):
        return f"{annotation!r} "
    home = "" if annotation.__module__ == "builtins" else f"{annotation.__module__}."
    return f"{home}{annotation.__qualname__} "


__all__ = ["Node", "map_arg"]
