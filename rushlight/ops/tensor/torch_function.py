"""torch.overrides: users' classes that customise torch's functions through `__torch_function__`.

A class that inherits from Tensor gets `Gated` as a base between itself and Tensor, with methods that call
`__torch_function__`. With the first such class, public functions get a gate: code that searches the arguments for
`__torch_function__`. A function object stays the same object with different code (`add_gate`), so that earlier imports
also have the gate. Inside a gated call, nested calls pass no gate. Programs without such classes have no overhead.
In-place functions (`torch.relu_(x)`) have no gate, in-place methods have one. Attributes that are tensors have a gate
(`x.T`, `x.grad`, `x.grad = None`); `x.shape` and other attributes have none.
"""

from __future__ import annotations

import sys
from _thread import RLock
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any, TypeGuard

from rushlight.base import lazy
from rushlight.base.errors import type_error
from rushlight.base.public_function import private
from rushlight.base.text import GENERATED, define
from rushlight.base.tracebacks import PACKAGE
from rushlight.core.tensor import Tensor
from rushlight.ops.composites import offered
from rushlight.ops.tensor.tensor_copy_pickle import disabled

# True while gates are off; inside a gated call, the function that was called
gates_off: ContextVar[Any] = ContextVar("gates_off", default=False)
NAMESPACES = ("rushlight", "rushlight.nn.functional", "rushlight.linalg", "rushlight.fft", "rushlight.special")
# the active modes, innermost last
modes: ContextVar[tuple[TorchFunctionMode, ...]] = ContextVar("modes", default=())
FUNCTIONS_WITHOUT_GATE = """
    is_tensor is_storage tensor as_tensor asarray from_numpy from_file from_dlpack save load compile typename
    result_type can_cast promote_types manual_seed get_default_dtype set_default_dtype vmap explain contributions
    is_grad_enabled is_inference_mode_enabled
"""
PLAIN_CLASSES = {Tensor, int, float, bool, str, type(None)}  # classes without `__torch_function__`
# attributes with a gate: attributes that are tensors
TENSOR_ATTRIBUTES = ("T", "H", "mT", "mH", "real", "imag", "data", "grad")
METHODS_WITHOUT_GATE = """
    __new__ __init__ __init_subclass__ __hash__ __reduce_ex__ __deepcopy__ __array__ __setstate__ __array_wrap__
    __dlpack__ __dlpack_device__ as_subclass
"""
OPERATOR_METHODS = {
    "add": "add",
    "radd": "add",
    "mul": "mul",
    "rmul": "mul",
    "sub": "sub",
    "truediv": "div",
    "matmul": "matmul",
    "neg": "neg",
    "abs": "abs",
    "gt": "gt",
    "lt": "lt",
    "ge": "ge",
    "le": "le",
    "iadd": "add_",
    "isub": "sub_",
    "imul": "mul_",
    "itruediv": "div_",
    "invert": "bitwise_not",
}  # operator -> the method that `__torch_function__` receives
gated_classes: list[type] = []  # [`Gated`], once a class needs it
GATE_LOCK = RLock()


class DisableTorchFunctionSubclass:
    """Inside this context, functions treat instances of subclasses as plain tensors."""

    def __enter__(self) -> None:
        self.__dict__.setdefault("tokens", []).append(gates_off.set(True))

    def __exit__(self, *exc: object) -> None:
        gates_off.reset(self.__dict__["tokens"].pop())


DisableTorchFunction = DisableTorchFunctionSubclass


def overriding(args: Iterable[Any]) -> Iterator[Any]:
    """The arguments with a `__torch_function__`, also those in lists and tuples."""
    for a in args:
        kind = a.__class__
        if kind is list or kind is tuple:
            yield from (x for x in a if overrides(x.__class__))
        elif kind is not Tensor and overrides(kind):
            yield a


def overrides(kind: type) -> bool:
    """Whether gates call this class: subclasses of Tensor by users (not the package's sparse tensors), and other
    classes with `__torch_function__`.
    """
    if issubclass(kind, Tensor):
        return kind._overrides and kind.__torch_function__ is not disabled  # type: ignore[attr-defined]
    return hasattr(kind, "__torch_function__") and kind is not type


