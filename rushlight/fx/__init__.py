"""torch.fx, as far as libraries need it to be imported: functions may be marked, no graph of Python is made.

`rushlight.compile` records programs, and `viz.graph` shows what was computed.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Absent:
    """A class of torch.fx: nothing is an instance of it, and to make one raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError(f"torch.fx.{type(self).__name__} is not there: no graph of Python is made; cure: "
                                  "rushlight.compile records programs, viz.graph shows what was computed")


class Graph(Absent):
    """See `Absent`."""


class GraphModule(Absent):
    """See `Absent`."""


class Interpreter(Absent):
    """See `Absent`."""


class Node(Absent):
    """See `Absent`."""


class Proxy(Absent):
    """See `Absent`."""


class Tracer(Absent):
    """See `Absent`."""


class Transformer(Absent):
    """See `Absent`."""


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """NotImplementedError: no graph of Python is made."""
    raise NotImplementedError("torch.fx.symbolic_trace is not there: no graph of Python is made; cure: rushlight.compile "
                              "records programs, viz.graph shows what was computed")


def wrap(fn_or_name: str | Callable) -> Any:
    """The function, or the name, itself: there is no trace in which it would stay whole."""
    return fn_or_name


__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "symbolic_trace", "wrap"]
