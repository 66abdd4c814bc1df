"""Layers that apply a function: their methods come from its signature. And new parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rushlight.base import dtypes
from rushlight.base.device import on_meta
from rushlight.base.text import define
from rushlight.core.arguments import integer
from rushlight.core.tensor import from_array
from rushlight.creation.factories import blank, check_sizes, room
from rushlight.nn import functional as F
from rushlight.nn.module import Module
from rushlight.nn.parameter import Parameter


class Layer(Module):
    """The base of layers that apply a function. Settings are attributes: class ELU(Layer, function=F.elu).

    The settings are the function's parameters after its tensors. Their names, order, defaults and types make
    `__init__`, `forward` and `repr`, unless the class defines these methods itself. Words of the class statement:

    `settings`: the settings, in the order of the constructor's parameters; the function's parameters before them are
    those of forward. `shows`: the settings in `repr`, default all; `inplace` only if it is true.
    `unless`: {"stride": "kernel_size"}: a stride of None is replaced by kernel_size. Other words are defaults.

    A class inherits its base's constructor, unless it has other defaults or the base's constructor takes `**settings`.
    """

    _function: Callable
    _shown_settings: tuple[str, ...] | None = None
    _not_kept: tuple[str, ...] = ()  # parameters of a base class's constructor that become no attributes

    def __init_subclass__(
        cls, function: Callable | None = None, settings: str | None = None, shows: str | None = None,
        unless: dict[str, str] | None = None, **more: Any,
    ):  # fmt: skip
        super().__init_subclass__(**({} if function else more))  # words of a user's class, for its other bases
        if shows is not None:
            cls._shown_settings = tuple(shows.split())
        if function is None:
            return
        cls._function = staticmethod(function)
        parameters = {name: p.replace(default=more.get(name, p.default)) for name, p in signature(function).items()}
        names = settings_of(parameters) if settings is None else settings.split()
        if cls._shown_settings is None:
            cls._shown_settings = tuple(names)
        init, forward = methods(cls, parameters, names, unless or {})
        if more or cls.__init__.__code__.co_flags & inspect.CO_VARKEYWORDS:
            cls.__init__ = init  # type: ignore[method-assign]
        if cls.forward is Module.forward or hasattr(cls.forward, "function"):
            cls.forward = forward  # type: ignore[method-assign]

    def __init__(self, **settings: Any):
        super().__init__()
        self.__dict__.update(settings)

    def extra_repr(self) -> str:
        names = [name for name in self._shown_settings or () if name != "inplace" or self.inplace]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


def signature(function: Callable) -> dict[str, inspect.Parameter]:
    """The parameters of a function that can be settings or inputs of a layer, by name."""
    return {name: p for name, p in inspect.signature(function).parameters.items() if p.kind is not p.KEYWORD_ONLY}


def settings_of(parameters: dict[str, inspect.Parameter]) -> list[str]:
    """The names of the parameters after the tensors. `training` is an attribute of every module."""
    return [name for name, p in parameters.items() if p.annotation != "Tensor" and name != "training"]


METHODS = """\
def __methods__(__class__, F):
    def __init__{header}:
        super().__init__({kept})

    def forward(self, {inputs}):
        return F.{name}({arguments})

    return __init__, forward
"""


def methods(
    cls: type[Layer], parameters: dict[str, inspect.Parameter], names: list[str], unless: dict[str, str]
) -> tuple[Callable, Callable]:
    """`__init__` and `forward` of the class, from the function's parameters and the names of the settings."""
    function: Any = cls._function
    inputs = list(parameters)[: min(map(list(parameters).index, names), default=1)]
    settings = [parameters[name] for name in names]
    text = METHODS.format(
        header=header(settings),
        kept=", ".join(f"{name}={kept(name, unless.get(name))}" for name in names),
        inputs=", ".join(inputs),
        name=function.__name__,
        arguments=", ".join([*inputs, *passed(parameters, len(inputs), {*names, "training"} - {*cls._not_kept})]),
    )
    # in the globals of the function its annotations can be evaluated
    init, forward = written(cls, text, inspect.unwrap(function).__globals__, F)
    init.__annotations__ = types_of(settings)
    forward.__annotations__ = types_of(parameters[name] for name in inputs)
    forward.__annotations__["return"] = inspect.signature(function).return_annotation
    forward.function = function
    return init, forward


def written(cls: type, text: str, scope: dict[str, Any], *values: Any) -> Any:
    """The methods in a text that defines `__methods__(__class__, *values)`, as if they stood in the class."""
    write = define(text, "__methods__", scope, f"methods of {cls.__name__}")
    made = write(cls, *values)
    for method in made:
        method.__module__, method.__qualname__ = cls.__module__, f"{cls.__qualname__}.{method.__name__}"
        method.written_by = write  # its code keeps the text for inspect.getsource
    return made


def header(parameters: Iterable[inspect.Parameter]) -> str:
    """(self, ...): names and defaults, without types."""
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return str(inspect.Signature([this, *(p.replace(annotation=p.empty) for p in parameters)]))


def types_of(parameters: Iterable[inspect.Parameter]) -> dict[str, Any]:
    """The annotations of a method with these parameters."""
    return {p.name: p.annotation for p in parameters}


def kept(name: str, other: str | None) -> str:
    """The value of a setting: the argument, or the `other` setting if it is None."""
    return name if other is None else f"{other} if {name} is None else {name}"


def passed(parameters: dict[str, inspect.Parameter], start: int, own: set[str]) -> list[str]:
    """The arguments of the call from `start` to the last attribute: attributes, and defaults of other parameters."""
    found = [f"self.{name}" if name in own else repr(p.default) for name, p in parameters.items()]
    last = max((i for i, name in enumerate(parameters) if name in own), default=0)
    return found[start : last + 1]


def uninitialized(*shape: int, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter with arbitrary contents; `reset_parameters` fills it."""
    for size in shape:
        integer(size, "size")  # TypeError for a word
    if shape:
        check_sizes(shape)
    d = dtypes.or_default(dtype)
    return Parameter(from_array(blank(shape, d.numpy) if on_meta(device) else room(np.empty, shape, d.numpy)))
