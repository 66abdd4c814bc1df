"""Layers that apply a function, whose signature gives the layers' methods; and new parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.device import on_meta
from rushlight.base.errors import type_error
from rushlight.base.text import define
from rushlight.core.arguments import integer
from rushlight.core.tensor import from_array
from rushlight.creation.factories import blank, check_sizes, room
from rushlight.nn import functional as F
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter


class Layer(Module):
    """The base of layers that apply a function. Settings are attributes: class ELU(Layer, function=F.elu).

    The settings are the function's parameters after its tensors. `__init__`, `forward` and `repr` are made from their
    names, order, defaults and types, unless the class defines these methods. Words of the class statement:

    `settings`: the settings, in the order of the constructor's parameters; `forward` takes the function's parameters
    before them. `shows`: the settings in `repr`, default all; `inplace` only if it is true. `unless`: {"stride":
    "kernel_size"}: a stride of None is replaced by kernel_size. Other words are defaults.

    A class inherits its base's constructor, unless the class has other defaults or the base's constructor takes
    `**settings`.
    """

    _function: Callable
    _shown_settings: tuple[str, ...] | None = None
    _not_kept: tuple[str, ...] = ()  # parameters of a base class's constructor that do not become attributes

    def __init_subclass__(
        cls, function: Callable | None = None, settings: str | None = None, shows: str | None = None,
        unless: dict[str, str] | None = None, **more: Any,
    ):  # fmt: skip
        super().__init_subclass__(**({} if function else more))  # a user's class has words for its other bases
        if shows is not None:
            cls._shown_settings = tuple(shows.split())
        if function is None:
            return
        name = inspect.unwrap(function).__name__
        if not hasattr(F, name):
            raise type_error(
                f"class {cls.__name__}: {name} is not a function of nn.functional", "derive from nn.Module"
            )
        cls._function = staticmethod(function)
        names, defaults = parameters_of(function)
        if settings is None:
            kinds = inspect.unwrap(function).__annotations__
            own = [name for name in names if kinds[name] != "Tensor" and name != "training"]
        else:
            own = settings.split()
        if cls._shown_settings is None:
            cls._shown_settings = tuple(own)
        made = methods(cls, names, own, defaults | more, unless or {})
        if more or cls.__init__.__code__.co_flags & inspect.CO_VARKEYWORDS:
            cls.__init__ = made[0]  # type: ignore[method-assign]
        if cls.forward is Module.forward or hasattr(cls.forward, "function"):
            cls.forward = made[1]  # type: ignore[method-assign]

    def __init__(self, **settings: Any):
        super().__init__()
        self.__dict__.update(settings)

    def extra_repr(self) -> str:
        names = [name for name in self._shown_settings or () if name != "inplace" or self.inplace]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


def parameters_of(function: Callable) -> tuple[list[str], dict[str, Any]]:
    """The names of the positional parameters, and their defaults. inspect.signature would take longer than the rest."""
    code, defaults = inspect.unwrap(function).__code__, inspect.unwrap(function).__defaults__ or ()
    names = [*code.co_varnames[: code.co_argcount]]
    return names, dict(zip(names[len(names) - len(defaults) :], defaults))


METHODS = """\
def __methods__(__class__, F):
    def __init__(self{header}):
        super().__init__({kept})

    def forward(self, {inputs}):
        return F.{name}({arguments})

    return __init__, forward
"""


def methods(cls: Any, names: list[str], own: list[str], defaults: dict[str, Any], unless: dict[str, str]) -> Any:
    """`__init__` and `forward` of the class: `names` are the function's parameters, `own` the settings."""
    function: Any = inspect.unwrap(cls._function)
    inputs = names[: min(map(names.index, own), default=1)]
    attributes = {*own, "training"} - {*cls._not_kept}
    passed = [f"self.{name}" if name in attributes else repr(defaults.get(name)) for name in names]
    end = max([i for i, name in enumerate(names) if name in attributes], default=0) + 1
    text = METHODS.format(
        header=header(own, defaults),
        kept=", ".join(f"{name}={kept(name, unless.get(name))}" for name in own),
        inputs=", ".join(inputs),
        name=function.__name__,
        arguments=", ".join(inputs + passed[len(inputs) : end]),
    )
    # in the globals of the function, because its annotations can be evaluated there
    init, forward = written(cls, text, function.__globals__, F)
    init.__annotations__ = {name: function.__annotations__[name] for name in own}
    forward.__annotations__ = {name: function.__annotations__[name] for name in [*inputs, "return"]}
    forward.function = function
    return init, forward


def written(cls: type, text: str, scope: dict[str, Any], *values: Any) -> Any:
    """The methods that a text defines in `__methods__(__class__, *values)`, as methods of the class."""
    write = define(text, "__methods__", scope, f"methods of {cls.__name__}")
    made = write(cls, *values)
    for method in made:
        method.__module__, method.__qualname__ = cls.__module__, f"{cls.__qualname__}.{method.__name__}"
        method.written_by = write  # for inspect.getsource
    return made


def header(names: Iterable[str], defaults: dict[str, Any]) -> str:
    """The parameters of a method after `self`, without types."""
    return "".join(f", {name}={defaults[name]!r}" if name in defaults else f", {name}" for name in names)


def kept(name: str, other: str | None) -> str:
    """The value of a setting: the argument, or the `other` setting if it is None."""
    return name if other is None else f"{other} if {name} is None else {name}"


def uninitialized(*shape: int, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter with arbitrary contents; `reset_parameters` fills it."""
    for size in shape:
        integer(size, "size")  # TypeError for a word
    if shape:
        check_sizes(shape)
    d = dtypes.or_default(dtype)
    return Parameter(from_array(blank(shape, d.numpy) if on_meta(device) else room(np.empty, shape, d.numpy)))
