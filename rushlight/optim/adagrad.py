"""Adagrad."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.creation.factories import full_like
from rushlight.optim.checks import check_fused
from rushlight.optim.elementwise import Elementwise
from rushlight.optim.optimizer import Group, Params, State, new_step, settings


def adagrad(p, g, sum, /, step, lr, lr_decay, weight_decay, eps, maximize):
    if maximize:
        g = -g
    if weight_decay:
        g = g + weight_decay * p
    sum = sum + g * g
    return p - lr / (1 + (step - 1) * lr_decay) * (g / (sqrt(sum) + eps)), sum


class Adagrad(Elementwise):
    """s <- s + g^2,  p <- p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps).

    s starts at `initial_accumulator_value`; it exists from the beginning. `weight_decay` adds weight_decay p to g.
    `foreach` and `fused` choose between torch's kernels and have no effect here. ValueError for settings out of range.
    J. Duchi, E. Hazan, Y. Singer, *Adaptive subgradient methods*, 2011.

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _rule = staticmethod(adagrad)
    _sparse = True

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        super().__init__(params, settings(locals(), "lr lr_decay eps weight_decay"))
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self._state_of(p, group)

    def _new_state(self, p: Tensor, group: Group) -> State:
        start = group["initial_accumulator_value"]
        return {
            "step": new_step(fused=group["fused"]),
            "sum": full_like(p, complex(start, start) if p.is_complex() else start),
        }

    def share_memory(self) -> None:
        """Nothing to do: state is shared by the threads of one process."""
