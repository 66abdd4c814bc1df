"""Copying and pickling of tensors with their attributes; users' subclasses of Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import ndarray

from rushlight.base.errors import runtime_error
from rushlight.base.higher import Higher
from rushlight.core.node import Writes
from rushlight.core.tensor import Tensor, method, new

protocol = Higher("rushlight.ops.tensor.torch_function")  # loaded with the first subclass


def rebuild(cls: type, array: ndarray, requires_grad: bool, grad: Tensor | None, attributes: dict) -> Tensor:
    """A leaf rebuilt from its parts. Called by pickle and deepcopy."""
    t: Tensor = new(cls)
    t._array, t._node, t._grad, t._viewing, t._writes = array, None, grad, None, None
    t.__dict__.update(attributes)
    t.requires_grad = requires_grad
    return t


def copied(array: Any) -> Any:
    """A copy of an array with its strides. The `Meta` of a meta tensor is immutable and returned unchanged."""
    return array.copy("K") if isinstance(array, ndarray) else array


def reduce_ex(self: Tensor, protocol: Any) -> tuple:
    """Pickles do not contain the graph: a non-leaf tensor that requires grad is unpickled as a leaf that requires
    grad."""
    return rebuild, (type(self), self._array, self.requires_grad, None, self.__dict__)


def deepcopy_tensor(self: Tensor, memo: dict) -> Tensor:
    if not self.is_leaf:
        raise runtime_error(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.",
            "detach() it, or deepcopy the leaves",
            made_at=self._node.made_at if self._node else "",
        )
    if id(self) not in memo:
        from copy import deepcopy  # loaded by the caller already; not imported by `import rushlight`

        grad = None if self._grad is None else deepcopy(self._grad, memo)
        array, writes = beside(self._array, memo)
        made = memo[id(self)] = rebuild(type(self), array, self.requires_grad, grad, deepcopy(self.__dict__, memo))
        made._writes = writes
    return memo[id(self)]


def beside(array: Any, memo: dict) -> tuple[Any, Writes | None]:
    """(a copy of an array, the write log of the copy). Copies share memory if their originals do (`memo`). The `Meta`
    of a meta tensor is returned unchanged."""
    if not isinstance(array, ndarray):
        return array, None
    from rushlight.base.array_memory import twin

    made, memory = twin(array, memo)
    return made, memo.setdefault(("writes", memory), Writes())


def unfilled(cls: type, *args: Any, **kwargs: Any) -> Any:
    """A new tensor, whose slots are filled by __init__, or here if a user's own __new__ calls this with data."""
    t: Tensor = new(cls)
    if args and cls.__new__ is not unfilled:
        Tensor.__init__(t, *args)
    return t


def disabled(func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """The `__torch_function__` of subclasses whose ops return plain tensors: Parameter."""
    return func(*args, **(kwargs or {}))


def torch_function(cls: type, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """The default `__torch_function__` of a user's subclass: runs the function, and returns results of the subclass."""
    return protocol().default(cls, func, types, args, kwargs)


def subclassed(cls: type, **options: Any) -> None:
    """Called for each new subclass of Tensor: a user's subclass takes part in `__torch_function__`
    (ops/tensor/torch_function.py)."""
    super(Tensor, cls).__init_subclass__(**options)  # type: ignore[misc]
    if cls.__module__.partition(".")[0] != "rushlight":
        protocol().insert_gated_class(cls)


Tensor._overrides = False
Tensor._cdata = property(id, doc="A number that is unique among live tensors.")  # type: ignore[attr-defined]  # for pyro
method(classmethod(torch_function), "__torch_function__")  # type: ignore[type-var]
method(classmethod(subclassed), "__init_subclass__")  # type: ignore[type-var]
method(staticmethod(unfilled), "__new__")
method(reduce_ex, "__reduce_ex__")
method(deepcopy_tensor, "__deepcopy__")
