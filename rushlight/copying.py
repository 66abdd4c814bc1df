"""Copies of leaves, and pickles, of tensors with their attributes; and classes of tensors that users make."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from numpy import ndarray

from rushlight.autograd.clock import Writes
from rushlight.errors import explain
from rushlight.tensor import Tensor, method, new


def rebuild(cls: type, array: ndarray, requires_grad: bool, grad: Tensor | None, attributes: dict) -> Tensor:
    """A leaf from its parts: what pickle and deepcopy call."""
    t: Tensor = new(cls)
    t.array, t.node, t._grad, t.viewing, t.writes = array, None, grad, None, None
    t.__dict__.update(attributes)
    t.requires_grad = requires_grad
    return t


def copied(array: Any) -> Any:
    """A copy of an array as it lies; what stands for one without elements (ops/meta.py) serves for the copy too."""
    return array.copy("K") if isinstance(array, ndarray) else array


def reduce_ex(self: Tensor, protocol: Any) -> tuple:
    """Pickles know nothing of graphs: a result that requires a gradient comes back as a leaf that does."""
    return rebuild, (type(self), self.array, self.requires_grad, None, self.__dict__)


def deepcopy_tensor(self: Tensor, memo: dict) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(explain("Only Tensors created explicitly by the user (graph leaves) support the "
                                   "deepcopy protocol at the moment.", "detach() it, or deepcopy the leaves",
                                   made_at=self.node.made_at if self.node else ""))
    if id(self) not in memo:
        from copy import deepcopy  # whose caller has loaded it: no part of the import
        grad = None if self._grad is None else deepcopy(self._grad, memo)
        array, writes = beside(self.array, memo)
        made = memo[id(self)] = rebuild(type(self), array, self.requires_grad, grad, deepcopy(self.__dict__, memo))
        made.writes = writes
    return memo[id(self)]


def beside(array: Any, memo: dict) -> tuple[Any, Writes | None]:
    """A copy of an array that shares memory with the copies of those with which the array does, and the record of writes
    there. What stands for an array without elements (ops/meta.py) serves for the copy too."""
    if not isinstance(array, ndarray):
        return array, None
    from rushlight.memory import twin

    made, memory = twin(array, memo)
    return made, memo.setdefault(("writes", memory), Writes())


def unfilled(cls: type, *args: Any, **kwargs: Any) -> Any:
    """A tensor that __init__ is to fill; for a user's class whose own __new__ calls this one, one with the data."""
    t: Tensor = new(cls)
    if args and cls.__new__ is not unfilled:
        Tensor.__init__(t, *args)
    return t


def disabled(func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """The `__torch_function__` of classes whose tensors are treated like plain ones, and give plain ones: Parameter."""
    return func(*args, **(kwargs or {}))


def torch_function(cls: type, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """What a function does with tensors of a class of the user's: as with plain ones, but it gives some of that class."""
    return sys.modules["rushlight"].overrides.default(cls, func, types, args, kwargs)


def subclassed(cls: type, **options: Any) -> None:
    """A new class of tensors takes part in torch's functions (overrides.py), if it is a user's."""
    super(Tensor, cls).__init_subclass__(**options)  # type: ignore[misc]
    if cls.__module__.partition(".")[0] != "rushlight":
        sys.modules["rushlight"].overrides.take_part(cls)


Tensor._asks = False                              # type: ignore[attr-defined]
Tensor._cdata = property(id, doc="A number that no other tensor has at the time.")  # type: ignore[attr-defined]  # pyro asks
method(classmethod(torch_function), "__torch_function__")  # type: ignore[type-var]
method(classmethod(subclassed), "__init_subclass__")  # type: ignore[type-var]
method(staticmethod(unfilled), "__new__")
method(reduce_ex, "__reduce_ex__")
method(deepcopy_tensor, "__deepcopy__")
