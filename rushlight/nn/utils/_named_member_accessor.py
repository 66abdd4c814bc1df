"""torch.nn.utils._named_member_accessor: put another tensor into a module."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import explain, type_error
from rushlight.core.tensor import Tensor
from rushlight.nn.module import Module

MISSING: Any = object()


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Replace a parameter, buffer or attribute of the module by `tensor`. Returns the old value.

    TypeError for another type, KeyError for a dotted or empty name, AttributeError for an unknown name unless
    `allow_missing`.

    >>> m = rushlight.nn.Linear(1, 1)
    >>> old = rushlight.nn.utils._named_member_accessor.swap_tensor(m, "bias", rushlight.ones(1))
    >>> m.bias, m._parameters["bias"] is m.bias, type(old)
    (tensor([1.]), True, <class 'rushlight.nn.parameter.Parameter'>)
    """
    if not isinstance(module, Module):
        raise type_error(f"{module} is not an instance of torch.nn.Module")
    check_tensor(tensor)
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for kept in (module._parameters, module._buffers):
        if name in kept:
            old, kept[name] = kept[name], tensor
            return old
    old = getattr(module, name, MISSING)
    if old is MISSING and not allow_missing:
        raise AttributeError(explain(f"{type(module).__name__} has no attribute `{name}`"))
    if old is not MISSING:
        check_tensor(old, f"attribute `{name}`: ")
    setattr(module, name, tensor)
    return old


def check_tensor(value: Any, which: str = "") -> None:
    if value is not None and not isinstance(value, Tensor):
        raise type_error(f"{which}{value} is not an instance of torch.Tensor")


__all__ = ["swap_tensor"]
