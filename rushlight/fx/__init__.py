"""torch.fx: programs as graphs of calls, which can be inspected, changed and run.

>>> def f(x, y):
...     return rushlight.relu(x) + y
>>> g = rushlight.fx.symbolic_trace(f)
>>> print(g.graph)
graph():
    %x : [num_users=1] = placeholder[target=x]
    %y : [num_users=1] = placeholder[target=y]
    %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
    %add : [num_users=1] = call_function[target=operator.add](args = (%relu, %y), kwargs = {})
    return add
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from rushlight.base.missing_names import tell as _tell
from rushlight.fx.functions import WRAPPED
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, Interpreter, Transformer, symbolic_trace
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import Proxy
from rushlight.fx.subgraph_rewriter import replace_pattern
from rushlight.fx.tracer import Tracer


def wrap(fn_or_name: str | Callable) -> Any:
    """Record calls of a function of the calling module as one node. Returns the argument, the function or its name.

    >>> rushlight.fx.wrap("len")  # at the top of a module: a trace then records calls of len
    'len'
    """
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    WRAPPED[id(sys._getframe(1).f_globals), name] = None
    return fn_or_name


__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "map_arg", "replace_pattern",
    "symbolic_trace", "wrap",
]  # fmt: skip

_tell(__name__)
