"""Schedules composed of schedules: in sequence, or all in each step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from rushlight.base.errors import not_implemented_error, type_error, value_error
from rushlight.optim.lr_scheduler.base import LRScheduler, set_value
from rushlight.optim.lr_scheduler.plateau import ReduceLROnPlateau
from rushlight.optim.optimizer import Optimizer


class Composed(LRScheduler):
    """A schedule that consists of other schedules."""

    _schedulers: list[LRScheduler]

    def _go_to(self, epoch: int | None) -> None:
        raise not_implemented_error(
            f"a {type(self).__name__} cannot begin in the middle of a SequentialLR",
            "put it first, or pass its parts to SequentialLR",
        )

    def state_dict(self) -> dict[str, Any]:
        """The states of the schedules, and this schedule's own state."""
        own = {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "_schedulers")}
        return own | {"_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned; the schedules stay those given to the constructor."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for one, saved in zip(self._schedulers, state_dict["_schedulers"]):
            one.load_state_dict(saved)


def check_schedulers(name: str, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
    """ValueError unless all belong to the optimizer and can be stepped without a metric."""
    for i, one in enumerate(schedulers):
        if not hasattr(one, "optimizer"):
            raise type_error(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(one, ReduceLROnPlateau):
            raise value_error(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        if one.optimizer is not optimizer:
            raise value_error(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(one).__name__} at index {i} with another one, a {type(one.optimizer).__name__}.",
                "use the same optimizer for all",
            )


class SequentialLR(Composed):
    """Schedules in sequence. At each of the epochs `milestones`, the next schedule begins at its epoch 0.

    ValueError unless there is one more schedule than milestones, and all belong to this optimizer.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> S = rushlight.optim.lr_scheduler
    >>> scheduler = S.SequentialLR(optimizer, [S.ConstantLR(optimizer, 0.5), S.ExponentialLR(optimizer, 0.9)], [2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr(); optimizer.step(); scheduler.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.9]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ):
        if not schedulers:
            raise value_error("SequentialLR expects at least one scheduler, but got no scheduler.")
        check_schedulers("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise value_error(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones "
                f"to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones, self.optimizer = schedulers, milestones, optimizer
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # restore the rates before the first schedule
            set_value(group, "lr", group["initial_lr"])
        undo(schedulers)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        one = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            one._go_to(0)
        else:
            one.step()
        self._last_lr = one.get_last_lr()


def undo(schedulers: Sequence[LRScheduler]) -> None:
    """Undo the first step of schedules, also of nested schedules."""
    todo = list(schedulers)
    for one in todo:
        todo += getattr(one, "_schedulers", ())
        if hasattr(one, "last_epoch"):
            one.last_epoch -= 1


class ChainedScheduler(Composed):
    """Each step calls all schedules in turn, so that their factors multiply.

    ValueError unless all belong to one optimizer.

    >>> S, optimizer = rushlight.optim.lr_scheduler, rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = S.ChainedScheduler([S.ConstantLR(optimizer, 0.25, total_iters=2), S.ExponentialLR(optimizer, 0.5)])
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(3):
    ...     optimizer.step(); scheduler.step(); rates += scheduler.get_last_lr()
    >>> rates
    [0.25, 0.125, 0.25, 0.125]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if not schedulers:
            raise value_error("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        check_schedulers("ChainedScheduler", schedulers, self.optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch in each schedule."""
        for one in self._schedulers:
            one.step()
        self._last_lr = self._rates()
