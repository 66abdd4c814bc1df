"""torch.overrides: classes of users that take part in torch's functions by `__torch_function__`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps as _wraps
from importlib import import_module as _import_module

from rushlight.base.missing_names import tell as _tell
from rushlight.core.tensor import Tensor
from rushlight.ops.tensor import torch_function as _torch_function
from rushlight.ops.tensor.torch_function import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    TorchFunctionMode,
    get_default_nowrap_functions,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)


def get_ignored_functions() -> set[Callable]:
    """The functions of torch that never call `__torch_function__`.

    >>> rushlight.tensor in rushlight.overrides.get_ignored_functions()
    True
    """
    torch = _import_module("rushlight")
    named = (getattr(torch, name, None) for name in _torch_function.FUNCTIONS_WITHOUT_GATE.split())
    return {f for f in named if callable(f)}


def get_overridable_functions() -> dict[object, list[Callable]]:
    """{namespace or the class Tensor: its functions that call `__torch_function__` of their arguments}.

    >>> rushlight.add in rushlight.overrides.get_overridable_functions()[rushlight]
    True
    """
    _torch_function.first()
    with_gate = {id(f) for f in _torch_function.public().values()}
    found: dict[object, list[Callable]] = {
        module: [f for f in vars(module).values() if id(f) in with_gate]
        for module in map(_import_module, _torch_function.NAMESPACES)
    }
    found[Tensor] = [*_torch_function.own_methods().values()]
    return found


def get_testing_overrides() -> dict[Callable, Callable]:
    """{function: one with the same parameters that returns -1}, for tests of classes with `__torch_function__`.

    >>> rushlight.overrides.get_testing_overrides()[rushlight.add](1, 2)
    -1
    """

    def answering(f: Callable) -> Callable:
        return _wraps(f)(lambda *args, **kwargs: -1)

    return {f: answering(f) for group in get_overridable_functions().values() for f in group}


__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode", "get_default_nowrap_functions",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip

_tell(__name__)
