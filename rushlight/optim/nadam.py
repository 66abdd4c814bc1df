"""NAdam: Adam with Nesterov's momentum."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.creation.factories import ones_like, zeros_like
from rushlight.optim.elementwise import Elementwise
from rushlight.optim.optimizer import Group, Params, State, new_step, settings


def nadam(
    p, g, exp_avg, exp_avg_sq, /, step, mu_product, lr, betas, eps, weight_decay, momentum_decay,
    decoupled_weight_decay, maximize,
):  # fmt: skip
    if maximize:
        g = -g
    if weight_decay:
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
    mu = betas[0] * (1 - 0.5 * 0.96 ** (step * momentum_decay))
    mu_next = betas[0] * (1 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
    mu_product = mu_product * mu
    exp_avg = exp_avg + (1 - betas[0]) * (g - exp_avg)
    exp_avg_sq = betas[1] * exp_avg_sq + (1 - betas[1]) * (g * g)
    scale = sqrt(exp_avg_sq / (1 - betas[1] ** step)) + eps
    p = p - lr * (1 - mu) / (1 - mu_product) * (g / scale)
    p = p - lr * mu_next / (1 - mu_product * mu_next) * (exp_avg / scale)
    return p, exp_avg, exp_avg_sq, mu_product


class NAdam(Elementwise):
    """Adam that looks a step ahead: with mu_t = b1 (1 - 0.96^(t momentum_decay) / 2) and M_t = mu_1 ... mu_t,

        p <- p - lr (mu_(t+1) m / (1 - M_(t+1)) + (1 - mu_t) g / (1 - M_t)) / (sqrt(v / (1 - b2^t)) + eps).

    `weight_decay` adds weight_decay p to g, or with `decoupled_weight_decay` shrinks p by lr weight_decay beforehand;
    `maximize` ascends. `foreach` and `capturable` choose between torch's kernels and have no effect here. ValueError
    for settings out of range. T. Dozat, *Incorporating Nesterov momentum into Adam*, 2016.

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8944], requires_grad=True)
    """

    _rule = staticmethod(nadam)

    def __init__(
        self, params: Params, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        super().__init__(
            params, settings(locals(), "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize")
        )

    def _new_state(self, p: Tensor, group: Group) -> State:
        step = new_step()
        return {"step": step, "mu_product": ones_like(step), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}
