"""Write `rushlight/__init__.pyi` and `rushlight/tensor.pyi`: what editors and mypy see of names made from the op table.

make stubs          writes them; tests/test_stubs.py says when they are out of date
"""

from __future__ import annotations

import builtins
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import rushlight
from rushlight.ops.table import PUBLIC, Op
from rushlight.size import Size
from rushlight.tensor import Tensor

PACKAGE = Path(rushlight.__file__).parent

# torch's names hide some of Python's (`rushlight.float` is a dtype, `Tensor.int` a method), so these get an underscore
HIDDEN = (
    "bool",
    "bytes",
    "complex",
    "dict",
    "float",
    "int",
    "list",
    "object",
    "range",
    "set",
    "slice",
    "str",
    "tuple",
    "type",
)

HEADER = f"""\
# Written by `make stubs` from the op table and the functions of the package: do not edit.
# ruff: noqa
# mypy: disable-error-code="misc, override"
{chr(10).join(f"from builtins import {name} as _{name}" for name in HIDDEN)}
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as _np

"""
KNOWN = {Callable: "Callable", Any: "Any", types.NoneType: "None", None: "None", inspect.Parameter.empty: "Any"}
GENERIC = {"Callable", "Iterable", "Iterator", "Mapping", "Sequence"}
NUMBER = "_int | _float | _complex"


def shown(annotation: Any) -> str:
    """A type as the stubs write it; what they have no name for is Any."""
    if annotation in KNOWN:
        return KNOWN[annotation]
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = list(dict.fromkeys(shown(part) for part in inside))
        return "Any" if "Any" in parts else " | ".join(parts)
    if origin is not None:
        name = shown(origin)
        if name in GENERIC | {"_tuple", "_list", "_dict", "_type", "_set"}:
            return f"{name}[{', '.join(map(argument, inside))}]" if inside else name
        return "Any"
    return named(annotation)


def named(annotation: Any) -> str:
    name = getattr(annotation, "__name__", "")
    if getattr(builtins, name, None) is annotation:
        return f"_{name}" if name in HIDDEN else "Any"
    if name in GENERIC and annotation.__module__ == "collections.abc":
        return name
    if annotation in (Tensor, Size, rushlight.dtype, rushlight.device):
        return f"_{name}"
    return "_np.ndarray" if name == "ndarray" else "Any"


def argument(inside: Any) -> str:
    """One argument of a generic type."""
    if inside is Ellipsis:
        return "..."
    return f"[{', '.join(map(shown, inside))}]" if isinstance(inside, list) else shown(inside)


def annotations(function: Callable) -> dict[str, Any]:
    """The evaluated annotations; those that name what only type checkers see are left out."""
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        return {}


def signature(function: Callable) -> tuple[list[str], str]:
    """Parameters and return type of a function of Python."""
    types_of, parts, bare = annotations(function), [], False
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            bare = True
        if p.kind is p.KEYWORD_ONLY and not bare:
            parts.append("*")
            bare = True
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = " = ..." if p.default is not p.empty else ""
        parts.append(f"{stars}{p.name}: {shown(types_of.get(p.name, p.empty))}{default}")
        if p.kind is p.POSITIONAL_ONLY and all_keyword_after(function, p.name):
            parts.append("/")
    return parts, shown(types_of.get("return", inspect.Parameter.empty))


def all_keyword_after(function: Callable, name: str) -> bool:
    """Whether this is the last positional-only parameter."""
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_ONLY]
    return names[-1] == name


def op_signature(op: Op) -> tuple[list[str], str]:
    """Parameters and return type of an entry of the table."""
    names = op.options.get("order", " ".join(op.inputs + op.settings)).split()
    public = {**PUBLIC, **op.options.get("names", {})}
    parts = []
    for i, name in enumerate(names):
        if name == op.options.get("variadic"):
            parts.append(f"*{public.get(name, name)}: Any")
            continue
        default = " = ..." if name in op.defaults or any("..." in part for part in parts) else ""
        parts.append(f"{public.get(name, name)}: {op_type(op, name, i)}{default}")
    return [*parts, *extras(op, parts)], result(op)


def op_type(op: Op, name: str, place: int) -> str:
    if name == "tensors":
        return "Sequence[_Tensor]"
    if name in op.inputs:
        return f"_Tensor | {NUMBER}" if op.elementwise and place else "_Tensor"
    default = op.defaults.get(name)
    return f"_{type(default).__name__}" if isinstance(default, (bool, float, str)) else "Any"


def extras(op: Op, parts: list[str]) -> list[str]:
    """What the family adds to the parameters."""
    if op.family.__name__ == "view":
        return []
    more = ["dim: Any = ...", "keepdim: _bool = ..."] if op.family.__name__ == "reduction" and len(parts) == 1 else []
    star = [] if any(part.startswith("*") for part in parts) else ["*"]
    return [*more, *star, *(["dtype: Any = ..."] if more else []), "out: Any = ..."]


