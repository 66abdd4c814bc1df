"""RAdam: Adam whose step size is rectified while v is uncertain."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.optim.elementwise import Elementwise
from rushlight.optim.optimizer import Params, settings


def radam(p, g, exp_avg, exp_avg_sq, /, step, lr, betas, eps, weight_decay, decoupled_weight_decay, maximize):
    if maximize:
        g = -g
    if weight_decay:
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
    exp_avg = exp_avg + (1 - betas[0]) * (g - exp_avg)
    exp_avg_sq = betas[1] * exp_avg_sq + (1 - betas[1]) * (g * g)
    correction = 1 - betas[1] ** step
    longest = 2 / (1 - betas[1]) - 1  # the limit of `length`, in steps
    length = longest - 2 * step * betas[1] ** step / correction
    long = longest > 5  # if false, length > 5 never holds, and the divisor must only differ from 0
    rectified = (
        abs((length - 4) * (length - 2) * longest / ((longest - 4 * long) * (longest - 2 * long) * length)) ** 0.5
    )
    early = length <= 5  # then the divisor must only differ from 0; in float16, eps = 1e-8 is 0
    adaptive = (length > 5) * rectified * correction**0.5 / (sqrt(exp_avg_sq) + eps + early)
    return p - lr / (1 - betas[0] ** step) * (exp_avg * (adaptive + early)), exp_avg, exp_avg_sq


class RAdam(Elementwise):
    """Adam's step times r_t, once the variance of v is tractable (l_t > 5), and plain momentum before that:

        l_t = l - 2 t b2^t / (1 - b2^t),  l = 2 / (1 - b2) - 1,
        r_t = sqrt((l_t - 4) (l_t - 2) l / ((l - 4) (l - 2) l_t)).

    `weight_decay` adds weight_decay p to g, or with `decoupled_weight_decay` shrinks p by lr weight_decay beforehand;
    `maximize` ascends. `foreach` and `capturable` choose between torch's kernels and have no effect here. ValueError
    for settings out of range. L. Liu et al., *On the variance of the adaptive learning rate and beyond*, 2020.

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    _rule = staticmethod(radam)

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        super().__init__(params, settings(locals(), "lr betas eps weight_decay maximize foreach capturable"))
