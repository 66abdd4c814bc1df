"""torch.overrides: classes of users that take part in torch's functions by `__torch_function__`.

Plain programs pay nothing for it. A class that inherits from Tensor gets `Asking` between itself
and Tensor, with methods that ask `__torch_function__`; and with the first such class the functions
learn to look at their arguments: they stay what they are, whoever knows them by whatever name, with
other code (`let_ask`). What a function does inside asks nobody again. (To look at the arguments in
any program would cost each op 15 ns, and 70 each function that is made of ops: an op finds out by
itself that an argument has no array, but what is made of ops would find out in the midst of its
work.) Functions that write (`torch.relu_(x)`) ask nobody, methods that write do. Attributes are
asked for where they are tensors (`x.T`, `x.data`), not `x.shape` and its like."""

from __future__ import annotations

import sys
from _thread import RLock
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

from rushlight.base import lazy
from rushlight.base.errors import explain
from rushlight.base.text import define
from rushlight.core.build import offered
from rushlight.core.tensor import Tensor
from rushlight.ops.tensor.tensor_copy_pickle import disabled

asleep: ContextVar[Any] = ContextVar(
    "asleep", default=False
)  # true while functions are to ask nobody: the one that asked
NAMESPACES = (
    "rushlight",
    "rushlight.nn.functional",
    "rushlight.linalg",
    "rushlight.fft",
    "rushlight.special",
)
modes: ContextVar[tuple[TorchFunctionMode, ...]] = ContextVar(
    "modes", default=()
)  # that are entered, the innermost last
SILENT = {
    "is_tensor",
    "is_storage",
    "tensor",
    "as_tensor",
    "asarray",
    "from_numpy",
    "from_file",
    "from_dlpack",
    "save",
    "load",
    "compile",
    "typename",
    "result_type",
    "can_cast",
    "promote_types",
    "manual_seed",
    "get_default_dtype",
    "set_default_dtype",
    "vmap",
    "export",
    "explain",
    "contributions",
    "is_grad_enabled",
    "is_inference_mode_enabled",
}
PLAIN = {Tensor, int, float, bool, str, type(None)}  # what has nothing to say
TENSORS = ("T", "H", "mT", "mH", "real", "imag", "data")  # attributes that are tensors
APART = {
    "__new__",
    "__init__",
    "__init_subclass__",
    "__hash__",
    "__reduce_ex__",
    "__deepcopy__",
    "__array__",
    "__setstate__",
    "__array_wrap__",
    "__dlpack__",
    "__dlpack_device__",
    "as_subclass",
}
SPELLINGS = {
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
}  # operators, and the methods that they are
made: list[type] = []  # `Asking`, once there is somebody to ask
LEARNING = RLock()


class DisableTorchFunctionSubclass:
    """Inside it functions do what they do for plain tensors, whoever their arguments are."""

    def __enter__(self) -> None:
        self.__dict__.setdefault("tokens", []).append(asleep.set(True))

    def __exit__(self, *exc: object) -> None:
        asleep.reset(self.tokens.pop())  # type: ignore[attr-defined]


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
    """Whether objects of this class are asked: tensors of users' classes, not our own sparse ones,
    and what is no tensor."""
    if issubclass(kind, Tensor):
        return kind._asks and kind.__torch_function__ is not disabled  # type: ignore[attr-defined]
    return hasattr(kind, "__torch_function__") and kind is not type


def overloaded(args: Iterable[Any]) -> list[Any]:
    """One of each class that has a say, in the order in which they are asked: from the left,
    subclasses first."""
    found: list[Any] = []
    for a in asked(args):
        if all(type(a) is not type(b) for b in found):
            place = next(
                (i for i, b in enumerate(found) if issubclass(type(a), type(b))), len(found)
            )
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


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the classes of the arguments make of the function: the first answer that is not
    NotImplemented.

    TypeError if all of them say NotImplemented.
    """
    found = overloaded(relevant_args)
    types = tuple(type(a) for a in found)
    for a in found:
        answer = a.__torch_function__(public_api, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    name = getattr(public_api, "__name__", public_api)
    raise TypeError(
        explain(
            f"Multiple dispatch failed for 'torch.{name}'; all __torch_function__ handlers "
            "returned "
            f"NotImplemented: no implementation found for '{name}' on types that implement "
            f"__torch_function__: {[t.__name__ for t in types]}",
            "let one of them return something else than NotImplemented",
        )
    )


def default(
    cls: type, func: Callable, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
) -> Any:
    """Tensor's own `__torch_function__`: the function as it is, its tensors in the class of the
    argument."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    if asleep.get() is func:  # ours would not have asked again
        name = getattr(func, "__name__", func)
        raise TypeError(
            explain(
                f"{name}() of another library was given a tensor of rushlight",
                "call rushlight's, or give it x.numpy(): import rushlight as torch; "
                f"torch.{name}(x)",
            )
        )
    token = asleep.set(func)  # as DisableTorchFunctionSubclass does
    try:
        return converted(func(*args, **(kwargs or {})), cls, args)
    finally:
        asleep.reset(token)


