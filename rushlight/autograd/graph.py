"""The graph for those who reach into it: hooks on what nodes save, notes of writes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd.clock import stamp
from rushlight.autograd.grad_mode import Mode, Setting, Watcher, mode
from rushlight.autograd.node import Handle, Node, hooks_of
from rushlight.tensor import Tensor, from_array, writes_of

__all__ = ["Handle", "Node", "disable_saved_tensors_hooks", "increment_version", "save_on_cpu", "saved_tensors_hooks"]


class Packed:
    """A saved tensor in the form that a pack hook gave it."""

    __slots__ = ("value", "node", "raw")

    def __init__(self, value: Any, node: Node | None, raw: bool):
        self.value, self.node, self.raw = value, node, raw


class saved_tensors_hooks(Setting, Watcher):
    """Inside it, what nodes save goes through `pack_hook(tensor)`, and back through `unpack_hook(packed)` in backward.

    >>> with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), rushlight.from_numpy):
    ...     y = rushlight.ones(2, requires_grad=True).exp()
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable):
        self.pack, self.unpack = pack_hook, unpack_hook
        self.outer: Watcher | None = None

    @property
    def changes(self) -> dict:  # type: ignore[override]
        self.outer = mode().watch
        self.records = self.outer is not None and self.outer.records  # type: ignore[misc]
        self.differentiates = self.outer is not None and self.outer.differentiates  # type: ignore[misc]
        return {"watch": self}

    def again(self) -> saved_tensors_hooks:
        return type(self)(self.pack, self.unpack)

    def ran(self, op: Any, args: tuple, out: Any) -> None:
        if self.outer is not None:
            self.outer.ran(op, args, out)
        self.pack_saved(out)

    def applied(self, node: Any, args: tuple, out: Any, saved: tuple) -> None:
        if self.outer is not None:
            self.outer.applied(node, args, out, saved)
        self.pack_saved(out)

    def pack_saved(self, out: Any) -> None:
        """Send what the node of an op's result has saved through the pack hook."""
        first = out if isinstance(out, Tensor) else next((t for t in out if isinstance(t, Tensor) and t.node), None)
        node = None if first is None or first.node is None else first.node.source()[0]
        if node is None or node.leaf or not node.saved or any(isinstance(s, Packed) for s in node.saved):
            return
        names = node.op.saves if node.op is not None else ()
        node.saved = tuple(self.packed(item, node, names[i:i + 1] == ("out",)) for i, item in enumerate(node.saved))
        hooks_of(node).unpack = self.restore

    def packed(self, item: Any, node: Node, is_out: bool) -> Any:
        from_mode: Mode = mode()
        if isinstance(item, Tensor):
            return Packed(self.call(self.pack, item, from_mode), item.node, False)
        return Packed(self.call(self.pack, from_array(item), from_mode), None, True) if is_out else item

    def call(self, hook: Callable, value: Any, _: Mode) -> Any:
        with Unwatched():
            return hook(value)

    def restore(self, node: Node) -> None:
        """Put the tensors back before the node's rules run."""
        if node.saved is not None:
            node.saved = tuple(self.unpacked(item) if isinstance(item, Packed) else item for item in node.saved)

    def unpacked(self, packed: Packed) -> Any:
        with Unwatched():
            t = self.unpack(packed.value)
        if packed.raw:
            return t.array
        fresh = from_array(t.array)
        fresh.node = packed.node
        return fresh

    def wrote(self, tensor: Tensor, value: Tensor) -> None:
        if self.outer is not None:
            self.outer.wrote(tensor, value)

    def moved(self, to: Tensor, tensor: Tensor) -> None:
        if self.outer is not None:
            self.outer.moved(to, tensor)

    def read(self, tensor: Tensor) -> None:
        if self.outer is not None:
            self.outer.read(tensor)


class Unwatched(Setting):
    """Inside it nobody watches and nothing is recorded: hooks run their own ops unseen."""

    changes = {"watch": None, "grad": False}


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors on the CPU: where they are anyway."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu"):
        super().__init__(lambda t: t, lambda t: t)


class disable_saved_tensors_hooks(Setting):
    """Inside it, `saved_tensors_hooks` from outside have no effect."""

    changes = {"watch": None}

    def __init__(self, error_message: str = ""):
        self.message = error_message


def increment_version(tensor: Tensor) -> None:
    """Say that the tensor's memory was written to, by means that rushlight did not see."""
    stamp(writes_of(tensor), None)
