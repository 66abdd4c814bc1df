"""What constructors refuse, in torch's words."""
from __future__ import annotations

from typing import Any

from rushlight.errors import explain
from rushlight.tensor import Tensor


def check_lr(lr: Any, message: str = "Invalid learning rate: {}") -> None:
    """ValueError for a learning rate below 0, or a tensor of several."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(explain("Tensor lr must be 1-element", "give groups of parameters an lr each",
                                 shape=tuple(lr.shape)))
    if not lr >= 0.0:
        raise ValueError(explain(message.format(lr), "give a number >= 0"))


def not_negative(**settings: Any) -> None:
    """ValueError for the first setting below 0. `eps` is called epsilon."""
    for name, value in settings.items():
        if not value >= 0.0:
            word = "epsilon" if name == "eps" else name
            raise ValueError(explain(f"Invalid {word} value: {value}", f"give {name} >= 0"))


def check_betas(betas: tuple) -> None:
    """ValueError unless both are in [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(explain(f"Invalid beta parameter at index {i}: {beta}", "give 0 <= beta < 1"))


def check_tensor_settings(lr: Any, betas: tuple, foreach: bool | None, capturable: bool) -> None:
    """ValueError for tensors as settings where torch does not take them."""
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
        raise ValueError(explain("betas must be either both floats or both Tensors"))
    for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
        if not isinstance(value, Tensor):
            continue
        if foreach and not capturable:
            raise ValueError(explain(f"{name} as a Tensor is not supported for capturable=False and foreach=True",
                                     "leave foreach away: it changes nothing here"))
        if value.numel() != 1:
            raise ValueError(explain(f"Tensor {name} must be 1-element", shape=tuple(value.shape)))


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """RuntimeError for choices that exclude each other."""
    if fused and differentiable:
        raise RuntimeError(explain("`fused` does not support `differentiable`"))
    if fused and foreach:
        raise RuntimeError(explain("`fused` and `foreach` cannot be `True` together."))
