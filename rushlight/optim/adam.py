"""Adam and AdamW."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.creation.factories import zeros_like
from rushlight.optim.checks import check_fused, check_tensor_settings
from rushlight.optim.elementwise import Elementwise
from rushlight.optim.optimizer import Group, Params, State, new_step, settings


def adam(
    p, g, exp_avg, exp_avg_sq, max_exp_avg_sq, /, step, lr, betas, eps, weight_decay, amsgrad, maximize,
    decoupled_weight_decay,
):  # fmt: skip
    if maximize:
        g = -g
    if weight_decay:
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
    exp_avg = exp_avg + (1 - betas[0]) * (g - exp_avg)
    exp_avg_sq = betas[1] * exp_avg_sq + (1 - betas[1]) * (g * g)
    second = exp_avg_sq
    if amsgrad:
        second = max_exp_avg_sq = maximum(max_exp_avg_sq, exp_avg_sq)
    scale = sqrt(second) / (1 - betas[1] ** step) ** 0.5 + eps
    return p - lr / (1 - betas[0] ** step) * (exp_avg / scale), exp_avg, exp_avg_sq, max_exp_avg_sq


class Adam(Elementwise):
    """m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2,
    p <- p - lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps).

    `weight_decay` adds weight_decay p to g, or with `decoupled_weight_decay` shrinks p by lr weight_decay beforehand;
    `amsgrad` uses the largest v so far; `maximize` ascends. `params`: tensors, dicts (groups with settings of their
    own), or (name, tensor) pairs. `foreach`, `fused` and `capturable` choose between torch's kernels and have no effect
    here; with `differentiable` a step can be differentiated. ValueError for settings out of range. D. P. Kingma, J. Ba,
    *Adam: a method for stochastic optimization*, 2015; S. J. Reddi et al., 2018 (AMSGrad).

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.Adam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _rule = staticmethod(adam)

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, betas: tuple = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):  # fmt: skip
        check_tensor_settings(lr, betas, foreach, capturable)
        super().__init__(params, settings(locals(), "lr betas eps weight_decay amsgrad maximize"))
        check_fused(fused, foreach, differentiable)

    def _new_state(self, p: Tensor, group: Group) -> State:
        step = new_step(fused=group["fused"])
        state = {"step": step, "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(p)
        return state


class AdamW(Adam):
    """p <- p (1 - lr weight_decay), then Adam's step: the decay shrinks the parameter itself.

    So the decay is not divided by sqrt(v). Arguments as for `Adam`; default `weight_decay`: 0.01. I. Loshchilov, F.
    Hutter, *Decoupled weight decay regularization*, 2019.

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.AdamW([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8990], requires_grad=True)
    """

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, betas: tuple = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip
