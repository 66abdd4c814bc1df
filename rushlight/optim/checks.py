"""Checks of the settings that an optimizer's constructor gets. The messages are torch's."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number, Real
from typing import Any

from rushlight.base.errors import runtime_error, type_error, value_error
from rushlight.core.tensor import Tensor

NOT_NEGATIVE = ("lr_decay", "eps", "momentum", "weight_decay", "initial_accumulator_value", "momentum_decay")


def check_settings(settings: dict[str, Any]) -> None:
    """ValueError for a setting out of its range. Only settings that mean the same in every optimizer are checked."""
    if "lr" in settings:
        check_lr(settings["lr"])
    for name in NOT_NEGATIVE:
        if name in settings:
            check_not_negative(name, settings[name])
    if "betas" in settings:
        check_betas(settings["betas"])


def check_lr(lr: Any, message: str = "Invalid learning rate: {}") -> None:
    """ValueError for a learning rate below 0, or for a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise value_error("Tensor lr must be 1-element", "use parameter groups, each with an lr", shape=tuple(lr.shape))
    a_number = isinstance(lr, (Real, Tensor))
    if not a_number:
        raise type_error(f"the learning rate must be a number, not {type(lr).__name__}")
    if not lr >= 0.0:
        raise value_error(message.format(lr), "use a number >= 0")


def check_not_negative(name: str, value: Any) -> None:
    """ValueError for a setting below 0. The message calls `eps` epsilon."""
    if not value >= 0.0:
        word = "epsilon" if name == "eps" else name
        raise value_error(f"Invalid {word} value: {value}", f"use {name} >= 0")


def check_betas(betas: tuple) -> None:
    """ValueError unless both betas are in [0, 1)."""
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise value_error(f"Invalid beta parameter at index {i}: {beta}", "use 0 <= beta < 1")


def check_tensor_settings(lr: Any, betas: tuple, foreach: bool | None, capturable: bool) -> None:
    """ValueError for a tensor as lr or beta where torch takes only floats."""
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
        raise value_error("betas must be either both floats or both Tensors")
    for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
        if not isinstance(value, Tensor):
            continue
        if foreach and not capturable:
            raise value_error(
                f"{name} as a Tensor is not supported for capturable=False and foreach=True",
                "omit foreach: it has no effect",
            )
        if value.numel() != 1:
            raise value_error(f"Tensor {name} must be 1-element", shape=tuple(value.shape))


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """RuntimeError if `fused` is combined with `differentiable` or `foreach`."""
    if fused and differentiable:
        raise runtime_error("`fused` does not support `differentiable`")
    if fused and foreach:
        raise runtime_error("`fused` and `foreach` cannot be `True` together.")


def check_numbers(group: dict, names: Sequence[str]) -> None:
    """TypeError for a setting of another type than a number, before a counter moves."""
    for name in names:
        if not isinstance(group[name], (Number, Tensor, tuple, list)):
            got = type(group[name]).__name__
            raise type_error(f"{name} must be a number, not {got}", f"{name}=0.1")
