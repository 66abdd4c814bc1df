"""Schedules that rise and fall: warm restarts, cycles, one cycle."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, floor, log, pi, prod
from types import FunctionType
from typing import Any

from rushlight.base.errors import value_error
from rushlight.optim.lr_scheduler.base import Chainable, checked, for_each_group, set_value
from rushlight.optim.optimizer import Optimizer


class CosineAnnealingWarmRestarts(Chainable):
    """lr = eta_min + (initial_lr - eta_min) (1 + cos(pi t / T)) / 2, t the epochs since the last start, T the fall's
    length.

    The first fall takes T = T_0 epochs; each fall is T_mult times as long as the fall before it. `step(epoch)` takes
    fractions of epochs too. ValueError unless T_0 > 0 and T_mult >= 1 are integers. I. Loshchilov, F. Hutter, *SGDR:
    stochastic gradient descent with warm restarts*, 2017.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(6):
    ...     optimizer.step(); scheduler.step(); rates += scheduler.get_last_lr()
    >>> [round(rate, 2) for rate in rates]
    [1.0, 0.5, 1.0, 0.85, 0.5, 0.15, 1.0]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise value_error(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise value_error(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise value_error(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def _next(self) -> list[Any]:
        height = (1 + cos(pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (lr - self.eta_min) * height for lr in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to `epoch`, which may be a fraction. ValueError for a negative epoch."""
        if epoch is not None and epoch < 0:
            raise value_error(f"Expected non-negative epoch, but got {epoch}")
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        else:
            self.T_cur, self.T_i = self._place(epoch)
        self.last_epoch = floor(epoch)
        self._get_lr_called_within_step = True
        try:
            self._set(self.get_lr())
        finally:
            self._get_lr_called_within_step = False

    def _place(self, epoch: float) -> tuple[float, int]:
        """(epochs since the last restart, length of this cycle)."""
        if epoch < self.T_0:
            return epoch, self.T_0
        if self.T_mult == 1:
            return epoch % self.T_0, self.T_0
        n = int(log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        start = self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
        return epoch - start, self.T_0 * self.T_mult**n


class WithMomentum(Chainable):
    """A schedule that may change the momentum opposite to the learning rate: "momentum", or the first of "betas"."""

    def _check_momentum(self) -> None:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise value_error(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
                "pass cycle_momentum=False",
            )
        self.use_beta1 = "betas" in defaults

    def _start_momentum(self, largest: list[float], smallest: list[float]) -> None:
        for group, high, low in zip(self.optimizer.param_groups, largest, smallest):
            self._set_momentum(group, high)
            group["max_momentum"], group["base_momentum"] = high, low

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(WithMomentum):
    """lr = base_lr + (max_lr - base_lr) h: h goes from 0 to 1 in `step_size_up` batches, back to 0 in `step_size_down`,
    and so on.

    The height may shrink: `mode` is "triangular" (constant height), "triangular2" (halved each cycle) or "exp_range"
    (gamma^batch); or `scale_fn` computes the height from the cycle or, with `scale_mode="iterations"`, from the batch.
    With `cycle_momentum` the momentum goes from max_momentum down to base_momentum meanwhile. ValueError for an unknown
    mode, or an optimizer without momentum. L. N. Smith, *Cyclical learning rates for training neural networks*, 2017.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0, momentum=0.9)
    >>> scheduler = rushlight.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(5):
    ...     optimizer.step(); scheduler.step(); rates += scheduler.get_last_lr()
    >>> rates
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float], step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch: int = -1,
    ):  # fmt: skip
        self.optimizer = checked(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise value_error(
                "mode is invalid and scale_fn is None", "use 'triangular', 'triangular2' or 'exp_range'", mode=mode
            )
        low = for_each_group("base_lr", base_lr, optimizer)
        self.max_lrs = for_each_group("max_lr", max_lr, optimizer)
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum()
            self.base_momentums = for_each_group("base_momentum", base_momentum, optimizer)
            self.max_momentums = for_each_group("max_momentum", max_momentum, optimizer)
        if last_epoch == -1:  # after all checks: an invalid schedule changes no group
            for group, lr in zip(optimizer.param_groups, low):
                set_value(group, "lr", lr)
            if cycle_momentum:
                self._start_momentum(self.max_momentums, self.base_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = low

    def scale_fn(self, x: float) -> float:
        """The height of cycle (or batch) x, relative to the first."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {
            "triangular": lambda: 1.0,
            "triangular2": lambda: 1 / 2.0 ** (x - 1),
            "exp_range": lambda: self.gamma**x,
        }[self.mode]()

    def _next(self) -> list[Any]:
        cycle = floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        slope = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = slope * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """The state of the schedule. Of `scale_fn`, only the attributes of an object are saved; a function is not."""
        own = self._scale_fn_custom
        saved = None if own is None or isinstance(own, FunctionType) else dict(own.__dict__)
        return super().state_dict() | {"_scale_fn_custom": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict()` returned; the function stays the one given to the constructor."""
        saved = state_dict.get("_scale_fn_custom")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if saved is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(saved)


class OneCycleLR(WithMomentum):
    """lr goes from max_lr / div_factor up to max_lr, then down to max_lr / div_factor / final_div_factor; once.

    lr rises for the fraction `pct_start` of the steps (`total_steps`, or epochs * steps_per_epoch), then falls.
    `three_phase`: it falls back to the initial value in the same number of steps, and to the final value in the
    remaining steps. The shape is a cosine, or a line with `anneal_strategy="linear"`. With `cycle_momentum` the
    momentum moves in the opposite direction. ValueError for settings out of range, and for a step after the last. L. N.
    Smith, N. Topin, *Super-convergence*, 2018.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0, momentum=0.9)
    >>> scheduler = rushlight.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=5, pct_start=0.4)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(4):
    ...     optimizer.step(); scheduler.step(); rates += scheduler.get_last_lr()
    >>> [round(rate, 3) for rate in rates]
    [0.04, 1.0, 0.75, 0.25, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ):  # fmt: skip
        self.optimizer = checked(optimizer)
        self.total_steps = length(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise value_error(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise value_error(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = for_each_group("max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, max_lrs):
                start = high / div_factor
                group.update(initial_lr=start, max_lr=high, min_lr=start / final_div_factor)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum()
            if last_epoch == -1:
                self._start_momentum(
                    for_each_group("max_momentum", max_momentum, optimizer),
                    for_each_group("base_momentum", base_momentum, optimizer),
                )
        super().__init__(optimizer, last_epoch)

    def _next(self) -> list[Any]:
        if self.last_epoch > self.total_steps:
            raise value_error(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}",
                "set total_steps to the number of scheduler.step() calls",
            )
        start = 0.0
        for phase in self._schedule_phases:
            if self.last_epoch <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            start = self._schedule_phases[-2]["end_step"]
        part = (self.last_epoch - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                self._set_momentum(
                    group, self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                )
        return rates

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (cos(pi * part) + 1)


def length(total: int | None, epochs: int | None, steps: int | None) -> int:
    """The number of steps, from `total_steps`, or from epochs and steps per epoch."""
    if total is None and (epochs is None or steps is None):
        raise value_error("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given: dict[str, Any] = (
        {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": steps}
    )
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise value_error(f"Expected positive integer {name}, but got {value}")
    return prod(given.values())


def phases(total: int, part: float, three: bool) -> list[dict[str, Any]]:
    """The phases of one cycle: the last step of each, and the names of its first and last settings."""

    def phase(end: float, first: str, last: str, momentum: str, then: str) -> dict[str, Any]:
        return {"end_step": end, "start_lr": first, "end_lr": last, "start_momentum": momentum, "end_momentum": then}

    rise = phase(float(part * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three:
        return [rise, phase(total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    return [
        rise,
        phase(float(2 * part * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
        phase(total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
    ]
