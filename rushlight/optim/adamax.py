"""Adamax."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.optim.elementwise import Elementwise
from rushlight.optim.optimizer import Params, settings


def adamax(p, g, exp_avg, exp_inf, /, step, lr, betas, eps, weight_decay, maximize):
    if maximize:
        g = -g
    if weight_decay:
        g = g + weight_decay * p
    exp_avg = exp_avg + (1 - betas[0]) * (g - exp_avg)
    exp_inf = maximum(betas[1] * exp_inf, abs(g) + eps)
    return p - lr / (1 - betas[0] ** step) * (exp_avg / exp_inf), exp_avg, exp_inf


class Adamax(Elementwise):
    """m <- b1 m + (1 - b1) g,  u <- max(b2 u, |g| + eps),  p <- p - lr / (1 - b1^t) m / u.

    Adam with the maximum norm in place of the second moment. `weight_decay` adds weight_decay p to g; `maximize`
    ascends. `foreach` and `capturable` choose between torch's kernels and have no effect here. ValueError for settings
    out of range. D. P. Kingma, J. Ba, *Adam: a method for stochastic optimization*, 2015, section 7.

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.Adamax([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _rule = staticmethod(adamax)

    def __init__(
        self, params: Params, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ):  # fmt: skip
        super().__init__(params, settings(locals()))
