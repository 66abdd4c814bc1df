"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from rushlight.base.errors import value_error
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import zeros_like
from rushlight.ops.grad_mode import no_grad
from rushlight.optim.checks import check_fused
from rushlight.optim.elementwise import Elementwise
from rushlight.optim.optimizer import Group, Params, State, settings


def sgd(p, g, momentum_buffer, /, lr, momentum, dampening, weight_decay, nesterov, maximize):
    if maximize:
        g = -g
    if weight_decay:
        g = g + weight_decay * p
    if momentum:
        momentum_buffer = momentum * momentum_buffer + ((1 - dampening) * g if dampening else g)
        g = g + momentum * momentum_buffer if nesterov else momentum_buffer
    return p - lr * g, momentum_buffer


class SGD(Elementwise):
    """p <- p - lr (g + weight_decay p); with momentum  b <- momentum b + (1 - dampening) g,  p <- p
    - lr b.

    `nesterov` uses g + momentum b in place of b; `maximize` ascends. The first b is g. `params`: tensors, dicts (groups
    with settings of their own), or (name, tensor) pairs. `foreach` and `fused` choose between torch's kernels and have
    no effect here; with `differentiable` a step can be differentiated. ValueError for settings out of range. I.
    Sutskever et al., *On the importance of initialization and momentum in deep learning*, 2013.

    >>> w = rushlight.tensor([1.], requires_grad=True)
    >>> optimizer = rushlight.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    _rule = staticmethod(sgd)
    _sparse = True

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise value_error(
                "Nesterov momentum requires a momentum and zero dampening", "use momentum > 0, and omit dampening"
            )
        super().__init__(params, settings(locals()))
        check_fused(fused, foreach, differentiable)

    def _sparse_rows(self, g: Any, group: Group) -> tuple[Any, ndarray]:
        # with momentum, all rows change
        return (..., g.to_dense()._array) if group["momentum"] else super()._sparse_rows(g, group)

    def _new_state(self, p: Tensor, group: Group) -> State:
        """The initial momentum buffer. With this buffer the first step uses the gradient itself, without dampening."""
        momentum, dampening = group["momentum"], group["dampening"]
        if not momentum:
            return {}
        if not dampening:
            return {"momentum_buffer": zeros_like(p)}
        with no_grad():
            g = p.grad.to_dense()  # type: ignore[union-attr]
            g = -g if group["maximize"] else g
            return {"momentum_buffer": (g + group["weight_decay"] * p) * (dampening / momentum)}
