"""torch.utils.hooks: the handle that registering a hook returns."""

from __future__ import annotations

from itertools import count
from typing import Any

from rushlight.base import shown_names
from rushlight.core.node import Handle


class _Any(type):
    """Handles of modules, tensors and optimizers are also instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Handle)


class RemovableHandle(Handle, metaclass=_Any):
    """The handle of an entry that its owner makes in a dict of hooks: `handle = RemovableHandle(hooks)`, then
    `hooks[handle.id] = hook`. `remove()` removes the entry, also from `extra_dict`.

    >>> hooks = {}
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> hooks
    {}
    """

    __slots__ = ("extra",)
    numbers = count()

    def __init__(self, hooks_dict: dict, *, extra_dict: Any = None):
        super().__init__(hooks_dict, next(self.numbers))
        self.extra = [] if extra_dict is None else [extra_dict] if isinstance(extra_dict, dict) else list(extra_dict)

    def remove(self) -> None:
        super().remove()
        for other in self.extra:
            other.pop(self.key, None)

    def __getstate__(self) -> tuple:
        return self.hooks, self.key, tuple(self.extra)

    def __setstate__(self, state: tuple) -> None:
        super().__setstate__(state)
        self.extra = list(state[2]) if len(state) > 2 and state[2] else []


shown_names.IN_FILES[RemovableHandle] = "torch.utils.hooks", "RemovableHandle"


__all__ = ["RemovableHandle"]
