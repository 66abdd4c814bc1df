"""`Variable`: the class of tensors with gradients in old versions of torch. Today every tensor is one."""

from __future__ import annotations

from typing import Any

from rushlight.base.errors import type_error, warn
from rushlight.core.backward import queue_callback
from rushlight.core.tensor import Tensor
from rushlight.core.views import detached


class VariableType(type):
    """The class of `Variable`: every tensor is an instance of Variable."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)

    def __call__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:
        """A new leaf on the memory of `data`."""
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise type_error(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile is not None:
            warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
        return detached(data).requires_grad_(requires_grad)


class Engine:
    """`Variable._execution_engine`: the part of torch's engine that libraries call."""

    queue_callback = staticmethod(queue_callback)


class Variable(metaclass=VariableType):
    """A tensor. Older programs wrap tensors in `Variable(...)`; newer programs need not.

    >>> rushlight.autograd.Variable(rushlight.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = Engine()
