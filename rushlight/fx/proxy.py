"""A proxy stands for a value while a program is traced: operations on the proxy become nodes of the graph."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Iterator
from typing import Any

from rushlight.base.errors import explain, runtime_error
from rushlight.base.missing_names import give_up
from rushlight.core.tensor import Tensor
from rushlight.fx.node import Node


class TraceError(ValueError):
    """The program does something that a trace cannot record."""


class Proxy:
    """A value that is not known during tracing.

    Operators, methods, attributes and torch's functions are recorded by the tracer; without a tracer, in the node's
    graph.

    >>> graph = rushlight.fx.Graph()
    >>> x = rushlight.fx.Proxy(graph.placeholder("x"))
    >>> y = (x + 1).relu()
    >>> [node.name for node in graph.nodes]
    ['x', 'add', 'relu']
    """

    def __init__(self, node: Node, tracer: Any = None):
        self.node, self.tracer = node, __getattr__("GraphAppendingTracer")(node.graph) if tracer is None else tracer

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Record a torch function, also outside of a running trace."""
        method = vars(Tensor).get(func.__name__) is func
        return take("call_method" if method else "call_function", func.__name__ if method else func, args, kwargs or {})

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k.startswith("__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator:
        frame = sys._getframe(1)
        step = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
        if step is not None and step.opname == "UNPACK_SEQUENCE":
            return iter([operator.getitem(self, i) for i in range(step.argval)])
        raise TraceError(
            explain(
                "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a "
                "*args or **kwargs function argument; index it instead, or unpack it: a, b = x"
            )
        )

    def __bool__(self) -> bool:
        raise TraceError(explain("symbolically traced variables cannot be used as inputs to control flow"))

    def __len__(self) -> int:
        raise runtime_error("'len' is not supported in symbolic tracing by default; x.shape[0] is")

    def __contains__(self, item: Any) -> bool:
        raise TraceError(explain("'in' cannot be traced: the result depends on a value"))

    def __index__(self) -> int:
        what = "a value that is unknown during tracing cannot be used as a number, such as an index or size"
        raise TraceError(explain(what))

    __hash__ = object.__hash__


class Attribute(Proxy):
    """An attribute of a proxy: a method call if it is called, else `getattr`."""

    def __init__(self, root: Proxy, attr: str):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the attribute, created when the attribute is used as a value."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def proxy_in(*arguments: Any) -> Proxy | None:
    """The first proxy in tuples, lists and dicts."""
    waiting = list(arguments)
    while waiting:
        a = waiting.pop(0)
        if isinstance(a, Proxy):
            return a
        if isinstance(a, dict):
            waiting += a.values()
        elif isinstance(a, (tuple, list)):
            waiting += a
        elif isinstance(a, slice):
            waiting += (a.start, a.stop, a.step)
    return None


def operation(name: str, reflected: bool) -> Any:
    target = getattr(operator, name)

    def call(self: Proxy, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", target, args, {})

    call.__doc__ = f"operator.{name}, recorded."
    return call


TWO_SIDED = "add sub mul floordiv truediv mod lshift rshift and_ or_ xor pow matmul"
for _name in TWO_SIDED.split():
    setattr(Proxy, f"__{_name.strip('_')}__", operation(_name, False))
    setattr(Proxy, f"__r{_name.strip('_')}__", operation(_name, True))
for _name in ("eq", "ne", "lt", "gt", "le", "ge", "pos", "neg", "invert", "abs", "getitem"):
    setattr(Proxy, f"__{_name}__", operation(_name, False))


def take(kind: str, target: Any, args: tuple, kwargs: dict) -> Proxy | None:
    """The call as a recorded node, if a proxy is among its arguments."""
    proxy = proxy_in(args, kwargs)
    if proxy is not None and len(args) == 2 and getattr(target, "__name__", "") == "einsum":
        args = (args[0], *args[1]) if isinstance(args[1], (list, tuple)) else args  # as torch does
    return None if proxy is None else proxy.tracer.create_proxy(kind, target, args, kwargs)


def __getattr__(name: str) -> Any:
    """torch's name for a class of the tracer's file."""
    if name == "GraphAppendingTracer":
        return sys.modules["rushlight.fx.tracer"].GraphAppendingTracer
    return give_up(__name__, name)


__all__ = ["Attribute", "Proxy", "TraceError", "take"]
