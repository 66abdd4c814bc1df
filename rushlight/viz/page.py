"""The step-through page: one HTML file that shows backward step by step, without any network
access."""

from __future__ import annotations

import json
import linecache
import os
from collections.abc import Callable
from html import escape
from math import prod
from pathlib import Path
from textwrap import dedent
from typing import Any

from rushlight.base.errors import line_of
from rushlight.core.engine import reachable
from rushlight.core.node import Node, Output
from rushlight.core.table import ruled_inputs
from rushlight.core.tensor import Tensor
from rushlight.introspect.formulas import Formula, formula
from rushlight.viz.array_preview import describe
from rushlight.viz.graph import Params, check_recorded, pairs
from rushlight.viz.layout import framed, layout
from rushlight.viz.modules import common
from rushlight.viz.steps import Step, forward_values, inputs_of, record
from rushlight.viz.svg import MARGIN, curve, ports

HERE = Path(__file__).parent
# of a box: width of a letter, three lines, at most
LETTER_WIDTH, BOX_HEIGHT, MAX_BOX_WIDTH = (6.65, 56.0, 260.0)
MAX_NODES = 5000
CONTEXT_LINES = 2  # lines of source shown above and below a statement
FREED = (
    "Backward has run through this graph already and freed what the ops had saved, so the numbers "
    "of the steps are "
    "gone. Write the page before backward(), or say backward(retain_graph=True)."
)


class Page(str):
    """The text of an HTML page, which a notebook shows in a frame."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self)}" width="100%" height="720" style="border:0"></iframe>'
        )


def html(
    output: Tensor,
    path: str | os.PathLike[str] | None = None,
    params: Params = None,
    *,
    gradient: Tensor | None = None,
) -> Page:
    """Write a page that steps through `output.backward(gradient)`: one HTML file without external
    resources.

    Each step shows the node and your line that made it, the gradient that arrived, the rule of each
    input as a formula, the gradients sent on, and the growing `.grad`. Arrow keys step, space
    plays, pointing shows values. No side effects: `.grad` and the graph are unchanged. For a graph
    that was freed, the page shows shapes and order only, with a note.

    `path`: the file to write. The result is the page's text; a notebook shows the page. `params`
    names the leaves: a dict `{name: tensor}`, `model.named_parameters()` or the model. Raises
    `ValueError` if nothing was recorded for `output` and for more than 5000 nodes, and the errors
    of `output.backward(gradient)`.

    >>> import rushlight as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> page = torch.viz.html(x * x + x, params={"x": x})
    >>> page[:15], x.grad
    ('<!DOCTYPE html>', None)
    """
    check_recorded(output)
    parts = {
        "title": escape(f"Backward, step by step: {output.grad_fn.name()} {tuple(output.shape)}"),  # type: ignore[union-attr]
        "style": (HERE / "page.css").read_text(encoding="utf-8"),
        "script": (HERE / "page.js").read_text(encoding="utf-8"),
        "data": as_json(content(output, params, gradient)),
    }
    text = (HERE / "page.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return Page(text)


def as_json(data: Any) -> str:
    """JSON for a script element: no tag can begin in the text."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def content(output: Tensor, params: Params, gradient: Tensor | None) -> dict[str, Any]:
    """The data of the page's program: nodes, edges, steps, and the tables they refer to."""
    assert output._node is not None
    order = reachable([output._node])
    if len(order) > MAX_NODES:
        raise ValueError(
            f"viz.html: a graph of {len(order)} nodes is too large for a page (at most "
            f"{MAX_NODES}); "
            "show fewer steps or layers"
        )
    freed = any(node.saved is None for node in order if not node.leaf)
    done = [Step(node, None) for node in order] if freed else record(output, gradient)
    return Content(output, order, done, params, FREED if freed else "").data()


