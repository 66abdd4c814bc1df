"""Write `rushlight/__init__.pyi` and `rushlight/_methods.pyi`: what editors and mypy see of names made from the table;
and `rushlight/core/method_names.py`: the methods of Tensor that are loaded later.

make stubs          writes them; tests/tools/test_stubs.py says when they are out of date

What a module defines is imported from there, so that an editor finds its source and docstring. What is derived from an
entry is spelled out, with the first lines of its docstring."""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import inspect
import os
import sys
import textwrap
import types
import typing
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import rushlight
from rushlight.base.public_function import private
from rushlight.core.tensor import Tensor

AT_ONCE = {*vars(Tensor)}  # before more is loaded

from rushlight import nn  # noqa: E402
from rushlight.base.return_types import RETURN_TYPES  # noqa: E402
from rushlight.core.table import NAMESPACES, Op  # noqa: E402
from rushlight.introspect import op_docstrings  # noqa: E402
from rushlight.nn.layer_settings import Layer  # noqa: E402

PACKAGE = Path(rushlight.__file__).parent

# torch's names hide some of Python's (`rushlight.float` is a dtype, `Tensor.int` a method), so these get an underscore
HIDDEN = ("bool", "bytes", "complex", "dict", "float", "int", "list", "object", "set", "slice", "str", "tuple", "type")
GENERIC = {"Callable", "Iterable", "Iterator", "Mapping", "Sequence"}

HEADER = """\
# Written by `make stubs` from the op table and the functions of the package: do not edit.
# ruff: noqa
# mypy: disable-error-code="misc, override"
{builtins}
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal as _Literal, NamedTuple as _NamedTuple, TypeAlias as _TypeAlias, overload as _overload

import numpy as _np

from rushlight.core.tensor import Tensor as _Tensor
"""
ALIASES = """
_Number: _TypeAlias = _bool | _int | _float | _complex
_Operand: _TypeAlias = _Tensor | _Number | _np.ndarray
"""

# -- types as the stubs write them -----------------------------------------------------------------

imports: set[str] = set()  # lines that the types written so far need; emptied for each stub


def shown(annotation: Any) -> str:
    """An evaluated annotation; Any if the stubs have no name for it."""
    if annotation is None or annotation is types.NoneType:
        return "None"
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = list(dict.fromkeys(shown(part) for part in inside))
        return "Any" if "Any" in parts else " | ".join(parts)
    if origin is not None:
        name = named(origin)
        return f"{name}[{', '.join(map(argument, inside))}]" if inside and name != "Any" else name
    bare = {dict: "_dict[Any, Any]", tuple: "_tuple[Any, ...]", list: "_list[Any]", Callable: "Callable[..., Any]"}
    return bare.get(annotation) or named(annotation)


def argument(inside: Any) -> str:
    """One argument of a generic type."""
    if inside is Ellipsis:
        return "..."
    return f"[{', '.join(map(shown, inside))}]" if isinstance(inside, list) else shown(inside)


def named(annotation: Any) -> str:
    """A class by its name in the stubs; classes of the package are imported."""
    name, module = getattr(annotation, "__name__", ""), getattr(annotation, "__module__", "")
    if getattr(builtins, name, None) is annotation:
        return f"_{name}" if name in HIDDEN else "Any"
    if module == "collections.abc" and name in GENERIC:
        return name
    if annotation is Tensor:
        return "_Tensor"
    if inspect.isclass(annotation) and module.startswith("rushlight."):
        imports.add(f"from {module} import {name} as _{name}")
        return f"_{name}"
    return "_np.ndarray" if name == "ndarray" else "Any"


def annotations(function: Callable) -> dict[str, Any]:
    """The evaluated annotations, those with names that are imported for type checkers alone, too."""
    home = sys.modules.get(getattr(inspect.unwrap(function), "__globals__", {}).get("__name__", ""))
    try:
        return typing.get_type_hints(function, localns=names_for_checkers(home) if home else None)
    except (NameError, TypeError):
        return {}


@cache
def names_for_checkers(module: types.ModuleType) -> dict[str, Any]:
    """The names that the module imports under `if TYPE_CHECKING:`."""
    found: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for statement in node.body:
                if isinstance(statement, (ast.Import, ast.ImportFrom)):
                    with contextlib.suppress(ImportError):  # a stub without a module
                        exec(compile(ast.Module([statement], []), "<import>", "exec"), found)
    return found


# -- functions made from entries -------------------------------------------------------------------

SETTINGS = dict.fromkeys(
    ("dim", "dim0", "dim1", "start_dim", "end_dim", "new_dim", "k", "n", "start", "length", "index", "size", "step"),
    "_int",
) | {"dims": "_int | Sequence[_int] | None"}


def types_of(op: Op) -> dict[str, str]:
    """The types of an entry's parameters, by their public names."""
    imports.add("from rushlight.base.dtypes import dtype as _dtype")
    found = {"out": "Any" if op.options.get("outputs") else "_Tensor | None", "dtype": "_dtype | None"}
    for place, name in enumerate(op_docstrings.in_order(op)):
        found[op_docstrings.public(op, name)] = type_of(op, name, place)
    return found


def type_of(op: Op, name: str, place: int) -> str:
    if name == "tensors":
        return "Sequence[_Tensor]"
    if name in op.inputs:
        return "_Operand" if op.elementwise and place else "_Tensor"
    if name == op.options.get("variadic"):
        return "Any"  # numbers, or one sequence of them
    default = op.defaults.get(name)
    known = SETTINGS.get(name) or (f"_{type(default).__name__}" if isinstance(default, (bool, int, float)) else "Any")
    if op_docstrings.family(op) == "reduction" and name == "dim":
        known = "_int | Sequence[_int]"
    optional = name in op.defaults and default is None and not known.endswith(("Any", "None"))
    return f"{known} | None" if optional else known


def result(op: Op) -> str:
    if op.options.get("list"):
        return "_tuple[_Tensor, ...]"
    return return_type(op.options["outputs"].split()) if op.options.get("outputs") else "_Tensor"


def return_type(fields: list[str]) -> str:
    """The named tuple of an op with several outputs."""
    name = "".join(field.capitalize() for field in fields)
    imports.add("\n".join([f"class _{name}(_NamedTuple):", *(f"    {field}: _Tensor" for field in fields), ""]))
    return f"_{name}"


# Functions whose result depends on the arguments: the parameters after the input, and the result.
VALUES_INDICES = "_ValuesIndices"
BY_DIMENSION = (("", "_Tensor"), ("dim: _int, keepdim: _bool = ..., *, out: Any = ...", VALUES_INDICES))
OF_TWO = ("other: _Tensor, *, out: _Tensor | None = ...", "_Tensor")
OVERLOADS = {
    "max": (*BY_DIMENSION, OF_TWO),
    "min": (*BY_DIMENSION, OF_TWO),
    "median": BY_DIMENSION,
    "nanmedian": BY_DIMENSION,
    "where": (
        ("input: _Operand, other: _Operand, *, out: _Tensor | None = ...", "_Tensor"),
        ("", "_tuple[_Tensor, ...]"),
    ),
    "nonzero": (
        ("*, out: _Tensor | None = ..., as_tuple: _Literal[False] = ...", "_Tensor"),
        ("*, as_tuple: _Literal[True]", "_tuple[_Tensor, ...]"),
    ),
    "type": (
        ("dtype: _dtype | _str, non_blocking: _bool = ...", "_Tensor"),
        ("dtype: None = ..., non_blocking: _bool = ...", "_str"),
    ),
}


def overloads(name: str, input: str) -> str:
    """The stubs of a function with several results; `input` is its first parameter."""
    imports.add("from rushlight.base.dtypes import dtype as _dtype")
    return_type(["values", "indices"])
    return "\n".join(
        f"@_overload\ndef {name}({', '.join(filter(None, (input, rest)))}) -> {returns}: ..."
        for rest, returns in OVERLOADS[name]
    )


# -- definitions -----------------------------------------------------------------------------------


def definition(name: str, function: Callable, method: bool = False) -> str:
    """The stub of one function or method."""
    op = getattr(function, "op", None)
    if isinstance(op, Op):
        typed, returns = types_of(op), result(op)
    else:
        hints = annotations(function)
        typed, returns = {key: shown(hint) for key, hint in hints.items()}, shown(hints.get("return", Any))
        named = RETURN_TYPES.get(name) or RETURN_TYPES.get(function.__name__)
        if returns == "Any" and named is not None and name != "histogramdd":
            returns = return_type(list(named._fields))  # type: ignore[attr-defined]
    parameters = list(inspect.signature(function).parameters.values())
    if name in OVERLOADS and returns == "Any":
        return overloads(name, "self" if method else f"{parameters[0].name}: _Tensor")
    if method:
        parameters.remove(next((p for p in parameters if p.name == "input"), parameters[0]))
    if returns == "Any" and "return_indices" in typed:
        return with_or_without_indices(name, parameters, typed)
    written = ", ".join((["self"] if method else []) + listed(parameters, typed))
    return f"def {name}({written}) -> {returns}: {summary(op) if isinstance(op, Op) else '...'}"


