"""Graph to graph: each pass makes the program shorter or cheaper and leaves its results alone."""
from __future__ import annotations

from rushlight.compile.graph import Graph, drop_unused
from rushlight.compile.passes.decompose import decompose
from rushlight.compile.passes.products import turn_products
from rushlight.compile.passes.simplify import simplify


def optimize(graph: Graph) -> Graph:
    """All passes before fusion, in order."""
    drop_unused(graph)
    decompose(graph)
    turn_products(graph)
    drop_unused(graph)
    simplify(graph)
    drop_unused(graph)
    return graph