class Content:
    """The graph and its steps as JSON. Each array is stored once, in `numbers`."""

    def __init__(
        self, output: Tensor, order: list[Node], steps: list[Step], params: Params, note: str
    ):
        self.output, self.order, self.steps, self.note = output, order, steps, note
        self.names = {id(tensor): name for name, tensor in pairs(params)}
        self.place = {node: i for i, node in enumerate(order)}
        self.values = forward_values(output)
        self.numbers: dict[str, int] = {}
        self.sources: dict[str, dict] = {}
        self.edges = [
            (i, slot, self.place[edge])
            for i, node in enumerate(order)
            for slot, edge in enumerate(node.edges)
            if edge is not None
        ]

    def data(self) -> dict[str, Any]:
        nodes = [self.node(node) for node in self.order]
        size = self.laid_out(nodes)
        edge_at = {(i, slot): e for e, (i, slot, _) in enumerate(self.edges)}
        steps = [self.step(step, edge_at) for step in self.steps]
        seed = steps[0]["incoming"] if steps else None
        return {
            "output": self.place[self.output._node],  # type: ignore[index]
            "seed": seed,
            "note": self.note,
            **size,
            "nodes": nodes,
            "edges": self.paths,
            "steps": steps,
            "sources": self.sources,
            "numbers": [json.loads(text) for text in self.numbers],
        }

    def number(self, array: Any) -> int | None:
        """The place of an array's description in the table of numbers."""
        if array is None:
            return None
        if isinstance(array, dict):
            found: dict[str, Any] = {
                "shape": None,
                "parts": [[i, self.number(part)] for i, part in array.items()],
            }
        else:
            found = describe(array)
        return self.numbers.setdefault(json.dumps(found), len(self.numbers))

    def node(self, node: Node) -> dict[str, Any]:
        leaf = getattr(node, "variable", None)
        title, label = names_of(node, self.names.get(id(leaf)))
        kind = "leaf" if node.leaf else "output" if node is self.output._node else "op"
        grad = (
            self.number(leaf._grad._array) if leaf is not None and leaf._grad is not None else None
        )
        inputs = inputs_of(node, self.values)
        forward = (
            text_of(node.op.forward)
            if node.op is not None and not isinstance(node, Output)
            else None
        )
        return {
            "kind": kind,
            "label": label,
            "title": title,
            "shape": list(node.shape or ()),
            "grad": grad,
            "value": self.number(self.values.get(node)),
            "forward": forward,
            "rules": rules_of(node),
            "module": self.module(node),
            "inputs": [[name, self.number(value)] for name, value in inputs.items()],
            "source": self.source(node),
        }

    def module(self, node: Node) -> str:
        """The module whose parameters the op uses, by the names of the parameters; "" without
        parameters.
        """
        leaves = [getattr(edge, "variable", None) for edge in node.edges]
        owners = {
            tuple(self.names[id(t)].split(".")[:-1])
            for t in leaves
            if t is not None and id(t) in self.names
        }
        return ".".join(common(owners)) if owners else ""

    def source(self, node: Node) -> str | None:
        """The key of the statement that made the node, put into the table of sources with the lines
        around it."""
        if node.where is None or node.leaf:
            return None
        code, lasti = node.where
        line, lines = line_of(code, lasti), linecache.getlines(code.co_filename)
        start = max(0, line - 1 - CONTEXT_LINES)
        text = dedent("".join(lines[start : line + CONTEXT_LINES])).split("\n")[
            : line + CONTEXT_LINES - start
        ]
        key = f"{code.co_filename}:{line}"
        self.sources.setdefault(
            key, {"file": code.co_filename, "line": line, "from": start + 1, "text": text}
        )
        return key

    def step(self, step: Step, edge_at: dict[tuple[int, int], int]) -> dict[str, Any]:
        i = self.place[step.node]
        arrivals = [
            {
                "edge": edge_at[i, a.slot],
                "gives": self.number(a.gives),
                "total": self.number(a.total),
                "first": a.first,
            }
            for a in step.arrivals
        ]
        grad = None if step.grad is None else [self.number(g) for g in step.grad]
        return {
            "node": i,
            "incoming": self.number(step.incoming),
            "arrivals": arrivals,
            "grad": grad,
        }

    def laid_out(self, nodes: list[dict[str, Any]]) -> dict[str, float]:
        """Give each node its place and the edges their paths; returns the size of the picture."""
        inputs: list[list[int]] = [[] for _ in nodes]
        for i, _, j in self.edges:
            inputs[i].append(j)
        sizes = [
            (self.width(node, data["label"]), BOX_HEIGHT) for node, data in zip(self.order, nodes)
        ]
        points, routes = layout(sizes, inputs)
        width, height = framed(points, MARGIN)
        for data, p in zip(nodes, points):
            data.update(x=round(p.x, 1), y=round(p.y, 1), width=round(p.width, 1), height=p.height)
        paths = [curve(points, way, *ends) for way, ends in zip(routes, ports(points, routes))]
        self.paths = [
            {"from": i, "slot": slot, "to": j, "path": path}
            for (i, slot, j), path in zip(self.edges, paths)
        ]
        return {"width": round(width), "height": round(height)}

    def width(self, node: Node, label: str) -> float:
        """The width for the name, and for a line with numbers: up to three, or shape and mean."""
        shape = tuple(node.shape or ())
        count = prod(shape)
        numbers = 10 * count + 1 if count <= 3 else len("×".join(map(str, shape))) + 13
        return min(MAX_BOX_WIDTH, max(len(label), numbers + 6) * LETTER_WIDTH + 16)


def names_of(node: Node, name: str | None) -> tuple[str, str]:
    """A node's title, and the short label of its box."""
    if node.leaf:
        return (
            f"AccumulateGrad {name or 'leaf'} {tuple(node.shape or ())}",
            name or f"leaf {tuple(node.shape or ())}",
        )
    if isinstance(node, Output):
        made = node.source()[0]
        outputs = made.op.options.get("outputs", "").split() if made.op is not None else []
        which = outputs[node.number] if node.number < len(outputs) else f"output {node.number}"
        return f"{which} of {made.name()} {tuple(node.shape or ())}", which
    return (
        f"{node.name()} {tuple(node.shape or ())}",
        node.op.called if node.op is not None else node.name(),
    )


def rules_of(node: Node) -> list[list[str | None]]:
    """[input, rule as a formula] for each edge of the node."""
    op = node.op
    if op is None or isinstance(node, Output):
        return []
    if op.inputs == ("tensors",):
        rule = text_of(op.rules["tensors"]) if op.rules["tensors"] else None
        return [[f"{i}", rule] for i in range(len(node.edges))]
    return [
        [name, text_of(op.rules[name]) if op.rules[name] else None] for name in ruled_inputs(op)
    ]


def text_of(function: Callable) -> str | None:
    """The formula of a rule as text; None for a rule that is not a plain formula."""
    try:
        made = formula(function)
    except TypeError:
        return None
    return str(made) if isinstance(made, Formula) else None