def result(op: Op) -> str:
    if op.options.get("list"):
        return "_tuple[_Tensor, ...]"
    return "Any" if " " in op.options.get("outputs", "") else "_Tensor"


def definition(name: str, function: Callable, indent: str = "") -> str:
    """The stub of one function or method."""
    op = getattr(function, "op", None)
    if isinstance(op, Op):
        parts, returns = op_signature(op)
        if indent and "order" in op.options:  # polygamma(n, x) is x.polygamma(n)
            parts.sort(key=lambda part: not part.startswith("input:"))
        if name.endswith("_") and not name.startswith("__"):
            parts = [part for part in parts if not part.startswith("out:")]
            parts = parts[:-1] if parts[-1] == "*" else parts
    else:
        parts, returns = signature(function)
    if indent:
        parts[:1] = ["self"] if parts and not parts[0].startswith("*") else ["self", *parts[:1]]
    return f"{indent}def {name}({', '.join(parts)}) -> {returns}: ..."


def package() -> str:
    """The stub of `rushlight` itself."""
    lines = ["from rushlight.tensor import Tensor as Tensor, Tensor as _Tensor"]
    lines += ["from rushlight.dtypes import dtype as dtype, dtype as _dtype, finfo as finfo, iinfo as iinfo"]
    lines += ["from rushlight.device import device as device, device as _device"]
    lines += ["from rushlight.size import Size as Size, Size as _Size"]
    written = {"Tensor", "dtype", "finfo", "iinfo", "device", "Size"}
    for name in sorted(set(dir(rushlight)) - written):
        if name.startswith("_") and name != "__version__":
            continue
        lines += entry(name)
    return HEADER + "\n".join(lines) + "\n"


def entry(name: str) -> list[str]:
    """The lines for one name of the package; none for what is not there yet."""
    try:
        value = getattr(rushlight, name)
    except ImportError:
        return []
    if isinstance(value, types.ModuleType):
        own = value.__name__.startswith("rushlight.") and "." not in value.__name__.removeprefix("rushlight.")
        return [f"from rushlight import {name} as {name}"] if own else []
    if inspect.isclass(value):
        return [f"from {value.__module__} import {value.__name__} as {name}"]
    if callable(value):
        return [definition(name, value)]
    return [f"{name}: {shown(type(value))}"]


def tensor() -> str:
    """The stub of `rushlight.tensor`: class Tensor with all that attached itself."""
    lines = ["from rushlight.dtypes import dtype as _dtype", "from rushlight.device import device as _device"]
    lines += ["from rushlight.size import Size as _Size", "", "class Tensor:"]
    for name, value in sorted(vars(Tensor).items()):
        lines += member(name, value)
    lines += ["", "_Tensor = Tensor", ""]
    lines += helpers(sys.modules["rushlight.tensor"])
    return HEADER + "\n".join(lines) + "\n"


SKIPPED = {"__dict__", "__weakref__", "__module__", "__doc__", "__slots__", "__annotations__", "__class_getitem__"}


def member(name: str, value: Any) -> Iterable[str]:
    private = name.startswith("_") and not name.startswith("__")
    if name in SKIPPED or (private and not isinstance(value, types.MemberDescriptorType)):
        return
    if isinstance(value, property):
        hints = annotations(value.fget) if value.fget else {}
        returns = shown(hints.get("return", inspect.Parameter.empty))
        yield f"    @property\n    def {name}(self) -> {returns}: ..."
        if value.fset:
            yield f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ..."
    elif isinstance(value, (classmethod, staticmethod)):
        parts, returns = signature(value.__func__)
        yield f"    @{type(value).__name__}\n    def {name}({', '.join(parts)}) -> {returns}: ..."
    elif isinstance(value, types.MemberDescriptorType):
        yield f"    {name}: {SLOTS.get(name, 'Any')}"
    elif callable(value):
        yield definition(name, value, "    ")
    else:
        yield f"    {name}: {shown(type(value))}"


SLOTS = {"array": "_np.ndarray", "_grad": "_Tensor | None"}


def helpers(module: types.ModuleType) -> list[str]:
    """The module's other functions and classes, for those inside the package that use them."""
    lines = []
    for name, value in sorted(vars(module).items()):
        if getattr(value, "__module__", None) != module.__name__ or value is Tensor or name.startswith("__"):
            continue
        lines.append(definition(name, value) if inspect.isfunction(value) else f"{name}: Any")
    return lines


STUBS = {"__init__.pyi": package, "tensor.pyi": tensor}

if __name__ == "__main__":
    for file, write in STUBS.items():
        (PACKAGE / file).write_text(write())
        print(PACKAGE / file)
