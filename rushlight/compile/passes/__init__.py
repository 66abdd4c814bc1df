"""Passes: functions from graph to graph. The result computes the same values with less work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rushlight.compile.graph import Graph, drop_unused
from rushlight.compile.passes.decompose import decompose
from rushlight.compile.passes.embedding_matmul import look_up_later
from rushlight.compile.passes.fold_transposes import turn_products
from rushlight.compile.passes.incremental_cat import extend
from rushlight.compile.passes.simplify import simplify
from rushlight.compile.passes.slice_pushdown import narrow
from rushlight.compile.report import listing

PASSES: dict[str, Callable[[Graph], None]] = {
    "extend": extend,
    "narrow": narrow,
    "decompose": decompose,
    "tables": look_up_later,
    "products": turn_products,
    "simplify": simplify,
}


def optimize(graph: Graph, options: Mapping[str, Any]) -> None:
    """All passes before fusion, in order, except those that `options` switches off: {"simplify": False}.

    `options["show"]`: called with the text of the graph, before and after each pass.
    """
    show = options.get("show")
    drop_unused(graph)
    if show:
        show(f"-- as recorded\n{listing(graph)}")
    for name, change in PASSES.items():
        if options.get(name, True):
            before = len(graph.steps)
            change(graph)
            drop_unused(graph)
            if show:
                show(f"-- after {name}: {before} steps became {len(graph.steps)}\n{listing(graph)}")