def converted(answer: Any, cls: type, args: tuple = ()) -> Any:
    """Tensors, also in tuples and lists, as tensors of the class."""
    if isinstance(answer, Tensor):
        if cls is Tensor or isinstance(answer, cls):
            return answer
        if answer.__class__ is not Tensor or any(answer is a for a in args):
            return answer.as_subclass(cls)
        answer.__class__ = cls  # nobody else has it yet
        return answer
    if isinstance(answer, (tuple, list)) and any(
        isinstance(a, (Tensor, tuple, list)) for a in answer
    ):
        inside = [converted(a, cls, args) for a in answer]
        return type(answer)._make(inside) if hasattr(answer, "_make") else type(answer)(inside)
    return answer


# -- functions and methods that ask ----------------------------------------------------------------

CODE = """
def around({names}):
    def call(*_args, _gate, **_kwargs):
        return _gate(_args, _kwargs)
        {names}
    return call
"""


@cache
def gate_of(names: tuple[str, ...]) -> Callable[..., Callable]:
    """A function that makes a function that hands its arguments to `_gate`.

    A function can take the code of another one only if both have as many free variables: `names`,
    which stand in a statement that is never reached."""
    return define(CODE.format(names=", ".join(names)), "around", {}, f"gate of {len(names)}")


def alike(f: FunctionType) -> FunctionType:
    """Another function that does the same."""
    other = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    other.__kwdefaults__, other.__doc__, other.__module__, other.__qualname__ = (
        f.__kwdefaults__,
        f.__doc__,
        f.__module__,
        f.__qualname__,
    )
    other.__dict__.update(f.__dict__)
    return other


def gate(own: Callable, told: Callable, operator: bool = False) -> Callable[[tuple, dict], Any]:
    """(args, kwargs) -> what those say of `told` who have a say in it: the innermost mode, else the
    arguments; else what `own` gives. Of an operator's unknown operand Python asks the class."""

    def call(args: tuple, kwargs: dict) -> Any:
        if operator and len(args) == 2 and not known(args[1]):
            return own(*args, **kwargs)
        if modes.get():
            return by_mode(told, args, kwargs)
        if not asleep.get():
            values = (*args, *kwargs.values()) if kwargs else args
            if not PLAIN.issuperset(map(type, values)) and any(True for _ in asked(values)):
                return handle_torch_function(told, values, *args, **kwargs)
        return own(*args, **kwargs)

    return call


def by_mode(told: Callable, args: tuple, kwargs: dict) -> Any:
    """What the innermost mode makes of the function, in which those around it are asked next."""
    *outer, mode = modes.get()
    types = tuple([type(a) for a in overloaded((*args, *kwargs.values()))])
    token = modes.set(tuple(outer))
    try:
        answer = mode.__torch_function__(told, types, args, kwargs)
    finally:
        modes.reset(token)
    return (
        handle_torch_function(told, (*args, *kwargs.values()), *args, **kwargs)
        if answer is NotImplemented
        else answer
    )


def let_ask(f: FunctionType, told: Callable, operator: bool = False) -> None:
    """From now on the function asks first; `told`: the function that is told of."""
    own = alike(f)
    f.__dict__.setdefault("__wrapped__", own)  # with the parameters, for who looks
    f.__kwdefaults__ = {**(f.__kwdefaults__ or {}), "_gate": gate(own, told, operator)}
    names = f.__code__.co_freevars
    f.__code__ = gate_of(names)(*names).__code__  # at last: other threads may call it now


def told_of(name: str, own: Callable) -> tuple[Callable, bool]:
    """The method that classes are told of, by the name that torch has for an operator; and whether
    it is one."""
    operator = name.startswith("__")
    return (getattr(Tensor, SPELLINGS.get(name.strip("_"), name)) if operator else own), operator


def asking_method(name: str, own: Callable) -> Callable:
    """A method that asks first."""
    asks = gate(own, *told_of(name, own))

    @wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        return asks(args, kwargs)

    return call


def known(value: Any) -> bool:
    return isinstance(
        value, (Tensor, bool, int, float, complex, slice, tuple, list, str, type(None), type(...))
    ) or speaks(type(value))


def asking_attribute(own: property) -> property:
    """An attribute that asks the class."""

    def get(self: Any) -> Any:
        return (
            own.__get__(self) if asleep.get() else handle_torch_function(own.__get__, (self,), self)
        )

    return property(get, own.fset, own.fdel, own.__doc__)


