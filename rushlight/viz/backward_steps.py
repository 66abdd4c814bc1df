"""The steps of backward with their numbers, without changing `.grad`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rushlight.core.backward import seed
from rushlight.core.engine import reachable, steps
from rushlight.core.node import Node, Parts, clock
from rushlight.core.table import ruled_inputs
from rushlight.core.tensor import Tensor
from rushlight.core.worlds import sum_to_array
from rushlight.ops.grad_mode import no_grad


@dataclass
class Arrival:
    """A gradient that arrives along an edge: as the rule returned it, summed to the target's shape (`part`), and the
    target's total before and after it (`before` is None for the first)."""

    slot: int  # the index of the node's edge
    target: Node
    gives: Any
    part: Any
    total: Any
    before: Any


@dataclass
class Step:
    """The engine's step at one node. `grad`: for a leaf, `.grad` before (or None) and after."""

    node: Node
    incoming: Any
    arrivals: list[Arrival] = field(default_factory=list)
    grad: tuple[Any, Any] | None = None


def record(output: Tensor, gradient: Tensor | None = None) -> list[Step]:
    """The steps of `output.backward(gradient)`, in the engine's order. Nothing is freed, no `.grad` changes.

    Hooks on tensors run, since they change gradients; hooks that run after a leaf's `.grad` is set do not. Raises
    backward's errors: for a graph that was freed, and for an output of several elements without `gradient`.
    """
    seeds, _ = seed((output,), gradient, False)
    leaves = {node for node in reachable(seeds) if node.leaf}
    totals: dict[Node, Any] = dict(seeds)
    with keeping_retained(seeds), no_grad():
        return [step(node, g, outgoing, totals) for node, g, outgoing in steps(seeds, targets=leaves, retain=True)]


@contextmanager
def keeping_retained(seeds: dict[Node, Any]) -> Iterator[None]:
    """Restore the `.grad` of tensors with `retain_grad` at the end."""
    found = [node.hooks.retained() for node in reachable(seeds) if node.hooks and node.hooks.retained]
    kept = [(t, t._grad) for t in found if t is not None]
    try:
        yield
    finally:
        for t, g in kept:
            t._grad = g


def step(node: Node, g: Any, outgoing: Any, totals: dict[Node, Any]) -> Step:
    """The step at `node`; updates `totals`: node -> the sum of the gradients that have arrived."""
    done = Step(node, frozen(g))
    if node.leaf:
        done.grad = accumulated(node, g)
    for slot, (edge, ge) in enumerate(zip(node.edges, outgoing)):
        if ge is None or edge is None:
            continue
        fitted = ge if ge.shape == edge.shape else sum_to_array(ge, edge.shape)
        known = totals.get(edge)
        totals[edge] = fitted if known is None else known + fitted
        done.arrivals.append(
            Arrival(
                slot, edge, frozen(ge), frozen(fitted), frozen(totals[edge]), None if known is None else frozen(known)
            )
        )
    return done


def accumulated(node: Any, g: np.ndarray) -> tuple[Any, Any]:
    """`.grad` of a leaf before and after `g` arrives."""
    leaf = node.tensor()
    g = np.asarray(g)
    if leaf is not None:  # None: the leaf was freed
        g = g.astype(leaf._array.dtype)
    before = None if leaf is None or leaf._grad is None else leaf._grad._array.copy()
    return before, (g if before is None else before + g)


def frozen(g: Any) -> Any:
    """A copy that later steps cannot change; for a node with several outputs, a copy of each."""
    return {i: np.array(part) for i, part in g.items()} if isinstance(g, Parts) else np.array(g)


# -- values of the forward pass --------------------------------------------------------------------


def forward_values(output: Tensor) -> dict[Node, np.ndarray]:
    """The known values of the graph's tensors: leaves, the output, saved tensors, and values computed from these by ops
    whose settings are known. Overwritten values are left out."""
    assert output._node is not None
    order = reachable([output._node])
    known: dict[Node, np.ndarray] = {}
    for node in order:
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            known[node] = leaf._array
        known.update(saved_values(node))
    known[output._node] = output._array
    for node in reversed(order):
        if node not in known and (value := computed(node, known)) is not None:
            known[node] = value
    return known


def saved_values(node: Node) -> Iterator[tuple[Node, np.ndarray]]:
    """(node, value) for each input and output that this node has saved for its rules."""
    op = node.op
    if op is None or not node.saved:
        return
    slots = {name: i for i, name in enumerate(ruled_inputs(op))}
    for name, item in zip(op.saves, node.saved):
        edge = (
            node.edges[slots[name]] if name in slots and name != "tensors" and slots[name] < len(node.edges) else None
        )
        if edge is not None and isinstance(item, Tensor) and item._array.shape == edge.shape:
            yield edge, item._array
        elif name == "out" and isinstance(item, np.ndarray) and item.shape == node.shape:
            yield node, item


def inputs_of(node: Node, known: dict[Node, np.ndarray]) -> dict[str, np.ndarray]:
    """{input name: value} of the op's inputs: saved by the node, or known for the nodes that made them."""
    op = node.op
    if op is None or "tensors" in op.inputs:
        return {}
    saved = dict(zip(op.saves, node.saved or ()))
    found = {}
    for name, edge in zip(ruled_inputs(op), node.edges):
        item = saved.get(name)
        if isinstance(item, Tensor):
            found[name] = item._array
        elif edge is not None and edge in known:
            found[name] = known[edge]
    return found


def computed(node: Node, known: dict[Node, np.ndarray]) -> np.ndarray | None:
    """The output of an op, computed from its inputs and settings; None if an input or setting is unknown, or memory was
    written since.
    """
    op = node.op
    if op is None or "outputs" in op.options or clock.last_write > node.seq:
        return None
    found, settings = inputs_of(node, known), settings_of(node)
    if len(found) < len(op.inputs) or "random" in op.options or settings is None:
        return None
    value = np.asarray(op.kernel(*[found[name] for name in op.inputs], *settings))
    return value if value.shape == node.shape else None


def settings_of(node: Node) -> list[Any] | None:
    """The op's settings in order, from the values saved for its rules; for a sum or mean to a single number, the
    settings for all dimensions. None if a setting is unknown.
    """
    op = node.op
    assert op is not None
    saved = dict(zip(op.saves, node.saved or ()))
    if all(name in saved for name in op.settings):
        return [saved[name] for name in op.settings]
    if op.settings == ("dim", "keepdim") and node.shape == ():
        return [op.defaults["dim"], op.defaults["keepdim"]]
    return None
