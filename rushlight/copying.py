"""Copies and pickles of tensors: leaves of the graph only, with their attributes."""
from __future__ import annotations

from typing import Any

from numpy import ndarray

from rushlight.errors import explain
from rushlight.tensor import Tensor, method, new


def rebuild(cls: type, array: ndarray, requires_grad: bool, grad: Tensor | None, attributes: dict) -> Tensor:
    """A leaf from its parts: what pickle and deepcopy call."""
    t: Tensor = new(cls)
    t.array, t.node, t._grad, t.viewing, t.writes = array, None, grad, None, None
    t.__dict__.update(attributes)
    t.requires_grad = requires_grad
    return t


def reduce_ex(self: Tensor, protocol: Any) -> tuple:
    if not self.is_leaf:
        raise RuntimeError(explain("only leaf tensors can be pickled or deep-copied", "detach() it first",
                                   made_at=self.node.made_at if self.node else ""))
    return rebuild, (type(self), self.array, self.requires_grad, None, self.__dict__)


def deepcopy_tensor(self: Tensor, memo: dict) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(explain("Only Tensors created explicitly by the user (graph leaves) support the "
                                   "deepcopy protocol at the moment.", "detach() it, or deepcopy the leaves",
                                   made_at=self.node.made_at if self.node else ""))
    if id(self) not in memo:
        from copy import deepcopy  # whose caller has loaded it: no part of the import
        grad = None if self._grad is None else deepcopy(self._grad, memo)
        memo[id(self)] = rebuild(type(self), self.array.copy("K"), self.requires_grad, grad,
                                 deepcopy(self.__dict__, memo))
    return memo[id(self)]


def unfilled(cls: type, *args: Any, **kwargs: Any) -> Any:
    """A tensor that __init__ is to fill; for a user's class whose own __new__ calls this one, one with the data."""
    t: Tensor = new(cls)
    if args and cls.__new__ is not unfilled:
        Tensor.__init__(t, *args)
    return t


method(staticmethod(unfilled), "__new__")
method(reduce_ex, "__reduce_ex__")
method(deepcopy_tensor, "__deepcopy__")
