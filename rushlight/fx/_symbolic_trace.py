"""torch's private module of the tracer, which programs import nevertheless."""

from __future__ import annotations

from rushlight.fx import wrap
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, symbolic_trace
from rushlight.fx.proxy import Proxy
from rushlight.fx.tracer import Tracer, tracing


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return tracing.get()


is_fx_symbolic_tracing = is_fx_tracing

__all__ = [
    "Graph", "GraphModule", "Proxy", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing", "symbolic_trace", "wrap",
]  # fmt: skip
