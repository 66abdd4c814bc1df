"""Attributes and methods of the values of a program. Python's attributes are never looked up."""

from __future__ import annotations

from typing import Any

from .module import ScriptModule
from .values import Function, Object, Record, ScriptClass, record


def attribute(value: Any, name: str) -> Any:
    """An attribute of a module, an object, or a named tuple of an archive."""
    if isinstance(value, ScriptModule):
        return value.script_attribute(name)
    if isinstance(value, Object):
        if name in value.values:
            return value.values[name]
        if name in value.kind.constants:
            return value.kind.constants[name]
    if isinstance(value, Record) and name in value._kind.fields:
        return value[value._kind.fields.index(name)]
    raise AttributeError(f"a {shown(value)} has no attribute {name!r}")


def set_attribute(value: Any, name: str, to: Any) -> None:
    """Set an attribute of a module or an object of an archive."""
    if isinstance(value, ScriptModule):
        value.set_script_attribute(name, to)
    elif isinstance(value, Object):
        value.values[name] = to
    else:
        raise AttributeError(f"attributes of a {shown(value)} cannot be set")


def method(value: Any, name: str) -> Function:
    """A method of a module or an object of an archive."""
    kind = value.script_class if isinstance(value, ScriptModule) else value.kind if isinstance(value, Object) else None
    if kind is None or name not in kind.methods:
        raise AttributeError(f"a {shown(value)} has no method {name!r}")
    return kind.methods[name]


def shown(value: Any) -> str:
    """What a value is, for messages."""
    return value.script_class.last if isinstance(value, ScriptModule) else type(value).__name__


def create(kind: Any, args: list[Any] | None = None, named: dict[str, Any] | None = None) -> Any:
    """An object of a class of an archive, without its __init__; a named tuple of its fields."""
    if not isinstance(kind, ScriptClass):
        raise TypeError(f"{kind!r} is not a class")
    if kind.kind == "NamedTuple":
        return record(kind, args or [], named or {})
    if kind.kind:
        raise TypeError(f"programs do not make objects of the class {kind.last}")
    return Object(kind)


def entered(value: Any) -> Any:
    """What `with value:` begins with."""
    return method(value, "__enter__").call([value], {})


def left(value: Any) -> None:
    """What `with value:` ends with."""
    method(value, "__exit__").call([value, None, None, None], {})
