"""A module as a function of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rushlight.base.errors import runtime_error, type_error, value_error
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.shape.views import stack

__all__ = ["functional_call"]


def functional_call(
    module: Module, parameters_and_buffers: Mapping[str, Tensor] | tuple, args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """`module(*args, **kwargs)` with other tensors for its parameters and buffers, by their dotted names.

    The module is unchanged afterwards, except for in-place writes of forward to tensors that were not replaced.
    Gradients go to the given tensors. A tuple of dicts is merged into one dict. `tie_weights`: a tensor with several
    names is replaced under all of them. `strict`: RuntimeError for names that are missing or unknown. ValueError unless
    a dict is given, and for a tied tensor with two values; TypeError unless the values are tensors.

    >>> m = rushlight.nn.Linear(2, 1)
    >>> state = {"weight": rushlight.ones(1, 2), "bias": rushlight.zeros(1)}
    >>> rushlight.nn.utils.stateless.functional_call(m, state, rushlight.ones(2))
    tensor([2.])
    """
    state = merged(parameters_and_buffers)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, state, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def merged(state: Any) -> dict[str, Tensor]:
    """One dict from one or several dicts. ValueError for a name in two dicts, TypeError for another type."""
    if isinstance(state, Mapping):
        return state  # type: ignore[return-value]  # the same dict: buffers that forward replaces are written back to it
    if not isinstance(state, (tuple, list)):
        raise value_error(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(state)}"
        )
    if not all(isinstance(one, Mapping) for one in state):
        raise value_error("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for one in state for name in one]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise value_error(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: t for one in state for name, t in one.items()}


def _reparametrize_module(
    module: Module, parameters_and_buffers: Mapping[str, Tensor], tie_weights: bool = False, strict: bool = False,
    stack_weights: bool = False,
) -> Any:  # fmt: skip
    """A context in which the module has these tensors under their dotted names."""
    return replaced(module, merged(parameters_and_buffers), tie_weights, strict)


MISSING: Any = object()


@contextmanager
def replaced(
    module: Module, state: dict[str, Tensor], tie_weights: bool = True, strict: bool = False
) -> Iterator[None]:
    """A context in which the module has other tensors under these names."""
    homes = homes_of(module)
    values = tied(homes, state) if tie_weights else dict(state)
    check_names(module, homes, values, strict)
    before = [(full, *homes[full], homes[full][0].get(homes[full][1], MISSING)) for full in values]
    for full, kept, name, _ in before:
        kept[name] = values[full]
    try:
        yield
    finally:
        for full, kept, name, old in before:
            now: Any = kept.get(name)
            # forward assigned another tensor: keep this new value
            if now is not values[full] and full in state:
                state[full] = now
            if old is MISSING:
                kept.pop(name, None)
            else:
                kept[name] = old


def homes_of(module: Module) -> dict[str, tuple[dict, str]]:
    """Dotted name of each parameter and buffer -> (the dict that holds the tensor, the key there)."""
    return {
        f"{prefix}.{name}" if prefix else name: (owner.__dict__[kind], name)
        for prefix, owner in modules_of(module)
        for kind in ("_parameters", "_buffers")
        for name in owner.__dict__[kind]
    }


def modules_of(module: Module, prefix: str = "", above: tuple[Module, ...] = ()) -> Iterator[tuple[str, Module]]:
    """(name, module) for all modules under all their names. A name ends before a module that is already on its path: a
    module may contain itself."""
    yield prefix, module
    above = (*above, module)
    for name, child in module._modules.items():
        if child is not None and not any(child is one for one in above):
            yield from modules_of(child, f"{prefix}.{name}" if prefix else name, above)


def check_names(module: Module, homes: dict[str, tuple[dict, str]], state: dict[str, Tensor], strict: bool) -> None:
    """TypeError for a value that is not a tensor, AttributeError for an unknown submodule, and the errors of `strict`.

    A name that the module lacks becomes an attribute of the module during the call."""
    for value in state.values():
        if value is not None and not isinstance(value, Tensor):
            raise type_error(f"{value} is not an instance of torch.Tensor")
    unknown = [name for name in state if name not in homes]
    lacking = [name for name, (kept, key) in homes.items() if name not in state and kept[key] is not None]
    if strict and (unknown or lacking):
        words = [
            f"{what} key(s): {', '.join(map(repr, names))}."
            for what, names in (("Unexpected", unknown), ("Missing", lacking))
            if names
        ]
        raise runtime_error(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(words))
    homes.update((full, home_of(module, full, state[full])) for full in unknown)


def home_of(module: Module, full: str, value: Any) -> tuple[dict, str]:
    """The place of a value with another name: a parameter or buffer that is reached through a cycle of modules, or a
    new attribute."""
    prefix, _, name = full.rpartition(".")
    owner = module.get_submodule(prefix).__dict__
    for kind in ("_parameters", "_buffers"):
        if name in owner[kind]:
            return owner[kind], name
    if not isinstance(old := owner.get(name), Tensor | None):
        raise type_error(f"attribute `{name}`: {old} is not an instance of torch.Tensor")
    return owner["_parameters"] if isinstance(value, Parameter) and old is None else owner, name


def tied(homes: dict[str, tuple[dict, str]], state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state, extended by the other names of shared tensors."""
    names: dict[int, list[str]] = {}
    for full, (kept, key) in homes.items():
        if kept.get(key) is not None:
            names.setdefault(id(kept[key]), []).append(full)
    values = dict(state)
    for group in names.values():
        given = [name for name in group if name in state]
        if len({id(state[name]) for name in given}) > 1:
            raise value_error(
                f"functional_call got multiple values for keys {sorted(group)}, which are tied. Consider using "
                "tie_weights=False"
            )
        if given:
            values.update((name, state[given[0]]) for name in group)
    return values


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of several modules of one class; the tensors of each name are stacked: (models, *shape).

    The stacked tensors are leaves, and require gradients if the modules' tensors do. RuntimeError for no modules, for
    different classes, and if only some modules are in training.

    >>> params, buffers = rushlight.nn.utils.stateless.stack_module_state([rushlight.nn.Linear(2, 3) for _ in range(5)])
    >>> params["weight"].shape
    torch.Size([5, 3, 2])
    """
    models = list(models)
    if not models:
        raise runtime_error("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise runtime_error("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise runtime_error("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return stacked(parameters), stacked(buffers)


def stacked(states: list[dict[str, Any]]) -> dict[str, Tensor]:
    """The tensors of each name, stacked. RuntimeError if some tensors of a name require a gradient and others do
    not."""
    made = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        if len({t.requires_grad for t in tensors}) > 1:
            raise runtime_error(f"Expected {name} from each model to have the same .requires_grad")
        made[name] = stack([t.detach() for t in tensors]).requires_grad_(tensors[0].requires_grad)
    return made
