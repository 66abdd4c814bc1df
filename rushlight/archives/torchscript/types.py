"""TorchScript's types, as syntax trees: `isinstance` of a value."""

from __future__ import annotations

import ast
from typing import Any

from rushlight.core.tensor import Tensor

from .syntax import dotted
from .values import Object, Record

PLAIN: dict[str, tuple[type, ...]] = {
    "Tensor": (Tensor,), "int": (int,), "float": (float,), "str": (str,), "bool": (bool,), "NoneType": (type(None),),
    "number": (int, float, complex), "complex": (complex,), "list": (list,), "tuple": (tuple,),
}  # fmt: skip


def fits(value: Any, kind: ast.AST) -> bool:
    """Whether a value has a type, or one of several types in a list."""
    if isinstance(kind, (ast.List, ast.Tuple)):
        return any(fits(value, part) for part in kind.elts)
    if isinstance(kind, ast.Constant) and kind.value is None:
        return value is None
    if isinstance(kind, ast.Subscript):
        return fits_container(value, dotted(kind.value), kind.slice)
    name = dotted(kind)
    if name in PLAIN:
        return isinstance(value, PLAIN[name]) and not (name == "int" and isinstance(value, bool))
    found = value.kind if isinstance(value, Object) else value._kind if isinstance(value, Record) else None
    return found is not None and found.name == name


def fits_container(value: Any, name: str | None, inner: ast.AST) -> bool:
    """Whether a value is a container of elements of a type."""
    if name == "Optional":
        return value is None or fits(value, inner)
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name == "Union":
        return any(fits(value, part) for part in parts)
    if name == "List":
        return isinstance(value, list) and all(fits(v, inner) for v in value)
    if name == "Tuple":
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(fits, value, parts))
    if name == "Dict":
        return isinstance(value, dict) and all(fits(k, parts[0]) and fits(v, parts[-1]) for k, v in value.items())
    return False
