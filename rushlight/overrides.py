"""torch.overrides: classes of users that take part in torch's functions by `__torch_function__`.

A plain tensor pays nothing for it. A class that inherits from Tensor gets `Asking` between itself and Tensor, with methods
that ask `__torch_function__`; and with the first such class the functions of the namespaces are replaced by ones that look
at their arguments. Functions that a program has imported by name before (`from torch import add`), and those that write
(`torch.relu_(x)`, the methods themselves), ask nobody. Attributes are asked for where they are tensors (`x.T`, `x.data`),
not `x.shape` and its like.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import wraps
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from rushlight.copying import disabled
from rushlight.errors import explain
from rushlight.ops import later
from rushlight.tensor import Tensor

asleep: ContextVar[bool] = ContextVar("asleep", default=False)             # whether functions are to ask nobody
NAMESPACES = ("rushlight", "rushlight.nn.functional", "rushlight.linalg", "rushlight.fft", "rushlight.special")
SILENT = {"is_tensor", "is_storage", "tensor", "as_tensor", "asarray", "from_numpy", "save", "load", "compile", "typename",
          "result_type", "can_cast", "promote_types", "manual_seed", "get_default_dtype", "set_default_dtype", "vmap",
          "export", "explain", "contributions", "is_grad_enabled", "is_inference_mode_enabled"}
TENSORS = ("T", "H", "mT", "mH", "real", "imag", "data")           # attributes that are tensors
APART = {"__new__", "__init__", "__init_subclass__", "__hash__", "__reduce_ex__", "__deepcopy__", "__array__",
         "__setstate__", "__array_wrap__", "__dlpack__", "__dlpack_device__", "as_subclass"}
SPELLINGS = {"add": "add", "radd": "add", "mul": "mul", "rmul": "mul", "sub": "sub", "truediv": "div", "matmul": "matmul",
             "neg": "neg", "abs": "abs", "gt": "gt", "lt": "lt", "ge": "ge", "le": "le", "iadd": "add_", "isub": "sub_",
             "imul": "mul_", "itruediv": "div_", "invert": "bitwise_not"}  # operators, and the methods that they are
made: list[type] = []                             # `Asking`, once there is somebody to ask


class DisableTorchFunctionSubclass:
    """Inside it functions do what they do for plain tensors, whoever their arguments are."""

    def __enter__(self) -> None:
        self.__dict__.setdefault("tokens", []).append(asleep.set(True))

    def __exit__(self, *exc: object) -> None:
        asleep.reset(self.tokens.pop())           # type: ignore[attr-defined]


DisableTorchFunction = DisableTorchFunctionSubclass


def asked(args: Iterable[Any]) -> Iterator[Any]:
    """The arguments that have a say, also those in lists."""
    for a in args:
        kind = a.__class__
        if kind is list or kind is tuple:
            yield from (x for x in a if speaks(x.__class__))
        elif kind is not Tensor and speaks(kind):
            yield a


def speaks(kind: type) -> bool:
    """Whether objects of this class are asked: tensors of users' classes, not our own sparse ones, and what is no tensor."""
    if issubclass(kind, Tensor):
        return kind._asks and kind.__torch_function__ is not disabled  # type: ignore[attr-defined]
    return hasattr(kind, "__torch_function__") and kind is not type


def overloaded(args: Iterable[Any]) -> list[Any]:
    """One of each class that has a say, in the order in which they are asked: from the left, subclasses first."""
    found: list[Any] = []
    for a in asked(args):
        if all(type(a) is not type(b) for b in found):
            place = next((i for i, b in enumerate(found) if issubclass(type(a), type(b))), len(found))
            found.insert(place, a)
    return found


def has_torch_function(relevant_args: Any) -> bool:
    """Whether one of the arguments has a `__torch_function__` of its own."""
    return not asleep.get() and any(speaks(type(a)) for a in relevant_args)


