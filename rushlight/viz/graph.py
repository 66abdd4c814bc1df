"""The backward graph as plain data: boxes, and for each box the boxes that get its gradients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from rushlight.autograd.graph_errors import held_tensors
from rushlight.base.errors import runtime_error, shared_place
from rushlight.viz.array_preview import rounded
from rushlight.viz.backward_steps import forward_values
from rushlight.viz.module_calls import call_of

Params = Any  # names of leaves: a mapping {name: tensor}, pairs of them, a module, or None

MAX_SHOWN = 4  # arrays of up to this many numbers are shown in full


@dataclass
class Box:
    """A node of a drawn graph: an op, the op that made the output, or a leaf.

    `notes`: further lines with the box's result, if known, and its gradient: all elements of a small array; minimum,
    maximum and mean of a large one.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> rushlight.viz.graph(x * x).boxes[0].name
    'MulBackward0'
    """

    kind: str  # 'output', 'op', 'leaf', or 'module': many boxes drawn as one
    name: str  # 'MulBackward0', or the leaf's name in `params`
    shape: tuple[int, ...] | None
    notes: list[str] = field(default_factory=list)
    made_at: str = ""
    seq: int = 0  # the tick at which the node was made; 0 for a leaf
    variable: str = ""  # the user's variable that holds the result, if the caller requested names

    @property
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape or ())

    @property
    def label(self) -> str:
        """Name and shape on one line."""
        return self.name if self.shape is None else f"{self.name} {tuple(self.shape)}"


@dataclass
class Graph:
    """`boxes[0]` is the output; `inputs[i]` are the boxes that box i sends gradients to, input by input.

    >>> x = rushlight.tensor(3., requires_grad=True)
    >>> graph = rushlight.viz.graph(x * x)
    >>> isinstance(graph, rushlight.viz.Graph), graph.inputs[0]
    (True, [1, 1])
    """

    boxes: list[Box] = field(default_factory=list)
    inputs: list[list[int]] = field(default_factory=list)


def variables() -> dict[Any, str]:
    """{node: name} of the tensors in the user's variables."""
    held = ((name, t._node) for name, t in held_tensors() if "[" not in name)
    named = [(node, name) for name, node in held if node is not None]
    return dict(reversed(named))  # the innermost frame's names win


def graph(output: Any, params: Params = None) -> Graph:
    """The backward graph of the tensor `output`: each node once, in the order of a walk from the output."""
    check_recorded(output)
    names = {id(tensor): name for name, tensor in pairs(params)}
    known, held = forward_values(output), variables()
    nodes: list[Any] = []
    found = Graph()
    places: dict[int, int] = {}
    stack = [output.grad_fn]
    while stack:
        node = stack.pop()
        if id(node) in places:
            continue
        places[id(node)] = len(nodes)
        nodes.append(node)
        found.boxes.append(box(node, names, known.get(node)))
        found.boxes[-1].variable = held.get(node, "")
        call = call_of(node, params)
        if call is not None:
            found.boxes[-1].notes.insert(0, f"{call.kind} {call.path}".rstrip())
        stack += reversed([source for source, _ in node.next_functions if source is not None])
    for node in nodes:
        found.inputs.append([places[id(source)] for source, _ in node.next_functions if source is not None])
    found.boxes[0].kind = "output"
    return found


def check_recorded(output: Any) -> None:
    """ValueError for a tensor without a graph, TypeError for a value that is not a tensor."""
    if not hasattr(output, "grad_fn"):
        raise TypeError(
            f"viz: expected a tensor, got {type(output).__name__}; hint: pass a result computed from a tensor with "
            "requires_grad=True, such as the loss"
        )
    if output.grad_fn is None:
        raise ValueError(
            f"viz: no graph was recorded for this tensor of shape {tuple(output.shape)}: it is a leaf, detached, or "
            "made under no_grad; pass a result computed from a tensor with requires_grad=True"
        )


def check_kept(name: str, nodes: Iterable[Any]) -> None:
    """RuntimeError of the function `name` if an earlier backward() has freed the values saved by a node."""
    if any(node.saved is None for node in nodes if not node.leaf):
        raise runtime_error(
            f"{name}: an earlier backward() has freed the numbers of this graph (Trying to backward through the "
            "graph a second time)",
            f"call {name}(...) before backward(), or write backward(retain_graph=True)",
        )


def pairs(params: Params) -> Iterable[tuple[str, Any]]:
    """(name, tensor) for each named leaf."""
    if params is None:
        return ()
    if hasattr(params, "named_parameters"):
        return params.named_parameters()
    named = [*(params.items() if isinstance(params, Mapping) else params)]
    if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in named):
        raise TypeError('viz: params names the leaves: give a dict {"w": w}, model.named_parameters() or the model')
    return named


def box(node: Any, names: dict[int, str], value: np.ndarray | None) -> Box:
    notes = [] if value is None else [told("=", value)]
    leaf = getattr(node, "variable", None)
    kept = node.hooks.retained() if node.hooks is not None and node.hooks.retained is not None else leaf
    if kept is not None and kept.grad is not None:
        notes.append(told("grad", kept.grad._array))
    if leaf is None:
        made_at = shared_place(getattr(node, "made_at", ""))
        return Box("op", node.name(), getattr(node, "shape", None), notes, made_at, node.seq)
    return Box("leaf", names.get(id(leaf), node.name()), tuple(leaf.shape), notes)


def told(word: str, array: np.ndarray) -> str:
    """A line: the numbers of a small array with four digits; minimum, maximum and mean of a larger one."""
    if array.size <= MAX_SHOWN:
        return f"{word} {rounded(array.tolist())}"
    wide = array.astype(complex if array.dtype.kind == "c" else float)
    mean = f"mean {rounded(wide.mean().item())}"
    if array.dtype.kind == "c":
        return f"{word} {mean}"
    return f"{word} {rounded(wide.min().item())} .. {rounded(wide.max().item())}, {mean}"
