"""Join: ranks with unequal numbers of batches train together. A rank without
batches calls `main_hook` for each step of the others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from rushlight.base.errors import runtime_error
from rushlight.comm.collectives import all_reduce
from rushlight.comm.objects import numbers
from rushlight.comm.work import Work

MANY_STEPS = 1000  # for which one rank waits without a warning


class JoinHook:
    """What a rank does when it has no more batches."""

    def main_hook(self) -> None:
        """Do this rank's part of one step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once when no rank has batches."""


class Joinable:
    """What takes part in a `Join`: it has `join_hook`, `join_device` and `join_process_group`, and calls
    `Join.notify_join_context(self)` at the beginning of each step."""

    _join_config: Any = None

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What this rank does when it has no more batches."""
        raise NotImplementedError


class Join:
    """with Join([ddp, ...]): a training loop, whose number of steps may differ between ranks.

    RuntimeError on all ranks as soon as one has no more batches, with throw_on_early_termination=True."""

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
        """Tell the ranks that have no more batches that this one begins a step: the work of the sum of those that do.
        None outside of a `Join`."""
        config = joinable._join_config
        if config is None or not config.enable or not config.is_first_joinable:
            return None
        work = all_reduce(numbers([1]), group=joinable.join_process_group, async_op=True)
        if config.throw_on_early_termination:
            tell_end(joinable.join_process_group, False)
        return work


def tell_end(group: Any, ended: bool) -> None:
    """RuntimeError on all ranks if one has no more batches."""
    count = numbers([int(ended)])
    all_reduce(count, group=group)
    if count.item():
        raise runtime_error(
            "Detected at least one rank that exhausted inputs. Throwing across all ranks.",
            "give all ranks the same number of batches, or throw_on_early_termination=False",
        )