def has_torch_function_unary(a: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((a,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """What the classes of the arguments make of the function: the first answer that is not NotImplemented.

    TypeError if all of them say NotImplemented.
    """
    found = overloaded(relevant_args)
    types = tuple(type(a) for a in found)
    for a in found:
        answer = a.__torch_function__(public_api, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    name = getattr(public_api, "__name__", public_api)
    raise TypeError(explain(f"Multiple dispatch failed for 'torch.{name}'; all __torch_function__ handlers returned "
                            f"NotImplemented: no implementation found for '{name}' on types that implement "
                            f"__torch_function__: {[t.__name__ for t in types]}",
                            "let one of them return something else than NotImplemented"))


def default(cls: type, func: Callable, types: Iterable[type], args: tuple = (), kwargs: dict | None = None) -> Any:
    """Tensor's own `__torch_function__`: the function as it is, its tensors in the class of the argument."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        answer = func(*args, **(kwargs or {}))
        return converted(answer, cls, args)


def converted(answer: Any, cls: type, args: tuple = ()) -> Any:
    """Tensors, also in tuples and lists, as tensors of the class."""
    if isinstance(answer, Tensor):
        if cls is Tensor or isinstance(answer, cls):
            return answer
        if answer.__class__ is not Tensor or any(answer is a for a in args):
            return answer.as_subclass(cls)        # type: ignore[attr-defined]
        answer.__class__ = cls                    # nobody else has it yet
        return answer
    if isinstance(answer, (tuple, list)) and any(isinstance(a, (Tensor, tuple, list)) for a in answer):
        inside = [converted(a, cls, args) for a in answer]
        return type(answer)._make(inside) if hasattr(answer, "_make") else type(answer)(inside)
    return answer


# -- functions and methods that ask ---------------------------------------------------------------------------------------

def asking(own: Callable) -> Callable:
    """A function that asks its arguments first."""
    @wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not asleep.get():
            for _ in asked(args) if not kwargs else asked((*args, *kwargs.values())):
                return handle_torch_function(call, (*args, *kwargs.values()), *args, **kwargs)
        return own(*args, **kwargs)
    return call


def asking_method(name: str, own: Callable) -> Callable:
    """A method that asks the class, which is told the method by the name that torch has for an operator."""
    operator = name.startswith("__")
    told = getattr(Tensor, SPELLINGS.get(name.strip("_"), name)) if operator else own

    @wraps(own)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if asleep.get() or operator and args and not known(args[0]):
            return own(self, *args, **kwargs)     # Python asks the other operand of classes that nobody knows
        return handle_torch_function(told, (self, *args, *kwargs.values()), self, *args, **kwargs)
    return call


def known(value: Any) -> bool:
    return isinstance(value, (Tensor, bool, int, float, complex, slice, tuple, list, str, type(None), type(...))) \
        or speaks(type(value))


def asking_attribute(own: property) -> property:
    """An attribute that asks the class."""
    def get(self: Any) -> Any:
        return own.fget(self) if asleep.get() else handle_torch_function(  # type: ignore[misc]
            own.__get__, (self,), self)
    return property(get, own.fset, own.fdel, own.__doc__)


def parts(self: Any) -> Iterator[Any]:
    """Its parts along the first dimension, in its class."""
    return iter(self.unbind(0) if self.ndim else Tensor.__iter__(self))


def take_part(cls: type) -> None:
    """Let a new class of tensors be asked, unless one that it inherits from is or does not want to be."""
    if cls.__torch_function__ is not disabled and not cls._asks:  # type: ignore[attr-defined]
        asking_class = made[0] if made else first()
        cls.__bases__ = (*(b for b in cls.__bases__ if b is not Tensor), asking_class)


def first() -> type:
    """Make `Asking`, and functions that look at their arguments in place of the namespaces' own."""
    later.complete()
    names: dict[str, Any] = {"__slots__": (), "__module__": __name__, "_asks": True}
    for name, own in vars(Tensor).items():
        public = not name.startswith("_") or name.startswith("__")
        if isinstance(own, FunctionType) and public and name not in APART:
            if getattr(Tensor, own.__name__, None) is not own:  # classes go by the name: `to` is made by a `convert`
                own.__name__ = name
            names[name] = asking_method(name, own)
        elif name in TENSORS and isinstance(own, property):
            names[name] = asking_attribute(own)
    made.append(type("Asking", (Tensor,), {**names, "__hash__": Tensor.__hash__, "__iter__": parts}))
    replaced: dict[Callable, Callable] = {}
    for name in NAMESPACES:
        module = import_module(name)
        for key in dir(module):
            own = vars(module).get(key)
            if isinstance(own, FunctionType) and not key.startswith("_") and not key.endswith("_") and key not in SILENT:
                if own not in replaced:
                    replaced[own] = asking(own)
                    replaced[own].__module__, replaced[own].__qualname__ = name, key     # where pickle finds it
                setattr(module, key, replaced[own])
    nn = sys.modules["rushlight.nn"]
    for key in dir(nn):                           # layers are loaded when they are asked for
        getattr(nn, key, None)
    for name, module in [*sys.modules.items()]:
        if name.startswith(("rushlight.nn.", "rushlight.utils.data.")) and not name.startswith("rushlight.nn.functional"):
            vars(module).update(forwarded(vars(module), replaced))
    return made[0]


def of_ops(own: FunctionType) -> bool:
    return own.__module__ == "rushlight" or own.__module__.startswith("rushlight.ops.")


def forwarded(names: dict[str, Any], replaced: dict[Callable, Callable]) -> dict[str, Any]:
    """What layers call by the shortest way, ops and modules of ops, with functions that ask in their place."""
    found: dict[str, Any] = {}
    for key, own in names.items():
        if isinstance(own, FunctionType) and (own in replaced or of_ops(own)):
            found[key] = replaced.setdefault(own, asking(own))
        elif isinstance(own, ModuleType) and own.__name__.startswith("rushlight.ops."):
            found[key] = Forwarding(own, replaced)
        elif type(own) is dict and any(isinstance(f, FunctionType) for f in own.values()):
            found[key] = own | forwarded({k: f for k, f in own.items() if isinstance(f, FunctionType)}, replaced)
    return found


class Forwarding(ModuleType):
    """A module of ops as layers see it: with the functions that ask."""

    def __init__(self, module: ModuleType, replaced: dict[Callable, Callable]):
        super().__init__(module.__name__)
        self.__dict__.update({k: replaced.get(v, v) if isinstance(v, FunctionType) else v for k, v in vars(module).items()})


class TorchFunctionMode:
    """A context that sees every call of a function of torch: NotImplementedError where one is entered."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """What torch would call."""
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> TorchFunctionMode:
        raise NotImplementedError("torch.overrides.TorchFunctionMode: functions of plain tensors ask nobody; cure: a class "
                                  "of tensors with __torch_function__, or saved_tensors_hooks and module hooks")

    def __exit__(self, *exc: object) -> None:
        """Nothing to end."""


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether it is one of Tensor's methods, or reads one of its attributes."""
    return getattr(func, "__name__", "") == "__get__" or any(func is f for f in vars(Tensor).values())


def resolve_name(f: Any) -> str | None:
    """A function's name as one would write it."""
    own = getattr(f, "__name__", "")
    if is_tensor_method_or_property(f):
        return f"torch.Tensor.{own}"
    for name in NAMESPACES:
        if own and getattr(sys.modules.get(name), own, None) is f:
            return f"{name.replace('rushlight', 'torch', 1)}.{own}"
    return None


def get_default_nowrap_functions() -> set:
    """Functions whose results keep their class: none here, as those that are asked for are tensors."""
    return set()


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """A decorator for functions of one's own: they ask the arguments that `dispatcher(*args, **kwargs)` gives.

    >>> @rushlight.overrides.wrap_torch_function(lambda a: (a,))
    ... def double(a):
    ...     return a * 2
    """
    def decorate(own: Callable) -> Callable:
        @wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            return handle_torch_function(call, relevant, *args, **kwargs) if has_torch_function(relevant) \
                else own(*args, **kwargs)
        return call
    return decorate


__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode", "get_default_nowrap_functions",
           "handle_torch_function", "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "resolve_name",
           "wrap_torch_function"]
