"""Averaged stochastic gradient descent."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.creation.factories import full_like, ones_like, zeros_like
from rushlight.optim.elementwise import Elementwise, plain
from rushlight.optim.optimizer import Group, Params, State, new_step, settings


def asgd(p, g, ax, /, step, eta, mu, lr, lambd, alpha, t0, weight_decay, maximize):
    if maximize:
        g = -g
    if weight_decay:
        g = g + weight_decay * p
    p = p * (1 - lambd * eta) - eta * g
    ax = ax + mu * (p - ax)
    return p, ax, lr / (1 + lambd * lr * step) ** alpha, 1 / clamp_min(step - t0, 1)


class ASGD(Elementwise):
    """p <- (1 - lambd eta) p - eta g,  a <- a + mu (p - a), with

        eta = lr / (1 + lambd lr t)^alpha,  mu = 1 / max(1, t - t0).

    The average a is in the state as "ax". `weight_decay` adds weight_decay p to g; `maximize` ascends. `foreach` and
    `capturable` choose between torch's kernels and have no effect here. ValueError for settings out of range. B. T.
    Polyak, A. B. Juditsky, *Acceleration of stochastic approximation by averaging*, 1992.

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.ASGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    _rule = staticmethod(asgd)

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ):  # fmt: skip
        super().__init__(params, settings(locals()))

    def _new_state(self, p: Tensor, group: Group) -> State:
        step = new_step()
        return {"step": step, "eta": full_like(step, plain(group["lr"])), "mu": ones_like(step), "ax": zeros_like(p)}