def with_or_without_indices(name: str, parameters: list[inspect.Parameter], typed: dict[str, str]) -> str:
    """The stubs of a pooling function, which returns a tensor or (values, indices)."""
    alone = listed(parameters, typed | {"return_indices": "_Literal[False]"})
    both = ["*", "return_indices: _Literal[True]"]
    rest = listed([p for p in parameters if p.name != "return_indices"], typed)
    return (
        f"@_overload\ndef {name}({', '.join(alone)}) -> _Tensor: ...\n"
        f"@_overload\ndef {name}({', '.join(rest + both)}) -> _tuple[_Tensor, _Tensor]: ...\n"
        f"@_overload\ndef {name}({', '.join(listed(parameters, typed))}) -> Any: ..."
    )


def listed(parameters: list[inspect.Parameter], typed: dict[str, str]) -> list[str]:
    """Parameters as a stub lists them."""
    parts, previous = [], None
    for p in parameters:
        if previous is p.POSITIONAL_ONLY and p.kind is not previous:
            parts.append("/")
        if p.kind is p.KEYWORD_ONLY and previous not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            parts.append("*")
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        parts.append(f"{stars}{p.name}: {typed.get(p.name, 'Any')}" + (" = ..." if p.default is not p.empty else ""))
        previous = p.kind
    return [*parts, "/"] if previous is inspect.Parameter.POSITIONAL_ONLY else parts


