"""`Variable`, which tensors with gradients were called before they were all tensors."""
from __future__ import annotations

from typing import Any

from rushlight.autograd.views import detached
from rushlight.tensor import Tensor


class VariableType(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)

    def __call__(cls, data: Tensor | None = None, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:
        """The tensor, on the same memory, as a leaf that requires a gradient or not."""
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return detached(data).requires_grad_(requires_grad)


class Variable(metaclass=VariableType):
    """A tensor. Older programs wrap their tensors in it; newer ones need not.

    >>> rushlight.autograd.Variable(rushlight.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """
