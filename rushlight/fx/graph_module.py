"""Modules that run a graph, and classes that run a graph node by node."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.base.text import define
from rushlight.core.tensor import Tensor
from rushlight.fx.functions import WHOLE, WRAPPED
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import Proxy, proxy_in
from rushlight.fx.tracer import Tracer
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter


def found(root: Any, path: str) -> Any:
    """The attribute at a path with dots."""
    for part in path.split("."):
        root = getattr(root, part)
    return root


def put(root: Module, path: str, value: Any) -> None:
    """Set the attribute at a dotted path; missing modules on the way are created."""
    *way, name = path.split(".")
    for part in way:
        if not hasattr(root, part):
            setattr(root, part, Module())
        root = getattr(root, part)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        root.register_buffer(name, value)
    else:
        setattr(root, name, value)


class GraphModule(Module):
    """A module whose forward is a graph. Takes the submodules, parameters and buffers that the graph names from `root`:
    a module, or a dict by path. Call `recompile()` after a change of the graph.

    >>> f = rushlight.fx.symbolic_trace(lambda x: rushlight.relu(x) + 1)
    >>> print(f.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    >>> f(rushlight.tensor([-1., 2.]))
    tensor([1., 3.])
    """

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        self.__dict__["_class_name"] = class_name
        self.training = getattr(root, "training", True)
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                put(self, node.target, root[node.target] if isinstance(root, dict) else found(root, node.target))
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; may be set."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self.__dict__["_graph"], graph.owning_module = graph, self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python of its forward."""
        return self._code

    def recompile(self) -> str:
        """Regenerate the forward from the graph."""
        names: dict[str, Any] = {}
        self.__dict__["_code"] = self._graph.code(names)
        self.__dict__["_names"], self.__dict__["_run"] = names, compiled(self._code, names, self._class_name)
        return self._code

    @property
    def forward(self) -> Callable:
        """The forward function of the graph, with its arguments' names."""
        return MethodType(self._run, self)

    @forward.setter
    def forward(self, function: Callable) -> None:
        self.__dict__["_run"] = lambda self, *args, **kwargs: function(*args, **kwargs)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Set a submodule by its path."""
        put(self, target, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove a submodule; returns whether it existed."""
        home, _, name = target.rpartition(".")
        owner = found(self, home) if home else self
        return owner._modules.pop(name, None) is not None

    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules that the graph does not call."""
        used = {n.target for n in self.graph.nodes if n.op in ("call_module", "get_attr")}
        for name in [name for name, _ in self.named_modules()][:0:-1]:
            if not any(target == name or target.startswith(name + ".") for target in used):
                self.delete_submodule(name)

    def print_readable(self, print_output: bool = True) -> str:
        """Show the code."""
        if print_output:
            print(self._code)
        return self._code

    def _get_name(self) -> str:
        return self._class_name

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n{self._code}"

    __str__ = __repr__

    def __deepcopy__(self, memo: dict) -> GraphModule:
        graph = Graph()
        result = graph.graph_copy(self._graph, {}, return_output_node=True)
        if result is not None:
            graph.output(result[0])
        parts = {
            n.target: copy.deepcopy(found(self, n.target), memo)
            for n in graph.nodes
            if n.op in ("get_attr", "call_module")
        }
        made = GraphModule(parts, graph, self._class_name)
        made.training = self.training
        return made

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """The code, its objects, and the parts that it refers to. Loading traces the code again, as in torch."""
        parts = {n.target: found(self, n.target) for n in self._graph.nodes if n.op in ("get_attr", "call_module")}
        return loaded, (self._code, self._names, parts, self._class_name, self.training)


class Whole(Tracer):
    """A tracer that enters no module: the calls in a GraphModule's code are its nodes."""

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


def compiled(code: str, names: dict[str, Any], title: str) -> Callable:
    """The function for a graph's code. The namespace lists functions that a trace records as one node (`WHOLE`)."""
    whole = {
        name
        for name, f in names.items()
        if (id(getattr(f, "__globals__", None)), getattr(f, "__name__", "")) in WRAPPED
    }
    space = {**names, "torch": sys.modules["rushlight"], WHOLE: whole}
    return define(code, "forward", space, f"{title}, traced", prefix="<")


def loaded(code: str, names: dict[str, Any], parts: dict[str, Any], title: str, training: bool) -> GraphModule:
    """A GraphModule from the parts that `__reduce_ex__` returned."""
    root = Module()
    for path, part in parts.items():
        put(root, path, part)
    tracer = Whole()
    graph = tracer.trace(root, function=MethodType(compiled(code, names, title), root))
    made = GraphModule(root, graph, title)
    made.training = training
    return made


class Interpreter:
    """Runs a GraphModule node by node. Override `run_node`, or the method for one kind of node.

    >>> f = rushlight.fx.symbolic_trace(lambda x: x + 1)
    >>> rushlight.fx.Interpreter(f).run(rushlight.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module, self.graph = module, module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The graph's result for these arguments."""
        self.env, self.args_iter = dict(initial_env or {}), iter(args)
        last = {used: node for node in self.graph.nodes for used in node.all_input_nodes}
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for used in node.all_input_nodes:
                    if last[used] is node:
                        del self.env[used]
        return None

    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """A node's arguments, with each node replaced by its value."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """The arguments, with each node replaced by its value."""
        return map_arg(args, lambda node: self.env[node])

    def fetch_attr(self, target: str) -> Any:
        """The module's attribute at a path."""
        return found(self.module, target)

    def placeholder(self, target: str, args: tuple, kwargs: dict) -> Any:
        """The next argument, or its default."""
        given = next(self.args_iter, self)
        if given is self and not args:
            raise runtime_error(f"Expected positional argument for parameter {target}, but one was not passed in!")
        return args[0] if given is self else given

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Callable, args: tuple, kwargs: dict) -> Any:
        """The result of a function call."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict) -> Any:
        """The result of a method call on the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict) -> Any:
        """The result of a submodule call."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: tuple, kwargs: dict) -> Any:
        """The result of the graph."""
        return args[0]


class Transformer(Interpreter):
    """Makes a new GraphModule by running the graph on proxies with overridden methods: `transform()`.

    >>> class Doubled(rushlight.fx.Transformer):
    ...     def call_method(self, target, args, kwargs):
    ...         return 2 * super().call_method(target, args, kwargs)
    >>> Doubled(rushlight.fx.symbolic_trace(lambda x: x.relu())).transform()(rushlight.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.tracer = Tracer()
        self.tracer.root, self.tracer.graph = module, Graph()
        self.new_graph = self.tracer.graph

    def placeholder(self, target: str, args: tuple, kwargs: dict) -> Proxy:
        return self.tracer.create_proxy("placeholder", target, args, kwargs)

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Proxy:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Callable, args: tuple, kwargs: dict) -> Any:
        if proxy_in(args, kwargs) is None:
            return target(*args, **kwargs)
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        result = self.run()
        if result is not None:
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph)


def symbolic_trace(root: Module | Callable, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """The module or function as a GraphModule: its graph of calls, and the Python text for the graph.

    The function is called once, with proxies for its arguments. Control flow that depends on their values, such as `if
    x.sum() > 0`, is an error. `concrete_args`: values for arguments that control flow depends on.

    >>> f = rushlight.fx.symbolic_trace(lambda x: x.clamp(min=0.0) * 2)
    >>> [node.op for node in f.graph.nodes]
    ['placeholder', 'call_method', 'call_function', 'output']
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    return GraphModule(tracer.root, graph, root._get_name() if isinstance(root, Module) else root.__name__)


__all__ = ["GraphModule", "Interpreter", "Transformer", "symbolic_trace"]
