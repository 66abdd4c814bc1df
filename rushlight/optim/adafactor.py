"""Adafactor: second moments of a matrix, estimated from second moments of its rows and columns."""

from __future__ import annotations

from rushlight.base.dtypes import finfo
from rushlight.base.errors import runtime_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.core.views import assign
from rushlight.creation.factories import zeros, zeros_like
from rushlight.optim.checks import check_lr, check_numbers
from rushlight.optim.optimizer import Group, Params, PerParameter, State, new_step, settings


class Adafactor(PerParameter):
    """p <- p - a u / max(1, rms(u) / d),  u = g / sqrt(v),  a = max(eps2, rms(p)) min(lr, 1 / sqrt(t)).

    For a matrix (the last two dimensions), v is estimated as r c / mean(r). r and c are running means of g^2 over
    columns and rows: r <- r + t^beta2_decay (mean(g^2) - r). So the state has n + m numbers instead of n m. v is at
    least eps1^2 (`eps = (eps1, eps2)`; None: the dtype's machine epsilon). `weight_decay` shrinks p by lr weight_decay
    beforehand; `maximize` ascends; `foreach` has no effect here. ValueError for settings out of range, RuntimeError for
    complex parameters. N. Shazeer, M. Stern, *Adafactor*, 2018.

    >>> w = rushlight.ones(2, 3, requires_grad=True)
    >>> optimizer = rushlight.optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w[0, 0].item()
    0.8999999761581421
    """

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        foreach: bool | None = None, maximize: bool = False,
    ):  # fmt: skip
        defaults = settings(locals())
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        for bad, what in (
            (beta2_decay > 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is not None and eps[0] < 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (eps[1] < 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (d < 1.0, f"Clipping threshold d should be >= 1 but is: {d}"),
            (weight_decay < 0.0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ):
            if bad:
                raise value_error(what)
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Group) -> State:
        if p.is_complex():
            raise runtime_error("Adafactor does not support complex parameters", "use Adam")
        if p.dim() < 2:
            return {"step": new_step(), "variance": zeros_like(p)}
        *rest, n, m = p.shape
        return {
            "step": new_step(),
            "row_var": zeros(*rest, n, 1, dtype=p.dtype),
            "col_var": zeros(*rest, 1, m, dtype=p.dtype),
        }

    def _update(self, p: Tensor, g: Tensor, state: State, group: Group) -> None:
        check_numbers(group, ("lr", "weight_decay", "d", "beta2_decay"))
        lr, (eps1, eps2) = group["lr"], group["eps"]
        eps1 = finfo(p.dtype).eps if eps1 is None else eps1
        g = -g if group["maximize"] else g
        step = assign(state["step"], state["step"] + 1).double()
        size = rms(p).clamp_min(eps2) * (step**-0.5).clamp_max(lr)
        if group["weight_decay"]:
            assign(p, p * (1 - lr * group["weight_decay"]))
        v = self._second_moment(g, state, step ** group["beta2_decay"], eps1)
        u = g * v.clamp_min(eps1 * eps1).rsqrt()
        assign(p, p - size / (rms(u) / group["d"]).clamp_min(1.0) * u)

    def _second_moment(self, g: Tensor, state: State, weight: Tensor, eps: float) -> Tensor:
        """The estimate of g^2 by its means over rows and columns. The running means are first updated with `weight`."""

        def moved(name: str, new: Tensor) -> Tensor:
            return assign(state[name], state[name] + weight * (new - state[name]))

        if g.dim() < 2:
            return moved("variance", g * g)
        rows = moved("row_var", (g * g).mean(-1, keepdim=True))  # (..., n, 1)
        columns = moved("col_var", (g * g).mean(-2, keepdim=True))  # (..., 1, m)
        return rows @ columns / rows.mean(-2, keepdim=True).clamp_min(eps)


def rms(x: Tensor) -> Tensor:
    """sqrt(mean(x^2)), 0-d."""
    return (x * x).mean().sqrt()
