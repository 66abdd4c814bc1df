"""RMSprop."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.creation.factories import zeros_like
from rushlight.optim.checks import check_not_negative
from rushlight.optim.elementwise import Elementwise
from rushlight.optim.optimizer import Group, Params, State, new_step, settings


def rmsprop(
    p, g, square_avg, momentum_buffer, grad_avg, /, step, lr, alpha, eps, weight_decay, momentum, centered, maximize
):
    if maximize:
        g = -g
    if weight_decay:
        g = g + weight_decay * p
    square_avg = alpha * square_avg + (1 - alpha) * (g * g)
    if centered:
        grad_avg = grad_avg + (1 - alpha) * (g - grad_avg)
        change = g / (sqrt(square_avg - grad_avg * grad_avg) + eps)
    else:
        change = g / (sqrt(square_avg) + eps)
    if momentum:
        change = momentum_buffer = momentum * momentum_buffer + change
    return p - lr * change, square_avg, momentum_buffer, grad_avg


class RMSprop(Elementwise):
    """v <- alpha v + (1 - alpha) g^2,  p <- p - lr g / (sqrt(v) + eps).

    `centered` takes the mean of g into account: sqrt(v - m^2) with m <- alpha m + (1 - alpha) g. `momentum` accumulates
    the changes: b <- momentum b + g / (...), p <- p - lr b. `weight_decay` adds weight_decay p to g; `maximize`
    ascends. `foreach` and `capturable` choose between torch's kernels and have no effect here. ValueError for settings
    out of range. G. Hinton, lecture 6 of *Neural networks for machine learning*, 2012; A. Graves, 2013 (centered).

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.RMSprop([w], lr=0.01)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _rule = staticmethod(rmsprop)

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False, capturable: bool = False,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        check_not_negative("alpha", alpha)
        super().__init__(params, settings(locals(), "lr momentum alpha eps centered"))

    def _new_state(self, p: Tensor, group: Group) -> State:
        state = {"step": new_step(), "square_avg": zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)
        return state
