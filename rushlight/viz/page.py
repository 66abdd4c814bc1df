"""The step-through page: one HTML file that shows backward step by step, without network access."""

from __future__ import annotations

import json
import linecache
import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property, partial
from html import escape, unescape
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np

from rushlight.base.errors import line_of, shared_place, suggesting
from rushlight.core.engine import reachable
from rushlight.core.node import Node, Output
from rushlight.core.table import ruled_inputs
from rushlight.core.tensor import Tensor
from rushlight.nn.dropout import Dropout
from rushlight.nn.module import Module
from rushlight.ops.grad_mode import no_grad
from rushlight.viz.array_preview import describe
from rushlight.viz.backward_steps import Step, forward_values, inputs_of, record
from rushlight.viz.graph import Params, check_recorded, pairs
from rushlight.viz.module_calls import Call, call_of
from rushlight.viz.node_names import (
    SUBSCRIPT_DIGITS,
    SUBSCRIPTS,
    Places,
    node_names,
    single_results,
    spoken,
    tensors_in,
    users_variables,
    written_names,
)
from rushlight.viz.op_sentences import array_of, place_of, saved_by
from rushlight.viz.page_modules import MAX_OPEN, Runs, homes_of, model_among, ops_of_calls
from rushlight.viz.reasons import (
    MAX_FORMULA_LETTERS,
    NamedFormulas,
    arrival_reason,
    called,
    forward_reason,
    kind_of,
    squares,
    written,
)

HERE = Path(__file__).parent
NO_NAMES = ("x", "y", "condition")  # inputs of ops that need no constant box
CONSTANTS = {  # (op, input) -> the name that programs use
    ("frozen_batch_norm", "mu"): "running_mean",
    ("frozen_batch_norm", "var"): "running_var",
    ("rows_summed", "take"): "rows",
    ("rows_summed", "land"): "bags",
}
SCRIPTS = ("numbers.js", "graph_layout.js", "page.js")
MAX_LABEL_LETTERS = 24  # most characters of a formula in a box
MAX_NODES = 5000
CONTEXT_LINES = 3  # lines of source shown above and below a statement
FREED = (
    "Backward has run through this graph already and freed what the ops had saved, so the numbers of the steps "
    "are gone. Write the page before backward(), or say backward(retain_graph=True)."
)


class Page(str):
    """The text of an HTML page, which a notebook shows in a frame; a prompt shows its title and size."""

    __slots__ = ()

    def __repr__(self) -> str:
        title = re.search(r"<title>(.*?)</title>", self, re.DOTALL)
        size = len(self.encode()) // 1000
        return f"<page of {size} kB{f': {unescape(title[1])}' if title else ''}; print(page) shows the text>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self)}" width="100%" height="720" style="border:0"></iframe>'


@partial(suggesting, spellings={"model": "params"})
def html(
    output: Tensor, path: str | os.PathLike[str] | None = None, params: Params = None, *, gradient: Tensor | None = None
) -> Page:
    """Write a page that steps through `output.backward(gradient)`: one HTML file without external resources.

    Each step shows the node and your line that made it, the gradient that arrived, the rule of each input as a formula,
    the gradients sent on, and the growing `.grad`. Arrow keys step, space plays, pointing shows values. No side
    effects: `.grad` and the graph are unchanged. For a graph that was freed, the page shows shapes and order only, with
    a note.

    `path`: the file to write. The result is the page's text; a notebook shows the page. `params` names the leaves: a
    dict `{name: tensor}`, `model.named_parameters()` or the model, also as `model=`; by default the module among your
    variables, or an attribute of one (`self.model`), that has the most parameters in the graph. Raises `ValueError`
    if nothing was recorded for `output` and for more than 5000 nodes, and the errors of `output.backward(gradient)`.

    >>> import rushlight as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> page = torch.viz.html(x * x + x, params={"x": x})
    >>> page[:15], x.grad
    ('<!DOCTYPE html>', None)
    """
    check_recorded(output)
    variables = users_variables(1)
    params = model_among(variables, output) if params is None else params
    found = content(output, params, gradient, tensors_in(variables))
    title = f"Forward and backward, step by step: {headline(output, found)}"
    page = assembled("page.html", title, SCRIPTS, found)
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def assembled(frame: str, title: str, scripts: tuple[str, ...], data: dict[str, Any]) -> Page:
    """A page from our HTML frame, with the style, the scripts and the data inside."""
    parts = {
        "title": escape(title),
        "style": (HERE / "page.css").read_text(encoding="utf-8"),
        "script": "\n".join((HERE / name).read_text(encoding="utf-8") for name in scripts),
        "data": as_json(data),
    }
    pieces = re.split(r"\{\{(\w+)\}\}", (HERE / frame).read_text(encoding="utf-8"))
    pieces[1::2] = [parts[name] for name in pieces[1::2]]
    return Page("".join(pieces))


def headline(output: Tensor, found: dict[str, Any]) -> str:
    """The output in the page's title: `loss = 0.7071`, or `y, shape (2, 3)`."""
    name = found["nodes"][found["output"]]["name"]
    if output._array.size == 1:
        return f"{name} = {written(output._array)}"
    return f"{name}, shape {tuple(output.shape)}"


def as_json(data: Any) -> str:
    """JSON for a script element: it contains no HTML tags."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def content(output: Tensor, params: Params, gradient: Tensor | None, seen: dict[str, Tensor]) -> dict[str, Any]:
    """The data of the page's program: nodes, edges, steps, and the tables they refer to."""
    assert output._node is not None
    order = reachable([output._node])
    if len(order) > MAX_NODES:
        raise ValueError(
            f"viz.html: a graph of {len(order)} nodes is too large for a page (at most {MAX_NODES}); show fewer steps "
            "or layers"
        )
    freed = any(node.saved is None for node in order if not node.leaf)
    done = [Step(node, None) for node in order] if freed else record(output, gradient)
    with no_grad():
        return Content(output, order, done, params, FREED if freed else "", seen).data()


class Content:
    """The graph and its steps as JSON. Each array is stored once, in `numbers`."""

    def __init__(
        self, output: Tensor, order: list[Node], steps: list[Step], params: Params, note: str, seen: dict[str, Tensor]
    ):
        self.output, self.order, self.steps, self.note = output, order, steps, note
        self.seen = seen
        self.raw_names = {id(tensor): name for name, tensor in pairs(params)}
        self.model = params
        self.place = {node: i for i, node in enumerate(order)}
        self.values = forward_values(output)
        self.places = Places()
        self.names = node_names(order, params, seen, self.places)
        self.results = single_results(order)
        for node, result in self.results.items():  # drawn as one box, with one name and value
            self.names[node] = self.names[result]
            if result in self.values:
                self.values[node] = self.values[result]
        self.formulas = self.named_formulas()
        self.made_by: dict[Node, Node] = {result: n for n, result in self.results.items()}
        self.homes = homes_of(order, params, self.raw_names, self.places)
        self.runs = Runs(order) if len(order) > MAX_OPEN and not any(self.homes.values()) else None
        self.homes = self.homes if self.runs is None else self.runs.homes
        for node, result in self.results.items():
            self.homes[result] = self.homes[node]
        self.calls = ops_of_calls(order, params)
        self.numbers: dict[str, int] = {}
        self.sources: dict[str, dict] = {}
        self.edges = [
            {"from": i, "slot": slot, "to": self.place[edge]}
            for i, node in enumerate(order)
            for slot, edge in enumerate(node.edges)
            if edge is not None
        ]
        self.edge_at = {(e["from"], e["slot"]): k for k, e in enumerate(self.edges)}
        self.uses = Counter(e["to"] for e in self.edges)

    def named_formulas(self) -> NamedFormulas:
        ops = [node for node in reversed(self.order) if not node.leaf]
        self.versions = self.places.versions(ops)
        several = {name.rstrip(SUBSCRIPT_DIGITS) for name in self.versions.values()}
        held = {name: t for name, t in self.seen.items() if t._node is None}
        return NamedFormulas(
            self.order,
            self.values,
            self.names,
            {id(t._array): name for name, t in held.items() if name not in several},
            places=self.places,
            spoken=self.spoken_constant,
            frozen_bias=self.frozen_bias,
            reserved={*self.seen, *written_names(ops)},
        )

    def data(self) -> dict[str, Any]:
        constants = [*self.constants()]
        nodes = [self.node(node) for node in self.order]
        steps = [self.step(step) for step in self.steps]
        return {
            "output": self.place[self.output._node],  # type: ignore[index]
            "seed": steps[0]["incoming"] if steps else None,
            "note": self.note,
            "nodes": nodes + constants,
            "edges": self.edges,
            "forward": [
                i for i, node in reversed([*enumerate(self.order)]) if not node.leaf and not isinstance(node, Output)
            ],
            "steps": steps,
            "groups": self.groups(),
            "sources": self.sources,
            "numbers": [json.loads(text) for text in self.numbers],
        }

    def number(self, array: Any) -> int | None:
        """The index of an array's description in the table of numbers."""
        if array is None:
            return None
        if isinstance(array, dict):
            found: dict[str, Any] = {"shape": None, "parts": [[i, self.number(part)] for i, part in array.items()]}
        else:
            found = describe(array)
        return self.numbers.setdefault(json.dumps(found), len(self.numbers))

    def node(self, node: Node) -> dict[str, Any]:
        leaf = getattr(node, "variable", None)
        raw = self.raw_names.get(id(leaf))
        name, call = self.names[node], None if node.leaf else call_of(node, self.model)
        kind = "leaf" if node.leaf else "output" if node is self.output._node else "op"
        grad = None if leaf is None or leaf._grad is None else leaf._grad._array
        inputs = inputs_of(node, self.values)
        title = title_of(node, raw)
        shared = {"result": self.place[self.results[node]]} if node in self.results else {}
        return {
            **shared,
            "kind": kind,
            "name": name,
            "label": self.label(self.made_by.get(node, node), name, call),
            "raw": raw or name,
            "title": f"{call.kind} {call.path}: {title}" if call and call.path else title,
            "shape": list(node.shape or ()),
            "grad": self.number(grad),
            "value": self.number(self.values.get(node)),
            "forward": None if node.leaf else self.forward(self.made_by.get(node, node)),
            "said": ""
            if node.leaf or node in self.made_by
            else forward_reason(self.formulas, node, self.results.get(node)),
            "rules": self.rules(node),
            "home": ".".join(self.homes[node]),
            "inputs": [
                *(
                    [self.input_name(node, i, input), self.number(value)]
                    for i, (input, value) in enumerate(inputs.items())
                ),
                *self.other_inputs(node, inputs),
            ],
            "source": self.source(node),
        }

    def label(self, node: Node, name: str, call: Call | None) -> str:
        """The first line of a box: `w1`, `o = tanh(n)`, `fc1: linear`."""
        if node.leaf:
            return name
        if isinstance(node, Output):
            return f"{name} = {self.formulas.step(node)}"
        if call is not None and call.path and self.calls[call] == 1:
            return f"{name}: {call.kind}"
        formula = self.forward(node)
        if formula is not None and len(formula) + len(name) <= MAX_LABEL_LETTERS:
            return f"{name} = {formula}"
        return f"{name} = {kind_of(node)}"

    def forward(self, node: Node) -> str | None:
        """The op as a formula of its inputs' names. `x * x` stays, since the page tells both x apart."""
        step = self.formulas.step(node)
        text = step if any(place_of(node, slot) for slot in range(len(node.edges))) else squares(step)
        return text if len(text) <= MAX_FORMULA_LETTERS else None

    def rules(self, node: Node) -> list[list[str | None]]:
        """[input, rule as a formula in the names of the graph] for each edge of the node."""
        op = node.op
        if op is None or isinstance(node, Output):
            return []
        if op.inputs == ("tensors",):
            return [[f"{i}", None] for i in range(len(node.edges))]
        return [
            [name, self.formulas.gradient_rule(node, slot) if edge is not None else None]
            for slot, (name, edge) in enumerate(zip(ruled_inputs(op), node.edges))
        ]

    def input_name(self, node: Node, i: int, name: str) -> str:
        """The name of the node that made the input; for a constant, its variable."""
        op = node.op
        assert op is not None
        slot = ruled_inputs(op).index(name)
        edge = node.edges[slot]
        return self.names[edge] if edge is not None else self.constant_name(node, slot)

    def other_inputs(self, node: Node, known: dict[str, Any]) -> list[list[Any]]:
        """[name, index of the value] for the inputs that the node did not save itself; without a value if no node saved
        it.
        """
        op = node.op
        if isinstance(node, Output) or node.saved is None:
            return []
        if op is None or "tensors" in op.inputs:
            edges = [edge for edge in dict.fromkeys(node.edges) if edge is not None]
            return [[self.names[e], self.number(self.values.get(e))] for e in edges]
        inputs = [
            self.names[edge] if edge is not None else self.spoken_constant(node, slot)
            for slot, (name, edge) in enumerate(zip(ruled_inputs(op), node.edges))
            if name not in known and (edge is not None or op.elementwise)
        ]
        numbers = re.compile(r"\(?-?\d[\d.e-]*\)?|constant|")  # the formula contains the number itself
        return [[name, None] for name in inputs if not numbers.fullmatch(name)]

    def constant_name(self, node: Node, slot: int) -> str:
        """The user's variable, the letter that the formulas use, or the number itself."""
        made = self.formulas.given(node, {}).get(ruled_inputs(node.op)[slot])
        return str(made)

    def variable(self, node: Node, slot: int) -> str:
        """The variable passed as a constant; "" if values of the graph have the same name."""
        name = self.places.argument(node, slot)
        if name in self.assigned:
            return self.first_value(node, name)
        if (node, slot) in self.versions:
            return self.versions[node, slot]
        known, kept = self.seen.get(name), saved_by(node).get(ruled_inputs(node.op)[slot])
        other = known is not None and kept is not None and known._array is not array_of(kept)
        return "" if other else name

    def first_value(self, node: Node, name: str) -> str:
        """h₀ for the constant in the variable h before its first value h₁ in the graph."""
        held = [n for n, own in self.names.items() if own.rstrip(SUBSCRIPT_DIGITS) == name]
        first = min(held, key=lambda n: n.seq)
        return f"{name}₀" if node.code is first.code and node.seq <= first.seq else ""

    @cached_property
    def assigned(self) -> set[str]:
        """The variables that hold values of the graph."""
        return {name.rstrip(SUBSCRIPT_DIGITS) for name in self.names.values()}

    def spoken_constant(self, node: Node, slot: int) -> str:
        """The constant as written in the program: a variable or a short expression."""
        name = self.places.argument(node, slot)
        if name:
            return self.variable(node, slot)
        text = self.places.written(node, slot)
        return text if re.fullmatch(r"[-\w.]*|[\w.]+\(.*\)", text) else f"({text})"

    def frozen_bias(self, node: Node) -> str | None:
        """The name of a layer's bias that gets no gradient and that the node therefore does not hold; "" if the layer
        has none, None if unknown.
        """
        leaf, kept = node.edges[1], array_of(saved_by(node).get("weight"))
        weight = kept if leaf is None else getattr(getattr(leaf, "variable", None), "_array", None)
        for path, module in getattr(self.model, "named_modules", tuple)():
            own = getattr(module, "weight", None)
            if weight is not None and array_of(own) is weight and hasattr(module, "bias"):
                return "" if module.bias is None else spoken(f"{path}.bias".lstrip("."))
        if self.places.calls_function(node):
            return self.places.written(node, 2)
        if node.op is None or node.op.name != "linear":
            return None
        x, w, out = (self.values.get(n) for n in (node.edges[0], leaf, node))
        x = array_of(saved_by(node).get("x")) if x is None else x
        w = kept if w is None else w
        if x is None or w is None or out is None:
            return None
        return "" if np.allclose(x @ w.T, out, 1e-4, 1e-6) else "constant"

    def constants(self) -> Iterator[dict[str, Any]]:
        """A box for each array without a gradient that an op has saved as an input, such as the network's input. A
        single number without a name is shown only in the formula.
        """
        places = [
            (i, node, slot, array, self.name_of(node, slot, name, array))
            for i, node in reversed([*enumerate(self.order)])
            for slot, name, array in constant_inputs(node)
        ]
        named = {id(array): name for *_, array, name in places if name.isidentifier()}
        several, seen = Counter(named.values()), Counter[str]()
        found: dict[int, int] = {}
        for i, node, slot, array, name in places:  # in the order of the program
            if not array.ndim and (not name or name in self.formulas.taken):
                continue
            place = found.get(id(array))
            if place is None:
                if several[name] > 1 and id(array) not in self.formulas.called:
                    seen[name] += 1
                    name += str(seen[name]).translate(SUBSCRIPTS)
                place = found[id(array)] = len(self.order) + len(found)
                if name and name not in self.formulas.taken:
                    self.formulas.called.setdefault(id(array), name)
                yield self.constant(node, slot, array)
            self.edges.append({"from": i, "slot": slot, "to": place, "constant": True})

    def name_of(self, node: Node, slot: int, name: str, array: np.ndarray) -> str:
        """The name of a constant in the program: a variable, or a condition as text."""
        found = self.formulas.called.get(id(array)) or self.variable(node, slot)
        if not found and node.op is not None and name == "condition":
            found = self.places.written(node, slot)
        call = call_of(node, self.model)
        maker = self.places.callee(node) if call is None else call.kind
        if not found and name == "y" and self.is_dropped(node, array, maker):
            found = "dropout_mask"
        own = "" if node.op is None else node.op.name
        return found or CONSTANTS.get((own, name), "" if name in NO_NAMES else name)

    def is_dropped(self, node: Node, array: np.ndarray, maker: str) -> bool:
        """True if the array is a dropout mask: made by a call of dropout, or made inside the model with the scale of
        one of its Dropout modules.
        """
        values = np.unique(array)
        if "drop" in maker.lower():
            return len(values) <= 2
        if self.places.is_operator(node) or maker in ("", "mul", "mul_"):
            return False
        modules = self.model.modules() if isinstance(self.model, Module) else ()
        rates = {m.p for m in modules if isinstance(m, Dropout) and 0 < m.p < 1}
        return any(np.isin(values, np.asarray([0, 1 / (1 - p)], array.dtype)).all() for p in rates)

    def constant(self, node: Node, slot: int, array: np.ndarray) -> dict[str, Any]:
        name = self.formulas.called.get(id(array)) or self.constant_name(node, slot)
        what = "the mask of dropout, " if name.startswith("dropout_mask") else ""
        what = f"the first value of {name[:-1]}, " if name.endswith("₀") else what
        return {
            "kind": "constant",
            "name": name,
            "label": name,
            "raw": name,
            "title": f"{name} {array.shape}: {what}a constant, which gets no gradient",
            "shape": list(array.shape),
            "grad": None,
            "value": self.number(array),
            "forward": None,
            "said": "",
            "rules": [],
            "home": ".".join(self.homes[node]),
            "inputs": [],
            "source": None,
        }

    def arrived(self, node: Node, gradient: Any) -> int | None:
        """The gradient at a node; for an op with one result in the graph, the gradient of this result."""
        if node in self.results and isinstance(gradient, dict) and len(gradient) == 1:
            (gradient,) = gradient.values()
        return self.number(gradient)

    def groups(self) -> dict[str, dict[str, Any]]:
        """{path of a module: class and name in Python} for all modules with nodes."""
        if self.runs is not None:
            return self.runs.groups
        homes = {home[:n] for home in self.homes.values() for n in range(1, len(home) + 1)}
        named = getattr(self.model, "named_modules", None)
        kinds = {name: type(module).__name__ for name, module in named()} if named else {}
        found = {}
        for home in sorted(homes):
            path = ".".join(part for part in home[:-1] if ":" not in part)
            path = f"{path}.{home[-1]}".lstrip(".")
            found[".".join(home)] = {"name": spoken(path), "kind": kinds.get(path, "")}
        return found

    def source(self, node: Node) -> str | None:
        """The key of the node's statement, which is added to the table of sources with the lines around it."""
        if node.where is None or node.leaf:
            return None
        code, lasti = node.where
        line, lines = line_of(code, lasti), linecache.getlines(code.co_filename)
        start = max(0, line - 1 - CONTEXT_LINES)
        text = dedent("".join(lines[start : line + CONTEXT_LINES])).split("\n")[: line + CONTEXT_LINES - start]
        file = shared_place(code.co_filename)
        key = f"{file}:{line}"
        self.sources.setdefault(key, {"file": file, "line": line, "from": start + 1, "text": text})
        return key

    def step(self, step: Step) -> dict[str, Any]:
        i = self.place[step.node]
        arrivals = [
            {
                "edge": self.edge_at[i, a.slot],
                "gives": self.arrived(a.target, a.gives),
                "total": self.arrived(a.target, a.total),
                "first": a.before is None,
                "place": place_of(step.node, a.slot),
                "said": ""
                if step.node in self.made_by
                else arrival_reason(self.formulas, step, a, self.uses[self.place[a.target]]),
            }
            for a in step.arrivals
        ]
        grad = None if step.grad is None else [self.number(g) for g in step.grad]
        return {"node": i, "incoming": self.arrived(step.node, step.incoming), "arrivals": arrivals, "grad": grad}


def constant_inputs(node: Node) -> Iterator[tuple[int, str, np.ndarray]]:
    """(slot, input name, array) of the inputs without a gradient that the node has saved."""
    op = node.op
    if op is None or not node.saved or isinstance(node, Output):
        return
    saved = dict(zip(op.saves, node.saved))
    for slot, (name, edge) in enumerate(zip(ruled_inputs(op), node.edges)):
        item = saved.get(name)
        if edge is None and isinstance(item, Tensor) and item._array.size:
            yield slot, name, item._array


def title_of(node: Node, name: str | None) -> str:
    """A node's title: `tanh (3,)`, `weight (2, 3), a leaf`."""
    shape = f"({', '.join(map(str, node.shape or ()))})" if node.shape else "a single number"
    if node.leaf:
        return f"{name or 'leaf'}, {shape}"
    if isinstance(node, Output):
        made = node.source()[0]
        outputs = made.op.options.get("outputs", "").split() if made.op is not None else []
        which = outputs[node.number] if node.number < len(outputs) else f"output {node.number}"
        return f"{which} of {called(made.op) if made.op is not None else made.name()}, {shape}"
    return f"{kind_of(node)}, {shape}"