def parts(self: Any) -> Iterator[Any]:
    """Its parts along the first dimension, in its class."""
    return iter(self.unbind(0) if self.ndim else Tensor.__iter__(self))


def take_part(cls: type) -> None:
    """Let a new class of tensors be asked, unless one that it inherits from is or does not want to
    be."""
    if cls.__torch_function__ is not disabled and not cls._asks:  # type: ignore[attr-defined]
        cls.__bases__ = (*(b for b in cls.__bases__ if b is not Tensor), first())


def first() -> type:
    """Make `Asking`, and let functions ask; once."""
    with LEARNING:
        return made[0] if made else learnt()


def learnt() -> type:
    lazy.complete()
    methods, functions = own_methods(), public()
    functions |= of_layers({f.__name__: f for f in functions})
    names: dict[str, Any] = {"__slots__": (), "__module__": __name__, "_asks": True}
    for name, own in methods.items():
        if not hasattr(own, "op") and getattr(Tensor, own.__name__, None) is not own:
            own.__name__ = name  # classes go by the name: `to` is made by a `convert`
        names[name] = asking_method(name, own)
    names |= {name: asking_attribute(vars(Tensor)[name]) for name in TENSORS}
    made.append(
        type("Asking", (Tensor,), {**names, "__hash__": Tensor.__hash__, "__iter__": parts})
    )
    for f, told in functions.items():
        let_ask(f, told)
    return made[0]


def own_methods() -> dict[str, FunctionType]:
    """Tensor's methods that `Asking` has, by name. Those that are functions too become others than
    these."""
    others = {f: alike(f) for f in {*offered().values()} if isinstance(f, FunctionType)}
    for name, own in [*vars(Tensor).items()]:
        if isinstance(own, FunctionType) and own in others:
            setattr(Tensor, name, others[own])
    return {
        name: own
        for name, own in vars(Tensor).items()
        if isinstance(own, FunctionType)
        and name not in APART
        and (not name.startswith("_") or name.startswith("__"))
    }


def public() -> dict[FunctionType, Callable]:
    """The functions of the namespaces that ask, each with itself as what it tells of."""
    return {
        f: f
        for module in map(import_module, NAMESPACES)
        for key in dir(module)
        if isinstance(f := vars(module).get(key), FunctionType)
        and key not in SILENT
        and not key.startswith("_")
        and not key.endswith("_")
    }


def of_layers(known: dict[str, FunctionType]) -> dict[FunctionType, Callable]:
    """The ops that layers call by the shortest way, with the functions of these names."""
    nn = sys.modules["rushlight.nn"]
    for key in dir(nn):  # layers are loaded when they are asked for
        getattr(nn, key, None)
    held = {
        f
        for name, module in [*sys.modules.items()]
        if name.startswith("rushlight.nn.")
        for f in vars(module).values()
        if isinstance(f, FunctionType) and "functional" not in name
    }
    return {f: known.get(f.__name__, f) for f in held if hasattr(f, "op")}


@cache
def methods_ask() -> None:
    """Let the methods of plain tensors ask too: the modes."""
    first()
    for name, f in own_methods().items():
        let_ask(f, *told_of(name, f))


class TorchFunctionMode:
    """A context that sees every call of a function or method of torch, and answers in its place.

    Inside `__torch_function__` the mode is not asked again. Attributes (`x.shape`) and what only
    makes tensors from data (`torch.tensor`) are not seen. From the first mode on, small ops take
    twice the time in this program.

        class Loud(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                print(func.__name__)
                return func(*args, **(kwargs or {}))

        with Loud():
            y = torch.ones(2).exp() + 1           # ones, exp, add
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """What is done in the function's place: here what it does."""
        return func(*args, **(kwargs or {}))

    def __enter__(self) -> TorchFunctionMode:
        methods_ask()
        self.__dict__.setdefault("tokens", []).append(modes.set((*modes.get(), self)))
        return self

    def __exit__(self, *exc: object) -> None:
        modes.reset(self.tokens.pop())  # type: ignore[attr-defined]


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether it is one of Tensor's methods, or reads one of its attributes."""
    return getattr(func, "__name__", "") == "__get__" or any(
        func is f for f in vars(Tensor).values()
    )


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
    """Functions whose results keep their class: none here, as those that are asked for are
    tensors."""
    return set()


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """A decorator for functions of one's own: they ask the arguments that `dispatcher(*args,
    **kwargs)` gives.

    >>> @rushlight.overrides.wrap_torch_function(lambda a: (a,))
    ... def double(a):
    ...     return a * 2
    """

    def decorate(own: Callable) -> Callable:
        @wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            return (
                handle_torch_function(call, relevant, *args, **kwargs)
                if has_torch_function(relevant)
                else own(*args, **kwargs)
            )

        return call

    return decorate


__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]
