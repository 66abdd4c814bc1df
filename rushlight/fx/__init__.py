"""torch.fx, as far as libraries need it to be imported: functions may be marked, no graph of Python is made.

`rushlight.compile` records programs, and `viz.graph` shows what was computed.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.errors import Absent

WHY = "no graph of Python is made; cure: rushlight.compile records programs, viz.graph shows what was computed"


class Part(Absent):
    """What a graph of Python consists of, and is made by."""

    because = WHY


class Graph(Part):
    """See `Part`."""


class GraphModule(Part):
    """See `Part`."""


class Interpreter(Part):
    """See `Part`."""


class Node(Part):
    """See `Part`."""


class Proxy(Part):
    """See `Part`."""


class Tracer(Part):
    """See `Part`."""


class Transformer(Part):
    """See `Part`."""


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """NotImplementedError: no graph of Python is made."""
    raise NotImplementedError(f"torch.fx.symbolic_trace is not there: {WHY}")


def wrap(fn_or_name: str | Callable) -> Any:
    """The function, or the name, itself: there is no trace in which it would stay whole."""
    return fn_or_name


__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "symbolic_trace", "wrap"]
