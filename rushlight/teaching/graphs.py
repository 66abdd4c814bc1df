"""Checks of the autograd graph over many steps: growth, and metrics that keep it."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable
from typing import Any

from rushlight.core.node import Node
from rushlight.teaching.check import Check


class Growth:
    """Backward from one statement: `sizes` of the last graphs, `newest`: the clock's tick at each root."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.ticks: list[int] = []


class GrowingGraph(Check):
    name = "growing-graph"
    title = "the graph grows from step to step"
    why = (
        "Each backward() goes through the graphs of all earlier steps: steps become slower and need more memory, "
        "and gradients mix the steps."
    )
    fix = "detach() tensors that are carried over to the next step: hidden = hidden.detach()."
    wrong = "out, hidden = rnn(x, hidden); loss.backward(retain_graph=True)"
    right = "out, hidden = rnn(x, hidden.detach()); loss.backward()"
    limit = "in 10 calls in a row the graph has grown and contains nodes of 3 calls before."
    CALLS, BACK = 10, 3

    def prepare(self) -> None:
        self.places: dict[Any, Growth] = {}

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        root = next(iter(roots))
        inner = [node for node in nodes if not node.leaf]
        if not inner or root.where is None:
            return
        note = self.places.setdefault(root.where, Growth())
        old = len(note.ticks) < self.BACK or inner[-1].seq < note.ticks[-self.BACK]
        if not old or (note.sizes and len(inner) <= note.sizes[-1]):
            note.sizes, note.ticks = [], []
        note.sizes, note.ticks = [*note.sizes, len(inner)], [*note.ticks, root.seq]
        if len(note.sizes) == self.CALLS:
            self.hint(
                f"backward() went through {note.sizes[0]} ops, and {self.CALLS - 1} calls later through "
                f"{note.sizes[-1]}.",
                root.made_at,
            )


class KeptGraph(Check):
    name = "metric-keeps-graph"
    title = "a metric keeps the graph of every step"
    why = "A loss that is added up or put into a list as a tensor keeps its graph: memory grows with each step."
    fix = "keep the number: total += loss.item(), or losses.append(loss.detach())."
    wrong = "total += loss"
    right = "total += loss.item()"
    limit = "the graphs of 40 losses of one statement are alive after their backward()."
    EVERY, KEPT = 50, 40

    def prepare(self) -> None:
        self.count = 0
        self.ticks: deque[int] = deque(maxlen=20 * self.KEPT)  # ticks of the roots, which number the nodes

    def on_backward(self, roots: Iterable[Node], nodes: list[Node]) -> None:
        self.count += 1
        self.ticks.extend(root.seq for root in roots if not root.leaf)
        if self.count % self.EVERY == 0:
            self.look()

    def look(self) -> None:
        ticks = set(self.ticks)
        alive: dict[Any, list[Node]] = {}
        for thing in gc.get_objects():
            # isinstance would read __class__ of lazy objects, which runs other libraries' code
            if issubclass(type(thing), Node) and thing.seq in ticks and thing.where:
                alive.setdefault(thing.where, []).append(thing)
        for kept in alive.values():
            if len(kept) >= self.KEPT:
                self.hint(f"{len(kept)} losses of earlier steps are alive.", kept[0].made_at)

    def finish(self) -> None:
        if self.count >= self.KEPT:
            self.look()


CHECKS = (GrowingGraph, KeptGraph)
