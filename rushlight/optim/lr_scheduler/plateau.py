"""A schedule that depends on a metric, such as the loss."""

from __future__ import annotations

import warnings
from math import inf
from typing import Any

from rushlight.base.errors import runtime_error, value_error
from rushlight.optim.lr_scheduler.base import EPOCH, LRScheduler, checked, set_value
from rushlight.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """lr <- max(factor lr, min_lr) when the metric has not become better for more than `patience` epochs.

    Better means lower (higher with mode="max") by `threshold`, a fraction of the best value ("rel") or a difference
    ("abs"). In the `cooldown` epochs after a change, no epoch is counted. A change of less than `eps` is not made.
    ValueError for factor >= 1 or an unknown mode.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    >>> scheduler.step(0.5); scheduler.step(0.5); scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: list[float] | float = 0, eps: float = 1e-8,
    ):  # fmt: skip
        if factor >= 1.0:
            raise value_error("Factor should be < 1.0.", factor=factor)
        self.factor, self.optimizer, count = factor, checked(optimizer), len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        if len(self.min_lrs) != count:
            raise value_error(f"expected {count} min_lrs, got {len(self.min_lrs)}")
        if mode not in ("min", "max"):
            raise value_error(f"mode {mode} is unknown!", "use 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise value_error(f"threshold mode {threshold_mode} is unknown!", "use 'rel' or 'abs'")
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = inf if mode == "min" else -inf
        self.last_epoch, self._last_lr = 0, self._rates()
        self._reset()

    def _reset(self) -> None:
        """Forget all metrics."""
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record the epoch's metric, a number or a 0-d tensor, and lower the rates after too many bad epochs."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(self.min_lrs) < len(groups):  # groups have been added
            if self.default_min_lr is None:
                what = (
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer."
                )
                raise runtime_error(what, "set scheduler.min_lrs to a list with one for each group")
            self.min_lrs = [self.default_min_lr] * len(groups)  # type: ignore[list-item]
        for group, low in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                set_value(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs are not counted yet."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        """Whether metric `a` is better than the best by the threshold."""
        lower = self.mode == "min"
        if self.threshold_mode == "rel":
            return a < best * (1.0 - self.threshold) if lower else a > best * (self.threshold + 1.0)
        return a < best - self.threshold if lower else a > best + self.threshold
