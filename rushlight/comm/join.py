"""Join: ranks with unequal numbers of batches train together. A rank that has run out of batches calls `main_hook` for
each step of the other ranks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.comm.collectives import all_reduce
from rushlight.comm.objects import numbers
from rushlight.comm.work import Work

MANY_STEPS = 1000  # a rank that waits for this number of steps warns


class JoinHook:
    """The work of a rank that has run out of batches."""

    def main_hook(self) -> None:
        """Do this rank's part of one step of the other ranks."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once, when all ranks have run out of batches."""


class Joinable:
    """The base of classes for `Join`: they have `join_hook`, `join_device` and `join_process_group`, and call
    `Join.notify_join_context(self)` at the beginning of each step."""

    _join_config: Any = None

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this rank for the time after its last batch."""
        raise NotImplementedError


class Join:
    """with Join([ddp, ...]): a training loop, whose number of steps may differ between ranks.

    With throw_on_early_termination=True, all ranks raise RuntimeError as soon as one rank has run out of batches."""

    def __init__(
        self, joinables: Sequence[Any], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self.joinables, self.enable, self.throws = list(joinables), enable, throw_on_early_termination
        self.hooks = [one.join_hook(**kwargs) for one in self.joinables]
        self.group = self.joinables[0].join_process_group
        self.settings = kwargs

    def __enter__(self) -> Join:
        for i, one in enumerate(self.joinables):
            divides = self.settings.get("divide_by_initial_world_size", True)
            one._join_config = SimpleNamespace(
                enable=self.enable,
                throw_on_early_termination=self.throws,
                is_first_joinable=i == 0,
                divide_by_initial_world_size=divides,
            )
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        for one in self.joinables:
            one._join_config = None
        if not self.enable or kind is not None:
            return
        is_last, steps = True, 0
        while self.active():
            is_last, steps = False, steps + 1
            if self.throws:
                tell_end(self.group, True)
            if steps == MANY_STEPS:
                warnings.warn(f"a rank without batches has waited for {MANY_STEPS} steps of others", stacklevel=2)
            for hook in self.hooks:
                hook.main_hook()
        for hook in self.hooks:
            hook.post_hook(is_last)

    def active(self) -> int:
        """The number of ranks that have begun another step."""
        count = numbers([0])
        all_reduce(count, group=self.group)
        return int(count.item())

    @staticmethod
    def notify_join_context(joinable: Any) -> Work | None:
        """Tell the waiting ranks that this rank begins a step. Returns the work of the sum that counts such ranks, or
        None outside of a `Join`."""
        config = joinable._join_config
        if config is None or not config.enable or not config.is_first_joinable:
            return None
        work = all_reduce(numbers([1]), group=joinable.join_process_group, async_op=True)
        if config.throw_on_early_termination:
            tell_end(joinable.join_process_group, False)
        return work


def tell_end(group: Any, ended: bool) -> None:
    """RuntimeError on all ranks if one of them has run out of batches (`ended`)."""
    count = numbers([int(ended)])
    all_reduce(count, group=group)
    if count.item():
        raise runtime_error(
            "Detected at least one rank that exhausted inputs. Throwing across all ranks.",
            "give all ranks the same number of batches, or throw_on_early_termination=False",
        )
