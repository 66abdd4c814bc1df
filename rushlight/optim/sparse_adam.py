"""Adam for sparse gradients."""

# ruff: noqa: F821  (names in a rule are ops)
from __future__ import annotations

from typing import Any

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.optim.elementwise import Elementwise
from rushlight.optim.optimizer import Group, Params, settings


def sparse_adam(p, g, exp_avg, exp_avg_sq, /, step, lr, betas, eps, maximize):
    if maximize:
        g = -g
    exp_avg = exp_avg + (1 - betas[0]) * (g - exp_avg)
    exp_avg_sq = exp_avg_sq + (1 - betas[1]) * (g * g - exp_avg_sq)
    size = lr * (1 - betas[1] ** step) ** 0.5 / (1 - betas[0] ** step)
    return p - size * (exp_avg / (sqrt(exp_avg_sq) + eps)), exp_avg, exp_avg_sq


class SparseAdam(Elementwise):
    """Adam for the rows that a sparse gradient stores; other rows of p, m and v do not change.

    m <- b1 m + (1 - b1) g,  v <- b2 v + (1 - b2) g^2,  p <- p - lr sqrt(1 - b2^t) / (1 - b1^t) m /
    (sqrt(v) + eps), with t counted for the whole parameter. For tables of `nn.Embedding(..., sparse=True)`. ValueError
    for settings out of range and for sparse or complex parameters, RuntimeError for a dense gradient.

    >>> table = rushlight.nn.Embedding(3, 1, sparse=True, _weight=rushlight.ones(3, 1))
    >>> optimizer = rushlight.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(rushlight.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> table.weight.flatten()
    tensor([1.0000, 0.9000, 1.0000], grad_fn=<ViewBackward0>)
    """

    _rule = staticmethod(sparse_adam)
    _sparse = True

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, betas: tuple = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ):  # fmt: skip
        if not lr:
            raise value_error("Invalid learning rate: 0", "use a number > 0")
        if not eps > 0:
            raise value_error(f"Invalid epsilon value: {eps}", "use eps > 0")
        super().__init__(params, settings(locals()))
        for i, group in enumerate(self.param_groups):
            for j, p in enumerate(group["params"]):
                if p.is_sparse:
                    raise value_error(
                        f"Sparse params at indices [[{i}, {j}]]: SparseAdam requires dense parameter tensors"
                    )
                if p.is_complex():
                    raise value_error(
                        f"Complex params at indices [[{i}, {j}]]: SparseAdam does not support complex parameters"
                    )

    def _update_group(self, params: list[Any], group: Group) -> None:
        if not all(p._grad.is_sparse for p in params):
            raise runtime_error(
                "SparseAdam does not support dense gradients, please consider Adam instead",
                "or create the embedding with sparse=True; in a compiled step gradients are dense",
            )
        super()._update_group(params, group)
