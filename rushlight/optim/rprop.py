"""Resilient backpropagation."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import full_like, zeros_like
from rushlight.optim.elementwise import Elementwise, plain
from rushlight.optim.optimizer import Group, Params, State, new_step, settings


def rprop(p, g, prev, step_size, /, step, etas, step_sizes, maximize):
    if maximize:
        g = -g
    agree = sign(g * prev)  # 1: the same direction as before; -1: the opposite
    factor = 1 + (etas[1] - 1) * clamp_min(agree, 0) + (etas[0] - 1) * clamp_min(-agree, 0)
    step_size = clamp_max(clamp_min(factor * step_size, step_sizes[0]), step_sizes[1])
    g = where(agree < 0, 0, g)  # wait one step after a turn
    return p - sign(g) * step_size, g, step_size


class Rprop(Elementwise):
    """p <- p - sign(g) s. The step size s of an element is multiplied by etas[1] while its gradient keeps its sign,
    else by etas[0].

    s starts at lr and stays within `step_sizes`. For whole data sets, not batches. `maximize` ascends. `foreach` and
    `capturable` choose between torch's kernels and have no effect here. ValueError for settings out of range. M.
    Riedmiller, H. Braun, *A direct adaptive method for faster backpropagation learning*, 1993.

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.Rprop([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    _rule = staticmethod(rprop)

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise value_error(f"Invalid eta values: {etas[0]}, {etas[1]}", "use 0 < etas[0] < 1 < etas[1]")
        super().__init__(params, settings(locals(), "lr etas step_sizes foreach maximize differentiable"))

    def _new_state(self, p: Tensor, group: Group) -> State:
        lr = plain(group["lr"])
        return {
            "step": new_step(),
            "prev": zeros_like(p),
            "step_size": full_like(p, complex(lr, lr) if p.is_complex() else lr),
        }
