"""Of a backward with several results: the inputs that are looked after, and backwards for some of the results alone."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.compile.graph import Graph
from rushlight.compile.passes.split import outline, without
from rushlight.tensor import Tensor


def keyed(source: tuple[str, Any]) -> tuple:
    """A source as a key of a dict."""
    kind, what = source
    return kind, what if isinstance(what, int) else id(what)


class Kept:
    """Tensors that the node looks after by itself, as not all of them are read each time."""

    __slots__ = ("tensors",)

    def __init__(self, tensors: list[Tensor | None]):
        self.tensors = tensors


class Subsets:
    """Backwards for some of several results, made when they are asked for."""

    def __init__(self, late: Graph, part: Callable[[Graph], Any], results: int):
        self.late, self.part = outline(late) if results > 1 else Graph(), part
        self.known: dict[frozenset[int], tuple[Any, list[bool], list[int]]] = {}

    def of(self, absent: set[int], whole: Any) -> tuple[Any, list[bool], list[int]]:
        """The part that runs without gradients of these, which results it has, and where in `whole` its inputs are."""
        key = frozenset(absent)
        if key not in self.known:
            graph, there = without(self.late, absent)
            part = self.part(graph)
            part.let_go()
            known = {keyed(s): i for i, s in enumerate(whole.sources)}
            self.known[key] = part, there, [known[keyed(s)] for s in part.sources]
        return self.known[key]
