"""The graph that backward will walk, as plain data: boxes and the boxes their gradients go to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from rushlight.viz.numbers import rounded

Params = Any  # names of leaves: a mapping {name: tensor}, pairs of them, a module, or None

SMALL = 4  # a leaf of so many numbers shows them


@dataclass
class Box:
    """A node: an op, the op that made the output, or a leaf. `notes` are further lines: value, gradient."""

    kind: str  # 'output', 'op', 'leaf', or 'module': many boxes drawn as one
    name: str  # 'MulBackward0', or the leaf's name in `params`
    shape: tuple[int, ...] | None
    notes: list[str] = field(default_factory=list)
    made_at: str = ""
    seq: int = 0  # when it was made; of a leaf 0

    @property
    def numel(self) -> int:
        """How many numbers it has."""
        return prod(self.shape or ())

    @property
    def label(self) -> str:
        """Name and shape on one line."""
        return self.name if self.shape is None else f"{self.name} {tuple(self.shape)}"


@dataclass
class Graph:
    """`boxes[0]` is the output; `inputs[i]` are the boxes that box i sends gradients to, input by input."""

    boxes: list[Box] = field(default_factory=list)
    inputs: list[list[int]] = field(default_factory=list)


def graph(output: Any, params: Params = None) -> Graph:
    """The backward graph of the tensor `output`: each node once, in the order a walk from there meets them.

    `params` names the leaves: a dict `{name: tensor}` or `model.named_parameters()`.
    Raises `ValueError` where nothing was recorded for `output`.
    """
    check_recorded(output)
    names = {id(tensor): name for name, tensor in pairs(params)}
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
        found.boxes.append(box(node, names))
        stack += reversed([source for source, _ in node.next_functions if source is not None])
    for node in nodes:
        found.inputs.append([places[id(source)] for source, _ in node.next_functions if source is not None])
    found.boxes[0].kind = "output"
    found.boxes[0].notes += values("=", output)
    return found


def check_recorded(output: Any) -> None:
    """ValueError where nothing was recorded for a tensor."""
    if output.grad_fn is None:
        raise ValueError(
            f"viz: no graph was recorded for this tensor of shape {tuple(output.shape)}: it is a leaf, "
            "detached, or made under no_grad; pass a result computed from a tensor with requires_grad=True"
        )


def pairs(params: Params) -> Iterable[tuple[str, Any]]:
    """(name, tensor) for each leaf that has a name."""
    if params is None:
        return ()
    if hasattr(params, "named_parameters"):
        return params.named_parameters()
    return params.items() if isinstance(params, Mapping) else params


def box(node: Any, names: dict[int, str]) -> Box:
    leaf = getattr(node, "variable", None)
    if leaf is None:
        return Box("op", node.name(), getattr(node, "shape", None), made_at=getattr(node, "made_at", ""), seq=node.seq)
    notes = values("=", leaf) + ([] if leaf.grad is None else values("grad", leaf.grad))
    return Box("leaf", names.get(id(leaf), node.name()), tuple(leaf.shape), notes)


def values(word: str, tensor: Any) -> list[str]:
    """One line with the numbers of a small tensor, four digits each; of a larger gradient its range and mean."""
    if tensor.numel() > SMALL:
        if word != "grad" or tensor.is_complex():
            return []
        low, mean, high = (rounded(float(v)) for v in (tensor.min(), tensor.mean(), tensor.max()))
        return [f"grad {low} .. {high}, mean {mean}"]
    return [f"{word} {rounded(tensor.detach().tolist())}"]