def summary(op: Op) -> str:
    """The formula and the description, in one line."""
    known = op_docstrings.text_of_subject(op)
    parts = [known.formula or op_docstrings.headline(op), op_docstrings.sentence(op)]
    return '"""' + ". ".join(filter(None, parts)).replace("\\", "\\\\") + '"""'


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
OPERATORS = {f"__{kind}{name}__" for name in BINARY for kind in ("", "r", "i")} | {
    f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


def operator(name: str) -> str:
    """The stub of an operator: only the arguments that Python passes."""
    if name in OPERATORS:
        return f"def {name}(self, other: Any) -> _Tensor: ..."
    return f"def {name}(self) -> _Tensor: ..."


# -- the stubs -------------------------------------------------------------------------------------


def stub(lines: list[str]) -> str:
    head = HEADER.format(builtins="\n".join(f"from builtins import {name} as _{name}" for name in HIDDEN))
    needed = sorted(imports, key=lambda line: (line.startswith("class"), line))
    imports.clear()
    return head + "\n".join(needed) + ALIASES + "\n" + "\n".join(lines) + "\n"


def package() -> str:
    """The stub of `rushlight` itself."""
    return stub([line for name, value in sorted(everything().items()) for line in entry(name, value)])


def everything() -> dict[str, Any]:
    """The package's names, those that are loaded on first use too; none for what is not there yet."""
    found = {}
    for name in dir(rushlight):
        with contextlib.suppress(ImportError, AttributeError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # names that torch has but advises against
            found[name] = getattr(rushlight, name)
    return found


# classes whose `__module__` is the module that users know
DEFINED_IN = {
    "Tensor": "rushlight.core.tensor",
    "LinAlgError": "rushlight.base.errors",
    "OutOfMemoryError": "rushlight.compat.names.cuda",
}


def entry(name: str, value: Any) -> Iterator[str]:
    """The line for one name of the package; none for what is not for users."""
    value = private(value)
    module = DEFINED_IN.get(name) or getattr(value, "__module__", None) or "rushlight"
    if name.startswith("_") and name != "__version__" or isinstance(value, dict) or module == "typing":
        return
    if isinstance(value, types.ModuleType):
        if callable(value):  # `rushlight.compile(f)`: for type checkers the function alone
            yield f"from {value.__name__} import {name} as {name}"
        elif name in (*rushlight._LAZY, "autograd"):
            package = seen_by_checkers(value.__name__).rpartition(".")[0]
            yield f"from {package} import {name} as {name}"
    elif inspect.isclass(value) and name_in(module, value, name) is None:
        yield f"{name}: _type[Any]"  # made in a loop: FloatTensor
    elif inspect.isclass(value) or defined(value):
        own = name_in(module, value, name) or value.__name__
        if module.startswith("rushlight") and own == name:
            yield f"from {seen_by_checkers(module)} import {name} as {name}"
        elif module.startswith("rushlight"):
            # only under its own name would the import count as public
            yield f"from {seen_by_checkers(module)} import {own} as _{own}\n{name} = _{own}"
    elif callable(value):
        yield definition(name, value)
    elif type(value).__module__.startswith(("rushlight", "builtins")):
        yield f"{name}: {shown(type(value))}"


def name_in(module: str, value: Any, name: str) -> str | None:
    """The name of a class or function in its module: `name`, or the value's own."""
    home = sys.modules.get(module)
    return next((n for n in (name, value.__name__) if getattr(home, n, None) is value), None)


def seen_by_checkers(module: str) -> str:
    """Where type checkers find a module: they do not know that `rushlight.cuda` is in compat/names."""
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    inside = f"compat{os.sep}names{os.sep}" in file
    return module.replace("rushlight.", "rushlight.compat.names.", 1) if inside else module


def defined(function: Any) -> bool:
    """Whether a module defines the function by `def`, so that a type checker can see it there."""
    code = getattr(function, "__code__", None)
    home = sys.modules.get(getattr(function, "__module__", ""))
    return (
        code is not None
        and not code.co_flags & inspect.CO_NESTED
        and code.co_name == function.__name__
        and getattr(home, function.__name__, None) is function
    )


def methods() -> str:
    """The stub of `rushlight._methods`: what attached itself to Tensor, which in type checkers' eyes it inherits."""
    everything()  # which may attach more
    lines = [
        textwrap.indent(text, "    ") for name in sorted(vars(Tensor)) for text in member(name, vars(Tensor)[name])
    ]
    return stub(["class Methods:", *lines])


NAMES = '''\
"""Methods of Tensor that load on first use. Written by `make stubs`."""

METHODS = """
{}
"""
'''


def names() -> str:
    """The module `rushlight.ops.tensor.method_names`."""
    everything()
    found = sorted(name for name in vars(Tensor).keys() - AT_ONCE if not name.startswith("__"))
    return NAMES.format(textwrap.fill(" ".join(found), 100))


def member(name: str, value: Any) -> Iterator[str]:
    function = value.fget if isinstance(value, property) else value
    if not inspect.isfunction(function) or function.__qualname__.startswith("Tensor."):
        return  # the class defines it itself
    if isinstance(value, property):
        yield (f"@property\ndef {name}(self) -> {shown(annotations(function).get('return', Tensor))}: ...")
    elif name == "__getattr__":
        return  # or type checkers would take any name
    elif name.startswith("__"):
        special = name not in OPERATORS and not hasattr(function, "op") and name != "__pos__"
        yield definition(name, function, method=True) if special else operator(name)
    elif not name.startswith("_"):
        yield definition(name, function, method=True)


def namespace(space: str) -> str:
    """The stub of linalg, fft, special or nn.functional."""
    module = importlib.import_module(f"rushlight.{space}")
    public = {
        name: value
        for name, value in sorted(vars(module).items())
        if callable(value) and not name.startswith("_") and name != "members"
    }
    return stub([line for name, value in public.items() for line in entry(name, value)])


def layers() -> str:
    """The stub of nn: classes that get methods from another signature are spelled out."""
    public = {name: value for name, value in sorted(vars(nn).items()) if not name.startswith("_")}
    return stub([line for name, value in public.items() for line in layer(name, value) or entry(name, value)])


def layer(name: str, value: Any) -> list[str]:
    """The stub of a layer or lazy layer, or the import of a module of nn; nothing for other values."""
    if isinstance(value, types.ModuleType):
        home, _, own = value.__name__.rpartition(".")
        return [f"from {home} import {own} as {name}"]
    if not (inspect.isclass(value) and issubclass(value, (Layer, nn.lazy.LazyModuleMixin))):
        return []
    imports.update(f"from {base.__module__} import {base.__name__} as _{base.__name__}" for base in value.__bases__)
    methods = "".join(method(m, getattr(value, m)) for m in ("__init__", "forward"))
    return [f"class {name}({', '.join('_' + base.__name__ for base in value.__bases__)}):{methods}"]


def method(name: str, function: Callable) -> str:
    """The stub of a method of a layer."""
    typed = {key: shown(hint) for key, hint in annotations(function).items()}
    _, *parameters = inspect.signature(function).parameters.values()
    returns = "None" if name == "__init__" else typed["return"]
    return f"\n    def {name}({', '.join(['self', *listed(parameters, typed)])}) -> {returns}: ..."


STUBS: dict[str, Callable[[], str]] = {
    "__init__.pyi": package,
    "_methods.pyi": methods,
    "ops/tensor/method_names.py": names,
    **{f"{space}.pyi": partial(namespace, space) for space in NAMESPACES},
    "nn/__init__.pyi": layers,
    "nn/functional/__init__.pyi": partial(namespace, "nn.functional"),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE
    for file, write in STUBS.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(write())
        print(folder / file)
