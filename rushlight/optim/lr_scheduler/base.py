"""The base of all schedules: epochs, the groups' learning rates, saving."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from rushlight.base.errors import Suggesting, type_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.optim.optimizer import Optimizer

TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should "
    "call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will "
    "result in PyTorch skipping the first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
REPLACED = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, "
    "make sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please "
    "use `scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the "
    "closed form is used instead of the new chainable form, where available."
)
RESUMED = (
    "\nThis typically happens when:\n1. You're trying to resume training from a checkpoint but haven't properly "
    "loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


class LRScheduler(Suggesting):
    """lr <- get_lr() at each `step()`: the base of all schedules. `get_lr` gives the groups' rates at
    `self.last_epoch`.

    `last_epoch`: the epoch before the first; -1 begins a schedule and stores each group's rate as "initial_lr". For
    other values, the groups must have "initial_lr" (KeyError). TypeError if `optimizer` is not an Optimizer.

    >>> class Harmonic(rushlight.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base_lr / (1 + self.last_epoch) for base_lr in self.base_lrs]
    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = Harmonic(optimizer)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self.optimizer = checked(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    f"last_epoch >= 0.{RESUMED}"
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or to `epoch`, which torch deprecates) and set the groups' rates."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            replaced = "step" in vars(self.optimizer)
            warnings.warn(REPLACED if replaced else TOO_EARLY, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH, UserWarning, stacklevel=2)
        self._go_to(epoch)

    def _go_to(self, epoch: int | None) -> None:
        """`step` without its warnings."""
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = getattr(self, "_get_closed_form_lr", None)
            rates = self.get_lr() if epoch is None or closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates: Sequence[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates):
            set_value(group, "lr", lr)
        self._last_lr = self._rates()

    def _rates(self) -> list[Any]:
        """The groups' current rates."""
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def get_lr(self) -> list[Any]:
        """The rates at `last_epoch`; only `step` calls it."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The last rates that this schedule set, one for each group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule, in torch's format."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned, here or in torch."""
        self.__dict__.update(state_dict)


class Chainable(LRScheduler):
    """A schedule that computes the next rates from the current rates, so that several schedules can act on one
    optimizer."""

    def get_lr(self) -> list[Any]:
        """The rates at `last_epoch`; only `step` calls it."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        return self._next()

    def _next(self) -> list[Any]:
        factor = self._factor(self.last_epoch)
        return [lr * factor for lr in self._rates()]

    def _factor(self, epoch: int) -> float:
        """The factor for the rates of the previous epoch."""
        raise NotImplementedError


def checked(optimizer: Any) -> Optimizer:
    """The optimizer itself. TypeError for anything else."""
    if not isinstance(optimizer, Optimizer):
        raise type_error(
            f"{type(optimizer).__name__} is not an Optimizer",
            "pass the optimizer whose learning rates the schedule sets",
        )
    return optimizer


def copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def set_value(group: dict[str, Any], name: str, value: Any) -> None:
    """A group's setting; a tensor stays the same object and gets the number, so that recorded steps see it."""
    if isinstance(group[name], Tensor):
        group[name].fill_(value)
    else:
        group[name] = value


def for_each_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """One value for all groups, or a list with one for each; tensors are copied. ValueError for another length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise value_error(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}."
        )
    return [copied(v) for v in value]
