"""Separates the watchers of a vmap: inner ones get the ops on batched tensors, outer ones the ops on the values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rushlight.core.mode import Inner, Watcher
from rushlight.core.tensor import Tensor


class Boundary(Inner):
    """Forwards events to the watchers around a vmap, except events on its batched tensors: the watchers get the ops on
    the values instead."""

    def __init__(self, level: Any, outer: Watcher):
        self.level, self.outer = level, outer
        self.records, self.differentiates, self.snapshots = outer.records, outer.differentiates, outer.snapshots

    def passes(self, *things: Any) -> bool:
        return not any([getattr(t._array, "level", None) is self.level for t in tensors_of(things)])

    def on_op(self, op: Any, args: tuple, out: Any) -> None:
        if self.passes(out, *args):
            super().on_op(op, args, out)

    def on_function_start(self, node: Any, args: tuple) -> None:
        if self.passes(*args):
            super().on_function_start(node, args)

    def on_function(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        if self.passes(out, *args):
            super().on_function(node, args, out, saved)

    def on_create(self, tensor: Tensor) -> None:
        if self.passes(tensor):
            super().on_create(tensor)

    def on_write_start(self, tensor: Tensor) -> None:
        if self.passes(tensor):
            super().on_write_start(tensor)

    def on_write(self, tensor: Tensor, value: Tensor) -> None:
        if self.passes(tensor):
            super().on_write(tensor, value)

    def on_move(self, to: Tensor, tensor: Tensor) -> None:
        if self.passes(tensor):
            super().on_move(to, tensor)


def tensors_of(args: Iterable) -> Iterator[Tensor]:
    """The tensors among an op's arguments, also in lists of arguments."""
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, (tuple, list)):
            yield from (t for t in a if isinstance(t, Tensor))
