"""Private helpers of torch.optim.optimizer, for optimizers that were copied out of torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops.grad_mode import set_grad_enabled


def _use_grad_for_differentiable(func: Callable) -> Callable:
    """A decorator of `step`: it records ops only if the optimizer's default `differentiable` is true."""

    @wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """The number in a tensor; other values unchanged."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element as a 0-d tensor; other values unchanged."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _stack_if_compiling(x: Any) -> Any:
    """x itself; only torch's compiler stacks tensors."""
    return x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace the complex tensors in these lists by pairs of real numbers."""
    from rushlight.ops.math.complex import view_as_real  # not loaded by `import rushlight`

    for i, p in enumerate(params):
        if p.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = view_as_real(tensors[i])


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(fused, foreach): whether torch's fused and list-wise forms can be used. On a CPU, `foreach` is never used."""
    fused = use_fused and not differentiable and all(p is None or p.is_floating_point() for p in params)
    return fused, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices whose steps torch can capture; without the CPU."""
    return ["cuda", "xpu", "hpu", "privateuseone", *["xla"] * supports_xla]
