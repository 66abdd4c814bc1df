"""Tensors that modules own: parameters, which are trained, and buffers, which are not."""
from __future__ import annotations

from typing import Any

import numpy as np

from rushlight import dtypes
from rushlight.printing import format_parameter
from rushlight.tensor import Tensor, rebuild, writes_of


class Parameter(Tensor):
    """A tensor to be trained: as an attribute of a module it is one of its `parameters()`.

    It shares the memory of `data` and requires a gradient unless told otherwise. RuntimeError if it is to require a
    gradient and is neither floating-point nor complex.

    >>> rushlight.nn.Parameter(rushlight.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    __slots__ = ()

    def __init__(self, data: Any = None, requires_grad: bool = True):
        on_memory_of(self, data)
        self.requires_grad = requires_grad

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        name = None if self.grad_fn is None else self.grad_fn.name()
        return format_parameter(self.array, self.dtype, self.requires_grad, name)

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = rebuild(type(self), self.array.copy("K"), self.requires_grad, None, dict(self.__dict__))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return rebuild, (type(self), self.array, self.requires_grad, None, self.__dict__)


class Buffer(Tensor):
    """A tensor that a module keeps beside its parameters; saved with them if `persistent`.

    >>> m = rushlight.nn.Module()
    >>> m.mean = rushlight.nn.Buffer(rushlight.zeros(2))
    >>> list(m.state_dict())
    ['mean']
    """

    __slots__ = ()
    persistent: bool

    def __init__(self, data: Any = None, *, persistent: bool = True):
        on_memory_of(self, data)
        self.persistent = persistent


def on_memory_of(self: Tensor, data: Any) -> None:
    """Make `self` a leaf on the memory of `data`; a write to either is noticed by both."""
    if data is None:
        data = np.zeros(0, dtypes.get_default_dtype().numpy)
    shared = isinstance(data, Tensor)
    array = data.array if shared else np.asarray(data)
    self.array, self.node, self._grad, self.viewing = array, None, None, None
    self.writes = writes_of(data) if shared else None
