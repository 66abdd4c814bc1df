"""functorch, the predecessor of torch.func: the names that older programs import, each with a warning that gives the
new name.

`make_functional` and so on return a module as a function and its tensors; `torch.func.functional_call` is the newer
function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import wraps
from typing import Any

from rushlight import func
from rushlight.base.errors import warn
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.functional_call import functional_call, stack_module_state
from rushlight.nn.utils.stateless import homes_of
from rushlight.torch_version import TorchVersion
from rushlight.version import torch_version

Names = list[list[str]]  # the names of each tensor: several for a tied tensor
__version__ = TorchVersion(torch_version)


def renamed(name: str, now: str, function: Callable) -> Callable:
    """The function with a warning at each call that gives its new name."""

    @wraps(function)
    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warn(
            f"`functorch.{name}` is deprecated: functorch is a part of PyTorch, use `torch.{now}` instead",
            FutureWarning,
        )
        return function(*args, **kwargs)

    return deprecated


functionalize = renamed("functionalize", "func.functionalize", func.functionalize)
grad = renamed("grad", "func.grad", func.grad)
grad_and_value = renamed("grad_and_value", "func.grad_and_value", func.grad_and_value)
hessian = renamed("hessian", "func.hessian", func.hessian)
jacfwd = renamed("jacfwd", "func.jacfwd", func.jacfwd)
jacrev = renamed("jacrev", "func.jacrev", func.jacrev)
jvp = renamed("jvp", "func.jvp", func.jvp)
vjp = renamed("vjp", "func.vjp", func.vjp)
vmap = renamed("vmap", "vmap", func.vmap)


class FunctionalModuleWithBuffers(Module):
    """A module as a function: `f(params, buffers, *args)`, with other tensors for its parameters and buffers.

    forward writes buffers in place, to the given tensors. The function holds no tensors, but has modes: `f.eval()`."""

    def __init__(self, model: Module, params: Names, buffers: Names):
        super().__init__()
        self.stateless_model, self.names_map = model, (params, buffers)
        self.param_names, self.buffer_names = tuple(full[0] for full in params), tuple(full[0] for full in buffers)

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's output with these parameters and buffers."""
        state = {
            full: t
            for names, given in zip(self.names_map, (params, buffers))
            for several, t in zip(names, given)
            for full in several
        }
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module as a function: `f(params, *args)`, with other tensors for the parameters."""

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The module's output with these parameters."""
        return super().forward(params, (), *args, **kwargs)


def taken(model: Module, kind: str) -> tuple[tuple[Tensor, ...], Names]:
    """Remove the tensors from a module: (tensors, the names of each; several for a tied tensor)."""
    found: dict[int, tuple[Tensor, list[str]]] = {}
    for full, (kept, key) in homes_of(model).items():
        if kept[key] is not None and (kind == "_buffers") != isinstance(kept[key], Parameter):
            found.setdefault(id(kept[key]), (kept[key], []))[1].append(full)
    for kept, key in homes_of(model).values():
        if id(kept[key]) in found:
            kept[key] = None
    return tuple(t for t, _ in found.values()), [names for _, names in found.values()]


def parameters_of(model: Module, disable_autograd_tracking: bool) -> tuple[tuple[Tensor, ...], Names]:
    """Remove the parameters from a module: (parameters, names). With `disable_autograd_tracking` the parameters do not
    require gradients."""
    params, names = taken(model, "_parameters")
    if disable_autograd_tracking:
        for p in params:
            p.requires_grad_(False)
    return params, names


def functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """(f, params): `f(params, *args)` is `model(*args)`, for modules without buffers.

    The parameters are copies; the model is unchanged.

    >>> f, params = rushlight.functorch.make_functional(rushlight.nn.Linear(2, 1))
    >>> f(params, rushlight.ones(3, 2)).shape
    torch.Size([3, 1])
    """
    if [*model.buffers()]:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    model = deepcopy(model)
    params, names = parameters_of(model, disable_autograd_tracking)
    return FunctionalModule(model, names, []), params


def functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(f, params, buffers): `f(params, buffers, *args)` is `model(*args)`. The parameters and buffers are copies."""
    model = deepcopy(model)
    (params, names), (buffers, others) = parameters_of(model, disable_autograd_tracking), taken(model, "_buffers")
    return FunctionalModuleWithBuffers(model, names, others), params, buffers


def ensemble_state(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(f, params, buffers) of several modules of one class, each tensor stacked and without gradients: for `vmap(f, (0,
    0, None))`.

    RuntimeError for no modules, for different classes, and if only some modules are in training."""
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    one = deepcopy(models[0])
    (_, names), (_, others) = taken(one, "_parameters"), taken(one, "_buffers")
    params, buffers = stack_module_state(models)
    return (
        FunctionalModuleWithBuffers(one, names, others),
        (*(p.detach() for p in params.values()),),
        (*buffers.values(),),
    )


make_functional = renamed("make_functional", "func.functional_call", functional)
make_functional_with_buffers = renamed("make_functional_with_buffers", "func.functional_call", functional_with_buffers)
combine_state_for_ensemble = renamed("combine_state_for_ensemble", "func.stack_module_state", ensemble_state)

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp",
    "vmap",
]  # fmt: skip