def overloaded(args: Iterable[Any]) -> list[Any]:
    """One argument of each class with `__torch_function__`, in the order of the calls: from the left, subclasses
    first."""
    found: list[Any] = []
    for a in overriding(args):
        if all(type(a) is not type(b) for b in found):
            place = next((i for i, b in enumerate(found) if issubclass(type(a), type(b))), len(found))
            found.insert(place, a)
    return found


def has_torch_function(relevant_args: Any) -> bool:
    """Whether one of the arguments has its own `__torch_function__`."""
    return not gates_off.get() and any(overrides(type(a)) for a in relevant_args)


def has_torch_function_unary(a: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((a,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """The first result of the arguments' `__torch_function__` that is not NotImplemented.

    TypeError if all return NotImplemented.
    """
    found = overloaded(relevant_args)
    types = tuple(type(a) for a in found)
    for a in found:
        answer = a.__torch_function__(public_api, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    name = getattr(public_api, "__name__", public_api)
    raise type_error(
        f"Multiple dispatch failed for 'torch.{name}'; all __torch_function__ handlers returned NotImplemented: "
        f"no implementation found for '{name}' on types that implement __torch_function__: "
        f"{[t.__name__ for t in types]}",
        "one of them must return something other than NotImplemented",
    )


def default(cls: type, func: Callable, types: Iterable[type], args: tuple = (), kwargs: dict | None = None) -> Any:
    """Tensor's own `__torch_function__`: call the function, and convert the resulting tensors to the argument's
    class."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    if gates_off.get() is func:  # nested calls of rushlight's functions pass no gate
        name = getattr(func, "__name__", func)
        raise type_error(
            f"{name}() of another library was given a tensor of rushlight",
            f"call rushlight's function: import rushlight as torch; torch.{name}(x); or pass x.numpy()",
        )
    token = gates_off.set(func)  # as DisableTorchFunctionSubclass does
    try:
        return converted(func(*args, **(kwargs or {})), cls, args)
    finally:
        gates_off.reset(token)


def converted(answer: Any, cls: type, args: tuple = ()) -> Any:
    """Tensors, also in tuples and lists, as tensors of the class."""
    if isinstance(answer, Tensor):
        if cls is Tensor or isinstance(answer, cls):
            return answer
        if answer.__class__ is not Tensor or any(answer is a for a in args):
            return answer.as_subclass(cls)
        answer.__class__ = cls  # the result is new: no other code holds it
        return answer
    if isinstance(answer, (tuple, list)) and any(isinstance(a, (Tensor, tuple, list)) for a in answer):
        inside = [converted(a, cls, args) for a in answer]
        return type(answer)._make(inside) if hasattr(answer, "_make") else type(answer)(inside)
    return answer


# -- gates of functions and methods ----------------------------------------------------------------

CODE = """
def around({names}):
    def call(*_args, _gate, **_kwargs):
        return _gate(_args, _kwargs)
        {names}
    return call
"""


@cache
def gate_of(names: tuple[str, ...]) -> Callable[..., Callable]:
    """A function that returns a function which passes its arguments to `_gate`.

    A function can take over the code of another function only if both have the same number of free variables. `names`:
    the free variables, which occur in an unreachable statement.
    """
    return define(CODE.format(names=", ".join(names)), "around", {}, f"gate of {len(names)}")


def copy_of(f: FunctionType) -> FunctionType:
    """Another function with the same behaviour."""
    other = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    for name in ("__kwdefaults__", "__doc__", "__module__", "__qualname__"):
        setattr(other, name, getattr(f, name))
    other.__dict__.update(f.__dict__)
    return other


def gate(own: Callable, reported: Callable, operator: bool = False) -> Callable[[tuple, dict], Any]:
    """(args, kwargs) -> the result of the innermost mode, else of an argument's `__torch_function__`, both called with
    the function `reported`; else of `own`. With an operand of an unknown class, an operator calls `own`, which returns
    NotImplemented; Python then tries the operand's class.
    """

    def call(args: tuple, kwargs: dict) -> Any:
        if operator and len(args) == 2 and not known(args[1]):
            return own(*args, **kwargs)
        if modes.get():
            return run_mode(reported, args, kwargs)
        if not gates_off.get():
            values = (*args, *kwargs.values()) if kwargs else args
            if not PLAIN_CLASSES.issuperset(map(type, values)) and any(True for _ in overriding(values)):
                return handle_torch_function(reported, values, *args, **kwargs)
        return own(*args, **kwargs)

    return call


def run_mode(reported: Callable, args: tuple, kwargs: dict) -> Any:
    """The result of the innermost mode; calls inside it go to the next outer mode."""
    *outer, mode = modes.get()
    types = tuple([type(a) for a in overloaded((*args, *kwargs.values()))])
    token = modes.set(tuple(outer))
    try:
        answer = mode.__torch_function__(reported, types, args, kwargs)
    finally:
        modes.reset(token)
    if answer is NotImplemented:
        return handle_torch_function(reported, (*args, *kwargs.values()), *args, **kwargs)
    return answer


def add_gate(f: FunctionType, reported: Callable, operator: bool = False) -> None:
    """Give the function a gate. `reported`: the function that `__torch_function__` receives."""
    own = copy_of(f)
    f.__dict__.setdefault("__wrapped__", own)  # with the parameters, for `inspect`
    f.__kwdefaults__ = {**(f.__kwdefaults__ or {}), "_gate": gate(own, reported, operator)}
    names = f.__code__.co_freevars
    # last, because other threads may already call the function
    f.__code__ = gate_of(names)(*names).__code__


def reported_method(name: str, own: Callable) -> tuple[Callable, bool]:
    """(the method that `__torch_function__` receives, whether it is an operator); operators have torch's names."""
    operator = name.startswith("__")
    return (getattr(Tensor, OPERATOR_METHODS.get(name.strip("_"), name)) if operator else own), operator


def gated_method(name: str, own: Callable) -> Callable:
    """A method with a gate."""
    call_gate = gate(own, *reported_method(name, own))

    @wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        return call_gate(args, kwargs)

    return call


def known(value: Any) -> bool:
    return isinstance(
        value, (Tensor, bool, int, float, complex, slice, tuple, list, str, type(None), type(...))
    ) or overrides(type(value))


def gated_attribute(own: property) -> property:
    """An attribute with a gate for reading, writing and deleting."""

    def gated(access: Callable) -> Callable:
        def call(self: Any, *value: Any) -> Any:
            if gates_off.get():
                return access(self, *value)
            return handle_torch_function(access, (self,), self, *value)

        return call

    set_, delete = own.fset and gated(own.__set__), own.fdel and gated(own.__delete__)
    return property(gated(own.__get__), set_, delete, own.__doc__)


def parts(self: Any) -> Iterator[Any]:
    """The tensors along the first dimension, in the tensor's class."""
    return iter(self.unbind(0) if self.ndim else Tensor.__iter__(self))


def insert_gated_class(cls: Any) -> None:
    """Insert `Gated` into the bases of a new subclass of Tensor, unless a base has it already or `__torch_function__`
    is disabled.
    """
    if cls.__torch_function__ is not disabled and not cls._overrides:
        cls.__bases__ = (*(b for b in cls.__bases__ if b is not Tensor), first())


def first() -> type:
    """The class `Gated`. The first call creates it and gives the functions gates."""
    with GATE_LOCK:
        return gated_classes[0] if gated_classes else make_gated_class()


def make_gated_class() -> type:
    lazy.complete()
    methods, functions = own_methods(), public()
    functions |= layer_functions({f.__name__: shown for f, shown in functions.items()})
    names: dict[str, Any] = {"__slots__": (), "__module__": __name__, "_overrides": True}
    for name, own in methods.items():
        if not hasattr(own, "op") and getattr(Tensor, own.__name__, None) is not own:
            own.__name__ = name  # `__torch_function__` receives this name: the method `to` is the function `convert`
        names[name] = gated_method(name, own)
    names |= {name: gated_attribute(vars(Tensor)[name]) for name in TENSOR_ATTRIBUTES}
    gated_classes.append(type("Gated", (Tensor,), {**names, "__hash__": Tensor.__hash__, "__iter__": parts}))
    for f, reported in functions.items():
        add_gate(f, reported)
    return gated_classes[0]


def ours(f: Any) -> TypeGuard[FunctionType]:
    """True if `f` is a function of rushlight. A program may have replaced a function by its own."""
    return isinstance(f, FunctionType) and f.__code__.co_filename.startswith((PACKAGE, GENERATED))


def own_methods() -> dict[str, FunctionType]:
    """The methods of Tensor that get a gate, by name. A method that is also a public function is first replaced by a
    copy, so that it can have another gate.
    """
    others = {f: copy_of(f) for f in {*offered().values()} if isinstance(f, FunctionType)}
    for name, own in [*vars(Tensor).items()]:
        if isinstance(own, FunctionType) and own in others:
            setattr(Tensor, name, others[own])
    without = METHODS_WITHOUT_GATE.split()
    return {
        name: own
        for name, own in vars(Tensor).items()
        if ours(own) and name not in without and (not name.startswith("_") or name.startswith("__"))
    }


def public() -> dict[FunctionType, Callable]:
    """The functions that get a gate, each with the public function that `__torch_function__` receives."""
    found: dict[FunctionType, Callable] = {}
    without = FUNCTIONS_WITHOUT_GATE.split()
    for module in map(import_module, NAMESPACES):
        for key in dir(module):
            shown: Any = vars(module).get(key)
            if ours(f := private(shown)) and key not in without and not key.startswith("_") and not key.endswith("_"):
                found.setdefault(f, shown)
    return found


def layer_functions(known: dict[str, Callable]) -> dict[FunctionType, Callable]:
    """The ops that nn's modules call directly, each with the public function of its name."""
    nn = sys.modules["rushlight.nn"]
    for key in dir(nn):  # nn's modules are loaded on first access
        getattr(nn, key, None)
    held = {
        f
        for name, module in [*sys.modules.items()]
        if name.startswith("rushlight.nn.")
        for f in vars(module).values()
        if ours(f) and "functional" not in name
    }
    return {f: known.get(f.__name__, f) for f in held if hasattr(f, "op")}


@cache
def gate_methods() -> None:
    """Give the methods of plain tensors gates, too, for modes."""
    first()
    for name, f in own_methods().items():
        add_gate(f, *reported_method(name, f))


class TorchFunctionMode:
    """A context that intercepts every call of a function or method of torch, and returns a result in its place.

    A subclass's `__torch_function__` is not called again for calls inside it. A mode intercepts neither attributes
    (`x.shape`) nor functions that make tensors from data (`torch.tensor`). With the first mode, small ops become about
    twice as slow in this process.

        class Loud(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                print(func.__name__)
                return func(*args, **(kwargs or {}))

        with Loud():
            y = torch.ones(2).exp() + 1           # ones, exp, add
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Called in place of a function; this default calls the function."""
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> TorchFunctionMode:
        gate_methods()
        self.__dict__.setdefault("tokens", []).append(modes.set((*modes.get(), self)))
        return self

    def __exit__(self, *exc: object) -> None:
        modes.reset(self.__dict__["tokens"].pop())


def is_tensor_like(inp: Any) -> bool:
    """True if the object is a tensor, or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether `func` is a method of Tensor, or reads an attribute of Tensor."""
    return getattr(func, "__name__", "") == "__get__" or any(func is f for f in vars(Tensor).values())


def resolve_name(f: Any) -> str | None:
    """The full name of a function, as in a program."""
    own = getattr(f, "__name__", "")
    if is_tensor_method_or_property(f):
        return f"torch.Tensor.{own}"
    for name in NAMESPACES:
        if own and getattr(sys.modules.get(name), own, None) is f:
            return f"{name.replace('rushlight', 'torch', 1)}.{own}"
    return None


def get_default_nowrap_functions() -> set:
    """Functions whose results keep their class: empty here, because only functions that return tensors have a gate."""
    return set()


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """A decorator that gives a user's function a gate; `dispatcher(*args, **kwargs)` returns the relevant arguments.

    >>> @rushlight.overrides.wrap_torch_function(lambda a: (a,))
    ... def double(a):
    ...     return a * 2
    """

    def decorate(own: Callable) -> Callable:
        @wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return own(*args, **kwargs)

        return call

    return decorate


__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode", "get_default_nowrap_functions",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip
