"""Muon: momentum, orthogonalized."""

from __future__ import annotations

from math import sqrt
from typing import Any

from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.core.views import assign
from rushlight.creation.factories import zeros_like
from rushlight.optim.checks import check_lr, check_numbers
from rushlight.optim.optimizer import Group, Params, PerParameter, State, settings

# How the learning rate grows with the shape (n, m) of a matrix.
ADJUSTMENTS = {
    None: lambda n, m: sqrt(max(1, n / m)),
    "original": lambda n, m: sqrt(max(1, n / m)),
    "match_rms_adamw": lambda n, m: 0.2 * sqrt(max(n, m)),
    "spectral_unclamped": lambda n, m: sqrt(n / m),
}


class Muon(PerParameter):
    """b <- momentum b + (1 - momentum) g,  p <- p (1 - lr weight_decay) - lr' orthogonal(b).

    For the matrices of hidden layers only; use AdamW for the rest. orthogonal(b) is near U V^T, where b = U S V^T, by
    `ns_steps` Newton-Schulz steps; `nesterov` uses momentum b + (1 - momentum) g in place of b. lr' is lr sqrt(max(1, n
    / m)), or lr 0.2 sqrt(max(n, m)) with `adjust_lr_fn="match_rms_adamw"`, or lr sqrt(n / m) with
    "spectral_unclamped" (torch 2.15). torch computes these steps in bfloat16,
    rushlight in the parameter's dtype, so results differ by about 1 %. ValueError for settings out of range and for
    parameters that are not matrices, RuntimeError for complex ones. K. Jordan et al., *Muon*, 2024.

    >>> w = rushlight.eye(2, requires_grad=True)
    >>> optimizer = rushlight.optim.Muon([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> bool(w[0, 0] < 0.95)
    True
    """

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ):  # fmt: skip
        defaults = settings(locals())
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not momentum >= 0.0:
            raise value_error(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise value_error(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in ADJUSTMENTS:
            raise value_error(
                f"Adjust learning rate function {adjust_lr_fn} is not supported",
                "use 'original', 'match_rms_adamw' or 'spectral_unclamped'",
            )
        super().__init__(params, defaults)

    def _check_parameter(self, p: Any) -> None:
        super()._check_parameter(p)
        if p.dim() != 2:
            raise value_error(
                f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}",
                "optimize the others with AdamW",
            )

    def _new_state(self, p: Tensor, group: Group) -> State:
        if p.is_complex():
            raise runtime_error("Muon does not support complex parameters", "use AdamW")
        return {"momentum_buffer": zeros_like(p)}

    def _update(self, p: Tensor, g: Tensor, state: State, group: Group) -> None:
        check_numbers(group, ("momentum", "lr", "weight_decay"))
        momentum, lr = group["momentum"], group["lr"]
        b = assign(state["momentum_buffer"], state["momentum_buffer"] * momentum + (1 - momentum) * g)
        direction = momentum * b + (1 - momentum) * g if group["nesterov"] else b
        u = orthogonal(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        change = u * (lr * ADJUSTMENTS[group["adjust_lr_fn"]](*p.shape))
        assign(p, p * (1 - lr * group["weight_decay"]) - change)


def orthogonal(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """The nearest semi-orthogonal matrix, roughly: x <- a x + (b x x^T + c (x x^T)^2) x, from x / |x|.

    All singular values of the result are near 1 (0.7 to 1.2 with torch's coefficients)."""
    if steps >= 100:
        raise value_error("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise value_error("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = x.mT if tall else x  # makes x x^T the smaller of both products
    x = x / (x * x).sum().sqrt().clamp_min(eps)
    for _ in range(steps):
        square = x @ x.mT
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.mT if tall else x
