"""Separates the watchers of a vmap: inner watchers see the ops on batched tensors, outer ones the ops on the values."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rushlight.autograd.grad_mode import Inner, Watcher
from rushlight.tensor import Tensor


class Boundary(Inner):
    """Forwards events to the watchers around a vmap, except events on its batched tensors: those watchers see the ops on
    the values instead."""

    def __init__(self, level: Any, outer: Watcher):
        self.level, self.outer = level, outer
        self.records, self.differentiates, self.snapshots = outer.records, outer.differentiates, outer.snapshots

    def passes(self, *things: Any) -> bool:
        return not any([getattr(t.array, "level", None) is self.level for t in tensors_of(things)])

    def ran(self, op: Any, args: tuple, out: Any) -> None:
        if self.passes(out, *args):
            super().ran(op, args, out)

    def applying(self, node: Any, args: tuple) -> None:
        if self.passes(*args):
            super().applying(node, args)

    def applied(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        if self.passes(out, *args):
            super().applied(node, args, out, saved)

    def created(self, tensor: Tensor) -> None:
        if self.passes(tensor):
            super().created(tensor)

    def writing(self, tensor: Tensor) -> None:
        if self.passes(tensor):
            super().writing(tensor)

    def wrote(self, tensor: Tensor, value: Tensor) -> None:
        if self.passes(tensor):
            super().wrote(tensor, value)

    def moved(self, to: Tensor, tensor: Tensor) -> None:
        if self.passes(tensor):
            super().moved(to, tensor)


def tensors_of(args: Iterable) -> Iterator[Tensor]:
    """The tensors among an op's arguments, also in lists of arguments."""
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, (tuple, list)):
            yield from (t for t in a if isinstance(t, Tensor))
