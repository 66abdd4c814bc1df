"""Tracing: a function or module is called with proxies, and operations on the proxies become a graph."""

from __future__ import annotations

import inspect
import operator
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from rushlight.base import dtypes, shown_names
from rushlight.base.device import Layout, device
from rushlight.base.errors import explain, not_implemented_error, warn
from rushlight.base.memory_format import memory_format
from rushlight.core.tensor import Tensor
from rushlight.fx.functions import recorded, recorded_in_layers
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.fx.proxy import Proxy, TraceError, take
from rushlight.nn.containers import Sequential
from rushlight.nn.hooks import Hooked
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.tensor import torch_function
from rushlight.ops.tensor.control_flow import _assert

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), dtypes.dtype, device, Layout, memory_format)


def _assert_is_none(value: Any, message: str) -> None:
    """AssertionError unless the value is None."""
    _assert(value is None, message)


def is_layer(m: Any) -> bool:
    """Whether `m` is a module of torch.nn, except Sequential."""
    return shown_names.home(type(m)).startswith("rushlight.nn") and not isinstance(m, Sequential)


def is_traced(module: str) -> bool:
    """Whether calls in a Python module's functions become nodes: in the user's modules, and in the networks of
    rushlight.vision."""
    return not module.startswith("rushlight") or module.startswith("rushlight.vision.models")


# True while a program is being traced
tracing: ContextVar[bool] = ContextVar("tracing", default=False)


@contextmanager
def marked() -> Iterator[None]:
    token = tracing.set(True)
    try:
        yield
    finally:
        tracing.reset(token)


class Tracer:
    """graph = Tracer().trace(module or function). To customise tracing, override `is_leaf_module` or `call_module`.

    >>> graph = rushlight.fx.Tracer().trace(lambda x: x.relu() + 1)
    >>> [node.name for node in graph.nodes]
    ['x', 'relu', 'add', 'output']
    """

    graph: Graph
    root: Module

    def __init__(self, autowrap_modules: Any = (), autowrap_functions: Any = (), param_shapes_constant: bool = False):
        self.paths: dict[Module, str] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of the module are recorded as one node: true for modules of torch.nn, except Sequential."""
        return is_layer(m)

    def path_of_module(self, mod: Module) -> str:
        """The path of the module in the root. NameError if the root does not contain it."""
        if mod not in self.paths:
            raise NameError(f"module {type(mod).__name__} is not installed as a submodule")
        return self.paths[mod]

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """A call of a module: a node for a leaf module, else the result of its forward."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            with recorded_in_layers(take) if is_layer(m) else nullcontext():
                return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def create_node(
        self, kind: str, target: Any, args: tuple, kwargs: dict, name: str | None = None, type_expr: Any = None
    ) -> Node:
        """A node of the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def create_proxy(
        self, kind: str, target: Any, args: tuple, kwargs: dict, name: str | None = None, type_expr: Any = None
    ) -> Proxy:
        """A new node, and the proxy of its value."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return self.proxy(node)

    def proxy(self, node: Node) -> Proxy:
        """The proxy for a node's value."""
        return Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        """An argument as stored in graphs: a node for a proxy, parameter or tensor. NotImplementedError for other
        values that are not plain.
        """
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            parts = [self.create_arg(x) for x in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._name_of(a), (), {})
        if isinstance(a, PLAIN) or callable(a):
            return a
        raise not_implemented_error(f"argument of type: {type(a)}")

    def _name_of(self, a: Tensor) -> str:
        """The path of a parameter or buffer in the root; another tensor is registered under a new path."""
        held = self.root.named_parameters() if isinstance(a, Parameter) else self.root.named_buffers()
        for name, value in (*held, *vars(self.root).items()):
            if value is a:
                return name
        n = 0
        while hasattr(self.root, f"_tensor_constant{n}"):
            n += 1
        setattr(self.root, f"_tensor_constant{n}", a)
        return f"_tensor_constant{n}"

    def trace(
        self, root: Module | Callable, concrete_args: dict[str, Any] | None = None, *, function: Callable | None = None
    ) -> Graph:
        """The graph of the module `root`, or of a function. TraceError if the program needs a value that is not
        known."""
        self.root = root if isinstance(root, Module) else Module()
        self.paths = {module: name for name, module in self.root.named_modules()}
        self.graph = Graph(tracer_cls=type(self))
        function = function or (root.forward if isinstance(root, Module) else root)
        parameters = inspect.signature(function).parameters.values()
        args = [self._argument(parameter, concrete_args or {}) for parameter in parameters]
        namespaces = {
            id(space): space
            for m in self.paths
            for f in (type(m).forward, function)
            if (space := getattr(inspect.unwrap(f), "__globals__", None)) is not None
            and is_traced(space.get("__name__", ""))
        }
        within = recorded_in_layers(take) if is_layer(root) else nullcontext()
        with recorded(take, list(namespaces.values())), within, self._watching(), marked():
            named = {by_name: a for a, by_name in args if by_name is not None}
            result = function(*[a for a, by_name in args if by_name is None], **named)
        said = getattr(function, "__annotations__", {}).get("return")
        self.create_node("output", "output", (self.create_arg(result),), {}, None, said)
        return self.graph

    def _argument(self, parameter: inspect.Parameter, concrete: dict[str, Any]) -> tuple[Any, str | None]:
        """The value of a function's argument in the trace, and its name for a keyword argument."""
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TraceError(explain(f"*{parameter.name}: the number of arguments must be known; name each argument"))
        name, default = parameter.name, () if parameter.default is parameter.empty else (parameter.default,)
        by_name = name if parameter.kind is parameter.KEYWORD_ONLY else None
        if name not in concrete:
            said = None if parameter.annotation is parameter.empty else parameter.annotation
            return self.proxy(self.create_node("placeholder", name, default, {}, None, said)), by_name
        self._check_concrete(name, self.create_node("placeholder", f"{name}_1", default, {}), concrete[name])
        return concrete[name], by_name

    def _check_concrete(self, name: str, node: Node, value: Any) -> None:
        """Add nodes that check that an argument equals its traced value. Warns if no check is possible."""
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_node("call_function", _assert_is_none, (node, message), {})
        elif isinstance(value, (bool, int, float, complex, str, dtypes.dtype, device)):
            same = self.create_node("call_function", operator.eq, (node, value), {})
            self.create_node("call_function", _assert, (same, message), {})
        else:
            warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up "
                "to the user to make sure that your inputs match the inputs you specialized the function with."
            )

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """A context in which calls of the root's modules, in this thread, go to `call_module`."""
        original, here = Hooked.__call__, threading.get_ident()

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != here or module not in self.paths:
                return original(module, *args, **kwargs)
            return self.call_module(module, lambda *a, **k: original(module, *a, **k), args, kwargs)

        Hooked.__call__ = call  # type: ignore
        try:
            yield
        finally:
            Hooked.__call__ = original  # type: ignore[method-assign]


class GraphAppendingTracer(Tracer):
    """Records operations on the proxies of a graph that is built by hand.

    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"), fx.proxy.GraphAppendingTracer(graph))
    graph.output((torch.relu(x) + 1).node)
    module = fx.GraphModule(torch.nn.Module(), graph)
    """

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph
        torch_function.first()  # from now on, functions of torch check their arguments for proxies

    def _name_of(self, a: Tensor) -> str:
        """NotImplementedError: a graph has no module that could hold a tensor."""
        raise not_implemented_error(
            f"argument of type: {type(a)}: make it an attribute of the module, and use "
            "Proxy(graph.get_attr(name), tracer)"
        )


__all__ = ["GraphAppendingTracer", "Tracer"]
