"""A traced program: the nodes in order, as text and as a Python function."""

from __future__ import annotations

import builtins
import keyword
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.core.tensor import Tensor
from rushlight.fx.functions import path_of
from rushlight.fx.node import OPCODES, Node, map_arg, type_said

INFIX = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "**", operator.matmul: "@", operator.and_: "&", operator.or_: "|",
    operator.xor: "^", operator.lshift: "<<", operator.rshift: ">>", operator.lt: "<", operator.le: "<=",
    operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!=",
}  # fmt: skip
PREFIX = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}


class Graph:
    """Nodes in the order of execution. A Tracer makes them from operations on proxies; a graph can also be changed by
    hand:

    >>> import operator
    >>> graph = rushlight.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(operator.add, (x, 1)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %add : [num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = {})
        return add
    >>> rushlight.fx.GraphModule({}, graph)(2)
    3
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None):
        self.owning_module, self._names = owning_module, set[str]()
        self._root = Node(self, "", "root", "", (), {})
        self._at = self._root  # new nodes are inserted before this node

    # -- nodes -------------------------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        """All nodes, in order."""
        return Nodes(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind `op`, and with this target if it is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple | None = None,
        kwargs: dict | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node at the current insertion point."""
        if op not in OPCODES:
            raise AssertionError(f"{op!r} is not an op of a graph; the ops are {', '.join(OPCODES)}")
        wanted = name or self._target_to_str(target)
        node = Node(self, self._name(wanted, target), op, target, tuple(args or ()), dict(kwargs or {}), type_expr)
        self._at.prepend(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = None, **more: Any) -> Node:
        """An argument of the function."""
        default = () if default_value is None else (default_value,)
        return self.create_node("placeholder", name, default, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable,
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self, method_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple | None = None, kwargs: dict | None = None, type_expr: Any = None
    ) -> Node:
        """A call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the output node."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of a node, perhaps from another graph, with its arguments mapped by `arg_transform`."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy all nodes of another graph to this one, and fill `val_map`. Returns the copied graph's result as nodes
        of this graph.
        """
        for node in g.nodes:
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            if node not in val_map:
                val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node. RuntimeError if other nodes use it."""
        if to_erase.users:
            raise runtime_error(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        to_erase._remove()
        to_erase._uses((), {})
        to_erase._erased = True

    @contextmanager
    def _inserting(self, at: Node) -> Iterator[None]:
        before, self._at = self._at, at
        try:
            yield
        finally:
            self._at = before

    def inserting_before(self, n: Node | None = None) -> Any:
        """A context in which new nodes come before `n`, or at the beginning."""
        return self._inserting(self._root.next if n is None else n)

    def inserting_after(self, n: Node | None = None) -> Any:
        """A context in which new nodes come after `n`, or at the end."""
        return self._inserting(self._root if n is None else n.next)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes that are not used; returns whether there were any."""
        dead = 0
        for node in reversed(self.nodes):
            if not node.users and not (is_impure_node or Node.is_impure)(node):
                self.erase_node(node)
                dead += 1
        return dead > 0

    def lint(self) -> None:
        """RuntimeError for arguments that come later or from another graph, and for duplicate names."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise runtime_error(f"Argument '{used}' of Node '{node}' does not belong to this Graph")
                if used not in seen:
                    raise runtime_error(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check "
                        f"that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise runtime_error(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)

    # -- names -------------------------------------------------------------------------------------

    def _target_to_str(self, target: Any) -> str:
        name = target if isinstance(target, str) else target.__name__
        name = name[2:-2] if name.startswith("__") and name.endswith("__") else name
        return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() if not isinstance(target, str) else name

    def _name(self, wanted: str, target: Any) -> str:
        name = re.sub("[^0-9a-zA-Z_]+", "_", wanted).rstrip("_" if callable(target) else "") or "_unnamed"
        name = "_" + name if name[0].isdigit() else name
        stem, _, number = name.rpartition("_")
        stem, n = (stem, int(number)) if stem and number.isdigit() else (name, 0)
        while name in self._names or keyword.iskeyword(name) or hasattr(builtins, name):
            n += 1
            name = f"{stem}_{n}"
        self._names.add(name)
        return name

    # -- text --------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])

    def print_tabular(self) -> None:
        """Show op, name, target and arguments of all nodes as a table."""
        rows = [
            ("opcode", "name", "target", "args", "kwargs"),
            *((n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes),
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))  # type: ignore[arg-type]
        print("\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)) for row in rows))

    def code(self, names: dict[str, Any]) -> str:
        """The function as Python text; `names` is filled with the objects that the text refers to."""
        arguments, body, gives = ["self"], [], ""
        # the last user of each value
        last = {used: node for node in self.nodes for used in node.all_input_nodes}
        for node in self.nodes:
            if node.op == "placeholder":
                said = f" : {type_said(node.type).strip()}" if plain_type(node.type) else ""
                default = f" = {self._written(node.args[0], names)}" if node.args else ""
                arguments.append(f"{node.target}{said}{default}")
                line = "" if node.name == node.target.lstrip("*") else f"{node.name} = {node.target}"
            elif node.op == "output":
                line = f"return {self._written(node.args[0], names)}"
                gives = f" -> {type_said(node.type).strip()}" if plain_type(node.type) else ""
            else:
                line = f"{node.name} = {self._call(node, names)}"
            done = [] if node.op == "output" else [u.name for u in node.all_input_nodes if last[u] is node]
            done += [node.name] if node not in last and node.op not in ("output", "placeholder") else []
            if line:
                body.append(line + (";  " + "".join(f"{name} = " for name in done) + "None") * bool(done))
        return f"\n\n\ndef forward({', '.join(arguments)}){gives}:\n    " + "\n    ".join(body or ["pass"]) + "\n    "

    def _written(self, a: Any, names: dict[str, Any]) -> str:
        if isinstance(a, Node):
            return a.name
        if isinstance(a, list):
            return "[" + ", ".join(self._written(x, names) for x in a) + "]"
        if isinstance(a, tuple):
            parts = ", ".join(self._written(x, names) for x in a) + "," * (len(a) == 1)
            if not hasattr(a, "_fields"):
                return f"({parts})"
            return f"{self._global(type(a).__name__, type(a), names)}({parts})"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{key!r}: {self._written(value, names)}" for key, value in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({', '.join(self._written(x, names) for x in (a.start, a.stop, a.step))})"
        finite = isinstance(a, float) and a - a == 0
        if finite or a is None or a is Ellipsis or isinstance(a, (bool, int, str, complex)):
            return repr(a)
        return self._global(f"_{type(a).__name__}", a, names)

    def _global(self, name: str, value: Any, names: dict[str, Any]) -> str:
        name, n = re.sub(r"\W", "_", name), 0
        while names.setdefault(f"{name}_{n}" if n else name, value) is not value:
            n += 1
        return f"{name}_{n}" if n else name

    def _call(self, node: Node, names: dict[str, Any]) -> str:
        written = [self._written(a, names) for a in node.args]
        given = written + [f"{key} = {self._written(value, names)}" for key, value in node.kwargs.items()]
        if node.op == "get_attr":
            return attribute(str(node.target))
        if node.op == "call_module":
            return f"{attribute(str(node.target))}({', '.join(given)})"
        if node.op == "call_method":
            return f"{written[0]}.{node.target}({', '.join(given[1:])})"
        path = path_of(node.target)
        home = path.rpartition(".")[0]
        if home == "operator" and not node.kwargs:
            if node.target in INFIX and len(written) == 2:
                return f"{written[0]} {INFIX[node.target]} {written[1]}"
            if node.target in PREFIX:
                return f"{PREFIX[node.target]}{written[0]}"
            if node.target is operator.getitem:
                return f"{written[0]}[{written[1]}]"
        if path == "builtins.getattr" and len(written) == 2 and str(node.args[1]).isidentifier():
            return f"{written[0]}.{node.args[1]}"
        if not path.startswith("torch."):
            path = self._global("_" * (home == "operator") + path.removeprefix("builtins."), node.target, names)
        return f"{path}({', '.join(given)})"


def plain_type(annotation: Any) -> bool:
    """Whether the text can name the annotation: a tensor or a builtin type."""
    return annotation is Tensor or isinstance(annotation, type) and annotation.__module__ == "builtins"


class Nodes:
    """The nodes of a graph, in order, or backwards by `reversed`. The graph may change during the loop."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def __iter__(self) -> Iterator[Node]:
        node = self.graph._root._next
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = node._next

    def __reversed__(self) -> Iterator[Node]:
        node = self.graph._root._prev
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = node._prev

    def __len__(self) -> int:
        return sum(1 for _ in self)


def attribute(path: str) -> str:
    """self.a.b; with getattr for parts that are not identifiers."""
    text = "self"
    for part in path.split("."):
        text = f"{text}.{part}" if part.isidentifier() and not keyword.iskeyword(part) else f'getattr({text}, "{part}")'
    return text


__all__ = ["Graph"]
