"""functorch, the package that became torch.func: its names, which older programs import, each with
a word of what it is now.

`make_functional` and its kin give a module as a function and its tensors, which
`torch.func.functional_call` does now."""

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

Names = list[list[str]]  # of each tensor: several where it is tied
__version__ = TorchVersion(torch_version)


def renamed(name: str, now: str, function: Callable) -> Callable:
    """The function, which says at each call where it is now."""

    @wraps(function)
    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warn(
            f"`functorch.{name}` is deprecated: functorch is a part of PyTorch, use `torch.{now}` "
            "instead",
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
    """A module as a function: `f(params, buffers, *args)`, with other tensors for its parameters
    and buffers.

    What forward writes into buffers is written into those given. It has no tensors of its own, but
    modes: `f.eval()`."""

    def __init__(self, model: Module, params: Names, buffers: Names):
        super().__init__()
        self.stateless_model, self.names_map = model, (params, buffers)
        self.param_names, self.buffer_names = (
            tuple(full[0] for full in params),
            tuple(full[0] for full in buffers),
        )

    def forward(
        self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        """What the module gives with these parameters and buffers."""
        state = {
            full: t
            for names, given in zip(self.names_map, (params, buffers))
            for several, t in zip(names, given)
            for full in several
        }
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module as a function: `f(params, *args)`, with other tensors for its parameters."""

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters."""
        return super().forward(params, (), *args, **kwargs)


def taken(model: Module, kind: str) -> tuple[tuple[Tensor, ...], Names]:
    """The tensors of a module, which it has no longer, and the names of each: several where it is
    tied."""
    found: dict[int, tuple[Tensor, list[str]]] = {}
    for full, (kept, key) in homes_of(model).items():
        if kept[key] is not None and (kind == "_buffers") != isinstance(kept[key], Parameter):
            found.setdefault(id(kept[key]), (kept[key], []))[1].append(full)
    for kept, key in homes_of(model).values():
        if id(kept[key]) in found:
            kept[key] = None
    return tuple(t for t, _ in found.values()), [names for _, names in found.values()]


def parameters_of(
    model: Module, disable_autograd_tracking: bool
) -> tuple[tuple[Tensor, ...], Names]:
    """A module's parameters, taken from it, and their names; they ask for no gradient if they are
    not to be tracked."""
    params, names = taken(model, "_parameters")
    if disable_autograd_tracking:
        for p in params:
            p.requires_grad_(False)
    return params, names


def functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """(f, params): `f(params, *args)` is `model(*args)`, for modules without buffers.

    The parameters are copies, the model stays as it is.

    >>> f, params = rushlight.functorch.make_functional(rushlight.nn.Linear(2, 1))
    >>> f(params, rushlight.ones(3, 2)).shape
    torch.Size([3, 1])
    """
    if [*model.buffers()]:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) "
            "instead."
        )
    model = deepcopy(model)
    params, names = parameters_of(model, disable_autograd_tracking)
    return FunctionalModule(model, names, []), params


def functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(f, params, buffers): `f(params, buffers, *args)` is `model(*args)`. The parameters and
    buffers are copies."""
    model = deepcopy(model)
    (params, names), (buffers, others) = (
        parameters_of(model, disable_autograd_tracking),
        taken(model, "_buffers"),
    )
    return FunctionalModuleWithBuffers(model, names, others), params, buffers


def ensemble_state(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(f, params, buffers) of several modules of one class, each tensor stacked, none asking for a
    gradient: for `vmap(f, (0, 0, None))`.

    RuntimeError for no module, for classes that differ, and for modules some of which are in
    training."""
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same training/eval mode."
        )
    if len({type(m) for m in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to be of the same class."
        )
    one = deepcopy(models[0])
    (_, names), (_, others) = taken(one, "_parameters"), taken(one, "_buffers")
    params, buffers = stack_module_state(models)
    return (
        FunctionalModuleWithBuffers(one, names, others),
        (*(p.detach() for p in params.values()),),
        (*buffers.values(),),
    )


make_functional = renamed("make_functional", "func.functional_call", functional)
make_functional_with_buffers = renamed(
    "make_functional_with_buffers", "func.functional_call", functional_with_buffers
)
combine_state_for_ensemble = renamed(
    "combine_state_for_ensemble", "func.stack_module_state", ensemble_state
)

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]
