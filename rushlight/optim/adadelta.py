"""Adadelta."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.optim.elementwise import Elementwise
from rushlight.optim.optimizer import Params, settings


def adadelta(p, g, square_avg, acc_delta, /, step, lr, rho, eps, weight_decay, maximize):
    if maximize:
        g = -g
    if weight_decay:
        g = g + weight_decay * p
    square_avg = rho * square_avg + (1 - rho) * (g * g)
    delta = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * g
    return p - lr * delta, square_avg, rho * acc_delta + (1 - rho) * (delta * delta)


class Adadelta(Elementwise):
    """v <- rho v + (1 - rho) g^2,  d = sqrt(u + eps) / sqrt(v + eps) g,  u <- rho u + (1 - rho) d^2,  p <- p - lr d.

    `weight_decay` adds weight_decay p to g; `maximize` ascends. `foreach` and `capturable` choose between torch's
    kernels and have no effect here. ValueError for settings out of range. M. D. Zeiler, *ADADELTA*, 2012.

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.Adadelta([w])
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9968], requires_grad=True)
    """

    _rule = staticmethod(adadelta)

    def __init__(
        self, params: Params, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        if not 0.0 <= rho <= 1.0:
            raise value_error(f"Invalid rho value: {rho}", "use 0 <= rho <= 1")
        super().__init__(params, settings(locals(), "lr rho eps weight_decay maximize capturable"))
