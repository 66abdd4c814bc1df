"""Averages of a model's parameters during training: stochastic weight averaging, exponential moving averages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain, groupby
from math import cos, pi
from typing import Any

from rushlight.base.dtypes import FLOATING
from rushlight.base.errors import assertion_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import tensor
from rushlight.nn import Module
from rushlight.nn.normalization import _BatchNorm
from rushlight.ops.grad_mode import no_grad
from rushlight.optim.lr_scheduler.base import Chainable, for_each_group
from rushlight.optim.optimizer import Optimizer

Average = Callable[[Tensor, Tensor, Any], Tensor]


def get_swa_avg_fn() -> Average:
    """(average, new, n) -> average + (new - average) / (n + 1): the mean of all.

    >>> mean = rushlight.optim.swa_utils.get_swa_avg_fn()
    >>> mean(rushlight.tensor([1.]), rushlight.tensor([4.]),
    ...     2)  # of 1 and 1 comes the average 1; now 4
    tensor([2.])
    """

    def mean(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return averaged + (current - averaged) / (num_averaged + 1)

    return mean


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """(average, new, n) -> decay average + (1 - decay) new. ValueError unless 0 <= decay <= 1.

    >>> moving = rushlight.optim.swa_utils.get_ema_avg_fn(decay=0.75)
    >>> moving(rushlight.tensor([1.]), rushlight.tensor([5.]), 2)
    tensor([2.])
    """
    if not 0.0 <= decay <= 1.0:
        raise value_error(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def moving(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return decay * averaged + (1 - decay) * current

    return moving


def for_lists(average: Average, weight: Callable[[Any], Any]) -> Callable:
    """The function for lists of tensors of one dtype, in place. `weight(n)`: the weight of the new tensors in
    floating-point averages."""

    @no_grad()
    def update(averaged: Iterable[Tensor], current: Iterable[Tensor], num_averaged: Any) -> None:
        for a, c in zip(averaged, current):
            if a.dtype.category >= FLOATING:
                a.lerp_(c, weight(num_averaged))
            else:
                a.copy_(average(a, c, num_averaged))

    return update


def get_swa_multi_avg_fn() -> Callable:
    """averages <- averages + (news - averages) / (n + 1): `get_swa_avg_fn` for lists of tensors, in place.

    >>> averages, news = [rushlight.tensor([1.]), rushlight.tensor([2.])], [rushlight.tensor([4.]),
    ...     rushlight.tensor([2.])]
    >>> rushlight.optim.swa_utils.get_swa_multi_avg_fn()(averages, news, 2)
    >>> averages
    [tensor([2.]), tensor([2.])]
    """
    return for_lists(get_swa_avg_fn(), lambda n: float(1 / (n + 1)))


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """averages <- decay averages + (1 - decay) news: `get_ema_avg_fn` for lists of tensors, in place.

    >>> averages, news = [rushlight.tensor([1.]), rushlight.tensor([2.])], [rushlight.tensor([5.]),
    ...     rushlight.tensor([2.])]
    >>> rushlight.optim.swa_utils.get_ema_multi_avg_fn(decay=0.75)(averages, news, 2)
    >>> averages
    [tensor([2.]), tensor([2.])]
    """
    return for_lists(get_ema_avg_fn(decay), lambda n: 1 - decay)


class AveragedModel(Module):
    """A copy of a model whose parameters are an average of the model's, taken at each `update_parameters(model)`.

    Default: the mean of all. `avg_fn(average, new, n)` returns the next average, `multi_avg_fn(averages, news, n)`
    writes it. Buffers are averaged too with `use_buffers` (whole numbers are then cut off towards 0), else copied. P.
    Izmailov et al., *Averaging weights leads to wider optima and better generalization*, 2018.

    >>> model = rushlight.nn.Linear(1, 1, bias=False)
    >>> average = rushlight.optim.swa_utils.AveragedModel(model)
    >>> for value in (1., 2., 6.):
    ...     _ = rushlight.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item(), average.n_averaged
    (3.0, tensor(3))
    """

    n_averaged: Tensor

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Average | None = None, multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ):  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise assertion_error("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The output of the averaged model."""
        return self.module(*args, **kwargs)

    def _tensors(self, model: Module) -> list[Tensor]:
        return list(chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters())

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Add the model's current parameters to the average."""
        pairs = list(zip(self._tensors(self.module), self._tensors(model)))
        if self.n_averaged.item() == 0:
            copy_all(pairs)
        elif self.multi_avg_fn:
            for _, group in groupby(sorted(pairs, key=dtype_of), dtype_of):
                averages, news = zip(*[(a.detach(), c.detach()) for a, c in group])
                self.multi_avg_fn(list(averages), list(news), self.n_averaged)
        else:
            average = self.avg_fn or get_swa_avg_fn()
            copy_all([(a, average(a.detach(), c.detach(), self.n_averaged)) for a, c in pairs])
        if not self.use_buffers:
            copy_all(list(zip(self.module.buffers(), model.buffers())))
        self.n_averaged += 1


def dtype_of(pair: tuple[Tensor, Tensor]) -> str:
    return str(pair[0].dtype)


def copy_all(pairs: list[tuple[Tensor, Tensor]]) -> None:
    for own, new in pairs:
        own.copy_(new.detach())


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute running_mean and running_var of each batch norm in the model, over all batches of a loader.

    If a batch is a list or tuple, the model gets its first element.

    >>> model = rushlight.nn.BatchNorm1d(1)
    >>> rushlight.optim.swa_utils.update_bn([rushlight.tensor([[0.], [2.]]), rushlight.tensor([[4.], [6.]])], model)
    >>> model.running_mean, model.running_var
    (tensor([3.]), tensor([2.]))
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    for m in norms:
        m.reset_running_stats()
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    training = model.training
    model.train()
    for m in norms:
        m.momentum = None  # None: the mean of all batches
    for batch in loader:
        input = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(input if device is None else input.to(device))
    for m, momentum in zip(norms, momenta):
        m.momentum = momentum
    model.train(training)


class SWALR(Chainable):
    """lr changes to `swa_lr` in `anneal_epochs`, along a cosine or, with anneal_strategy="linear", a line; then it is
    constant.

    ValueError for another strategy or a negative number of epochs.

    >>> optimizer = rushlight.optim.SGD([rushlight.zeros(1)], lr=1.0)
    >>> scheduler = rushlight.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(3):
    ...     optimizer.step(); scheduler.step(); rates += scheduler.get_last_lr()
    >>> rates
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10, anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):  # fmt: skip
        for group, lr in zip(optimizer.param_groups, for_each_group("swa_lr", swa_lr, optimizer)):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise value_error(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise value_error(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _done(self, step: int) -> float:
        """The fraction of the change that is done after a number of steps: 0 to 1."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - cos(pi * t)) / 2

    def _next(self) -> list[Any]:
        step = max(1, self._step_count - 1) if self.anneal_epochs == 0 else self._step_count - 1
        before, now = self._done(step - 1), self._done(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, goal = group["lr"], group["swa_lr"]
            start = goal if before == 1 else (lr - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates


__all__ = [
    "AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip
