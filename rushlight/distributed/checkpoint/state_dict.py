"""torch.distributed.checkpoint.state_dict: states of models and optimizers by the names of the
module inside wrappers, divided as they are or whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rushlight.creation.factories import zeros_like
from rushlight.distributed.optimizer_state import named_state, numbered_state
from rushlight.distributed.sharding import state_of_parts
from rushlight.nn import Module


@dataclass
class StateDictOptions:
    """`full_state_dict`: whole tensors instead of the parts of this rank."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False


def inner(model: Module) -> Module:
    """The module inside DDP and compile, whose names count."""
    for name in ("_orig_mod", "module"):
        if type(model).__name__ in ("DistributedDataParallel", "OptimizedModule"):
            model = model._modules.get(name) or model
    return model


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state of a model, by the names of the module inside wrappers."""
    with state_of_parts(not (options and options.full_state_dict)):
        return dict(inner(model).state_dict())


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load what `get_model_state_dict` gave, whole or divided."""
    strict = options is None or options.strict
    return inner(model).load_state_dict(model_state_dict, strict=strict)


def _init_optim_state(optim: Any) -> None:
    """Make the state of an optimizer that has not stepped: a step with gradients of zero and a
    learning rate of zero."""
    if optim.state:
        return
    rates = [group["lr"] for group in optim.param_groups]
    for group in optim.param_groups:
        group["lr"] = 0.0
        for p in group["params"]:
            if p.requires_grad:
                p.grad = zeros_like(p)
    optim.step(closure=None)
    for group, rate in zip(optim.param_groups, rates):
        group["lr"] = rate
    optim.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: Any = None
) -> dict[str, Any]:
    """The state of an optimizer, by the names of the parameters."""
    return named_state(model, optimizers, options is not None and options.full_state_dict)


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: dict[str, Any], *, options: Any = None
) -> None:
    """Load what `get_optimizer_state_dict` gave, whole or divided."""
    optimizers.load_state_dict(numbered_state(model, optimizers, optim_state_dict))


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: Any = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(state of the model, state of the optimizer)."""
    return (
        get_model_state_dict(model, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


def set_state_dict(
    model: Module,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: Any = None,
) -> None:
    """Load both."""
    set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)


__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]
