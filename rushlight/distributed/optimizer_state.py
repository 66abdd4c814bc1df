"""The state of an optimizer by the names of the parameters, divided over the ranks or whole."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.distributed.pieces import piece_of
from rushlight.distributed.tensor import divided
from rushlight.nn import Module

PREFIX = "_fsdp_wrapped_module."  # part of the names of parameters inside FullyShardedDataParallel


def clean(name: str) -> str:
    """The name of a parameter without the wrappers' prefixes."""
    name = name.replace(PREFIX, "")
    return name.removeprefix("module.").removeprefix("_orig_mod.")


def named_state(model: Module, optimizer: Any, whole: bool) -> dict[str, Any]:
    """{"state": {name: state}, "param_groups": [...]}. All ranks call this."""
    names = {id(p): clean(name) for name, p in model.named_parameters()}
    state: dict[str, Any] = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            own = optimizer.state.get(p, {})
            state[names[id(p)]] = {k: like(p, v, whole) for k, v in own.items()}
    groups = [{**group, "params": [names[id(p)] for p in group["params"]]} for group in optimizer.param_groups]
    return {"state": state, "param_groups": groups}


def like(parameter: Tensor, value: Any, whole: bool) -> Any:
    """A value of the state of a parameter: whole, or divided like the parameter."""
    piece = piece_of(parameter)
    if piece is None or not isinstance(value, Tensor):
        return value
    if value._array.shape != parameter._array.shape:
        return value
    if whole:
        return piece.gathered(value._array)
    return divided(value.detach(), piece)


def numbered_state(model: Module, optimizer: Any, named: dict[str, Any]) -> dict[str, Any]:
    """The argument of the optimizer's load_state_dict, from the result of `named_state`. `named` may contain parameters
    of other optimizers, and its groups may be in another order."""
    names = {id(p): clean(name) for name, p in model.named_parameters()}
    saved = {name: group for group in named["param_groups"] for name in group["params"]}
    state: dict[int, Any] = {}
    groups, number = [], 0
    for group in optimizer.param_groups:
        first = number
        for p in group["params"]:
            if own := named["state"].get(names[id(p)]):
                state[number] = {k: part_of(p, v) for k, v in own.items()}
            number += 1
        settings = next((saved[n] for p in group["params"] if (n := names[id(p)]) in saved), group)
        groups.append({**settings, "params": list(range(first, number))})
    return {"state": state, "param_groups": groups}


def part_of(parameter: Tensor, value: Any) -> Any:
    """The rows of a state tensor that belong to this rank's rows of the parameter."""
    piece = piece_of(parameter)
    if piece is None or not isinstance(value, Tensor) or piece_of(value) is not None:
        return value
    return piece.part(value) if tuple(value.shape) == piece.shape else value
