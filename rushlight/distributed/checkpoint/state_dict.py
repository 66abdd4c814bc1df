"""torch.distributed.checkpoint.state_dict: states of models and optimizers, divided over the ranks or whole. Names of
parameters are those inside wrappers such as DDP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rushlight.base.errors import value_error
from rushlight.comm.groups import get_rank, is_initialized
from rushlight.comm.objects import broadcast_object_list
from rushlight.core.tensor import Tensor
from rushlight.creation.factories import tensor, zeros_like
from rushlight.distributed.optimizer_state import clean, named_state, numbered_state
from rushlight.distributed.sharding import state_of_parts
from rushlight.nn import Module
from rushlight.nn.state_dict import IncompatibleKeys
from rushlight.optim.optimizer import Optimizer


@dataclass
class StateDictOptions:
    """`full_state_dict`: return whole tensors instead of this rank's parts; with `cpu_offload`, only on rank 0.
    `broadcast_from_rank0`: only rank 0 has the whole state to load. `ignore_frozen_params`: leave out parameters that
    require no gradient. `strict`: the state must have all names of the model. `flatten_optimizer_state_dict`: return
    one dict with keys such as "state.fc.weight.exp_avg"."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def checked(options: StateDictOptions | None) -> StateDictOptions:
    """The options, or the default ones. ValueError for incompatible options."""
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise value_error("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def inner(model: Module) -> Module:
    """The module inside DDP and torch.compile."""
    for name in ("_orig_mod", "module"):
        if type(model).__name__ in ("DistributedDataParallel", "OptimizedModule"):
            model = model._modules.get(name) or model
    return model


def kept(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """The state that this rank returns: only rank 0 returns a whole state with cpu_offload."""
    alone = options.full_state_dict and options.cpu_offload and is_initialized()
    return {} if alone and get_rank() else state


def given(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """The state to load; from rank 0 with broadcast_from_rank0."""
    if not (options.broadcast_from_rank0 and is_initialized()):
        return state
    holder = [state if get_rank() == 0 else None]
    broadcast_object_list(holder)
    return holder[0]  # type: ignore[return-value]


def optimizers_of(optimizers: Any) -> tuple[Any, ...]:
    """The optimizers as a tuple."""
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def of_submodules(
    model: Module, state: dict[str, Any], submodules: Iterable[Module], keep_prefixes: bool
) -> dict[str, Any]:
    """The part of a state that belongs to these submodules."""
    wanted = {id(m) for m in submodules}
    prefixes = [clean(name) + "." for name, m in model.named_modules() if id(m) in wanted]
    return {
        key if keep_prefixes else key[len(prefix) :]: value
        for key, value in state.items()
        for prefix in prefixes
        if key.startswith(prefix)
    }


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state of a model, with the names inside wrappers."""
    options = checked(options)
    with state_of_parts(not options.full_state_dict):
        state = dict(inner(model).state_dict())
    if submodules:
        state = of_submodules(model, state, submodules, options.keep_submodule_prefixes)
    if options.ignore_frozen_params:
        for name, p in model.named_parameters():
            if not p.requires_grad:
                state.pop(clean(name), None)
    return kept(state, options)


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> IncompatibleKeys:
    """Load a state from `get_model_state_dict`, whole or divided."""
    options = checked(options)
    state = given(model_state_dict, options)
    if not state:
        return IncompatibleKeys([], [])
    return inner(model).load_state_dict(state, strict=options.strict)


def _init_optim_state(optim: Any) -> None:
    """Make the state of an optimizer that has not stepped: a step with gradients of zero and a learning rate of zero.
    Without effect if there are gradients.
    """
    every = [p for group in optim.param_groups for p in group["params"]]
    if optim.state or any(p.grad is not None for p in every):
        return
    rates = [group.get("lr") for group in optim.param_groups]
    for p in every:
        if p.requires_grad:
            p._grad = zeros_like(p.detach())  # for a divided parameter: the rows of this rank
    for group, rate in zip(optim.param_groups, rates):
        if rate is not None:
            group["lr"] = tensor(0.0) if isinstance(rate, Tensor) else 0.0
    optim.step(closure=None)
    for group, rate in zip(optim.param_groups, rates):
        if rate is not None:
            group["lr"] = rate
    optim.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: Any = None
) -> dict[str, Any]:
    """The state of one optimizer, or the merged state of several, by the names of the parameters."""
    options = checked(options)
    state: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in optimizers_of(optimizers):
        _init_optim_state(optimizer)
        own = named_state(model, optimizer, options.full_state_dict)
        state["state"].update({name: value for name, value in own["state"].items() if value})
        state["param_groups"] += own["param_groups"]
    state = kept(state, options)
    return flat(state) if options.flatten_optimizer_state_dict and state else state


def flat(state: dict[str, Any]) -> dict[str, Any]:
    """The state of an optimizer as one dict."""
    found = {}
    for name, own in state["state"].items():
        for key, value in own.items():
            found[f"state.{name}.{key}"] = value
    for group in state["param_groups"]:
        for name in group["params"]:
            for key, value in group.items():
                if key != "params":
                    found[f"param_groups.{name}.{key}"] = value
    return found


def nested(model: Module, optimizers: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `flat`, with the groups of the optimizers."""
    names = {id(p): clean(name) for name, p in model.named_parameters()}
    states: dict[str, Any] = {}
    groups = []
    for group in [group for optimizer in optimizers for group in optimizer.param_groups]:
        made: dict[str, Any] = {"params": [names[id(p)] for p in group["params"]]}
        for name in made["params"]:
            start = f"state.{name}."
            states[name] = {k[len(start) :]: v for k, v in state.items() if k.startswith(start)}
            for key in group:
                if f"param_groups.{name}.{key}" in state:
                    made[key] = state[f"param_groups.{name}.{key}"]
        groups.append(made)
    return {"state": states, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: dict[str, Any], *, options: Any = None
) -> None:
    """Load a state from `get_optimizer_state_dict`, whole or divided."""
    options, every = checked(options), optimizers_of(optimizers)
    state = given(optim_state_dict, options)
    if not state:
        return
    if "param_groups" not in state:
        state = nested(model, every, state)
    for optimizer in every:
        _init_optim_state(optimizer)
        optimizer.load_state_dict(numbered_state(model, optimizer, state))


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: Any = None, options: Any = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(state of the model, state of the optimizers)."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module, optimizers: Any, *, model_state_dict: dict[str, Any], optim_state_dict: dict[str, Any],
    options: Any = None,
) -> IncompatibleKeys:  # fmt: skip
    """Load both states. Returns the model's missing names and the state's unexpected names."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip
