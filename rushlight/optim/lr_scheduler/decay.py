"""Schedules that follow a formula of the epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import cos, pi
from types import FunctionType
from typing import Any

from rushlight.base.errors import value_error
from rushlight.optim.lr_scheduler.base import Chainable
from rushlight.optim.optimizer import Optimizer


class LambdaLR(Chainable):
    """lr = initial_lr * lr_lambda(epoch). One function, or a list with one for each group.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=0.1)
    >>> scheduler = rushlight.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.05]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | list[Callable], last_epoch: int = -1):
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise value_error(
                f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}", "pass one function for each group"
            )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule; for callable objects their attributes, for functions None."""
        return super().state_dict() | {
            "lr_lambdas": [None if isinstance(f, FunctionType) else dict(f.__dict__) for f in self.lr_lambdas]
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned; the functions stay those given to the constructor."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for own, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if saved is not None:
                own.__dict__.update(saved)

    def _next(self) -> list[Any]:
        return [lr * f(self.last_epoch) for lr, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(LambdaLR):
    """lr <- lr * lr_lambda(epoch), from epoch 1 on. One function, or a list with one for each group.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for _ in range(3):
    ...     optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.125]
    """

    def _next(self) -> list[Any]:
        if self._is_initial:
            return self._rates()
        return [lr * f(self.last_epoch) for lr, f in zip(self._rates(), self.lr_lambdas)]


class StepLR(Chainable):
    """lr <- gamma lr every `step_size` epochs.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return self.gamma if epoch > 0 and epoch % self.step_size == 0 else 1.0

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self.gamma ** (self.last_epoch // self.step_size) for lr in self.base_lrs]


class MultiStepLR(Chainable):
    """lr <- gamma lr at each of the epochs `milestones`.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(4):
    ...     optimizer.step(); scheduler.step(); rates += scheduler.get_last_lr()
    >>> rates
    [1.0, 0.5, 0.5, 0.25, 0.25]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return self.gamma ** self.milestones[epoch]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = sum(n for epoch, n in self.milestones.items() if epoch <= self.last_epoch)
        return [lr * self.gamma**passed for lr in self.base_lrs]


class ExponentialLR(Chainable):
    """lr <- gamma lr every epoch.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(3):
    ...     optimizer.step(); scheduler.step()
    >>> scheduler.get_last_lr()
    [0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return 1.0 if self._is_initial else self.gamma

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * self.gamma**self.last_epoch for lr in self.base_lrs]


class ConstantLR(Chainable):
    """lr = factor initial_lr until epoch `total_iters`, then initial_lr. ValueError unless 0 <= factor <= 1.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(3):
    ...     optimizer.step(); scheduler.step(); rates += scheduler.get_last_lr()
    >>> rates
    [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1.0:
            raise value_error("Constant multiplicative factor expected to be between 0 and 1.", factor=factor)
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.factor
        return 1.0 / self.factor if epoch == self.total_iters else 1.0

    def _get_closed_form_lr(self) -> list[Any]:
        return [lr * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)) for lr in self.base_lrs]


class LinearLR(Chainable):
    """lr = initial_lr (start_factor + (end_factor - start_factor) epoch / total_iters), then end_factor initial_lr.

    ValueError unless 0 < start_factor <= 1 and 0 <= end_factor <= 1.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> optimizer.step(); scheduler.step(); scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ):  # fmt: skip
        if not 0 < start_factor <= 1.0:
            raise value_error(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.",
                start_factor=start_factor,
            )
        if not 0 <= end_factor <= 1.0:
            raise value_error("Ending multiplicative factor expected to be between 0 and 1.", end_factor=end_factor)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.start_factor
        if self._is_initial or epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (epoch - 1) * rise)

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * (self.start_factor + (self.end_factor - self.start_factor) * done) for lr in self.base_lrs]


class PolynomialLR(Chainable):
    """lr = initial_lr (1 - epoch / total_iters)^power, then 0.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2, power=2.0)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(3):
    ...     optimizer.step(); scheduler.step(); rates += scheduler.get_last_lr()
    >>> rates
    [1.0, 0.25, 0.0, 0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        if self._is_initial or epoch > self.total_iters:
            return 1.0
        return ((1.0 - epoch / self.total_iters) / (1.0 - (epoch - 1) / self.total_iters)) ** self.power

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [lr * left**self.power for lr in self.base_lrs]


class CosineAnnealingLR(Chainable):
    """lr = eta_min + (initial_lr - eta_min) (1 + cos(pi epoch / T_max)) / 2: down in T_max epochs, and up again.

    I. Loshchilov, F. Hutter, *SGDR*, 2017 (without the restarts).

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> optimizer.step(); scheduler.step(); round(scheduler.get_last_lr()[0], 6)
    0.5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _next(self) -> list[Any]:
        epoch, T, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial or epoch == 0:
            return self._rates()
        if self._step_count == 1:
            return self._get_closed_form_lr()
        # the rate was at its minimum: the quotient below would be 0 / 0
        if (epoch - 1 - T) % (2 * T) == 0:
            return [lr + (base - low) * (1 - cos(pi / T)) / 2 for base, lr in zip(self.base_lrs, self._rates())]
        quotient = (1 + cos(pi * epoch / T)) / (1 + cos(pi * (epoch - 1) / T))
        return [quotient * (lr - low) + low for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        height = (1 + cos(pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]
