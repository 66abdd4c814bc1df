"""Values of TorchScript that are neither tensors nor Python's: classes of an archive and their objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.archives.budget import RUNNING, LimitExceeded

MAX_DEPTH = 60  # calls inside calls: each takes several of Python's, which allows 1000

Env = dict[str, Any]
Run = Callable[[Env], Any]


class Error(Exception):
    """An exception that a scripted program raises; the message has the exception's class.

    >>> issubclass(rushlight.jit.Error, Exception)
    True
    """


Error.__module__ = "rushlight.jit"


class Parameter(NamedTuple):
    """A parameter of a function. `default`: None if the parameter has none, otherwise what computes the default."""

    name: str
    default: Run | None


class Function:
    """A function or method of an archive. `body` returns None, or a tuple with the returned value."""

    def __init__(self, name: str, parameters: list[Parameter], body: Run, text: str = ""):
        self.name, self.parameters, self.body, self.text = name, parameters, body, text

    def call(self, args: tuple | list, named: dict[str, Any]) -> Any:
        """The result for arguments."""
        budget = RUNNING.get()
        budget.step()
        if budget.depth >= MAX_DEPTH:
            raise LimitExceeded(f"{self.name}: more than {MAX_DEPTH} calls inside calls")
        env = self.bound(args, named)
        budget.depth += 1
        try:
            out = self.body(env)
        finally:
            budget.depth -= 1
        return None if out is None else out[0]

    def bound(self, args: tuple | list, named: dict[str, Any]) -> Env:
        """The parameters with their values. TypeError for arguments that do not fit."""
        if len(args) > len(self.parameters):
            raise TypeError(f"{self.name}() takes {len(self.parameters)} arguments, and {len(args)} were given")
        env = {parameter.name: value for parameter, value in zip(self.parameters, args)}
        for name, value in named.items():
            if name in env or all(name != parameter.name for parameter in self.parameters):
                raise TypeError(f"{self.name}() has no argument {name!r}, or was given it twice")
            env[name] = value
        for parameter in self.parameters:
            if parameter.name not in env:
                if parameter.default is None:
                    raise TypeError(f"{self.name}() needs the argument {parameter.name!r}")
                env[parameter.name] = parameter.default({})
        return env

    def __deepcopy__(self, memo: dict) -> Function:
        return self

    def __repr__(self) -> str:
        return f"<TorchScript function {self.name}>"


class ScriptClass:
    """A class of an archive. `kind`: Module, NamedTuple, or an empty text. `constants`: values that the code gives to
    the class. `fields`: names of the annotated attributes."""

    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.fields: list[str] = []
        self.constants: dict[str, Any] = {}
        self.methods: dict[str, Function] = {}

    @property
    def last(self) -> str:
        """The name without the path."""
        return self.name.rpartition(".")[2]

    def __deepcopy__(self, memo: dict) -> ScriptClass:
        return self

    def __repr__(self) -> str:
        return f"<TorchScript class {self.name}>"


class Object:
    """An object of a class that is not a module."""

    def __init__(self, kind: ScriptClass):
        self.kind, self.values = kind, dict[str, Any]()

    def __repr__(self) -> str:
        return f"<{self.kind.last} object>"


class Record(tuple):
    """A named tuple of a class of an archive; fields are attributes."""

    _kind: ScriptClass

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(self._kind.fields)

    def __getattr__(self, name: str) -> Any:
        kind = self.__dict__.get("_kind")
        if kind is None or name not in kind.fields:
            raise AttributeError(name)
        return self[kind.fields.index(name)]

    def __repr__(self) -> str:
        return f"{self._kind.last}({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self))})"


def record(kind: ScriptClass, args: tuple | list, named: dict[str, Any]) -> Record:
    """A named tuple of its fields."""
    values = [*args, *[named[name] for name in kind.fields[len(args) :] if name in named]]
    if len(values) != len(kind.fields):
        raise TypeError(f"{kind.last} has {len(kind.fields)} fields, and {len(values)} were given")
    made = Record(values)
    made._kind = kind
    return made


class Instance:
    """An object of the pickle: a class and a state. `load.py` builds the module."""

    def __init__(self, kind: ScriptClass):
        self.kind = kind
        self.state: Any = None
